"""PrivBayes (Zhang, Cormode, Procopiuc, Srivastava, Xiao 2017) as a recipe, over one party or many.

What deviates from the paper, and why, is in docs/privacy.md: the parties draw the network in turn, tables that follow
from others are not asked for, choices are by permute-and-flip, and negative counts are projected.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from synod.common.crypto.canonical import Json
from synod.common.methods.networks import resolved, share_draws
from synod.common.methods.privbayes import PrivBayes
from synod.common.models.candidates import count_options
from synod.common.protocol.queries.base import Query
from synod.common.protocol.queries.marginals import Sets, SumMarginals
from synod.common.protocol.queries.parents import ChooseParents
from synod.common.study.features import base_count, base_sizes, chains_of, sizes_of
from synod.common.study.study import Study
from synod.curator.methods.base import Numbers, Parties, Publication, Publisher, register
from synod.curator.network.evidence import (
    Evidence,
    derive_tables,
    fit_tables,
    model_to_json,
    without_parents,
)
from synod.curator.network.graph import Network, Pair, typical_families
from synod.curator.network.levels import levels_of
from synod.curator.network.published import draw_published
from synod.curator.network.shortlists import shortlist_parents
from synod.curator.network.tables import Floats, clip_table
from synod.curator.release.report.accuracy import table_error
from synod.curator.release.report.models.networks import describe_networks, warn_of_networks


async def publish(study: Study, parties: Parties, *, rng: np.random.Generator) -> Publication:
    """A network from the parties' draws, its tables in one sum, and the model; rows are drawn from that.

    Guarantee: each step costs what the plan says; everything between them is post-processing of released answers.
    """
    network = without_parents(study)
    if resolved(_method(study).parameter_cells):
        network = await choose_network(study, parties, first=int(rng.integers(base_count(study))))
    sets, evidence = network.asked_sets(), Evidence(study)
    evidence.add_sum("parameters", sets, await parties.ask("parameters", SumMarginals(sets)))
    model = await parties.remember("model", partial(_fit, study, network, evidence, sets))
    return Publication([], model, tables=evidence.tables)


async def choose_network(study: Study, parties: Parties, *, first: int) -> Network:
    """The first feature without parents, the others drawn with theirs by the parties in turn (Algorithms 2 and 4)."""
    method = _method(study)
    cells = resolved(method.parameter_cells)
    shortlists = await parties.compute(
        partial(shortlist_parents, study, first, cells, method.max_candidates, method.parents_limit(study))
    )
    pairs = [Pair(first, ())]
    for entry, count in zip(study.roster, share_draws(study), strict=True):
        if count:
            placed = {pair.feature for pair in pairs}
            candidates = tuple((x, parents) for x, parents in shortlists if x not in placed)
            query = ChooseParents(
                tuple(sorted(placed)),
                candidates,
                count,
                cells,
                method.chosen_score,
                max_parents=method.parents_limit(study),
            )
            chosen = await parties.ask(f"structure-{entry.name}", query)
            pairs.extend(Pair(feature, parents) for feature, parents in chosen)
    return Network(tuple(pairs), levels_of(study))


def _fit(study: Study, network: Network, evidence: Evidence, sets: Sets) -> Json:
    """The network with non-negative tables."""
    if _method(study).tables == "project":
        tables = fit_tables(study, network, evidence, sets)
    else:
        clipped: list[Floats] = [clip_table(table.counts, study.total_rows) for table in evidence.tables]
        tables = derive_tables(study, network, sets, clipped)
    return model_to_json(study, network, tables)


def typical_queries(study: Study) -> Mapping[str, Query[Any]]:
    """The parameters: a table for each feature, of the largest size."""
    cells = resolved(_method(study).parameter_cells)
    return {"parameters": SumMarginals(typical_families(base_sizes(study), cells))}


NO_PARENTS = "No column can have a parent: the budget allows no table of two columns, and columns are drawn alone."
NO_LEVELS = "No attribute has a coarser version: `hierarchical` needs a taxonomy, or a number in three bins or more."
TABLES = (
    "A table of a column with its parents has at most {:,} cells, and there are at most {:,} such tables; a draw of "
    "parents chooses among up to {:,} options."
)


def advise(study: Study, numbers: Numbers | None) -> Sequence[str]:
    """How large tables get and how many options a draw has, and that there are no levels; of rows there is nothing to
    say.
    """
    if numbers is not None:
        return ()
    method, count = _method(study), base_count(study)
    cells = resolved(method.parameter_cells)
    lacks_levels = method.feature_encoding == "hierarchical" and count == len(sizes_of(study))
    remarks = [NO_LEVELS] if lacks_levels else []
    if not cells:
        return [*remarks, NO_PARENTS] if count > 1 else remarks
    most = method.parents_limit(study)
    shortlists = shortlist_parents(study, 0, cells, method.max_candidates, most)
    sizes, chains = sizes_of(study), chains_of(study)
    options = count_options(shortlists, sizes, chains, cells, most, most=method.max_candidates)
    return [*remarks, TABLES.format(cells, count, options)]


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
    ),
)
