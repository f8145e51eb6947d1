"""Values to codes: a table is read once, checked against the study's schema, and encoded.

What does not fit the schema is reported by column, rule and count, to the party's own operator only. Tables are
read in batches, so memory is the encoded table plus one batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from synod.common.runtime.errors import Code, SynodError
from synod.common.study.encoding import Codes, Coding, encode_numbers
from synod.common.study.schema import CategoricalAttribute, IntegerAttribute
from synod.party.table.snapshot import Snapshot
from synod.party.table.source import open_batches


@dataclass(frozen=True, slots=True)
class Unit:
    """The column that tells units of privacy, such as persons, apart, and how many rows one may have."""

    column: str
    most_rows: int


@dataclass(frozen=True, slots=True)
class Misfit:
    """What does not fit: shown to the party's operator, never sent."""

    column: str
    rule: str
    rows: int


class TableError(SynodError):
    """The table does not fit the study; `misfits` are for the operator's eyes and not in the sentence."""

    def __init__(self, misfits: list[Misfit]) -> None:
        super().__init__(
            Code.INVALID,
            "the table does not fit the study's schema.",
            "Correct the table or ask for another schema; nothing was spent.",
        )
        self.misfits = misfits


def read_table(source: Path, codings: Sequence[Coding], *, unit: Unit | None, expected_rows: int) -> Snapshot:
    """Reads, checks and encodes a table; raises `TableError` with all misfits if anything does not fit.

    Guarantee: with a `unit`, no unit of the snapshot has more rows than it says. Its column is not kept.
    """
    columns = tuple(np.zeros(expected_rows, dtype=coding.dtype) for coding in codings)
    names = [coding.attribute.name for coding in codings]
    misfits: dict[tuple[str, str], int] = {}
    units: list[pa.Array] = []
    rows = 0
    for batch in open_batches(source, names if unit is None or unit.column in names else [*names, unit.column]):
        start, rows = rows, rows + len(batch)
        if unit is not None:
            units.append(_unit_names(batch.column(unit.column)))
        for coding, column in zip(codings, columns, strict=True):
            codes, broken = _encode(coding, batch.column(coding.attribute.name))
            for rule, count in broken.items():
                misfits[coding.attribute.name, rule] = misfits.get((coding.attribute.name, rule), 0) + count
            kept = max(0, min(rows, expected_rows) - start)
            column[start : start + kept] = codes[:kept]
    if rows != expected_rows:
        misfits["(rows)", "the row count is not the roster's"] = rows
    if unit is not None:
        misfits |= _check_unit(unit, units)
    if misfits:
        raise TableError([Misfit(column, rule, count) for (column, rule), count in misfits.items()])
    return Snapshot(columns)


def _encode(coding: Coding, values: pa.Array) -> tuple[Codes, dict[str, int]]:
    """Codes of one batch of one column, and how many rows break which rule."""
    attribute, values = coding.attribute, _decoded(values)
    is_null = values.is_null().to_numpy(zero_copy_only=False)
    broken: dict[str, int] = {}
    if isinstance(attribute, CategoricalAttribute):
        codes, outside = _encode_categories(coding, values)
    else:
        codes, outside, not_a_number = _encode_range(coding, values)
        if (not_a_number & ~is_null).any():
            kind = "whole number" if isinstance(attribute, IntegerAttribute) else "number"
            broken[f"not a {kind}"] = int((not_a_number & ~is_null).sum())
    outside &= ~is_null
    if outside.any() and attribute.out_of_domain == "refuse":
        broken["outside the domain"] = int(outside.sum())
    if is_null.any() and not attribute.nullable:
        broken["missing, but not nullable"] = int(is_null.sum())
    if attribute.nullable:
        as_null = is_null | outside if attribute.out_of_domain == "null" else is_null
        codes[as_null] = coding.null_code
    return codes, broken


def _encode_categories(coding: Coding, values: pa.Array) -> tuple[Codes, np.ndarray]:
    assert isinstance(coding.attribute, CategoricalAttribute)
    positions = pc.index_in(_to_texts(values), value_set=pa.array(coding.attribute.categories))
    outside = positions.is_null().to_numpy(zero_copy_only=False)
    codes = positions.fill_null(0).to_numpy(zero_copy_only=False).astype(coding.dtype)
    return codes, outside


def _encode_range(coding: Coding, values: pa.Array) -> tuple[Codes, np.ndarray, np.ndarray]:
    numbers = _to_numbers(values)
    not_a_number = ~np.isfinite(numbers)
    attribute = coding.attribute
    if isinstance(attribute, IntegerAttribute):
        not_a_number |= np.where(np.isfinite(numbers), numbers != np.rint(numbers), False)
    assert not isinstance(attribute, CategoricalAttribute)
    low, high = float(attribute.min), float(attribute.max)
    numbers = np.where(not_a_number, low, numbers)
    outside = (numbers < low) | (numbers > high)
    return encode_numbers(coding, np.clip(numbers, low, high)), outside, not_a_number


def _to_numbers(values: pa.Array) -> np.ndarray:
    """Doubles, with NaN where there is no number."""
    if _is_number(values.type):
        numbers = values.cast(pa.float64(), safe=False)  # beyond 2**53 is outside of every domain, rounded or not
        return np.asarray(numbers.fill_null(float("nan")).to_numpy(zero_copy_only=False))
    trimmed = pc.utf8_trim_whitespace(_to_texts(values))
    looks_right = pc.match_substring_regex(trimmed, r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$")
    cleaned = pc.if_else(looks_right.fill_null(False), pc.replace_substring_regex(trimmed, r"^\+", ""), None)
    return np.asarray(cleaned.cast(pa.float64()).fill_null(float("nan")).to_numpy(zero_copy_only=False))


def _is_number(kind: pa.DataType) -> bool:
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
    return any(test(kind) for test in tests)


def _to_texts(values: pa.Array) -> pa.Array:
    """Texts, and null for all where the type has none: Arrow's own errors quote a value, so none may come out."""
    try:
        return values.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return pa.nulls(len(values), pa.string())


def _decoded(values: pa.Array) -> pa.Array:
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _unit_names(values: pa.Array) -> pa.Array:
    """What tells units apart: texts without blanks around them; null where there is none, or a text is empty."""
    values = _decoded(values)
    texts = pc.utf8_trim_whitespace(_to_texts(values))
    nothing = ["", "nan"] if pa.types.is_floating(values.type) else [""]
    return pc.if_else(pc.is_in(texts, value_set=pa.array(nothing)), None, texts)


def _check_unit(unit: Unit, parts: list[pa.Array]) -> dict[tuple[str, str], int]:
    """Rows beyond what a unit may have, and rows of no unit: whose they are cannot be told, so none is let through."""
    names = pa.chunked_array(parts, pa.string())
    misfits: dict[tuple[str, str], int] = {}
    rows = pc.value_counts(names.drop_null()).field("counts").to_numpy(zero_copy_only=False)
    beyond = int(np.maximum(rows - unit.most_rows, 0).sum())
    if beyond:
        most = "one row" if unit.most_rows == 1 else f"{unit.most_rows} rows"
        misfits[unit.column, f"the unit of privacy appears in more than {most}"] = beyond
    if names.null_count:
        misfits[unit.column, "the unit of privacy is missing"] = names.null_count
    return misfits
