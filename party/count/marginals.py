"""Exact tables of counts: all marginals that a party is asked for, and all that it scores parents by.

Sets of binary features are counted over packed bits where many share their conjunctions: of the 2^k cells of such a
table only one is not known from smaller tables, so every distinct conjunction is counted once (party/count/bits.py) and
the tables follow by Moebius inversion. Other sets are mixed-radix codes and bincounts, all of them in one pass over the
rows. Rows are read in chunks, never all at once. This module reads real rows: what it returns is private and exact, and
leaves the party only through noise (common/privacy/noise.py) or a private choice (choice.py beside it).
"""

from collections.abc import Sequence
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from synod.common.study.encoding import CodeColumn
from synod.party.count.bits import Conjunctions, distinct_codes, encode
from synod.party.count.columns import Chunk, chunks_of

Column = NDArray[np.unsignedinteger]
Counts = NDArray[np.int64]

CHUNK_ROWS = 2**16
PACKED_ROWS = 2**22
SLICE_ROWS = 2**16  # whole bytes of bits
BLOCK_CELLS = 2**23
MOST_PACKED = 8  # a table of more binary features has more conjunctions than a bincount is worth
BINCOUNT = 24  # the time of a bincount, in conjunctions: measured
CODE_LIMIT = 2**63


class PackedTable:
    """Binary features, packed 2^22 rows at a time: d features then take d / 2 MiB.

    Beyond its result, a call takes twice that and a block of work, of 20 to 45 bytes for each of at most 2^23
    cells (measured): below 400 MiB, however many sets there are.
    """

    def __init__(self, columns: Sequence[CodeColumn]) -> None:
        assert columns
        self.rows = len(columns[0])
        assert all(len(column) == self.rows for column in columns)
        self._columns = columns

    def can_count(self, size: int) -> bool:
        """Whether a set of `size` features has a code of 63 bits, as `count_tables` needs."""
        return bool(max(2, len(self._columns)) ** size < CODE_LIMIT)

    def count_tables(self, sets: NDArray[np.intp]) -> Counts:
        """A row of 2^k counts in C order for each row of `sets`: k distinct features, in any order."""
        count, size = sets.shape
        assert self.can_count(size)
        tables = np.zeros((count, 2**size), dtype=np.int64)
        step = max(1, BLOCK_CELLS >> size)
        for start in range(0, count, step):
            self._add_block(tables[start : start + step], sets[start : start + step])
        return tables

    def _add_block(self, tables: Counts, sets: NDArray[np.intp]) -> None:
        # Frequent features first: that order has the fewest prefixes, hence the longest blocks of ANDs.
        uses = np.bincount(sets.ravel(), minlength=len(self._columns))
        order = np.argsort(-uses, kind="stable")
        ranked = np.argsort(order)[sets]
        sorting = _sort_within(ranked)
        codes = encode((ranked if sorting is None else np.take_along_axis(ranked, sorting, axis=1)).T, len(order))
        distinct = distinct_codes(codes)
        counts = self._count_conjunctions(distinct, order, sets.shape[1])
        _invert(counts)
        if distinct is codes and sorting is None:
            tables[:] = counts.T
            return
        found = np.ascontiguousarray(counts.T)[np.searchsorted(distinct, codes)]
        tables[:] = found if sorting is None else _restore_order(found, sorting)

    def _count_conjunctions(self, codes: NDArray[np.int64], order: NDArray[np.intp], size: int) -> NDArray[np.int32]:
        """The conjunctions of all codes, added up over blocks of rows."""
        first, *others = range(0, max(1, self.rows), PACKED_ROWS)
        counts = Conjunctions(*self._pack(order, first)).count(codes, size)
        for start in others:
            counts += Conjunctions(*self._pack(order, start)).count(codes, size)
        return counts

    def _pack(self, order: NDArray[np.intp], start: int) -> tuple[NDArray[np.uint8], int]:
        """The features of the rows from `start` on, in this order, one line of bits each; and how many rows it has."""
        rows = min(PACKED_ROWS, self.rows - start)
        bits = np.zeros((len(order), max(1, -(-rows // 64)) * 8), dtype=np.uint8)
        for first in range(0, rows, SLICE_ROWS):
            last = min(first + SLICE_ROWS, rows)
            for line, feature in zip(bits, order.tolist(), strict=True):
                some = self._columns[feature][start + first : start + last]
                line[first // 8 : -(-last // 8)] = np.packbits(some.astype(bool))
        return bits, rows


def count_marginals(
    columns: Sequence[CodeColumn], sizes: Sequence[int], sets: Sequence[tuple[int, ...]]
) -> list[Counts]:
    """The exact table of each set of distinct features, flat in C order.

    Memory beyond the result: that of a `PackedTable` of the binary features asked for, or a chunk of 2^16 rows of the
    features asked for and a bincount; a table of more cells has as many codes waiting for theirs.
    """
    tables = [np.empty(0, dtype=np.int64)] * len(sets)
    packed: dict[int, list[int]] = {}
    for index, features in enumerate(sets):
        if _can_be_packed(sizes, features):
            packed.setdefault(len(features), []).append(index)
    packed = {size: batch for size, batch in packed.items() if _is_worth_packing([sets[index] for index in batch])}
    for batch in packed.values():
        used = sorted({feature for index in batch for feature in sets[index]})
        places = {feature: place for place, feature in enumerate(used)}
        asked = np.array([[places[feature] for feature in sets[index]] for index in batch], dtype=np.intp)
        counted = PackedTable([columns[feature] for feature in used]).count_tables(asked)
        for index, counts in zip(batch, counted, strict=True):
            tables[index] = counts
    others = sorted(set(range(len(sets))).difference(*packed.values()))
    for index, counts in zip(others, _count_codes(columns, sizes, [sets[index] for index in others]), strict=True):
        tables[index] = counts
    return tables


def _can_be_packed(sizes: Sequence[int], features: tuple[int, ...]) -> bool:
    limit = max(2, len(sizes)) ** len(features) < CODE_LIMIT
    return 0 < len(features) <= MOST_PACKED and limit and all(sizes[feature] == 2 for feature in features)


def _is_worth_packing(sets: Sequence[tuple[int, ...]]) -> bool:
    """Whether the conjunctions of sets of one size, each counted once, take less time than a bincount of each set."""
    size, features = len(sets[0]), len({feature for one in sets for feature in one})
    most = sum(min(len(sets) * comb(size, part), comb(features, part)) for part in range(1, size + 1))
    return most < BINCOUNT * len(sets)


class _Waiting:
    """A table that is being counted: codes wait until a bincount of them is worth its cells."""

    def __init__(self, sizes: Sequence[int], features: tuple[int, ...]) -> None:
        self._digits = [(feature, sizes[feature]) for feature in features]
        cells = prod(size for _, size in self._digits)
        self.counts: Counts = np.zeros(cells, dtype=np.int64)
        self._type = np.dtype(np.min_scalar_type(cells - 1))
        self._codes: list[Column] = []
        self._held = 0

    def add(self, chunk: Chunk) -> None:
        """Takes the rows of a chunk."""
        self._codes.append(self._mix(chunk))
        self._held += chunk.rows
        if self._held >= len(self.counts):
            self.finish()

    def finish(self) -> None:
        """Counts what waits."""
        if self._codes:
            codes = self._codes[0] if len(self._codes) == 1 else np.concatenate(self._codes)
            self.counts += np.bincount(codes, minlength=len(self.counts))
            self._codes, self._held = [], 0

    def _mix(self, chunk: Chunk) -> Column:
        """The cell of each row, in the narrowest type that holds it; before the first digit that is not constant all
        codes are zero, so nothing is multiplied.
        """
        codes, reached = np.zeros(chunk.rows, dtype=self._type), 1
        for feature, size in self._digits:
            if reached > 1:
                codes *= self._type.type(size)
            np.add(codes, chunk[feature], out=codes, casting="unsafe")
            reached *= size
        return codes


def _count_codes(columns: Sequence[CodeColumn], sizes: Sequence[int], sets: Sequence[tuple[int, ...]]) -> list[Counts]:
    """All tables in one pass over the rows, by a bincount for each and each chunk."""
    waiting = [_Waiting(sizes, features) for features in sets]
    for chunk in chunks_of(columns, CHUNK_ROWS) if sets else ():
        for table in waiting:
            table.add(chunk)
    for table in waiting:
        table.finish()
    return [table.counts for table in waiting]


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
