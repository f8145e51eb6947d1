"""Distances of marginals: for every set of attributes, how far the shares of its cells in two tables are apart.

Small tables are counted densely, binary ones over packed bits (party/count/marginals.py); where a set has more cells
than rows could fill, only the cells that occur are counted. Memory stays within a block of cells or a few columns.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, compress
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from synod.deploy.evaluate.tables import Table
from synod.party.count.marginals import count_marginals

Floats = NDArray[np.float64]
Attributes = tuple[int, ...]

BLOCK_CELLS = 2**22
FEW_CELLS = 2**12
MOST_SETS = 200_000


@dataclass(frozen=True, slots=True, eq=False)
class Distances:
    """The distances of the measured marginals of one order; `all_sets` is how many marginals there are."""

    order: int
    all_sets: int
    sets: tuple[Attributes, ...]
    total_variation: Floats
    hellinger: Floats

    def worst(self, count: int) -> list[int]:
        """Where the largest total variation distances are, the largest first."""
        return [int(place) for place in np.argsort(-self.total_variation, kind="stable")[:count]]


def total_variation(left: Floats, right: Floats) -> float:
    """Half the sum of the absolute differences of two distributions: 0 if they are equal, 1 if they share no cell."""
    return float(np.abs(left - right).sum() / 2)


def hellinger(left: Floats, right: Floats) -> float:
    """The square root of half the sum of the squared differences of the roots of two distributions; within 0 and 1."""
    return float(np.sqrt(np.square(np.sqrt(left) - np.sqrt(right)).sum() / 2))


def measure_marginals(real: Table, synthetic: Table, order: int, *, rng: np.random.Generator) -> Distances:
    """Both distances for all sets of `order` attributes; where they are more than 200,000, for so many at random."""
    all_sets = comb(len(real.sizes), order)
    sets = choose_sets(len(real.sizes), order, MOST_SETS, rng=rng)
    pairs = [
        (total_variation(left, right), hellinger(left, right))
        for block in _blocks(sets, real.sizes)
        for left, right in _shares(real, synthetic, block)
    ]
    both = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    return Distances(order, all_sets, tuple(sets), both[:, 0], both[:, 1])


def choose_sets(attributes: int, order: int, most: int, *, rng: np.random.Generator) -> list[Attributes]:
    """All sets of so many attributes, or `most` different ones at random."""
    if comb(attributes, order) <= most:
        return list(combinations(range(attributes), order))
    found: set[Attributes] = set()
    while len(found) < most:
        drawn = np.sort(rng.integers(0, attributes, (most, order)), axis=1)
        distinct = drawn[(drawn[:, 1:] > drawn[:, :-1]).all(axis=1)]
        found.update(map(tuple, distinct[: most - len(found)].tolist()))
    return sorted(found)


def _blocks(sets: Sequence[Attributes], sizes: Sequence[int]) -> Iterator[list[Attributes]]:
    """The sets in order, as many at a time as have few cells together."""
    block: list[Attributes] = []
    cells = 0
    for attributes in sets:
        own = _count_cells(attributes, sizes)
        if block and cells + own > BLOCK_CELLS:
            yield block
            block, cells = [], 0
        block.append(attributes)
        cells += own
    if block:
        yield block


def _count_cells(attributes: Attributes, sizes: Sequence[int]) -> int:
    return prod(sizes[attribute] for attribute in attributes)


def _shares(real: Table, synthetic: Table, block: list[Attributes]) -> Iterator[tuple[Floats, Floats]]:
    """The shares of the cells in both tables, for each set of a block."""
    limit = max(FEW_CELLS, real.rows + synthetic.rows)
    is_dense = [_count_cells(attributes, real.sizes) <= limit for attributes in block]
    dense = list(compress(block, is_dense))
    tables = [iter(count_marginals(table.columns, table.sizes, dense)) for table in (real, synthetic)]
    for attributes, counted in zip(block, is_dense, strict=True):
        if counted:
            yield next(tables[0]) / real.rows, next(tables[1]) / synthetic.rows
        else:
            yield _occurring_shares(real, synthetic, attributes)


def _occurring_shares(real: Table, synthetic: Table, attributes: Attributes) -> tuple[Floats, Floats]:
    """The shares of the cells that occur in either table."""
    both = [_cells(table, attributes) for table in (real, synthetic)]
    occurring, places = np.unique(np.concatenate(both), return_inverse=True)
    left = np.bincount(places[: real.rows], minlength=len(occurring))
    right = np.bincount(places[real.rows :], minlength=len(occurring))
    return left / real.rows, right / synthetic.rows


def _cells(table: Table, attributes: Attributes) -> NDArray[np.int64]:
    """The number of each row's cell; three domains of 65,001 codes stay far below 2^63."""
    cells = np.zeros(table.rows, dtype=np.int64)
    for attribute in attributes:
        cells = cells * table.sizes[attribute] + table.columns[attribute]
    return cells
