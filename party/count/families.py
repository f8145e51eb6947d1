"""Exact tables of features with their parents, for very many candidates that begin with the same parents.

Parents are taken in sorted order, so that the code of each row among the first ones is computed once: a further parent
is one multiplication and one addition, and a table one bincount. What is here is private and exact, and leaves the
party only through a private choice (choice.py beside it).
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from synod.party.count.marginals import Column, Counts

Candidate = tuple[int, tuple[int, ...]]


class FamilyCounter:
    """Tables of many attribute-parent pairs over one table of rows. Memory: eight bytes for each row and parent of one
    pair.
    """

    def __init__(self, columns: Sequence[Column], sizes: Sequence[int]) -> None:
        self._columns = columns
        self._sizes = sizes
        self._path: list[tuple[int, NDArray[np.intp], int]] = []

    def count(self, candidates: Sequence[Candidate]) -> Iterator[tuple[Candidate, Counts]]:
        """Each pair, in some order, with its table of shape (size of the feature, cells of its parents)."""
        ordered = sorted(candidates, key=lambda candidate: candidate[1])
        for parents, group in groupby(ordered, key=lambda candidate: candidate[1]):
            codes, cells = self._mix(parents)
            for feature, _ in group:
                size = self._sizes[feature]
                mixed = codes * size
                mixed += self._columns[feature]
                counts = np.bincount(mixed, minlength=cells * size)
                yield (feature, parents), counts.reshape(cells, size).T

    def _mix(self, parents: tuple[int, ...]) -> tuple[NDArray[np.intp], int]:
        """The cell of each row in the table of the parents, and how many cells there are; what the last parents had in
        common with these is kept.
        """
        known = 0
        while known < min(len(parents), len(self._path)) and self._path[known][0] == parents[known]:
            known += 1
        del self._path[known:]
        for parent in parents[known:]:
            codes, cells = self._last()
            mixed = codes * self._sizes[parent]
            mixed += self._columns[parent]
            self._path.append((parent, mixed, cells * self._sizes[parent]))
        return self._last()

    def _last(self) -> tuple[NDArray[np.intp], int]:
        if self._path:
            return self._path[-1][1:]
        return np.zeros(len(self._columns[0]), dtype=np.intp), 1
