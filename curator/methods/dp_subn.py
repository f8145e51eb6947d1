"""DP-SUBN (Su, Tang, Cheng, Chen, Wu 2016) as a recipe: a Bayesian network that the parties start and update in turn.

What deviates from the paper, and why, is in docs/privacy.md: counts are accumulated and never released twice, sums
carry one share of divisible noise, the number of draws is d - 1, and covers are better than NOCD where one is known.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synod.common.methods.dp_subn import DpSubn
from synod.common.methods.networks import resolved, share_draws
from synod.common.models.candidates import shortlist_length
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.base import Query
from synod.common.protocol.queries.marginals import LocalMarginals, Sets, SumMarginals
from synod.common.protocol.queries.parents import ChooseParents
from synod.common.protocol.steps import Step
from synod.common.study.features import sizes_of
from synod.common.study.study import Study
from synod.curator.covers.nocd import nocd_views
from synod.curator.covers.views import design_views, expected_variance, overlapping_views
from synod.curator.methods.base import Parties, Publication, Publisher, register
from synod.curator.network.evidence import (
    Evidence,
    learn_tables,
    network_from_json,
    network_to_json,
    publish_network,
    without_parents,
)
from synod.curator.network.frontier import build_frontier
from synod.curator.network.graph import Bound, Network, Pair, select_network, typical_families
from synod.curator.network.information import measure_information, most_correlated
from synod.curator.release.report.accuracy import table_error
from synod.curator.release.report.models.networks import describe_networks, warn_of_networks

Floats = NDArray[np.float64]


async def publish(study: Study, parties: Parties, *, rng: np.random.Generator) -> Publication:
    """Correlations, initialization, update, parameters, synthesis.

    Guarantee: each step costs what the plan says; everything between them is post-processing of released answers.
    """
    evidence = Evidence(study)
    network = without_parents(study)
    if resolved(_method(study).parameter_cells):
        information = await quantify_correlations(study, parties, evidence)
        network = await initialize_network(study, parties, information, rng=rng)
        network = await update_network(study, parties, information, network, evidence)
    tables = await learn_tables(study, parties, "parameters", network, evidence)
    return await parties.compute(partial(publish_network, study, network, tables, evidence, rng=rng))


async def quantify_correlations(study: Study, parties: Parties, evidence: Evidence) -> Floats:
    """Phase 1: the mutual information of every pair of features, from views that cover each pair once."""
    views = await parties.compute(partial(design_views, sizes_of(study), _method(study).max_view_cells))
    tables = await parties.ask("correlations", SumMarginals(views))
    evidence.add_sum("correlations", views, tables)
    return await parties.compute(partial(measure_information, views, tables, sizes_of(study), study.total_rows))


async def initialize_network(
    study: Study, parties: Parties, information: Floats, *, rng: np.random.Generator
) -> Network:
    """Phase 2: the first feature at random, the others drawn with their parents by the parties in turn."""
    sizes = sizes_of(study)
    pairs = [Pair(int(rng.integers(len(sizes))), ())]
    for entry, count in zip(study.roster, share_draws(study), strict=True):
        if count:
            query = next_choice(study, information, [pair.feature for pair in pairs], count)
            chosen = await parties.ask(f"initialize-{entry.name}", query)
            pairs.extend(Pair(feature, parents) for feature, parents in chosen)
    return Network(tuple(pairs))


def next_choice(study: Study, information: Floats, placed: list[int], count: int) -> ChooseParents:
    """What the next party draws from: each open feature with its most correlated features as candidates."""
    method, sizes = _method(study), sizes_of(study)
    cells = resolved(method.parameter_cells)
    length = shortlist_length(sizes, cells, method.max_candidates)
    open_features = [x for x in range(len(sizes)) if x not in placed]
    others = range(len(sizes))
    candidates = tuple((x, most_correlated(information, x, others, length)) for x in open_features)
    return ChooseParents(tuple(sorted(placed)), candidates, count, cells, method.chosen_score)


async def update_network(
    study: Study, parties: Parties, information: Floats, network: Network, evidence: Evidence
) -> Network:
    """Phase 3: tables of a search frontier, from each party in turn or from all in one sum, decide the parents."""
    for step in plan_study(study).steps:
        if step.phase == "update":
            widened = partial(widen, study, network, information)
            frontier = await _remember(study, parties, f"frontier-{step.label}", widened)
            await _ask_frontier(parties, step, frontier, evidence)
            narrowed = partial(narrow, study, frontier, evidence)
            network = await _remember(study, parties, f"network-{step.label}", narrowed)
    return network


async def _remember(study: Study, parties: Parties, label: str, find: Callable[[], Network]) -> Network:
    """A network that is found once and then read from the log."""
    return network_from_json(await parties.remember(label, lambda: network_to_json(find())), study)


async def _ask_frontier(parties: Parties, step: Step, frontier: Network, evidence: Evidence) -> None:
    sets: Sets = frontier.asked_sets()
    if step.kind.is_local:
        evidence.add_local(step.label, sets, await parties.ask(step.label, LocalMarginals(sets)))
    else:
        evidence.add_sum(step.label, sets, await parties.ask(step.label, SumMarginals(sets)))


def widen(study: Study, network: Network, information: Floats) -> Network:
    """The search frontier around a network."""
    return build_frontier(network, information, Bound(sizes_of(study), cells=resolved(_method(study).frontier_cells)))


def narrow(study: Study, frontier: Network, evidence: Evidence) -> Network:
    """The best network inside a frontier, as far as released tables tell."""
    return select_network(
        frontier, evidence.score, Bound(sizes_of(study), cells=resolved(_method(study).parameter_cells))
    )


def typical_queries(study: Study) -> Mapping[str, Query[Any]]:
    """The views, which the study fixes; for what is chosen later, a table of the largest size for each feature."""
    method, sizes = _method(study), sizes_of(study)
    steps = {step.label for step in plan_study(study).steps}
    tables = SumMarginals(typical_families(sizes, resolved(method.parameter_cells)))
    queries = {"parameters": tables, "update": tables}
    if "correlations" in steps:
        queries["correlations"] = SumMarginals(design_views(sizes, method.max_view_cells))
    return {label: query for label, query in queries.items() if label in steps}


def compare_covers(study: Study) -> tuple[Sequence[str], Sequence[Sequence[str]]] | None:
    """The chosen cover beside NOCD's and overlapping views as PriView has them: how many views, and the mean variance
    of a 2-way cell in units of the variance that one marginal asked alone would have.
    """
    method, sizes = _method(study), sizes_of(study)
    if not resolved(method.parameter_cells):
        return None
    cells = method.max_view_cells
    covers = {
        "chosen": design_views(sizes, cells),
        "overlapping, as PriView's": overlapping_views(sizes, max_cells=cells),
    }
    if all(size == 2 for size in sizes):
        covers["NOCD"] = nocd_views(len(sizes))
    variances = {
        name: expected_variance(views, sizes, at_rho=study.delta is not None) for name, views in covers.items()
    }
    rows = [
        [name, str(len(views)), f"{variances[name]:,.0f}", f"{variances[name] / variances['chosen']:.2f}"]
        for name, views in covers.items()
    ]
    return ("cover of all pairs", "views", "variance of a count", "ratio"), rows


def _method(study: Study) -> DpSubn:
    assert isinstance(study.method, DpSubn)
    return study.method


register(
    "dp-subn",
    Publisher(
        title="DP-SUBN, a Bayesian network that the parties begin and update",
        publish=publish,
        describe=describe_networks,
        expected_error=table_error,
        warnings=warn_of_networks,
        typical_queries=typical_queries,
        alternatives=compare_covers,
    ),
)
