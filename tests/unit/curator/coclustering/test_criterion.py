"""MODL's cost against a literal sum over small grids, and the numbers that it is made of against enumeration."""

import math
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import pytest

from synod.common.study.levels import number_groups
from synod.curator.coclustering.criterion import (
    TABLE_SIZE,
    Axis,
    gather,
    grid_cost,
    log_choose,
    log_factorials,
    log_splits,
    part_cells,
)

Groups = tuple[int, ...]


def partitions(size: int) -> Iterator[Groups]:
    """Every way to put values into parts, each once: numbered by first occurrence."""
    yield from (own for own in product(range(size), repeat=size) if number_groups(own) == own)


def splits(axis: Axis) -> list[Groups]:
    """Every way that an axis allows."""
    every = list(partitions(axis.size))
    return [own for own in every if list(own) == sorted(own)] if axis.is_ordered else every


def literal_cost(counts: np.ndarray, axes: Sequence[Axis], groups: Sequence[Groups]) -> float:
    """The criterion as it is written, cell by cell, with exact integers inside the logarithms."""
    rows = int(counts.sum())
    cells: dict[tuple[int, ...], int] = {}
    for place, count in np.ndenumerate(counts):
        cell = tuple(own[value] for own, value in zip(groups, place, strict=True))
        cells[cell] = cells.get(cell, 0) + int(count)
    grid = math.prod(max(own) + 1 for own in groups)
    cost = math.log(math.comb(rows + grid - 1, grid - 1)) + math.log(math.factorial(rows))
    cost -= sum(math.log(math.factorial(count)) for count in cells.values())
    for axis, own in enumerate(groups):
        size, parts = len(own), max(own) + 1
        if axes[axis].is_ordered:
            ways = math.comb(size - 1, parts - 1)
        else:
            ways = sum(max(other) + 1 <= parts for other in partitions(size))
        cost += math.log(size) + math.log(ways)
        values = [int(counts.take(value, axis=axis).sum()) for value in range(size)]
        for part in range(parts):
            members = [value for value in range(size) if own[value] == part]
            total = sum(values[value] for value in members)
            cost += math.log(math.comb(total + len(members) - 1, len(members) - 1))
            cost += math.log(math.factorial(total)) - sum(math.log(math.factorial(values[value])) for value in members)
    return cost


@pytest.mark.parametrize("ordered", list(product([False, True], repeat=3)))
def test_the_cost_is_the_literal_one_for_every_grid(ordered: tuple[bool, ...]) -> None:
    sizes = (2, 3, 2)
    counts = np.random.default_rng(1).poisson(3, sizes)
    axes = [Axis(size, is_ordered) for size, is_ordered in zip(sizes, ordered, strict=True)]
    grids = list(product(*(splits(axis) for axis in axes)))
    assert len(grids) == 2 * 2 * (4 if ordered[1] else 5)
    for groups in grids:
        assert grid_cost(counts, axes, groups) == pytest.approx(literal_cost(counts, axes, groups), abs=1e-9)


def test_no_rows_and_one_cell_cost_nothing_strange() -> None:
    axes = [Axis(2), Axis(3)]
    for groups in product(*(splits(axis) for axis in axes)):
        empty = np.zeros((2, 3), dtype=np.int64)
        assert grid_cost(empty, axes, groups) == pytest.approx(literal_cost(empty, axes, groups), abs=1e-9)


@pytest.mark.parametrize("size", range(1, 8))
def test_ways_to_split_are_those_that_can_be_listed(size: int) -> None:
    listed = [max(own) + 1 for own in partitions(size)]
    for parts in range(1, size + 1):
        at_most = sum(other <= parts for other in listed)
        assert math.exp(log_splits(Axis(size))[parts - 1]) == pytest.approx(at_most)
        intervals = sum(max(own) + 1 == parts for own in splits(Axis(size, is_ordered=True)))
        assert math.exp(log_splits(Axis(size, is_ordered=True))[parts - 1]) == pytest.approx(intervals)


def test_many_values_have_their_ways_too() -> None:
    """Bell's number of 25 values, and no overflow with hundreds."""
    assert math.exp(log_splits(Axis(25))[-1]) == pytest.approx(4638590332229999353)
    assert np.isfinite(log_splits(Axis(500))).all()
    assert (np.diff(log_splits(Axis(500))) >= 0).all()


def test_factorials_beyond_the_table_are_as_exact() -> None:
    counts = np.array([0, 1, 5, TABLE_SIZE - 1, TABLE_SIZE, TABLE_SIZE + 1, 10**7, 10**9])
    expected = [math.lgamma(int(count) + 1) for count in counts]
    assert log_factorials(counts) == pytest.approx(expected, rel=1e-12)
    assert log_factorials(counts[:4]) == pytest.approx(expected[:4], rel=1e-12)
    assert log_factorials(np.zeros(0, dtype=np.int64)).shape == (0,)
    assert log_choose(10, 3) == pytest.approx(math.log(120))


def test_parts_add_up_their_values() -> None:
    counts = np.arange(24).reshape(2, 3, 4)
    groups = [(0, 1), (0, 1, 0), (0, 0, 1, 1)]
    literal = np.zeros((2, 2, 2), dtype=np.int64)
    cells = np.zeros((2, 2, 2))
    for place, count in np.ndenumerate(counts):
        part = tuple(own[value] for own, value in zip(groups, place, strict=True))
        literal[part] += count
        cells[part] += 1
    assert np.array_equal(gather(counts, groups), literal)
    assert np.array_equal(part_cells(groups), cells)


def test_parts_are_numbered_by_first_occurrence() -> None:
    assert number_groups([5, 2, 5, 0]) == (0, 1, 0, 2)
