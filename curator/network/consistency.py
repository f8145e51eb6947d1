"""Consistency: noisy tables that share features are made to agree on what they share.

A table is a sum of orthogonal parts, one for each subset of its features (what a margin adds to smaller margins), and
independent noise of one variance stays independent between parts. So the least-squares estimate averages each part
over the tables that have it, with weights 1 / (cells * variance). Doing that to margins, from small shared sets to
large ones, with the difference spread evenly over a table's cells, is the same: smaller parts already agree
and stay (Hay et al. 2010; PriView, Qardaji et al. 2014). Post-processing of released tables; it is free.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from synod.common.runtime.errors import invalid
from synod.curator.network.graph import Features
from synod.curator.network.tables import Floats, count_cells, project_tables

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
    tables: Sequence[NoisyTable], sizes: Sequence[int], *, total: float, passes: int = PASSES
) -> list[Floats]:
    """Non-negative tables with the public total that agree on shared margins, nearly; flat, in the given order.

    Agreement and norm-sub alternate and norm-sub is last: the tables are non-negative and have the total, while
    what is left of a disagreement shrinks with each pass.
    """
    assert passes >= 1
    for _ in range(passes):
        agreed = agree(tables, sizes, total=total)
        tables = [
            replace(table, counts=project_tables(counts, total)) for table, counts in zip(tables, agreed, strict=True)
        ]
    return [np.where(table.counts > DUST * total, table.counts, 0.0) for table in tables]


def agree(tables: Sequence[NoisyTable], sizes: Sequence[int], *, total: float) -> list[Floats]:
    """The weighted least-squares fit to the tables among those that agree on all shared margins and the total."""
    if any(table.variance <= 0 for table in tables):
        raise invalid("A table's noise has no positive variance.")
    cubes = [_sorted_cube(table, sizes) for table in tables]
    for cube in cubes:
        np.add(cube, (total - cube.sum()) / cube.size, out=cube)
    weights = [1 / (cube.size * table.variance) for cube, table in zip(cubes, tables, strict=True)]
    for shared in shared_sets([table.features for table in tables]):
        members = [i for i, table in enumerate(tables) if shared <= set(table.features)]
        _average_margins(
            [cubes[i] for i in members],
            [weights[i] for i in members],
            [_other_axes(tables[i].features, shared) for i in members],
        )
    return [_unsorted_table(cube, table.features) for cube, table in zip(cubes, tables, strict=True)]


def shared_sets(families: Sequence[Features]) -> list[frozenset[int]]:
    """All intersections of two or more families but the empty one, smaller ones first."""
    sets = [frozenset(family) for family in families]
    found = {a & b for i, a in enumerate(sets) for b in sets[:i]}
    fresh = found
    while fresh:
        fresh = {a & b for a in fresh for b in sets} - found
        found |= fresh
    return sorted(found - {frozenset()}, key=lambda shared: (len(shared), sorted(shared)))


def _average_margins(cubes: Sequence[Floats], weights: Sequence[float], axes: Sequence[tuple[int, ...]]) -> None:
    """Give all cubes, in place, the weighted mean of their margins, which `axes` sum to."""
    margins = [cube.sum(axis=axis, keepdims=True) for cube, axis in zip(cubes, axes, strict=True)]
    flat = np.stack([margin.reshape(-1) for margin in margins])
    consensus = np.asarray(weights) @ flat / sum(weights)
    for cube, margin in zip(cubes, margins, strict=True):
        np.add(cube, (consensus.reshape(margin.shape) - margin) * (margin.size / cube.size), out=cube)


def _other_axes(features: Features, shared: frozenset[int]) -> tuple[int, ...]:
    return tuple(axis for axis, feature in enumerate(sorted(features)) if feature not in shared)


def _sorted_cube(table: NoisyTable, sizes: Sequence[int]) -> Floats:
    """A copy with one axis for each feature, by index, so that margins of different tables line up."""
    assert table.counts.size == count_cells(table.features, sizes)
    cube = table.counts.reshape([sizes[feature] for feature in table.features])
    return cube.transpose(np.argsort(table.features)).astype(np.float64, order="C")


def _unsorted_table(cube: Floats, features: Features) -> Floats:
    return cube.transpose(np.argsort(np.argsort(features))).reshape(-1)
