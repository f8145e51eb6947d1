"""Consistency: noisy tables that share features are made to agree on what they share.

A table is a sum of orthogonal parts, one for each subset of its features (what a margin adds to smaller margins), and
independent noise of one variance stays independent between parts. So the least-squares estimate averages each part
over the tables that have it, with weights 1 / (cells * variance). Doing that to margins, from small shared sets to
large ones, with the difference spread evenly over a table's cells, is the same: smaller parts already agree
and stay (Hay et al. 2010; PriView, Qardaji et al. 2014). Post-processing of released tables; it is free.

Where tables have levels of features, the margin that two of them share has, of each attribute, the coarser level. Its
cells stand for different numbers of a table's own cells, so that weights differ from cell to cell, and what smaller
margins had agreed on moves a little. That is why agreement is repeated.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from synod.common.runtime.errors import invalid
from synod.curator.network.graph import Features
from synod.curator.network.levels import PLAIN, Levels
from synod.curator.network.tables import Floats, count_cells, fold_axis, project_tables

PASSES = 5

# What rounding leaves in a cell that was cut to zero; as a configuration's only mass it would pass for information.
DUST = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class NoisyTable:
    """Released counts, flat in C order of the features, with the variance of one cell's noise."""

    features: Features
    counts: Floats
    variance: float


def reconcile(
    tables: Sequence[NoisyTable],
    sizes: Sequence[int],
    *,
    total: float,
    passes: int = PASSES,
    levels: Levels = PLAIN,
) -> list[Floats]:
    """Non-negative tables with the public total that agree on shared margins, nearly; flat, in the given order.

    Agreement and norm-sub alternate and norm-sub is last: the tables are non-negative and have the total, while
    what is left of a disagreement shrinks with each pass.
    """
    assert passes >= 1
    for _ in range(passes):
        agreed = agree(tables, sizes, total=total, levels=levels)
        tables = [
            replace(table, counts=project_tables(counts, total)) for table, counts in zip(tables, agreed, strict=True)
        ]
    return [np.where(table.counts > DUST * total, table.counts, 0.0) for table in tables]


def agree(tables: Sequence[NoisyTable], sizes: Sequence[int], *, total: float, levels: Levels = PLAIN) -> list[Floats]:
    """The weighted least-squares fit to the tables among those that agree on all shared margins and the total; with
    levels of features, near to it.
    """
    if any(table.variance <= 0 for table in tables):
        raise invalid("A table's noise has no positive variance.")
    orders = [levels.order(table.features) for table in tables]
    cubes = [_ordered_cube(table, order, sizes) for table, order in zip(tables, orders, strict=True)]
    for cube in cubes:
        np.add(cube, (total - cube.sum()) / cube.size, out=cube)
    for shared in shared_sets([table.features for table in tables], levels):
        members = [i for i, order in enumerate(orders) if levels.covers(order, shared)]
        margins = [_find_margin(orders[i], shared, sizes, levels) for i in members]
        _average_margins([cubes[i] for i in members], margins, [tables[i].variance for i in members])
    return [_given_order(cube, order, table) for cube, order, table in zip(cubes, orders, tables, strict=True)]


def shared_sets(families: Sequence[Features], levels: Levels = PLAIN) -> list[frozenset[int]]:
    """All that two or more families share but the empty set: smaller sets first, of equals the coarser ones."""
    sets = [frozenset(family) for family in families]
    found = {levels.meet(a, b) for i, a in enumerate(sets) for b in sets[:i]}
    fresh = found
    while fresh:
        fresh = {levels.meet(a, b) for a in fresh for b in sets} - found
        found |= fresh

    def coarse_first(shared: frozenset[int]) -> tuple[int, int, list[int]]:
        steps = sum(feature - levels.base(feature) for feature in shared)
        return len(shared), -steps, sorted(shared)

    return sorted(found - {frozenset()}, key=coarse_first)


@dataclass(frozen=True, slots=True, eq=False)
class _Margin:
    """How a margin follows from a cube of counts: axes that are summed, and codes that are grouped on others."""

    summed: tuple[int, ...]
    grouped: dict[int, tuple[NDArray[np.intp], int]]

    def take(self, cube: Floats) -> Floats:
        """The margin, with an axis of length 1 for each that is summed."""
        margin: Floats = cube.sum(axis=self.summed, keepdims=True)
        for axis, (groups, size) in self.grouped.items():
            margin = fold_axis(margin, axis, groups, size)
        return margin

    def spread(self, change: Floats) -> Floats:
        """The change of each cell of the cube, out of one for each cell of the margin."""
        for axis, (groups, _) in self.grouped.items():
            change = np.take(change, groups, axis=axis)
        return change


def _find_margin(order: Features, shared: frozenset[int], sizes: Sequence[int], levels: Levels) -> _Margin:
    wanted = {levels.source(order, feature): feature for feature in shared}
    grouped = {
        axis: (levels.coarsen(feature, wanted[feature], sizes[feature]), sizes[wanted[feature]])
        for axis, feature in enumerate(order)
        if wanted.get(feature, feature) != feature
    }
    return _Margin(tuple(axis for axis, feature in enumerate(order) if feature not in wanted), grouped)


def _average_margins(cubes: Sequence[Floats], margins: Sequence[_Margin], variances: Sequence[float]) -> None:
    """Give all cubes, in place, the weighted mean of a margin; the weight of a cell is 1 over its variance."""
    taken = [margin.take(cube) for cube, margin in zip(cubes, margins, strict=True)]
    cells = [margin.take(np.ones_like(cube)) for cube, margin in zip(cubes, margins, strict=True)]
    weights = [1 / (count.reshape(-1) * variance) for count, variance in zip(cells, variances, strict=True)]
    weighted = [weight * margin.reshape(-1) for weight, margin in zip(weights, taken, strict=True)]
    consensus = np.sum(weighted, axis=0) / np.sum(weights, axis=0)
    for cube, margin, own, count in zip(cubes, margins, taken, cells, strict=True):
        np.add(cube, margin.spread((consensus.reshape(own.shape) - own) / count), out=cube)


def _ordered_cube(table: NoisyTable, order: Features, sizes: Sequence[int]) -> Floats:
    """A copy with one axis for each feature, in this order, so that margins of different tables line up."""
    assert table.counts.size == count_cells(table.features, sizes)
    cube = table.counts.reshape([sizes[feature] for feature in table.features])
    return cube.transpose([table.features.index(feature) for feature in order]).astype(np.float64, order="C")


def _given_order(cube: Floats, order: Features, table: NoisyTable) -> Floats:
    return cube.transpose([order.index(feature) for feature in table.features]).reshape(-1)
