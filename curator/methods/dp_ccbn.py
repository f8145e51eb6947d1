"""DP-CCBN, the first cut of the DP-SUBN paper: every candidate table of every iteration through an encrypted sum.

A baseline. Its noise grows with the number of candidates, and so do its messages; a study whose iterations would ask
for more than `max_numbers` is refused when it is checked, before anybody approves it.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from synod.common.methods.dp_ccbn import DpCcbn, candidate_families
from synod.common.methods.networks import resolved
from synod.common.protocol.queries.base import Query
from synod.common.protocol.queries.marginals import Sets, SumMarginals, cells_of
from synod.common.study.features import sizes_of
from synod.common.study.study import Study
from synod.curator.drawing.networks import open_network
from synod.curator.methods.base import Parties, Publication, Publisher, register
from synod.curator.network.evidence import Evidence, learn_tables, publish_network, without_parents
from synod.curator.network.graph import Network, Pair, typical_families
from synod.curator.release.report.accuracy import table_error
from synod.curator.release.report.models.networks import describe_networks, warn_of_networks


async def publish(study: Study, parties: Parties, *, rng: np.random.Generator) -> Publication:
    """D - 1 iterations that each place the best attribute-parent pair, then the parameters and the rows.

    Guarantee: each iteration costs what the plan says; choosing from released tables is post-processing.
    """
    network = without_parents(study)
    if resolved(_method(study).parameter_cells):
        network = await _grow_network(study, parties, rng=rng)
    evidence = Evidence(study)
    tables = await learn_tables(study, parties, "parameters", network, evidence)
    return await parties.compute(partial(publish_network, study, network, tables, evidence, rng=rng))


async def _grow_network(study: Study, parties: Parties, *, rng: np.random.Generator) -> Network:
    sizes = sizes_of(study)
    pairs = [Pair(int(rng.integers(len(sizes))), ())]
    for iteration in range(1, len(sizes)):
        label = f"candidates-{iteration}"
        candidates = list_candidates(study, [pair.feature for pair in pairs])
        sets: Sets = tuple(sorted({tuple(sorted(pair.family)) for pair in candidates}))
        evidence = Evidence(study)
        evidence.add_sum(label, sets, await parties.ask(label, SumMarginals(sets)), parties.present(label))
        pairs.append(await parties.compute(partial(best_pair, candidates, evidence)))
    return Network(tuple(pairs))


def best_pair(candidates: Sequence[Pair], evidence: Evidence) -> Pair:
    """The pair of highest released information; of equals, the first."""
    scores = [round(evidence.score(pair.feature, pair.parents), 9) for pair in candidates]
    return candidates[int(np.argmax(scores))]


def list_candidates(study: Study, placed: list[int]) -> list[Pair]:
    """The attribute-parent pairs of an iteration: all of them, or as many of the first as `max_numbers` has room for,
    where features of different sizes are placed in an order that makes larger tables than `check` has seen.
    """
    method, sizes = _method(study), sizes_of(study)
    seen: set[tuple[int, ...]] = set()
    room, pairs = method.max_numbers, []
    for feature, parents in candidate_families(sizes, placed, resolved(method.parameter_cells)):
        family = tuple(sorted((feature, *parents)))
        if family not in seen:
            (cells,) = cells_of((family,), study)
            if cells > room:
                break
            seen.add(family)
            room -= cells
        pairs.append(Pair(feature, parents))
    return pairs


def typical_queries(study: Study) -> Mapping[str, Query[Any]]:
    """The parameters: a table for each feature, of the largest size. Candidates depend on what was chosen before."""
    cells = resolved(_method(study).parameter_cells)
    return {"parameters": SumMarginals(typical_families(sizes_of(study), cells))}


def _method(study: Study) -> DpCcbn:
    assert isinstance(study.method, DpCcbn)
    return study.method


register(
    "dp-ccbn",
    Publisher(
        title="DP-CCBN, a Bayesian network from encrypted counts",
        publish=publish,
        describe=describe_networks,
        expected_error=table_error,
        warnings=warn_of_networks,
        typical_queries=typical_queries,
        open_model=open_network,
    ),
)
