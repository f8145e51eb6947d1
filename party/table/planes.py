"""Codes as bit planes: one line of packed bits for each bit of a column's codes, the highest first.

Twenty attributes take some eight bytes a row instead of twenty to thirty. A column is read in slices of rows, so that
of a file that is mapped only those rows are in memory.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from synod.common.study.encoding import CodeColumn, Codes

CHUNK_ROWS = 2**19
MOST_PLANES = 32
FEWEST_PLANES = {1: 1, 2: 9, 4: 17}  # by the bytes of a code: so many tell its type


@dataclass(frozen=True, slots=True, eq=False)
class PlaneColumn:
    """A column of codes, made of its planes when rows are asked for."""

    planes: NDArray[np.uint8]
    rows: int

    def __post_init__(self) -> None:
        if self.planes.dtype != np.uint8 or self.planes.ndim != 2 or self.rows < 0:
            raise ValueError("not bit planes")
        if not 0 < len(self.planes) <= MOST_PLANES or self.planes.shape[1] != -(-self.rows // 8):
            raise ValueError("not bit planes of so many rows")

    @property
    def dtype(self) -> np.dtype[np.unsignedinteger]:
        """The narrowest type that holds as many bits."""
        return np.dtype(np.min_scalar_type((1 << len(self.planes)) - 1))

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, rows: slice, /) -> Codes:
        start, stop, step = rows.indices(self.rows)
        assert step == 1
        first = start // 8
        held = self.planes[:, first : -(-max(start, stop) // 8)]
        codes = np.zeros(held.shape[1] * 8, dtype=self.dtype)
        for plane in held:
            codes += codes
            codes |= np.unpackbits(plane)
        found: Codes = codes[start - first * 8 : max(start, stop) - first * 8]
        return found

    def tolist(self) -> list[int]:
        """All codes."""
        found: list[int] = self[:].tolist()
        return found


def count_planes(column: CodeColumn) -> int:
    """How many planes hold a column: enough for its codes, and for its type to be told by them."""
    largest = max((int(part.max(initial=0)) for part in parts_of(column)), default=0)
    return max(FEWEST_PLANES[column.dtype.itemsize], largest.bit_length())


def write_planes(file: BinaryIO, column: CodeColumn) -> None:
    """A column's planes as an array file, one after the other."""
    planes = count_planes(column)
    shape = (planes, -(-len(column) // 8))
    np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
    for bit in reversed(range(planes)):
        file.writelines(np.packbits(part & part.dtype.type(1 << bit)).data for part in parts_of(column))


def parts_of(column: CodeColumn) -> Iterator[Codes]:
    """A column in slices, each of a number of rows that eight divides, but for the last."""
    for start in range(0, len(column), CHUNK_ROWS):
        yield np.asarray(column[start : start + CHUNK_ROWS])
