"""Exact tables of features with their parents, for very many candidates that begin with the same parents.

Parents are taken in sorted order, so that the code of each row among the first ones is computed once: a further parent
is one multiplication and one addition, and a table one bincount. Rows are read in chunks, once for each block of tables
that bounded memory holds. What is here is private and exact, and leaves the party only through a private choice
(choice.py beside it).
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import prod

import numpy as np
from numpy.typing import NDArray

from synod.common.study.encoding import CodeColumn
from synod.party.count.columns import Chunk, chunks_of
from synod.party.count.marginals import Counts

CHUNK_ROWS = 2**16
BLOCK_CELLS = 2**22
Candidate = tuple[int, tuple[int, ...]]


class FamilyCounter:
    """Tables of many attribute-parent pairs over one table of rows. Memory: 2^22 cells or one table, and for each row
    of a chunk, of 2^16 rows or as many as the largest table has cells, every feature and eight bytes for each parent of
    one pair.
    """

    def __init__(self, columns: Sequence[CodeColumn], sizes: Sequence[int]) -> None:
        self._columns = columns
        self._sizes = sizes

    def count(self, candidates: Sequence[Candidate]) -> Iterator[tuple[Candidate, Counts]]:
        """Each pair, in some order, with its table of shape (size of the feature, cells of its parents)."""
        ordered = sorted(candidates, key=lambda candidate: candidate[1])
        for block in self._split(ordered):
            tables = self._count_block(block)
            for (feature, parents), counts in zip(block, tables, strict=True):
                yield (feature, parents), counts.reshape(-1, self._sizes[feature]).T

    def _cells(self, candidate: Candidate) -> int:
        feature, parents = candidate
        return prod(self._sizes[one] for one in (feature, *parents))

    def _split(self, ordered: Sequence[Candidate]) -> Iterator[list[Candidate]]:
        """The candidates in blocks whose tables have at most 2^22 cells together, or are one table."""
        block: list[Candidate] = []
        held = 0
        for candidate in ordered:
            cells = self._cells(candidate)
            if block and held + cells > BLOCK_CELLS:
                yield block
                block, held = [], 0
            block.append(candidate)
            held += cells
        if block:
            yield block

    def _count_block(self, block: Sequence[Candidate]) -> list[Counts]:
        cells = [self._cells(candidate) for candidate in block]
        tables = [np.zeros(count, dtype=np.int64) for count in cells]
        for chunk in chunks_of(self._columns, max(CHUNK_ROWS, *cells)):
            mixed = _mix(block, chunk, self._sizes)
            for table, codes in zip(tables, mixed, strict=True):
                np.add(table, np.bincount(codes, minlength=len(table)), out=table)
        return tables


def _mix(block: Sequence[Candidate], chunk: Chunk, sizes: Sequence[int]) -> Iterator[NDArray[np.intp]]:
    """The cell of each row in the table of each candidate; what its parents have in common with the last ones' is
    kept.
    """
    path: list[tuple[int, NDArray[np.intp]]] = []
    for parents, group in groupby(block, key=lambda candidate: candidate[1]):
        known = 0
        while known < min(len(parents), len(path)) and path[known][0] == parents[known]:
            known += 1
        del path[known:]
        for parent in parents[known:]:
            path.append((parent, _add_digit(path[-1][1] if path else None, chunk[parent], sizes[parent])))
        for feature, _ in group:
            yield _add_digit(path[-1][1] if path else None, chunk[feature], sizes[feature])


def _add_digit(codes: NDArray[np.intp] | None, digits: NDArray[np.unsignedinteger], size: int) -> NDArray[np.intp]:
    if codes is None:
        return digits.astype(np.intp)
    mixed = codes * size
    mixed += digits
    return mixed
