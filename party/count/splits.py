"""The best split of a table's parent cells, which score F asks for: exact, and for many tables at once.

A split gives each parent cell's zeros to K0 or its ones to K1; its shortfall is (n - 2 K0)+ + (n - 2 K1)+. Up to
eight cells all splits are tried. Beyond, PrivBayes (section 4.4) walks the sums that n rows can make; here a bound
from linear programming tells which splits may still beat the best one known, and only those are walked, without
the dominated ones (Definition 4.6). All of it is integer arithmetic: no shortfall is ever rounded.
"""

import numpy as np
from numpy.typing import NDArray

MOST_ENUMERATED = 8
BLOCK_TABLES = 2**9
MOST_STATES = 2**21

Ints = NDArray[np.int64]


def least_shortfalls(zeros: Ints, ones: Ints, rows: int) -> Ints:
    """The least shortfall of each table; `zeros` and `ones` have a row for each and a column for each parent cell.

    Memory: 2^9 tables at a time, with 2^8 splits or in all at most 2^22 states of 32 bytes, or n of them where a
    single table has as many.
    """
    assert 0 <= rows < 2**30
    method = _enumerate if zeros.shape[1] <= MOST_ENUMERATED else _search
    blocks = range(0, len(zeros), BLOCK_TABLES)
    parts = [method(zeros[i : i + BLOCK_TABLES], ones[i : i + BLOCK_TABLES], rows) for i in blocks]
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def _shortfall(k0: Ints, k1: Ints, rows: int) -> Ints:
    return np.maximum(rows - 2 * k0, 0) + np.maximum(rows - 2 * k1, 0)


def _least_shortfall(k0: Ints, k1: Ints, rows: int) -> Ints:
    least: Ints = _shortfall(k0, k1, rows).min(axis=1)
    return least


def _enumerate(zeros: Ints, ones: Ints, rows: int) -> Ints:
    """Try all splits, adding one cell after the other."""
    k0 = k1 = np.zeros((len(zeros), 1), dtype=np.int64)
    for zero, one in zip(zeros.T[:, :, None], ones.T[:, :, None], strict=True):
        k0, k1 = np.concatenate([k0 + zero, k0], axis=1), np.concatenate([k1, k1 + one], axis=1)
    return _least_shortfall(k0, k1, rows)


def _search(zeros: Ints, ones: Ints, rows: int) -> Ints:
    """Start at the split that a bound likes best and flip cell after cell, the costliest first.

    For weights 0 <= u, v <= w, w shortfall >= u (n - 2 K0) + v (n - 2 K1). Over all splits the right side is least
    where each cell goes to the larger of u zeros and v ones; each cell that does not adds its regret to it.
    """
    u, v, w = _choose_weights(zeros, ones, rows)
    gains = u * zeros - v * ones
    bound = (u[:, 0] + v[:, 0]) * rows - 2 * np.maximum(u * zeros, v * ones).sum(axis=1)
    k0, k1 = np.where(gains > 0, zeros, 0).sum(axis=1), np.where(gains > 0, 0, ones).sum(axis=1)
    regrets = 2 * np.abs(gains)
    steps = np.stack([np.where(gains > 0, -zeros, zeros), np.where(gains > 0, ones, -ones)])
    states = np.stack([np.arange(len(zeros)), k0, k1, bound])
    best = np.minimum(_shortfall(k0, k1, rows), _try_thresholds(zeros, ones, rows))
    best = np.minimum(best, _try_flips(states[1:3], steps, rows))
    for cells in np.argsort(-regrets, axis=1).T:
        flips = _flip(states, cells, steps, regrets)
        flips = flips[:, flips[3] < (best * w[:, 0])[flips[0]]]
        np.minimum.at(best, flips[0], _shortfall(flips[1], flips[2], rows))
        states = np.concatenate([states, flips], axis=1)
        states = _drop_dominated(states[:, states[3] < (best * w[:, 0])[states[0]]])
        if states.shape[1] > MOST_STATES and len(zeros) > 1:
            half = len(zeros) // 2
            return np.append(_search(zeros[:half], ones[:half], rows), _search(zeros[half:], ones[half:], rows))
    return best


def _flip(states: Ints, cells: NDArray[np.intp], steps: Ints, regrets: Ints) -> Ints:
    """The states, columns of (table, K0, K1, bound), after each table's next cell has changed sides."""
    table = states[0]
    cell = cells[table]
    flips = states.copy()
    flips[1:3] += steps[:, table, cell]
    flips[3] += regrets[table, cell]
    return flips


def _drop_dominated(states: Ints) -> Ints:
    """The states without those that another of the same table equals or beats in both K0 and K1.

    The cells still to come add the same to both, so the one that is dropped could not have ended better.
    """
    table, k0, k1 = states[:3]
    order = np.lexsort((-k1, -k0, table))
    heights = (k1 + table * (k1.max(initial=0) + 1))[order]
    peaks = np.maximum.accumulate(heights)
    higher = np.flatnonzero(heights[1:] > peaks[:-1]) + 1
    return states[:, order[np.append(0, higher)[: len(order)]]]


def _choose_weights(zeros: Ints, ones: Ints, rows: int) -> tuple[Ints, Ints, Ints]:
    """Columns (u, v, w) of the best bound for each table: equal weights, or such that some cell may go either way.

    Any choice is valid; floats only help to choose.
    """
    u = np.concatenate([ones, np.ones_like(ones[:, :1])], axis=1)
    v = np.concatenate([zeros, np.ones_like(zeros[:, :1])], axis=1)
    w = np.maximum(1, np.maximum(u, v))
    reach = np.zeros_like(u)
    for zero, one in zip(zeros.T[:, :, None], ones.T[:, :, None], strict=True):
        reach += np.maximum(u * zero, v * one)
    chosen = np.argmax(((u + v) * rows - 2 * reach) / w, axis=1)[:, None]
    best_u, best_v, best_w = (np.take_along_axis(weights, chosen, axis=1) for weights in (u, v, w))
    return best_u, best_v, best_w


def _try_thresholds(zeros: Ints, ones: Ints, rows: int) -> Ints:
    """The least shortfall of the splits that give K0 the cells whose share of zeros is above some threshold."""
    order = np.argsort(-zeros / np.maximum(1, zeros + ones), axis=1)
    k0 = np.cumsum(np.take_along_axis(zeros, order, axis=1), axis=1)
    k1 = ones.sum(axis=1, keepdims=True) - np.cumsum(np.take_along_axis(ones, order, axis=1), axis=1)
    return _least_shortfall(k0, k1, rows)


def _try_flips(sums: Ints, steps: Ints, rows: int) -> Ints:
    """The least shortfall of the splits that differ in one or two cells from that of `sums`, (K0, K1)."""
    once = sums[:, :, None] + steps
    best = _least_shortfall(once[0], once[1], rows)
    for cell in range(1, steps.shape[2]):
        twice = once[:, :, :cell] + steps[:, :, cell, None]
        best = np.minimum(best, _least_shortfall(twice[0], twice[1], rows))
    return best
