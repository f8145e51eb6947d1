"""Exact tables of counts: all marginals that a party is asked for, and all that it scores parents by.

Sets of binary features are counted over packed bits: of the 2^k cells of such a table only one is not known from
smaller tables, so every distinct conjunction is counted once (party/count/bits.py) and the tables follow by Moebius
inversion. Other sets are mixed-radix codes and one bincount. This module reads real rows: what it returns is private
and exact, and leaves the party only through noise (common/privacy/noise.py) or a private choice (choice.py beside it).
"""

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from synod.party.count.bits import Conjunctions, distinct_codes, encode

Column = NDArray[np.unsignedinteger]
Counts = NDArray[np.int64]

CHUNK_ROWS = 2**16
BLOCK_CELLS = 2**23
MOST_PACKED = 8  # a table of more binary features has more conjunctions than a bincount is worth
CODE_LIMIT = 2**63


class PackedTable:
    """Binary features, packed once and counted many times: d features of n rows take d n / 8 bytes.

    Beyond its result, a call takes a copy of that and a block of work, of 20 to 45 bytes for each of at most 2^23
    cells (measured): below 400 MiB, however many sets there are.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        assert columns
        self.rows = len(columns[0])
        self._bits = np.zeros((len(columns), max(1, -(-self.rows // 64)) * 8), dtype=np.uint8)
        for bits, column in zip(self._bits, columns, strict=True):
            assert len(column) == self.rows
            bits[: -(-self.rows // 8)] = np.packbits(column.astype(bool))

    def can_count(self, size: int) -> bool:
        """Whether a set of `size` features has a code of 63 bits, as `count_tables` needs."""
        return bool(max(2, len(self._bits)) ** size < CODE_LIMIT)

    def count_tables(self, sets: NDArray[np.intp]) -> Counts:
        """A row of 2^k counts in C order for each row of `sets`: k distinct features, in any order."""
        count, size = sets.shape
        assert self.can_count(size)
        tables = np.empty((count, 2**size), dtype=np.int64)
        step = max(1, BLOCK_CELLS >> size)
        for start in range(0, count, step):
            tables[start : start + step] = self._count_block(sets[start : start + step])
        return tables

    def _count_block(self, sets: NDArray[np.intp]) -> NDArray[np.int32]:
        # Frequent features first: that order has the fewest prefixes, hence the longest blocks of ANDs.
        uses = np.bincount(sets.ravel(), minlength=len(self._bits))
        order = np.argsort(-uses, kind="stable")
        ranked = np.argsort(order)[sets]
        sorting = _sort_within(ranked)
        codes = encode((ranked if sorting is None else np.take_along_axis(ranked, sorting, axis=1)).T, len(order))
        distinct = distinct_codes(codes)
        counts = Conjunctions(self._bits[order], self.rows).count(distinct, sets.shape[1])
        _invert(counts)
        if distinct is codes and sorting is None:
            return counts.T
        tables = np.ascontiguousarray(counts.T)[np.searchsorted(distinct, codes)]
        return tables if sorting is None else _restore_order(tables, sorting)


def count_families(table: PackedTable, children: NDArray[np.intp], parents: NDArray[np.intp]) -> Counts:
    """The tables of binary features with their parents, as scores take them: (candidates, 2, 2^k).

    `children` has one feature and `parents` one row of k others for each candidate.
    """
    tables = table.count_tables(np.column_stack([children, parents]))
    return tables.reshape(len(children), 2, -1)


def count_marginals(columns: Sequence[Column], sizes: Sequence[int], sets: Sequence[tuple[int, ...]]) -> list[Counts]:
    """The exact table of each set of distinct features, flat in C order.

    Memory beyond the result: that of a `PackedTable` of the binary features asked for, or, for one set at a time,
    2^16 codes, or as many as the set has cells, and a bincount of them.
    """
    tables = [np.empty(0, dtype=np.int64)] * len(sets)
    packed = [index for index, features in enumerate(sets) if _is_packed(sizes, features)]
    used = sorted({feature for index in packed for feature in sets[index]})
    places = {feature: place for place, feature in enumerate(used)}
    for size in {len(sets[index]) for index in packed}:
        batch = [index for index in packed if len(sets[index]) == size]
        asked = np.array([[places[feature] for feature in sets[index]] for index in batch], dtype=np.intp)
        counted = PackedTable([columns[feature] for feature in used]).count_tables(asked)
        for index, counts in zip(batch, counted, strict=True):
            tables[index] = counts
    for index in set(range(len(sets))).difference(packed):
        tables[index] = _count_codes(columns, sizes, sets[index])
    return tables


def _is_packed(sizes: Sequence[int], features: tuple[int, ...]) -> bool:
    limit = max(2, len(sizes)) ** len(features) < CODE_LIMIT
    return 0 < len(features) <= MOST_PACKED and limit and all(sizes[feature] == 2 for feature in features)


def _count_codes(columns: Sequence[Column], sizes: Sequence[int], features: tuple[int, ...]) -> Counts:
    """One bincount for each chunk of rows, over codes of the narrowest type that holds them."""
    cells = prod(sizes[feature] for feature in features)
    counts = np.zeros(cells, dtype=np.int64)
    rows = len(columns[0])
    step = max(CHUNK_ROWS, cells)  # a bincount takes its cells' time, however few rows it counts
    for start in range(0, rows, step):
        codes = np.zeros(min(step, rows - start), dtype=np.min_scalar_type(cells))
        for feature in features:
            codes *= codes.dtype.type(sizes[feature])
            np.add(codes, columns[feature][start : start + step], out=codes, casting="unsafe")
        counts += np.bincount(codes, minlength=cells)
    return counts


def _sort_within(sets: NDArray[np.intp]) -> NDArray[np.intp] | None:
    """What sorts each row, or None where all are sorted."""
    if (sets[:, 1:] > sets[:, :-1]).all():
        return None
    return np.argsort(sets, axis=1)


def _invert(counts: NDArray[np.int32]) -> None:
    """From rows that have the features of a mask, whatever else they have, to rows that have no others: in place,
    by one subtraction for each bit.
    """
    size = len(counts).bit_length() - 1
    for bit in range(size):
        halves = counts.reshape(2 ** (size - 1 - bit), 2, 2**bit, -1)
        halves[:, 0] -= halves[:, 1]


def _restore_order(tables: NDArray[np.int32], sorting: NDArray[np.intp]) -> NDArray[np.int32]:
    """The cells of tables of sorted features, in the order that the features had before."""
    size = sorting.shape[1]
    bits = np.arange(2**size) >> np.arange(size)[::-1, None] & 1
    weights = 1 << (size - 1 - np.argsort(sorting, axis=1))
    return np.take_along_axis(tables, weights @ bits, axis=1)
