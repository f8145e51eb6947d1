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
from synod.common.methods.networks import resolved
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.base import Query
from synod.common.protocol.queries.marginals import LocalMarginals, Sets, SumMarginals
from synod.common.protocol.queries.parents import ChooseParents
from synod.common.protocol.steps import Step
from synod.common.study.features import base_count, base_sizes, sizes_of
from synod.common.study.study import Study
from synod.curator.covers.coarse import ask_views
from synod.curator.covers.nocd import nocd_views
from synod.curator.covers.search import View
from synod.curator.covers.views import design_views, expected_variance, overlapping_views
from synod.curator.drawing.networks import open_network
from synod.curator.methods.base import Parties, Publication, Publisher, register
from synod.curator.network.evidence import (
    Evidence,
    draw_in_turn,
    learn_tables,
    network_from_json,
    network_to_json,
    publish_network,
    without_parents,
)
from synod.curator.network.frontier import build_frontier
from synod.curator.network.graph import Bound, Network, Pair, select_network, typical_families
from synod.curator.network.information import measure_information, most_correlated
from synod.curator.network.levels import levels_of
from synod.curator.network.shortlists import Shortlists, fit_shortlists
from synod.curator.release.report.accuracy import table_error
from synod.curator.release.report.models.networks import describe_networks, warn_of_networks

Floats = NDArray[np.float64]
COVERS = {
    "best": "best",
    "nocd": "nocd, the paper's",
    "overlapping": "overlapping, as PriView's",
}


async def publish(study: Study, parties: Parties, *, rng: np.random.Generator) -> Publication:
    """Correlations, initialization, update, parameters, synthesis.

    Guarantee: each step costs what the plan says; everything between them is post-processing of released answers.
    """
    evidence = Evidence(study)
    network = without_parents(study)
    if resolved(_method(study).parameter_cells):
        views = await parties.compute(partial(choose_views, study))
        evidence = Evidence(study, groupings=views.groupings)
        information = await quantify_correlations(study, parties, views, evidence)
        network = await initialize_network(study, parties, information, rng=rng)
        network = await update_network(study, parties, information, network, evidence)
    tables = await learn_tables(study, parties, "parameters", network, evidence)
    return await parties.compute(partial(publish_network, study, network, tables, evidence, rng=rng))


async def quantify_correlations(study: Study, parties: Parties, views: SumMarginals, evidence: Evidence) -> Floats:
    """Phase 1: the mutual information of every pair of features, from views that cover all pairs."""
    tables = await parties.ask("correlations", views)
    evidence.add_sum("correlations", views.sets, tables, parties.present("correlations"))
    return await parties.compute(partial(measure_information, study, views, tables))


def choose_views(study: Study) -> SumMarginals:
    """The query for the views of the study's cover."""
    method = _method(study)
    return ask_views(study, lay_views(method.cover, base_sizes(study), method.max_view_cells), method.max_view_cells)


def lay_views(cover: str, sizes: Sequence[int], max_cells: int) -> tuple[View, ...]:
    """The views of one of the covers."""
    if cover == "nocd":
        return nocd_views(len(sizes), max_cells)
    return overlapping_views(sizes, max_cells=max_cells) if cover == "overlapping" else design_views(sizes, max_cells)


async def initialize_network(
    study: Study, parties: Parties, information: Floats, *, rng: np.random.Generator
) -> Network:
    """Phase 2: the first feature at random, the others drawn with their parents by the parties in turn."""

    def ask(pairs: list[Pair], count: int) -> ChooseParents:
        return next_choice(study, information, [pair.feature for pair in pairs], count)

    first = int(rng.integers(base_count(study)))
    pairs = await draw_in_turn(study, parties, "initialize", first, ask)
    return Network((*pairs, *take_correlated(study, information, pairs)), levels_of(study))


def take_correlated(study: Study, information: Floats, pairs: Sequence[Pair]) -> list[Pair]:
    """Parents for what nobody is left to draw: the most correlated feature that is placed, where the table has room."""
    sizes, cells = base_sizes(study), resolved(_method(study).parameter_cells)
    placed, taken = [pair.feature for pair in pairs], list[Pair]()
    for feature in range(len(sizes)):
        if feature not in placed:
            fitting = [x for x in placed if sizes[x] * sizes[feature] <= cells]
            taken.append(Pair(feature, most_correlated(information, feature, fitting, 1) if fitting else ()))
            placed.append(feature)
    return taken


def next_choice(study: Study, information: Floats, placed: list[int], count: int) -> ChooseParents:
    """What the next party draws from: each open feature with its most correlated features as candidates."""
    method = _method(study)
    cells = resolved(method.parameter_cells)
    everything = range(base_count(study))
    open_features = [x for x in everything if x not in placed]

    def offer(length: int) -> Shortlists:
        return tuple((x, most_correlated(information, x, everything, length)) for x in open_features)

    candidates = fit_shortlists(study, offer, cells, method.max_candidates)
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
        own = await parties.ask_one(step.label, LocalMarginals(sets))
        if own is not None:
            evidence.add_local(step.label, sets, own)
    else:
        counts = await parties.ask(step.label, SumMarginals(sets))
        evidence.add_sum(step.label, sets, counts, parties.present(step.label))


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
    method, sizes = _method(study), base_sizes(study)
    steps = {step.label for step in plan_study(study).steps}
    tables = SumMarginals(typical_families(sizes, resolved(method.parameter_cells)))
    queries = {"parameters": tables, "update": tables}
    if "correlations" in steps:
        queries["correlations"] = choose_views(study)
    return {label: query for label, query in queries.items() if label in steps}


def compare_covers(study: Study) -> tuple[Sequence[str], Sequence[Sequence[str]]] | None:
    """The covers that the study could ask for, the chosen one first: how many views, and the mean variance of a 2-way
    cell in units of the variance that one marginal asked alone would have. NOCD is of binary features.
    """
    method, sizes = _method(study), base_sizes(study)
    if not resolved(method.parameter_cells):
        return None
    possible = [name for name in COVERS if name != "nocd" or all(size == 2 for size in sizes)]
    covers = {name: lay_views(name, sizes, method.max_view_cells) for name in possible}
    at_rho = study.delta is not None
    variances = {name: expected_variance(views, sizes, at_rho=at_rho) for name, views in covers.items()}
    rows = [
        [
            COVERS[name] + (" (chosen)" if name == method.cover else ""),
            str(len(covers[name])),
            f"{variances[name]:,.0f}",
            f"{variances[name] / variances[method.cover]:.2f}",
        ]
        for name in sorted(possible, key=lambda name: name != method.cover)
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
        open_model=open_network,
    ),
)
