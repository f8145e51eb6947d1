"""PrivBayes (Zhang, Cormode, Procopiuc, Srivastava, Xiao 2017) as a recipe, over one party or many.

What deviates from the paper, and why, is in docs/privacy.md: the parties draw the network in turn or the curator grows
it from pooled tables of pairs, tables that follow from others are not asked for, choices are by permute-and-flip, and
negative counts are projected.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations
from math import prod, sqrt
from statistics import median
from typing import Any

import numpy as np

from synod.common.crypto.canonical import Json
from synod.common.methods.networks import resolved
from synod.common.methods.privbayes import VIEW_CELLS, PrivBayes
from synod.common.models.candidates import count_options
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.base import Query
from synod.common.protocol.queries.marginals import Sets, SumMarginals
from synod.common.protocol.queries.parents import ChooseParents
from synod.common.study.features import base_count, base_sizes, chains_of, sizes_of
from synod.common.study.study import Study
from synod.curator.covers.views import design_views
from synod.curator.drawing.networks import open_network
from synod.curator.methods.base import Numbers, Parties, Publication, Publisher, Released, register
from synod.curator.network.dependence import find_pairs
from synod.curator.network.evidence import (
    Evidence,
    derive_tables,
    draw_in_turn,
    fit_asked,
    fit_tables,
    left_alone,
    model_to_json,
    network_from_json,
    network_to_json,
    without_parents,
)
from synod.curator.network.graph import Network, Pair, typical_families
from synod.curator.network.greedy import grow_network, most_options, shortlist_by_information
from synod.curator.network.levels import levels_of
from synod.curator.network.published import draw_published
from synod.curator.network.shortlists import shortlist_parents
from synod.curator.network.tables import Floats, clip_table
from synod.curator.release.report.accuracy import table_error
from synod.curator.release.report.models.networks import describe_networks, warn_of_networks


async def publish(study: Study, parties: Parties, *, rng: np.random.Generator) -> Publication:
    """A network from the parties' draws or from pooled pairs, its tables in one sum, and the model; rows are drawn
    from that.

    Guarantee: each step costs what the plan says; everything between them is post-processing of released answers.
    """
    network, evidence = without_parents(study), Evidence(study)
    if resolved(_method(study).parameter_cells):
        first = int(rng.integers(base_count(study)))
        if _method(study).structure == "pooled":
            network = await pool_network(study, parties, evidence, first=first)
        else:
            network = await choose_network(study, parties, first=first)
    sets = network.asked_sets()
    counts = await parties.ask("parameters", SumMarginals(sets))
    evidence.add_sum("parameters", sets, counts, parties.present("parameters"))
    model = await parties.remember("model", partial(_fit, study, network, evidence, sets))
    return Publication([], model, tables=evidence.tables)


async def choose_network(study: Study, parties: Parties, *, first: int) -> Network:
    """The first feature without parents, the others drawn with theirs by the parties in turn (Algorithms 2 and 4)."""
    method = _method(study)
    cells = resolved(method.parameter_cells)
    shortlists = await parties.compute(
        partial(shortlist_parents, study, first, cells, method.max_candidates, method.parents_limit(study))
    )

    def ask(pairs: list[Pair], count: int) -> ChooseParents:
        placed = {pair.feature for pair in pairs}
        candidates = tuple((x, parents) for x, parents in shortlists if x not in placed)
        most = method.parents_limit(study)
        return ChooseParents(tuple(sorted(placed)), candidates, count, cells, method.chosen_score, max_parents=most)

    pairs = await draw_in_turn(study, parties, "structure", first, ask)
    return Network((*pairs, *left_alone(study, pairs)), levels_of(study))


async def pool_network(study: Study, parties: Parties, evidence: Evidence, *, first: int) -> Network:
    """The first feature without parents, the others with those of most information in the released tables of pairs."""
    views = await parties.compute(partial(design_views, base_sizes(study), VIEW_CELLS))
    counts = await parties.ask("correlations", SumMarginals(views))
    evidence.add_sum("correlations", views, counts, parties.present("correlations"))
    grown = await parties.remember("network", partial(_grow, study, evidence.tables, first))
    return network_from_json(grown, study)


def _grow(study: Study, views: Sequence[Released], first: int) -> Json:
    """GreedyBayes at the curator."""
    method = _method(study)
    cells, most, pairs = resolved(method.parameter_cells), method.parents_limit(study), find_pairs(study, views)
    shortlists = shortlist_by_information(study, pairs, cells, method.max_candidates, most)
    return network_to_json(grow_network(study, pairs, first, shortlists, cells, most))


def _fit(study: Study, network: Network, evidence: Evidence, sets: Sets) -> Json:
    """The network with non-negative tables."""
    method, asked = _method(study), evidence.tables[-len(sets) :]
    if method.tables == "clip":
        clipped: list[Floats] = [clip_table(table.counts, study.total_rows) for table in asked]
        tables = derive_tables(study, network, sets, clipped)
    elif method.structure == "pooled":
        tables = derive_tables(study, network, sets, fit_asked(study, asked, evidence.tables[: -len(sets)]))
    else:
        tables = fit_tables(study, network, evidence, sets)
    return model_to_json(study, network, tables)


def typical_queries(study: Study) -> Mapping[str, Query[Any]]:
    """The parameters: a table for each feature, of the largest size; and the views, which the study fixes."""
    method, sizes = _method(study), base_sizes(study)
    cells = resolved(method.parameter_cells)
    queries: dict[str, Query[Any]] = {"parameters": SumMarginals(typical_families(sizes, cells))}
    if method.structure == "pooled" and cells:
        queries["correlations"] = SumMarginals(design_views(sizes, VIEW_CELLS))
    return queries


NO_PARENTS = "No column can have a parent: the budget allows no table of two columns, and columns are drawn alone."
NO_LEVELS = "No attribute has a coarser version: `hierarchical` needs a taxonomy, or a number in three bins or more."
TABLES = "A table of a column with its parents has at most {:,} cells, and there are at most {:,} such tables"
DRAWN = "; a draw of parents chooses among up to {:,} options."
POOLED = "; parents are chosen among up to {:,} options at a time, by tables of all pairs of columns."
NOISY_PAIRS = (
    "Half of the pairs of columns have more noise in a count than rows in an average cell, so that parents are chosen "
    "badly: `structure: turns` is likely to be better, or fewer bins."
)


def advise(study: Study, numbers: Numbers | None) -> Sequence[str]:
    """How large tables get and how many options a choice of parents has, that there are no levels, and that pairs are
    noisy; of rows there is nothing to say.
    """
    if numbers is not None:
        return ()
    method, count = _method(study), base_count(study)
    cells = resolved(method.parameter_cells)
    lacks_levels = method.feature_encoding == "hierarchical" and count == len(sizes_of(study))
    remarks = [NO_LEVELS] if lacks_levels else []
    if not cells:
        return [*remarks, NO_PARENTS] if count > 1 else remarks
    most, sizes, chains = method.parents_limit(study), sizes_of(study), chains_of(study)
    tables = TABLES.format(cells, count)
    if method.structure == "pooled":
        limit = most_options(cells, method.max_candidates)
        everything = [(x, tuple(i for i in range(count) if i != x)) for x in range(count)]
        options = min(limit, count_options(everything, sizes, chains, cells, most, most=limit))
        noisy = [NOISY_PAIRS] if pairs_to_noise(study) < 1 else []
        return [*remarks, tables + POOLED.format(options), *noisy]
    shortlists = shortlist_parents(study, 0, cells, method.max_candidates, most)
    options = count_options(shortlists, sizes, chains, cells, most, most=method.max_candidates)
    return [*remarks, tables + DRAWN.format(options)]


def pairs_to_noise(study: Study) -> float:
    """How many rows an average cell of two columns has, in deviations of its noise: the median over all pairs."""
    sizes = base_sizes(study)
    query = SumMarginals(design_views(sizes, VIEW_CELLS))
    (variance,) = set(query.variances(plan_study(study).step("correlations"), study))
    ratios = []
    for view in query.sets:
        for x, y in combinations(view, 2):
            cells = sizes[x] * sizes[y]
            added = prod(sizes[i] for i in view) // cells
            ratios.append(study.total_rows / (cells * sqrt(variance * added)))
    return median(ratios)


def _method(study: Study) -> PrivBayes:
    assert isinstance(study.method, PrivBayes)
    return study.method


register(
    "privbayes",
    Publisher(
        title="PrivBayes, a Bayesian network of private choices",
        publish=publish,
        describe=describe_networks,
        expected_error=table_error,
        warnings=warn_of_networks,
        typical_queries=typical_queries,
        advise=advise,
        draw=draw_published,
        open_model=open_network,
    ),
)
