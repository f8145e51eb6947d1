"""Counting is a function of rows and question, and the same in every run of an audit: it is done once."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from synod.common.study.encoding import CodeColumn
from synod.party.count import parents, tables
from synod.party.count.marginals import count_marginals

Counts = list[NDArray[np.int64]]


@contextmanager
def counted_once() -> Iterator[None]:
    """Exact counts of the same codes and sets are kept inside, and handed out as copies."""
    kept = dict[object, Counts]()

    def recall(columns: Sequence[CodeColumn], sizes: Sequence[int], sets: Sequence[tuple[int, ...]]) -> Counts:
        key = tuple(column[:].tobytes() for column in columns), tuple(sizes), tuple(sets)
        if key not in kept:
            kept[key] = count_marginals(columns, sizes, sets)
        return [counts.copy() for counts in kept[key]]

    with (
        mock.patch.object(tables, "count_marginals", recall),
        mock.patch.object(parents, "count_marginals", recall),
    ):
        yield
