"""GreedyBayes (PrivBayes, Algorithms 2 and 4) on released two-way margins: the network grows at the curator.

An option, a feature with a maximal set of parents among those placed, is worth the mutual information of the two in the
table of largest entropy that has the released margins. Only released numbers are read, so nothing is spent.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from math import prod

import numpy as np

from synod.common.models.candidates import Chains, ParentSets
from synod.common.study.features import base_count, chains_of, sizes_of
from synod.common.study.study import Study
from synod.curator.network.dependence import PairMargins
from synod.curator.network.entropy import fit_largest_entropy
from synod.curator.network.graph import SCORE_DIGITS, Features, Network, Pair
from synod.curator.network.levels import levels_of
from synod.curator.network.shortlists import Shortlists, fit_shortlists
from synod.curator.network.tables import count_cells, mutual_information

# Tables that are fitted side by side have about so many cells, and those of one draw at most so many.
BATCH_CELLS = 1 << 20
DRAW_CELLS = 1 << 26


@dataclass
class Scores:
    """The information of features with sets of parents, each found once."""

    margins: PairMargins
    known: dict[Features, float] = field(default_factory=dict)

    def find(self, families: Iterable[Features]) -> list[float]:
        """The information of each family's first feature with the others, in bits, rounded."""
        families = list(families)
        groups: dict[Features, list[Features]] = defaultdict(list)
        for family in families:
            if family not in self.known:
                groups[tuple(self.margins.sizes[feature] for feature in family)].append(family)
        for shape, members in groups.items():
            width = max(1, BATCH_CELLS // prod(shape))
            for start in range(0, len(members), width):
                self._fit(shape, members[start : start + width])
        return [self.known[family] for family in families]

    def _fit(self, shape: Features, families: Sequence[Features]) -> None:
        values = np.zeros(len(families))
        if len(shape) > 1:
            margins = {
                (i, j): np.stack([self.margins.margin(family[i], family[j]) for family in families], axis=-1)
                for i, j in combinations(range(len(shape)), 2)
            }
            tables = fit_largest_entropy(margins, shape)
            values = mutual_information(np.ascontiguousarray(tables.reshape(-1, len(families)).T), shape[0])
        self.known.update((f, round(float(v), SCORE_DIGITS)) for f, v in zip(families, values, strict=True))


def most_options(cells: int, max_candidates: int) -> int:
    """How many options one choice may have: as the study says, and no more than can be fitted in a minute or so."""
    return min(max_candidates, DRAW_CELLS // cells)


def shortlist_by_information(
    study: Study, margins: PairMargins, cells: int, max_candidates: int, max_parents: int | None
) -> Shortlists:
    """Each feature's candidate parents, by released information: the longest lists that leave a draw at most
    `max_candidates` options, and no more than can be fitted.
    """
    count = base_count(study)
    ranked = [
        sorted((i for i in range(count) if i != x), key=lambda i: (-round(margins.information(x, i), SCORE_DIGITS), i))
        for x in range(count)
    ]

    def offer(length: int) -> Shortlists:
        return tuple((x, tuple(sorted(others[:length]))) for x, others in enumerate(ranked))

    return fit_shortlists(study, offer, cells, most_options(cells, max_candidates), max_parents)


def grow_network(
    study: Study, margins: PairMargins, first: int, shortlists: Shortlists, cells: int, max_parents: int | None
) -> Network:
    """The first feature without parents, then again and again the option of most information; of equals, the one with
    fewest cells, then that of the lowest indices. Parents get coarser levels as far as that loses no information.
    """
    sizes, chains, scores = sizes_of(study), chains_of(study), Scores(margins)
    pairs = [Pair(first, ())]
    while len(pairs) < base_count(study):
        placed = {pair.feature for pair in pairs}
        options = [
            (x, *parents)
            for x, allowed in shortlists
            if x not in placed
            for parents in _parent_sets(study, [i for i in allowed if i in placed], cells // sizes[x], max_parents)
        ]
        feature, *parents = _best(options, scores, sizes)
        pairs.append(Pair(feature, _coarsen((feature, *parents), scores, sizes, chains)[1:]))
    return Network(tuple(pairs), levels_of(study))


def _parent_sets(study: Study, allowed: Sequence[int], room: int, max_parents: int | None) -> list[Features]:
    return ParentSets(allowed, sizes_of(study), chains_of(study), max_parents).within(room)


def _best(families: Sequence[Features], scores: Scores, sizes: Sequence[int]) -> Features:
    """The family of most information; of equals, the one with fewest cells, then that of the lowest indices."""
    values = scores.find(families)
    return min((-value, count_cells(family, sizes), family) for value, family in zip(values, families, strict=True))[2]


def _coarsen(family: Features, scores: Scores, sizes: Sequence[int], chains: Chains) -> Features:
    """The family with parents on levels as coarse as leave its information: finer ones would only add noise."""
    coarser = {fine: coarse for chain in chains for fine, coarse in pairwise(chain)}
    while True:
        steps = [
            (*family[:place], coarser[parent], *family[place + 1 :])
            for place, parent in enumerate(family)
            if place and parent in coarser
        ]
        best = _best([family, *steps], scores, sizes)
        if best == family:
            return family
        family = best
