"""Counting is a function of rows and question, and the same in every run of an audit: it is done once."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from synod.party.count import parents, tables

Counts = list[NDArray[np.int64]]


@contextmanager
def counted_once() -> Iterator[None]:
    """Exact counts of the same codes and sets are kept inside, and handed out as copies."""
    count, kept = tables.count_marginals, dict[object, Counts]()

    def count_marginals(
        columns: Sequence[NDArray[np.unsignedinteger]], sizes: Sequence[int], sets: Sequence[Sequence[int]]
    ) -> Counts:
        key = tuple(column.tobytes() for column in columns), tuple(sizes), tuple(map(tuple, sets))
        if key not in kept:
            kept[key] = count(columns, sizes, sets)
        return [counts.copy() for counts in kept[key]]

    with (
        mock.patch.object(tables, "count_marginals", count_marginals),
        mock.patch.object(parents, "count_marginals", count_marginals),
    ):
        yield
