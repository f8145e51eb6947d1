"""The criterion MODL of a grid: how long a description of the rows is, in nats, given the parts of each attribute.

With N counts, V_a values and I_a parts of attribute a, m_ai values and N_ai counts in part i, n_av counts of value v
and G = product of the I_a cells, the cost is

    sum_a [ln V_a + ln B(V_a, I_a)] + ln C(N+G-1, G-1) + sum_a sum_i ln C(N_ai + m_ai - 1, m_ai - 1)
    + ln N! - sum_cells ln N_cell! + sum_a (sum_i ln N_ai! - sum_v ln n_av!)

where B(V, I) counts the ways to split V values into at most I groups. The parts of an ordered attribute are intervals,
and C(V-1, I-1) takes the place of B. All counts are released or follow from released numbers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Groups = tuple[int, ...]
Number = TypeVar("Number", np.int64, np.float64)

TABLE_SIZE = 1 << 17


@dataclass(frozen=True, slots=True)
class Axis:
    """One attribute of a table: how many values it has, and whether its parts are intervals of them.

    The last value of an ordered axis may be the missing one, which no interval holds unless it holds all others.
    """

    size: int
    is_ordered: bool = False
    has_missing: bool = False


@lru_cache(maxsize=1)
def _table() -> Floats:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, TABLE_SIZE)))])


def log_factorials(counts: Integers) -> Floats:
    """The logarithm of k! for each count: from a table, and beyond it by Stirling's series, exact to a double there."""
    table = _table()
    if counts.size == 0 or int(counts.max()) < TABLE_SIZE:
        return table[counts]
    large = np.maximum(counts, TABLE_SIZE).astype(np.float64)
    series = large * np.log(large) - large + 0.5 * np.log(2 * np.pi * large) + 1 / (12 * large)
    return np.where(counts < TABLE_SIZE, table[np.minimum(counts, TABLE_SIZE - 1)], series)


def log_choose(n: int, k: int) -> float:
    """The logarithm of C(n, k)."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def log_splits(axis: Axis) -> Floats:
    """For each number of parts from 1 on, the logarithm of how many ways an attribute has to be in so many parts."""
    if axis.is_ordered:
        return np.array([log_choose(axis.size - 1, parts - 1) for parts in range(1, axis.size + 1)])
    return np.logaddexp.accumulate(_log_stirling(axis.size))


@lru_cache(maxsize=64)
def _log_stirling(size: int) -> Floats:
    """The logarithm ln S2(size, k) for k from 1: a value joins one of k groups, or is a group of its own."""
    logs = np.full(size + 1, -np.inf)
    logs[0] = 0.0
    with np.errstate(divide="ignore"):
        factors = np.log(np.arange(size + 1))
    for _ in range(size):
        logs[1:] = np.logaddexp(logs[1:] + factors[1:], logs[:-1])
        logs[0] = -np.inf
    return logs[1:]


def rows_prior(rows: int, cells: int) -> float:
    """The logarithm ln C(N+G-1, G-1): how the rows may fall into the cells."""
    return log_choose(rows + cells - 1, cells - 1)


def part_costs(counts: Integers, members: Integers) -> Floats:
    """What each part costs, ln C(N_i + m_i - 1, m_i - 1) + ln N_i!: how counts fall on its values, and their order."""
    return log_factorials(counts + members - 1) - log_factorials(members - 1)


def part_cells(groups: Sequence[Groups]) -> Floats:
    """How many cells of values each cell of parts has."""
    return reduce(np.multiply.outer, [np.bincount(own).astype(np.float64) for own in groups])


def gather(table: NDArray[Number], groups: Sequence[Groups]) -> NDArray[Number]:
    """The table of parts of a table of values."""
    for axis, own in enumerate(groups):
        rows = np.moveaxis(table, axis, 0)
        parts = np.asarray(own)
        added = np.stack([rows[parts == part].sum(axis=0) for part in range(max(own) + 1)])
        table = np.moveaxis(added, 0, axis)
    return table


def grid_cost(counts: Integers, axes: Sequence[Axis], groups: Sequence[Groups]) -> float:
    """The cost of a grid, which gives the part of each value of each axis."""
    table, rows = gather(counts, groups), int(counts.sum())
    cost = rows_prior(rows, table.size) + math.lgamma(rows + 1) - float(log_factorials(table).sum())
    for place, (axis, own) in enumerate(zip(axes, groups, strict=True)):
        others = tuple(other for other in range(len(axes)) if other != place)
        margin, values = table.sum(axis=others), counts.sum(axis=others)
        cost += math.log(axis.size) + float(log_splits(axis)[max(own)])
        cost += float(part_costs(margin, np.bincount(own)).sum() - log_factorials(values).sum())
    return cost
