"""DP-CCBN, the first cut of the DP-SUBN paper: every candidate table of every iteration through an encrypted sum.

A baseline. Its noise grows with the number of candidates, and so do its messages; a study whose iterations would ask
for more numbers than `LARGEST_SUM` is refused with its forecast, before anything is spent.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from synod.common.models.candidates import maximal_sets
from synod.common.models.usefulness import parameter_cells
from synod.common.protocol.queries import cells_of
from synod.common.runtime.errors import refused
from synod.common.study.features import sizes_of
from synod.common.study.study import Study
from synod.curator.methods.base import Parties, Publication, Sets
from synod.curator.network.evidence import (
    Evidence,
    learn_tables,
    publish_network,
    without_parents,
)
from synod.curator.network.graph import Network, Pair

LARGEST_SUM = 200_000


async def publish_dp_ccbn(study: Study, parties: Parties, *, rng: np.random.Generator) -> Publication:
    """D - 1 iterations that each place the best attribute-parent pair, then the parameters and the rows.

    Guarantee: each iteration costs what the plan says; choosing from released tables is post-processing.
    """
    network = without_parents(sizes_of(study))
    if parameter_cells(study):
        check_size(study)
        network = await _grow_network(study, parties, rng=rng)
    evidence = Evidence(study)
    tables = await learn_tables(study, parties, "parameters", network, evidence)
    return await parties.compute(partial(publish_network, study, network, tables, evidence, rng=rng))


async def _grow_network(study: Study, parties: Parties, *, rng: np.random.Generator) -> Network:
    sizes = sizes_of(study)
    pairs = [Pair(int(rng.integers(len(sizes))), ())]
    for iteration in range(1, len(sizes)):
        placed = [pair.feature for pair in pairs]
        candidates = list_candidates(study, placed)
        label = f"candidates-{iteration}"
        sets: Sets = tuple(sorted({tuple(sorted(pair.family)) for pair in candidates}))
        evidence = Evidence(study)
        evidence.add_sum(label, sets, await parties.sum_marginals(label, sets))
        pairs.append(await parties.compute(partial(best_pair, candidates, evidence)))
    return Network(tuple(pairs))


def best_pair(candidates: Sequence[Pair], evidence: Evidence) -> Pair:
    """The pair of highest released information; of equals, the first."""
    scores = [round(evidence.score(pair.feature, pair.parents), 9) for pair in candidates]
    return candidates[int(np.argmax(scores))]


def list_candidates(study: Study, placed: list[int]) -> list[Pair]:
    """All attribute-parent pairs of an iteration."""
    sizes, cells = sizes_of(study), parameter_cells(study)
    rest = [x for x in range(len(sizes)) if x not in placed]
    return [Pair(x, parents) for x in rest for parents in maximal_sets(x, placed, sizes, cells)]


def largest_sum(study: Study) -> int:
    """The most numbers that one iteration asks for; features are placed in order, which is no smaller than others
    when all have the same size.
    """
    sizes = sizes_of(study)
    counts = []
    for placed in range(1, len(sizes)):
        sets = {tuple(sorted(pair.family)) for pair in list_candidates(study, list(range(placed)))}
        counts.append(sum(cells_of(tuple(sets), study)))
        if counts[-1] > LARGEST_SUM:
            break
    return max(counts, default=0)


def check_size(study: Study) -> None:
    """Refuses a study whose iterations are absurdly large."""
    numbers = largest_sum(study)
    if numbers > LARGEST_SUM:
        raise refused(
            f"DP-CCBN would ask for more than {LARGEST_SUM:,} numbers in one iteration of {study.name}.",
            "Use dp-subn, or raise theta so that tables get smaller.",
        )
