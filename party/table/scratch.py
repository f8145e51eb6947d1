"""Arrays of a table's length while it is read: in memory if they are small, and else in files without a name.

A file without a name is gone with the process, however that ends, and its pages need not stay in memory: a table that
is larger than memory can be read. Its space is taken before it is written to, so a full disk is an error and no crash.
Now and then all is written out: pages that are on the disk can leave memory at once, and others only slowly.
"""

import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synod.common.runtime.errors import Code, SynodError

MOST_HELD_BYTES = 2**28
ROWS_BETWEEN = 2**22


def make_arrays(types: Sequence[np.dtype[Any]], rows: int, folder: Path | None) -> list[NDArray[Any]]:
    """Zeros of so many rows, one array of each type; without a folder, or if they are small, all in memory."""
    if folder is None or rows * sum(kind.itemsize for kind in types) <= MOST_HELD_BYTES:
        return [np.zeros(rows, dtype=kind) for kind in types]
    try:
        return [_make_file(kind, rows, folder) for kind in types]
    except OSError as error:
        raise SynodError(
            Code.STORAGE,
            f"there is no space to read the table into ({type(error).__name__}).",
            "Check free disk space, the volume of `state` and its permissions; nothing was spent.",
        ) from None


def _make_file(kind: np.dtype[Any], rows: int, folder: Path) -> NDArray[Any]:
    with tempfile.TemporaryFile(dir=folder) as file:
        os.posix_fallocate(file.fileno(), 0, rows * kind.itemsize)
        return np.memmap(file, dtype=kind, mode="r+", shape=(rows,))


def write_out(arrays: Iterable[NDArray[Any]]) -> None:
    """Writes what is in files to the disk."""
    for array in arrays:
        if isinstance(array, np.memmap):
            array.flush()
