"""What a column of real tables looks like: its values and how often each occurs, in bounded memory.

Reads real rows on their owner's machine, for `synod study draft` alone. Nothing of it is private.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from synod.common.runtime.errors import invalid
from synod.common.runtime.settings import CsvFormat
from synod.party.table.csv_source import USUAL
from synod.party.table.detect import detect
from synod.party.table.source import Source, open_batches, read_header
from synod.party.table.text import NO_DAY, decoded, to_days, to_numbers, to_texts

MOST_DISTINCT = 200_000
T = TypeVar("T", Decimal, int)
Counted = list[tuple[T, int]]


@dataclass(slots=True)
class Part:
    """A column in one table: how often each text occurs, until there are too many; then only the extremes go on."""

    layout: CsvFormat
    counts: dict[str, int] = field(default_factory=dict)
    rows: int = 0
    missing: int = 0
    is_full: bool = False
    extremes: tuple[float, float] | None = None

    def add(self, values: pa.Array) -> None:
        """Adds a batch."""
        self.rows += len(values)
        self.missing += values.null_count
        if self.is_full:
            self._widen(values)
            return
        counted = pc.value_counts(to_texts(values).drop_null())
        for text, count in zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True):
            self.counts[text] = self.counts.get(text, 0) + count
        self.is_full = len(self.counts) > MOST_DISTINCT

    def _widen(self, values: pa.Array) -> None:
        numbers = to_numbers(values, self.layout.decimal)
        numbers = numbers[np.isfinite(numbers)]
        if len(numbers):
            low, high = self.extremes or (float("inf"), float("-inf"))
            self.extremes = min(low, float(numbers.min())), max(high, float(numbers.max()))


@dataclass(frozen=True, slots=True)
class Profile:
    """A column over all tables."""

    name: str
    parts: tuple[Part, ...]

    @property
    def rows(self) -> int:
        """How many rows have a value that was counted."""
        return sum(sum(part.counts.values()) for part in self.parts)

    @property
    def missing(self) -> int:
        """How many rows have none."""
        return sum(part.missing for part in self.parts)

    @property
    def is_full(self) -> bool:
        """Whether there were too many values to count them all."""
        return any(part.is_full for part in self.parts)

    def texts(self) -> dict[str, int]:
        """Every text and how often it occurs."""
        merged: dict[str, int] = {}
        for part in self.parts:
            for text, count in part.counts.items():
                merged[text] = merged.get(text, 0) + count
        return merged

    def numbers(self) -> tuple[Counted[Decimal], dict[str, int]]:
        """The numbers in ascending order, and the texts that are none."""
        found, rest = self._read(_numbers)
        for part in self.parts:
            found += [(Decimal(repr(end)), 0) for end in part.extremes or ()]
        return sorted(found), rest

    def days(self) -> tuple[Counted[int], dict[str, int]]:
        """The same for dates, in days since 1970-01-01."""
        found, rest = self._read(_days)
        return sorted(found), rest

    def _read(
        self, read: Callable[[Sequence[str], CsvFormat], Sequence[T | None]]
    ) -> tuple[list[tuple[T, int]], dict[str, int]]:
        found: list[tuple[T, int]] = []
        rest: dict[str, int] = {}
        for part in self.parts:
            for value, (text, count) in zip(read(list(part.counts), part.layout), part.counts.items(), strict=True):
                if value is None:
                    rest[text] = rest.get(text, 0) + count
                else:
                    found.append((value, count))
        return found, rest


def _numbers(texts: Sequence[str], layout: CsvFormat) -> list[Decimal | None]:
    """As the party's reader takes them, but exact."""
    finite = np.isfinite(to_numbers(pa.array(texts, pa.string()), layout.decimal)).tolist()
    return [_exact(text, layout.decimal) if is_number else None for text, is_number in zip(texts, finite, strict=True)]


def _exact(text: str, decimal: str) -> Decimal | None:
    try:
        return Decimal(text.strip().replace(decimal, "."))
    except InvalidOperation:
        return None


def _days(texts: Sequence[str], layout: CsvFormat) -> list[int | None]:
    days = to_days(pa.array(texts, pa.string()), layout.date_order).tolist()
    return [None if day == NO_DAY else day for day in days]


@dataclass(frozen=True, slots=True)
class Profiled:
    """All tables: the columns that each of them has, those that only some have, and how each file is written."""

    columns: tuple[Profile, ...]
    partial: tuple[str, ...]
    layouts: dict[Source, CsvFormat | None]
    is_order_open: bool
    rows: dict[Source, int]
    most_rows: int | None


def profile_tables(sources: Sequence[Source], unit: str | None) -> Profiled:
    """Reads every table once. `unit` is the column that tells persons apart: it is counted, and no column."""
    detected = {source: detect(source) for source in sources}
    layouts = {source: found.layout if found else None for source, found in detected.items()}
    headers = {source: read_header(source, layouts[source]) for source in sources}
    for source, header in headers.items():
        if unit is not None and unit not in header:
            raise invalid(f"{source.name} has no column {unit!r}.", "Check --unit.")
    shared = [name for name in headers[sources[0]] if all(name in header for header in headers.values())]
    every = dict.fromkeys(name for header in headers.values() for name in header)
    if not shared:
        raise invalid("the tables have no column in common.", "They must have the columns of one schema.")
    parts: dict[str, list[Part]] = {name: [] for name in shared}
    for source in sources:
        for name, part in _profile(source, shared, layouts[source]):
            parts[name].append(part)
    rows = {source: parts[shared[0]][place].rows for place, source in enumerate(sources)}
    most = None
    if unit is not None:
        most = max((count for part in parts[unit] for count in part.counts.values()), default=1)
    return Profiled(
        tuple(Profile(name, tuple(parts[name])) for name in shared if name != unit),
        tuple(name for name in every if name not in shared),
        layouts,
        any(found.is_order_open for found in detected.values() if found),
        rows,
        most,
    )


def _profile(source: Source, names: list[str], layout: CsvFormat | None) -> Iterator[tuple[str, Part]]:
    parts = {name: Part(layout or USUAL) for name in names}
    for batch in open_batches(source, names, layout):
        for name, part in parts.items():
            part.add(decoded(batch.column(name)))
    yield from parts.items()
