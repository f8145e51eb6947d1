"""The features of a table, made of its codes in slices of rows: no feature is ever held for all rows.

A bit of a code, a grouping of codes and the codes themselves are read alike, so whatever counts goes through the rows
once, chunk by chunk, and takes memory for one chunk.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synod.common.study.encoding import CodeColumn
from synod.common.study.features import features_of
from synod.common.study.study import Study

BIT = np.dtype(np.uint8)


class LastRows:
    """A column that keeps the rows it was last asked for: all bits of a code are made of codes that are read once."""

    def __init__(self, codes: CodeColumn) -> None:
        self._codes = codes
        self._last: tuple[slice, Any] | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its codes."""
        return self._codes.dtype

    def __len__(self) -> int:
        return len(self._codes)

    def __getitem__(self, rows: slice, /) -> Any:
        if self._last is None or self._last[0] != rows:
            self._last = rows, self._codes[rows]
        return self._last[1]

    def tolist(self) -> Any:
        """All codes."""
        return self._codes.tolist()


@dataclass(frozen=True, slots=True)
class BitColumn:
    """One bit of a column's codes, counted from the lowest, or of their Gray codes."""

    codes: CodeColumn
    bit: int
    is_gray: bool

    @property
    def dtype(self) -> np.dtype[np.uint8]:
        """The type of a bit."""
        return BIT

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: slice, /) -> NDArray[np.uint8]:
        codes = self.codes[rows]
        shifted = codes >> self.bit
        if self.is_gray:
            shifted = shifted ^ (shifted >> 1)
        bits: NDArray[np.uint8] = (shifted & 1).astype(BIT, copy=False)
        return bits

    def tolist(self) -> list[int]:
        """The bit of every row."""
        found: list[int] = self[:].tolist()
        return found


@dataclass(frozen=True, slots=True, eq=False)
class GroupedColumn:
    """The group of each code of a column."""

    codes: CodeColumn
    groups: NDArray[np.unsignedinteger]

    @property
    def dtype(self) -> np.dtype[np.unsignedinteger]:
        """The type of a group's number."""
        return self.groups.dtype

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: slice, /) -> NDArray[np.unsignedinteger]:
        found: NDArray[np.unsignedinteger] = self.groups[self.codes[rows]]
        return found

    def tolist(self) -> list[int]:
        """The group of every row."""
        found: list[int] = self[:].tolist()
        return found


def group_codes(codes: CodeColumn, groups: Sequence[int], size: int) -> GroupedColumn:
    """A column of groups; `groups` says the group of each code, below `size`."""
    return GroupedColumn(codes, np.array(groups, dtype=np.min_scalar_type(max(0, size - 1))))


def feature_columns(study: Study, columns: Sequence[CodeColumn]) -> list[CodeColumn]:
    """The features of a table of codes, in the study's order: what `FeatureSpace.encode` gives, in slices."""
    is_gray = study.method.feature_encoding == "gray"
    columns = [LastRows(codes) for codes in columns]
    found: list[CodeColumn] = []
    for feature in features_of(study):
        codes = columns[feature.attribute]
        if feature.level:
            found.append(group_codes(codes, feature.groups, feature.size))
        else:
            found.append(codes if feature.bit is None else BitColumn(codes, feature.bit, is_gray))
    return found


class Chunk:
    """Some rows of some columns; each column is made once, when it is asked for."""

    def __init__(self, columns: Sequence[CodeColumn], start: int, stop: int) -> None:
        self.rows = stop - start
        self._columns = columns
        self._slice = slice(start, stop)
        self._made: dict[int, NDArray[np.unsignedinteger]] = {}

    def __getitem__(self, column: int) -> NDArray[np.unsignedinteger]:
        made = self._made.get(column)
        if made is None:
            made = self._made[column] = np.asarray(self._columns[column][self._slice])
        return made


def chunks_of(columns: Sequence[CodeColumn], step: int) -> Iterator[Chunk]:
    """All rows, so many at a time."""
    rows = len(columns[0]) if columns else 0
    for start in range(0, rows, step):
        yield Chunk(columns, start, min(start + step, rows))
