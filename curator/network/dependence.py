"""Two-way margins of released tables, and the mutual information that is left in them without the noise's own.

Noise makes independent features look dependent, and the more so the more cells their table has. So the deviation of a
two-way margin from independence is scaled down by the share of its square that noise is expected to have (James and
Stein's rule, cut at zero). All of this is post-processing of released tables; it must never be given exact counts.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from synod.common.study.features import base_count, sizes_of
from synod.common.study.study import Study
from synod.curator.methods.base import Released
from synod.curator.network.consistency import PASSES
from synod.curator.network.levels import Levels, levels_of
from synod.curator.network.tables import Floats, fold_axis, marginalize, mutual_information, project_tables

Features = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PairMargins:
    """The two-way margins of all base features, as shares of rows: nearly agreeing and non-negative in `projected`,
    with their noise as it is in `noisy`, where a cell has the variance `variances`. Coarser levels follow from them.
    """

    sizes: tuple[int, ...]
    levels: Levels
    noisy: dict[Features, Floats]
    projected: dict[Features, Floats]
    variances: dict[Features, float]
    _known: dict[Features, Floats] = field(default_factory=dict)

    def margin(self, x: int, y: int) -> Floats:
        """The shares of two features of different attributes, on any levels, without what noise adds to their
        dependence.
        """
        if (x, y) not in self._known:
            self._known[x, y] = self._find(x, y) if self.levels.base(x) < self.levels.base(y) else self._find(y, x).T
        return self._known[x, y]

    def information(self, x: int, y: int) -> float:
        """Their mutual information, in bits."""
        return float(mutual_information(self.margin(x, y).reshape(-1), self.sizes[x]))

    def _find(self, x: int, y: int) -> Floats:
        bases = (self.levels.base(x), self.levels.base(y))
        groups = [self.levels.coarsen(base, level, self.sizes[base]) for base, level in zip(bases, (x, y), strict=True)]
        shares, noisy = (
            _fold(tables[bases], groups, (self.sizes[x], self.sizes[y])) for tables in (self.projected, self.noisy)
        )
        return shrink_dependence(shares, noisy, self.variances[bases], [np.bincount(group) for group in groups])


def _fold(table: Floats, groups: Sequence[NDArray[np.intp]], sizes: tuple[int, int]) -> Floats:
    for axis, (codes, size) in enumerate(zip(groups, sizes, strict=True)):
        table = fold_axis(table, axis, codes, size)
    return table


def shrink_dependence(shares: Floats, noisy: Floats, variance: float, cells: Sequence[NDArray[np.intp]]) -> Floats:
    """`shares` drawn towards the product of its margins, by as much as noise is expected to have drawn it away.

    Args:
        shares: a non-negative two-way margin that adds up to 1.
        noisy: the same before it was made non-negative.
        variance: of the noise of one of the cells that `noisy` has added up.
        cells: how many codes of the table that was released each code of an axis stands for.
    """
    alone = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    seen = float(((noisy - np.outer(noisy.sum(axis=1), noisy.sum(axis=0)) / noisy.sum()) ** 2).sum())
    kept = max(0.0, 1 - expected_dependence(shares, variance, cells) / seen) if seen > 0 else 0.0
    return alone + kept * (shares - alone)


def expected_dependence(shares: Floats, variance: float, cells: Sequence[NDArray[np.intp]]) -> float:
    """The expected sum of squares of what noise adds to the deviation from independence, to first order.

    Noise e moves the deviation by (I - p 1') e (I - q 1')', p and q the margins; a group of s codes has s times the
    variance of one along its axis. The expected square of that is the product of one factor for each axis.
    """
    factors = []
    for axis, codes in enumerate(cells):
        margin = shares.sum(axis=1 - axis)
        factors.append(float(codes.sum() * (1 + (margin**2).sum()) - 2 * (codes * margin).sum()))
    return variance * factors[0] * factors[1]


def find_pairs(study: Study, tables: Sequence[Released]) -> PairMargins:
    """The two-way margins of all base features, each out of the released table that has it."""
    sizes, total = sizes_of(study), float(study.total_rows)
    noisy: dict[Features, Floats] = {}
    variances: dict[Features, float] = {}
    for table in tables:
        for x, y in combinations(sorted(table.features), 2):
            counts = marginalize(table.counts, table.features, sizes, (x, y))
            noisy[x, y] = counts.reshape(sizes[x], sizes[y]) / total
            variances[x, y] = table.mean_variance * (len(table.counts) / len(counts)) / total**2
    assert sorted(noisy) == list(combinations(range(base_count(study)), 2))
    agreed = agree_on_ones(noisy, variances)
    projected = agreed
    for _ in range(PASSES):
        projected = {
            pair: project_tables(shares.reshape(-1), 1.0).reshape(shares.shape)
            for pair, shares in agree_on_ones(projected, variances).items()
        }
    return PairMargins(sizes, levels_of(study), agreed, projected, variances)


def agree_on_ones(tables: Mapping[Features, Floats], variances: Mapping[Features, float]) -> dict[Features, Floats]:
    """Two-way tables that add up to 1 and agree on the margin of each feature, nearest to the given ones by their
    precision: `agree` for tables that share one feature at most, in time that grows with their number and not with
    its square.
    """
    fitted = {pair: shares + (1 - shares.sum()) / shares.size for pair, shares in tables.items()}
    held: dict[int, list[tuple[Features, int]]] = defaultdict(list)
    for pair in fitted:
        for axis, feature in enumerate(pair):
            held[feature].append((pair, axis))
    for places in held.values():
        margins = [fitted[pair].sum(axis=1 - axis) for pair, axis in places]
        weights = [1 / (variances[pair] * fitted[pair].shape[1 - axis]) for pair, axis in places]
        mean = np.average(margins, axis=0, weights=weights)
        for (pair, axis), own in zip(places, margins, strict=True):
            change = (mean - own) / fitted[pair].shape[1 - axis]
            fitted[pair] += np.expand_dims(change, 1 - axis)
    return fitted
