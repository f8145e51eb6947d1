"""DistDiffGen's recipe: tables of every attribute with the class, a cut through the attributes' trees, its leaves.

Everything but the two encrypted sums is post-processing. The cut and the model are remembered, so that a restart asks
for the same leaves and publishes the same rows.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from synod.common.crypto.canonical import Json
from synod.common.methods.distdiffgen import DistDiffGen, other_trees
from synod.common.models.trees import children_of
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.base import Query
from synod.common.protocol.queries.marginals import SumMarginals
from synod.common.protocol.queries.noise_runs import Counts
from synod.common.study.features import sizes_of
from synod.common.study.study import Study
from synod.curator.cuts.choice import Floats, Groups, choose_cuts
from synod.curator.drawing.trees import open_tree
from synod.curator.methods.base import Numbers, Parties, Publication, Publisher, Released, register, sum_variances
from synod.curator.network.tables import project_tables
from synod.curator.release.report.models.cuts import NOT_SPLIT, cut_error, describe_cut
from synod.curator.structure.grouped import GroupedFeatures
from synod.curator.structure.model import draw_model, hang_cliques, write_model

UNIFORM_ADVICE = (
    "At most {most} of the {others} columns beside {target} can be split within {leaves:,} leaves and their classes: "
    "{rest} or more come out uniform over their domain, whatever they are in the rows."
)


async def publish(study: Study, parties: Parties, *, rng: np.random.Generator) -> Publication:
    """Tables with the class, the cut that they call for, the leaves of the cut.

    Guarantee: each of the two sums costs what the plan says; the rest is post-processing.
    """
    del rng
    released: list[Released] = []
    groups = _roots(study)
    if len(groups) > 1:
        tables = await parties.ask("classes", _ask_classes(study))
        variances = sum_variances(study, parties, "classes", _ask_classes(study))
        released = _release_classes(study, tables, variances)
        noted: Any = await parties.remember("cuts", partial(_choose, study, tables))
        groups = [tuple(own) for own in noted]
    counts = await parties.ask("leaves", _ask_leaves(groups))
    (variance,) = sum_variances(study, parties, "leaves", _ask_leaves(groups))
    model = await parties.remember("model", partial(_write, study, groups, counts[0], variance))
    return Publication([], model, tables=released or _release_class(study, counts[0], variance))


def _roots(study: Study) -> list[Groups]:
    """Every attribute in one part, and the class attribute in its classes."""
    roots: list[Groups] = [(0,) * size for size in sizes_of(study)]
    roots[_target(study)] = _method(study).class_groups(study)
    return roots


def _ask_classes(study: Study) -> SumMarginals:
    """Every other attribute, by value, with the class."""
    target, sizes = _target(study), sizes_of(study)
    groups = [tuple(range(size)) for size in sizes]
    groups[target] = _roots(study)[target]
    sets = [tuple(sorted((feature, target))) for feature in range(len(sizes)) if feature != target]
    return GroupedFeatures(tuple(groups), ()).ask_tables(sets, [1.0] * len(sets))


def _class_tables(study: Study, counts: Sequence[Counts]) -> dict[int, Counts]:
    """The answer as a row for each value and a column for each class."""
    target, sizes = _target(study), sizes_of(study)
    others = [feature for feature in range(len(sizes)) if feature != target]
    pairs = zip(others, counts, strict=True)
    return {f: c.reshape(sizes[f], -1) if f < target else c.reshape(-1, sizes[f]).T for f, c in pairs}


def _release_classes(study: Study, counts: Sequence[Counts], variances: Sequence[float]) -> list[Released]:
    """The tables of pairs by value; where classes are groups of values, each other attribute alone."""
    query, rows = _ask_classes(study), study.total_rows
    if not query.groupings:
        tables = zip(query.sets, counts, variances, strict=True)
        return [Released(pair, own.astype(np.float64), rows, variance) for pair, own, variance in tables]
    alone = zip(_class_tables(study, counts).items(), variances, strict=True)
    return [
        Released((feature,), table.sum(axis=1).astype(np.float64), rows, variance * table.shape[1])
        for (feature, table), variance in alone
    ]


def _choose(study: Study, counts: Sequence[Counts]) -> Json:
    """The part of each value of each feature."""
    groups = _roots(study)
    tables = {f: _project(table, study.total_rows) for f, table in _class_tables(study, counts).items()}
    cuts = _cut(study, tables)
    return [list(cuts.get(feature, own)) for feature, own in enumerate(groups)]


def _project(table: Counts, rows: int) -> Floats:
    return project_tables(table.ravel(), rows).reshape(table.shape)


def _cut(study: Study, tables: Mapping[int, Floats]) -> dict[int, Groups]:
    method, target = _method(study), _target(study)
    classes = max(method.class_groups(study)) + 1
    room = plan_study(study).step("leaves").limit.cells // classes
    trees = other_trees(study, target)
    return choose_cuts(trees, tables, specializations=method.specializations, most_parts=room)


def _ask_leaves(groups: Sequence[Groups]) -> SumMarginals:
    """One table of all attributes that were split, in their parts, and of the class."""
    return GroupedFeatures(tuple(groups), ()).ask_together()


def _write(study: Study, groups: Sequence[Groups], counts: Counts, variance: float) -> Json:
    """One clique of the leaves, and one of each attribute that was never split; inside its part a value is uniform."""
    sizes = tuple(max(own) + 1 for own in groups)
    split = tuple(feature for feature, size in enumerate(sizes) if size > 1)
    whole = [feature for feature, size in enumerate(sizes) if size == 1]
    cliques = (split, *((feature,) for feature in whole))
    tree = hang_cliques(sizes, cliques, (-1, *[0] * len(whole)))
    shares = project_tables(counts, study.total_rows) / study.total_rows
    tables = [shares.reshape([sizes[feature] for feature in split]), *[np.ones(1)] * len(whole)]
    uniform = tuple(np.full(len(own), 1 / len(own)) for own in groups)
    grouped = GroupedFeatures(tuple(groups), uniform)
    return write_model(study, grouped, tree, tables, [(split, variance**0.5)])


def _release_class(study: Study, counts: Counts, variance: float) -> list[Released]:
    """The class attribute where no other varies, unless its classes are groups of values."""
    query = _ask_leaves(_roots(study))
    return [] if query.groupings else [Released((0,), counts.astype(np.float64), study.total_rows, variance)]


def warnings(study: Study) -> Sequence[str]:
    """What a cut cannot express."""
    del study
    return (NOT_SPLIT,)


def typical_queries(study: Study) -> Mapping[str, Query[Any]]:
    """The tables with the class, and the leaves of a cut that nothing is known about."""
    groups = _roots(study)
    if len(groups) == 1:
        return {"leaves": _ask_leaves(groups)}
    classes = max(groups[_target(study)]) + 1
    even = {f: np.ones((size, classes)) for f, size in enumerate(sizes_of(study)) if f != _target(study)}
    cuts = _cut(study, even)
    typical = [cuts.get(feature, own) for feature, own in enumerate(groups)]
    return {"classes": _ask_classes(study), "leaves": _ask_leaves(typical)}


def advise(study: Study, numbers: Numbers | None) -> Sequence[str]:
    """How many columns are sure to come out uniform; of real rows there is nothing to say."""
    if numbers is not None:
        return ()
    method, target = _method(study), _target(study)
    leaves, classes = plan_study(study).step("leaves").limit.cells, max(method.class_groups(study)) + 1
    branches = sorted(len(children_of(tree)) for tree in other_trees(study, target).values())
    most, parts = 0, classes
    while most < min(len(branches), method.specializations) and parts * branches[most] <= leaves:
        most, parts = most + 1, parts * branches[most]
    rest = len(branches) - most
    if not rest:
        return ()
    named = {"most": most, "others": len(branches), "target": method.target_name, "leaves": leaves, "rest": rest}
    return [UNIFORM_ADVICE.format(**named)]


def _target(study: Study) -> int:
    return _method(study).target_feature(study)


def _method(study: Study) -> DistDiffGen:
    assert isinstance(study.method, DistDiffGen)
    return study.method


register(
    "distdiffgen",
    Publisher(
        title="DistDiffGen, one table of generalized columns",
        publish=publish,
        describe=describe_cut,
        expected_error=cut_error,
        warnings=warnings,
        typical_queries=typical_queries,
        advise=advise,
        draw=draw_model,
        open_model=open_tree,
    ),
)
