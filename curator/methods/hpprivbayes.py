"""HPPrivBayes (Deng 2025) as a recipe, over one party or many.

What deviates from the paper, and why, is in docs/privacy.md: order, groups and weights come from one encrypted sum that
is paid for, both groups of tables are asked in one sum, and the weights of a table are divided by the largest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from synod.common.crypto.canonical import Json
from synod.common.methods.hpprivbayes import HpPrivBayes, attribute_names
from synod.common.methods.networks import resolved
from synod.common.models.candidates import count_options
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.base import Query
from synod.common.protocol.queries.marginals import Sets, SumMarginals
from synod.common.protocol.queries.parents import ChooseParents
from synod.common.study.encoding import Codes
from synod.common.study.features import base_count, base_sizes, chains_of, sizes_of
from synod.common.study.study import Study
from synod.curator.covers.views import design_views
from synod.curator.drawing.base import Answers, RowModel
from synod.curator.drawing.networks import open_network
from synod.curator.methods.base import ModelSection, Numbers, Parties, Publication, Publisher, register
from synod.curator.network.evidence import (
    Evidence,
    draw_in_turn,
    fit_tables,
    left_alone,
    model_to_json,
    without_parents,
)
from synod.curator.network.graph import Network, Pair, typical_families
from synod.curator.network.groups import (
    Groups,
    ask_tables,
    find_sensitive,
    order_by_information,
    split_model,
    weigh_values,
)
from synod.curator.network.information import estimate_information, simulate_noise
from synod.curator.network.levels import levels_of
from synod.curator.network.published import draw_published
from synod.curator.network.shortlists import Shortlists, shortlist_earlier
from synod.curator.network.tables import Floats, project_tables
from synod.curator.release.report.accuracy import table_error
from synod.curator.release.report.markup import join
from synod.curator.release.report.models.groups import describe_groups
from synod.curator.release.report.models.networks import describe_networks, warn_of_networks


@dataclass(frozen=True, slots=True)
class Columns:
    """What is known of the columns before the network is drawn: the order in which they enter it, those that are
    sensitive, the weights of the others' values, and the candidate parents of each.
    """

    order: tuple[int, ...]
    sensitive: tuple[int, ...]
    weights: Mapping[int, tuple[int, ...]]
    shortlists: Shortlists

    def to_json(self) -> Json:
        """For the log."""
        return {
            "order": list(self.order),
            "sensitive": list(self.sensitive),
            "weights": [[feature, list(own)] for feature, own in sorted(self.weights.items())],
            "shortlists": [[feature, list(parents)] for feature, parents in self.shortlists],
        }

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """Reads what `to_json` wrote."""
        weights = {feature: tuple(own) for feature, own in data["weights"]}
        shortlists = tuple((feature, tuple(parents)) for feature, parents in data["shortlists"])
        return cls(tuple(data["order"]), tuple(data["sensitive"]), weights, shortlists)


async def publish(study: Study, parties: Parties, *, rng: np.random.Generator) -> Publication:
    """What columns tell about each other, a network from the parties' draws, its tables in one sum, and the model.

    Guarantee: each step costs what the plan says; everything between them is post-processing of released answers.
    """
    del rng
    method, evidence, network = _method(study), Evidence(study), without_parents(study)
    views = await read_views(study, parties, evidence)
    columns = Columns.from_json(await parties.remember("columns", partial(_find_columns, study, views, evidence)))
    if resolved(method.parameter_cells):
        network = await choose_network(study, parties, columns)
    query = ask_tables(network, columns.sensitive, columns.weights, (method.parts[-2], method.parts[-1]))
    counts = await parties.ask("parameters", query)
    evidence.add_answer("parameters", query.asked_of(parties.present("parameters"), study), counts)
    model = await parties.remember("model", partial(_fit, study, network, evidence, query, columns))
    return Publication([], model, tables=evidence.tables)


async def read_views(study: Study, parties: Parties, evidence: Evidence) -> Sets:
    """Views that cover every pair of columns once, and are evidence from then on; none where nothing is read."""
    if not _reads(study):
        return ()
    views = await parties.compute(partial(design_views, base_sizes(study), _method(study).max_view_cells))
    counts = await parties.ask("reading", SumMarginals(views))
    evidence.add_sum("reading", views, counts, parties.present("reading"))
    return views


def _find_columns(study: Study, views: Sets, evidence: Evidence) -> Json:
    """Order, groups and weights (Algorithms 3 and 4, Definition 11), from released views or as the study has them.

    Where no column can have a parent nothing is read, and what would have been read is left out.
    """
    method, names = _method(study), attribute_names(study)
    information: Floats | None = None
    if views:
        counts = [table.counts.astype(np.int64) for table in evidence.tables]
        variances = [table.mean_variance for table in evidence.tables]
        information = estimate_information(views, counts, base_sizes(study), study.total_rows, variances)
    order, sensitive = list(range(len(names))), sorted(names.index(name) for name in method.sensitive)
    if isinstance(method.order, tuple):
        order = [names.index(name) for name in method.order]
    elif information is not None and method.order == "information":
        order = order_by_information(information)
    if information is not None and method.sensitive_to:
        sensitive = find_sensitive(information, names.index(method.sensitive_to), method.threshold)
    weights: dict[int, tuple[int, ...]] = {}
    if isinstance(method.weights, tuple):
        weights = {names.index(name): own for name, own in method.weights}
    elif views and method.weights != "none":
        others = [feature for feature in range(len(names)) if feature not in sensitive]
        shares = {feature: _find_shares(study, evidence, feature) for feature in others}
        weights = {feature: weigh_values(own, study.total_rows, method.weights) for feature, own in shares.items()}
    cells, most = resolved(method.parameter_cells), method.parents_limit(study)
    shortlists = shortlist_earlier(study, order, information, cells, method.max_candidates, most) if cells else ()
    return Columns(tuple(order), tuple(sensitive), weights, shortlists).to_json()


def _find_shares(study: Study, evidence: Evidence, feature: int) -> Floats:
    table = evidence.pooled((feature,))
    assert table is not None, "views cover every column"
    return project_tables(table.counts, study.total_rows) / study.total_rows


async def choose_network(study: Study, parties: Parties, columns: Columns) -> Network:
    """The first column without parents, the others in their order, with parents that the parties draw in turn."""
    method, shortlists = _method(study), dict(columns.shortlists)

    def ask(pairs: list[Pair], count: int) -> ChooseParents:
        placed, drawn = columns.order[: len(pairs)], columns.order[len(pairs) : len(pairs) + count]
        return ChooseParents(
            tuple(sorted(placed)),
            tuple((feature, shortlists[feature]) for feature in drawn),
            count,
            resolved(method.parameter_cells),
            method.chosen_score,
            max_parents=method.parents_limit(study),
            ordered=True,
        )

    pairs = await draw_in_turn(study, parties, "structure", columns.order[0], ask)
    return Network((*pairs, *left_alone(study, pairs)), levels_of(study))


def _fit(study: Study, network: Network, evidence: Evidence, query: SumMarginals, columns: Columns) -> Json:
    """The network with non-negative tables, the columns that are sensitive, and what the tables were asked with."""
    model = model_to_json(study, network, fit_tables(study, network, evidence, query.sets))
    return {**model, **Groups(columns.sensitive, query).to_json()}


def draw(study: Study, model: Json, seed: int) -> list[Codes]:
    """The rows of a published model, a function of the model and the seed alone; what is not sound is refused."""
    network, _ = split_model(study, model)
    return draw_published(study, network, seed)


def open_model(study: Study, model: Json, answers: Answers) -> RowModel:
    """The published network, for other rows of it."""
    network, _ = split_model(study, model)
    return open_network(study, network, answers)


def describe(study: Study, publication: Publication) -> ModelSection:
    """The network, and what shares and weights promise."""
    shown, method = describe_networks(study, publication), _method(study)
    direction = method.weights if isinstance(method.weights, str) else "listed"
    return ModelSection(
        shown.title, join([shown.content, describe_groups(study, publication, method.parts, direction)])
    )


def typical_queries(study: Study) -> Mapping[str, Query[Any]]:
    """The views, which the study fixes, and for the parameters a table of the largest size for each feature."""
    method = _method(study)
    tables = SumMarginals(typical_families(base_sizes(study), resolved(method.parameter_cells)))
    if not _reads(study):
        return {"parameters": tables}
    return {"reading": SumMarginals(design_views(base_sizes(study), method.max_view_cells)), "parameters": tables}


NO_PARENTS = (
    "No column can have a parent: the budget allows no table of two columns. Nothing is read, columns are drawn alone, "
    "and shares and weights are those that the study lists, if any."
)
TABLES = (
    "A table of a column with its parents has at most {:,} cells, and there are at most {:,} such tables; the last "
    "draw of parents chooses among up to {:,} options."
)
NOISE_FLOOR = (
    "The noise of the reading can make a column that has nothing to do with {} seem to tell {:.2f} bits about it (it "
    "does so for {}), and the threshold is {}: columns may count as sensitive by chance. Raise `threshold`, give the "
    "reading a larger share of `split`, or list the columns in `sensitive`."
)
FLOOR_SEED, FLOOR_DRAWS = 1, 16


def advise(study: Study, numbers: Numbers | None) -> Sequence[str]:
    """How large tables get, how many options the last draw has, and whether the noise of the reading would make
    columns sensitive; of rows there is nothing to say.
    """
    if numbers is not None:
        return ()
    method, count = _method(study), base_count(study)
    cells, most = resolved(method.parameter_cells), method.parents_limit(study)
    if not cells:
        return [NO_PARENTS] if count > 1 else []
    *_, last = shortlist_earlier(study, range(count), None, cells, method.max_candidates, most)
    options = count_options([last], sizes_of(study), chains_of(study), cells, most, most=method.max_candidates)
    remarks = [TABLES.format(cells, count, options)]
    if method.sensitive_to:
        floor, feature = find_noise_floor(study)
        if floor >= method.threshold:
            name = attribute_names(study)[feature]
            remarks.append(NOISE_FLOOR.format(method.sensitive_to, floor, name, method.threshold))
    return remarks


def find_noise_floor(study: Study) -> tuple[float, int]:
    """The most information about the sensitive attribute that the noise of the reading makes up beyond its mean, which
    is taken off, and for which column: simulated for columns that are uniform and independent, from public numbers.
    """
    method, sizes, rows = _method(study), base_sizes(study), study.total_rows
    to, views = attribute_names(study).index(method.sensitive_to), design_views(sizes, method.max_view_cells)
    query, rng = SumMarginals(views), np.random.default_rng(FLOOR_SEED)
    variances = query.variances(plan_study(study).step("reading"), study)
    floors = []
    for view, variance, cells in zip(views, variances, query.cells(study), strict=True):
        for feature in view if to in view else ():
            if feature != to:
                one, other = (np.full(sizes[i], 1 / sizes[i]) for i in (feature, to))
                added = variance * cells / (len(one) * len(other))
                told = simulate_noise(one, other, rows, added, FLOOR_DRAWS, rng=rng)
                floors.append((float(told.max() - told.mean()), feature))
    return max(floors)


def _reads(study: Study) -> bool:
    return any(step.label == "reading" for step in plan_study(study).steps)


def _method(study: Study) -> HpPrivBayes:
    assert isinstance(study.method, HpPrivBayes)
    return study.method


register(
    "hpprivbayes",
    Publisher(
        title="HPPrivBayes, a Bayesian network with noise by column and value",
        publish=publish,
        describe=describe,
        expected_error=table_error,
        warnings=warn_of_networks,
        typical_queries=typical_queries,
        advise=advise,
        draw=draw,
        open_model=open_model,
    ),
)
