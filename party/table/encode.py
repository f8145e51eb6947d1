"""Values to codes: a table is read once, checked against the study's schema, and encoded.

What does not fit the schema is reported by column, rule and count, to the party's own operator only. Tables are
read in batches, so memory is the encoded table plus one batch; a large one is in files meanwhile.
"""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from synod.common.privacy.coins import KEY_BYTES, Coins
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.settings import CsvFormat, Database
from synod.common.study.attributes import DaysAttribute, TruthAttribute
from synod.common.study.encoding import Codes, Coding, encode_numbers
from synod.common.study.schema import CategoricalAttribute, IntegerAttribute, PlainAttribute
from synod.party.table.csv_source import USUAL
from synod.party.table.order import sort_rows
from synod.party.table.scratch import ROWS_BETWEEN, make_arrays, write_out
from synod.party.table.snapshot import Snapshot
from synod.party.table.source import Source, open_batches
from synod.party.table.text import NO_DAY, decoded, to_days, to_numbers, to_texts, to_truths
from synod.party.table.units import Reading, UnitCounter

MOST_EXAMPLES = 5
LONGEST_EXAMPLE = 60
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Unit:
    """The column that tells units of privacy, such as persons, apart, and how many rows one may have."""

    column: str
    most_rows: int


@dataclass(frozen=True, slots=True)
class Misfit:
    """What does not fit: shown to the party's operator, never sent.

    `examples` are values that break the rule, kept only where the operator asked to see some; they are in no repr.
    """

    column: str
    rule: str
    rows: int
    examples: tuple[str, ...] = field(default=(), repr=False)


class TableError(SynodError):
    """The table does not fit the study; `misfits` are for the operator's eyes and not in the sentence."""

    def __init__(self, misfits: list[Misfit]) -> None:
        super().__init__(
            Code.INVALID,
            "the table does not fit the study's schema.",
            "Correct the table or ask for another schema; nothing was spent.",
        )
        self.misfits = misfits


def read_table(
    source: Source,
    codings: Sequence[Coding],
    *,
    unit: Unit | None,
    expected_rows: int,
    layout: CsvFormat | None = None,
    show_values: bool = False,
    scratch: Path | None = None,
) -> Snapshot:
    """Reads, checks and encodes a table; raises `TableError` with all misfits if anything does not fit. `layout` is the
    format of a CSV file; with `show_values` misfits have examples, for the operator's own terminal. Rows keep the order
    of files; those of a database, which has none, are put into one. In the folder `scratch` a large table is read into
    files without a name, in place of memory.

    Guarantee: with a `unit`, no unit of the snapshot has more rows than it says. Its column is not kept.
    """
    columns = tuple(make_arrays([coding.dtype for coding in codings], expected_rows, scratch))
    names = [coding.attribute.name for coding in codings]
    misfits: dict[tuple[str, str], int] = {}
    examples: dict[tuple[str, str], dict[str, None]] = {}
    coins = Coins(secrets.token_bytes(KEY_BYTES))
    units = None if unit is None else UnitCounter(expected_rows, scratch, coins=coins)
    rows = 0
    wanted = names if unit is None or unit.column in names else [*names, unit.column]
    for batch in open_batches(source, wanted, layout):
        start, rows = rows, rows + len(batch)
        if unit is not None and units is not None:
            units.add(_unit_names(batch.column(unit.column)))
        for coding, column in zip(codings, columns, strict=True):
            values = decoded(batch.column(coding.attribute.name))
            codes, broken = _encode(coding, values, layout or USUAL)
            for rule, where in broken.items():
                key = coding.attribute.name, rule
                misfits[key] = misfits.get(key, 0) + int(where.sum())
                if show_values:
                    _add_examples(examples.setdefault(key, {}), values, where)
            kept = max(0, min(rows, expected_rows) - start)
            column[start : start + kept] = codes[:kept]
        if start // ROWS_BETWEEN != rows // ROWS_BETWEEN:
            write_out([*columns, *(units.arrays if units else ())])
    if rows != expected_rows:
        misfits["(rows)", "the row count is not the roster's"] = rows
    if unit is not None and units is not None:
        misfits |= _check_unit(unit, units, lambda: _read_units(source, unit, layout))
    if misfits:
        raise TableError([Misfit(*key, count, tuple(examples.get(key, ()))) for key, count in misfits.items()])
    if isinstance(source, Database):
        sort_rows(columns)
    return Snapshot(columns)


def _add_examples(seen: dict[str, None], values: pa.Array, where: Bools) -> None:
    """Adds values that break a rule, each once, until there are enough."""
    for text in to_texts(values.filter(pa.array(where))).drop_null().unique().slice(0, MOST_EXAMPLES).to_pylist():
        if len(seen) < MOST_EXAMPLES:
            seen[text if len(text) <= LONGEST_EXAMPLE else text[: LONGEST_EXAMPLE - 1] + "…"] = None


def _encode(coding: Coding, values: pa.Array, layout: CsvFormat) -> tuple[Codes, dict[str, Bools]]:
    """Codes of one batch of one column, and which rows break which rule."""
    attribute = coding.attribute
    is_null = _nulls_of(values)
    broken: dict[str, Bools] = {}
    if isinstance(attribute, TruthAttribute):
        true, outside = to_truths(values)
        codes: Codes = true.astype(coding.dtype)
    elif isinstance(attribute, CategoricalAttribute):
        codes, outside = _encode_categories(coding, values)
    else:
        codes, outside, not_a_number = _encode_range(coding, values, layout)
        if (not_a_number & ~is_null).any():
            broken[f"not a {_kind(attribute)}"] = not_a_number & ~is_null
    outside = outside & ~is_null
    if outside.any() and attribute.out_of_domain == "refuse":
        rule = "not true or false" if isinstance(attribute, TruthAttribute) else "outside the domain"
        broken[rule] = outside
    if is_null.any() and not attribute.nullable:
        broken["missing, but not nullable"] = is_null
    if attribute.nullable:
        as_null = is_null | outside if attribute.out_of_domain == "null" else is_null
        codes[as_null] = coding.null_code
    return codes, broken


def _nulls_of(values: pa.Array) -> Bools:
    if values.null_count == 0:
        return np.zeros(len(values), dtype=bool)
    return np.asarray(values.is_null().to_numpy(zero_copy_only=False))


def _kind(attribute: PlainAttribute) -> str:
    if isinstance(attribute, DaysAttribute):
        return "date"
    return "whole number" if isinstance(attribute, IntegerAttribute) else "number"


def _encode_categories(coding: Coding, values: pa.Array) -> tuple[Codes, Bools]:
    assert isinstance(coding.attribute, CategoricalAttribute)
    positions = pc.index_in(to_texts(values), value_set=pa.array(coding.attribute.categories))
    outside = _nulls_of(positions)
    known = positions.fill_null(0) if positions.null_count else positions
    return known.to_numpy(zero_copy_only=False).astype(coding.dtype), outside


def _encode_range(coding: Coding, values: pa.Array, layout: CsvFormat) -> tuple[Codes, Bools, Bools]:
    attribute = coding.attribute
    if isinstance(attribute, DaysAttribute):
        days = to_days(values, layout.date_order)
        numbers = np.where(days == NO_DAY, np.nan, days.astype(np.float64))
    else:
        numbers = to_numbers(values, layout.decimal)
    not_a_number = ~np.isfinite(numbers)
    if isinstance(attribute, IntegerAttribute):
        not_a_number |= np.where(np.isfinite(numbers), numbers != np.rint(numbers), False)
    assert not isinstance(attribute, CategoricalAttribute)
    low, high = float(attribute.min), float(attribute.max)
    if not_a_number.any():
        numbers = np.where(not_a_number, low, numbers)
    outside = (numbers < low) | (numbers > high)
    inside = np.clip(numbers, low, high) if outside.any() else numbers
    return encode_numbers(coding, inside), outside, not_a_number


def _unit_names(values: pa.Array) -> pa.Array:
    """What tells units apart: texts without blanks around them; null where there is none, or a text is empty."""
    values = decoded(values)
    texts = pc.utf8_trim_whitespace(to_texts(values))
    nothing = ["", "nan"] if pa.types.is_floating(values.type) else [""]
    return pc.if_else(pc.is_in(texts, value_set=pa.array(nothing)), None, texts)


def _read_units(source: Source, unit: Unit, layout: CsvFormat | None) -> Iterator[pa.Array]:
    for batch in open_batches(source, [unit.column], layout):
        yield _unit_names(batch.column(unit.column))


def _check_unit(unit: Unit, units: UnitCounter, read_again: Reading) -> dict[tuple[str, str], int]:
    """Rows beyond what a unit may have, and rows of no unit: whose they are cannot be told, so none is let through."""
    misfits: dict[tuple[str, str], int] = {}
    beyond = units.count_beyond(unit.most_rows, read_again)
    if beyond:
        most = "one row" if unit.most_rows == 1 else f"{unit.most_rows} rows"
        misfits[unit.column, f"the unit of privacy appears in more than {most}"] = beyond
    if units.missing:
        misfits[unit.column, "the unit of privacy is missing"] = units.missing
    return misfits
