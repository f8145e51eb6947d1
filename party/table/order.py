"""The order of rows, which a database does not have: encoded rows are put into one, or summed up without any."""

from collections.abc import Sequence

import numpy as np

from synod.common.study.encoding import Codes

CHUNK_ROWS = 1 << 20
SPREAD = np.uint64(0x9E3779B97F4A7C15)
FOLD = np.uint64(29)


def sort_rows(columns: Sequence[Codes]) -> None:
    """Sorts the rows by their codes, the first column first: the same rows give the same columns, however they came.

    The snapshot's digest, and with it the noise, then depends on the rows alone: the same table that is approved again
    after a lost ledger was restored gives the same bytes.
    """
    order = np.arange(len(columns[0]))
    for column in reversed(columns):
        order = order[np.argsort(column[order], kind="stable")]
    for column in columns:
        column[:] = column[order]


def sum_rows(columns: Sequence[Codes]) -> bytes:
    """A digest that no order changes: the sum of one word for each row. It recognizes a table, and proves nothing."""
    total = 0
    for start in range(0, len(columns[0]) if columns else 0, CHUNK_ROWS):
        words = np.zeros(len(columns[0][start : start + CHUNK_ROWS]), np.uint64)
        for column in columns:
            words += column[start : start + CHUNK_ROWS].astype(np.uint64) + np.uint64(1)
            words *= SPREAD
            words ^= words >> FOLD
        words *= SPREAD
        total += int(words.sum(dtype=np.uint64))
    shape = len(columns).to_bytes(4, "big") + (len(columns[0]) if columns else 0).to_bytes(8, "big")
    return shape + (total % 2**64).to_bytes(8, "big")
