"""Consistency: noisy tables that share features are made to agree on what they share.

A table is a sum of orthogonal parts, one for each subset of its features (what a margin adds to smaller margins), and
independent noise of one variance stays independent between parts. So the least-squares estimate averages each part
over the tables that have it, with weights 1 / (cells * variance). Doing that to margins, from small shared sets to
large ones, with the difference spread evenly over a table's cells, is the same: smaller parts already agree
and stay (Hay et al. 2010; PriView, Qardaji et al. 2014). Post-processing of released tables; it is free.

Where the cells of a table have noise of different variances, a difference is spread in proportion to them. To make
tables agree on one margin is then still the nearest change, in the distance that weighs each cell by 1 / variance, but
margins that agreed before move a little. Since every step is a projection onto a plane, steps that are repeated come
to the weighted least-squares estimate (Halperin 1962).

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
from synod.curator.network.tables import Floats, count_cells, fold_axis, project_tables, project_unequal

PASSES = 5

# What rounding leaves in a cell that was cut to zero; as a configuration's only mass it would pass for information.
DUST = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class NoisyTable:
    """Released counts, flat in C order of the features, with the variance of a cell's noise: one number, or one for
    each cell.
    """

    features: Features
    counts: Floats
    variance: float | Floats

    def project(self, total: float) -> Floats:
        """The counts made non-negative, with this total: norm-sub by the variance of each cell."""
        if isinstance(self.variance, float):
            return project_tables(self.counts, total)
        return project_unequal(self.counts, self.variance, total)


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
        tables = [replace(table, counts=counts) for table, counts in zip(tables, agreed, strict=True)]
        tables = [replace(table, counts=table.project(total)) for table in tables]
    return [np.where(table.counts > DUST * total, table.counts, 0.0) for table in tables]


def agree(tables: Sequence[NoisyTable], sizes: Sequence[int], *, total: float, levels: Levels = PLAIN) -> list[Floats]:
    """The weighted least-squares fit to the tables among those that agree on all shared margins and the total; with
    levels of features or unequal variances, near to it, and nearer each time.
    """
    if any(np.min(table.variance) <= 0 for table in tables):
        raise invalid("A table's noise has no positive variance.")
    orders = [levels.order(table.features) for table in tables]
    cubes = [
        _ordered_cube(table.counts, table.features, order, sizes) for table, order in zip(tables, orders, strict=True)
    ]
    variances = [float(np.mean(table.variance)) for table in tables]
    ratios = [_variance_ratios(table, order, sizes) for table, order in zip(tables, orders, strict=True)]
    for cube, ratio in zip(cubes, ratios, strict=True):
        np.add(cube, ratio * ((total - cube.sum()) / ratio.sum()), out=cube)
    for shared in shared_sets([table.features for table in tables], levels):
        members = [i for i, order in enumerate(orders) if levels.covers(order, shared)]
        margins = [_find_margin(orders[i], shared, sizes, levels) for i in members]
        _average_margins(
            [cubes[i] for i in members], margins, [variances[i] for i in members], [ratios[i] for i in members]
        )
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


def _average_margins(
    cubes: Sequence[Floats], margins: Sequence[_Margin], variances: Sequence[float], ratios: Sequence[Floats]
) -> None:
    """Give all cubes, in place, the weighted mean of a margin; the weight of a cell is 1 over its variance.

    A cell of a cube has `ratios` times the cube's variance, and so large a part of the change of its margin's cell.
    """
    taken = [margin.take(cube) for cube, margin in zip(cubes, margins, strict=True)]
    added = [margin.take(ratio) for ratio, margin in zip(ratios, margins, strict=True)]
    weights = [1 / (own.reshape(-1) * variance) for own, variance in zip(added, variances, strict=True)]
    weighted = [weight * margin.reshape(-1) for weight, margin in zip(weights, taken, strict=True)]
    consensus = np.sum(weighted, axis=0) / np.sum(weights, axis=0)
    for cube, ratio, margin, own, whole in zip(cubes, ratios, margins, taken, added, strict=True):
        np.add(cube, ratio * margin.spread((consensus.reshape(own.shape) - own) / whole), out=cube)


def _ordered_cube(values: Floats, features: Features, order: Features, sizes: Sequence[int]) -> Floats:
    """A copy with one axis for each feature, in this order, so that margins of different tables line up."""
    assert values.size == count_cells(features, sizes)
    cube = values.reshape([sizes[feature] for feature in features])
    return cube.transpose([features.index(feature) for feature in order]).astype(np.float64, order="C")


def _variance_ratios(table: NoisyTable, order: Features, sizes: Sequence[int]) -> Floats:
    """The variance of each cell in units of their mean: ones, exactly, where all are equal."""
    if isinstance(table.variance, float):
        return np.ones([sizes[feature] for feature in order])
    return _ordered_cube(table.variance / np.mean(table.variance), table.features, order, sizes)


def _given_order(cube: Floats, order: Features, table: NoisyTable) -> Floats:
    return cube.transpose([order.index(feature) for feature in table.features]).reshape(-1)
