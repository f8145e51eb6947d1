"""Values as tables write them: numbers, dates and truths out of texts, or out of the types of Parquet.

What cannot be read is marked, never guessed, and no error quotes it. Numbers are cast first, and texts that cannot be
are looked at by a rule; of dates and truths, which repeat, each different text is read once.
"""

from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

NO_DAY = np.iinfo(np.int64).min
TRUE = ("true", "t", "yes", "y", "1", "1.0")
FALSE = ("false", "f", "no", "n", "0", "0.0")
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
CLOCK = r"(?:[T ][0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?: ?(?:Z|[+-][0-9]{2}:?[0-9]{2}))?)?$"
DATES = {
    "ymd": r"^(?P<y>[0-9]{4})[-/.](?P<m>[0-9]{1,2})[-/.](?P<d>[0-9]{1,2})" + CLOCK,
    "dmy": r"^(?P<d>[0-9]{1,2})[-/.](?P<m>[0-9]{1,2})[-/.](?P<y>[0-9]{4})" + CLOCK,
    "mdy": r"^(?P<m>[0-9]{1,2})[-/.](?P<d>[0-9]{1,2})[-/.](?P<y>[0-9]{4})" + CLOCK,
}
FEW_TEXTS = 256
DateOrder = Literal["ymd", "dmy", "mdy"]
Bools = NDArray[np.bool_]


def to_numbers(values: pa.Array, decimal: str = ".") -> NDArray[np.float64]:
    """Doubles, with NaN where there is no number; with a decimal comma, a text with a point in it is none."""
    if pa.types.is_decimal(values.type):  # Arrow's cast to doubles is off by a last bit, that of texts is not
        return to_numbers(to_texts(values))
    if _is_number(values.type):
        numbers = values.cast(pa.float64(), safe=False)  # beyond 2**53 is outside of every domain, rounded or not
        return np.asarray(numbers.fill_null(float("nan")).to_numpy(zero_copy_only=False))
    texts = to_texts(values)
    numbers = _cast_numbers(texts, decimal)
    return _split_numbers(pc.utf8_trim_whitespace(texts), decimal) if numbers is None else numbers


def _split_numbers(trimmed: pa.Array, decimal: str) -> NDArray[np.float64]:
    """Casts what can be cast, half by half, until what cannot is among few: these are looked at by the rule."""
    numbers = _cast_numbers(trimmed, decimal)
    if numbers is not None:
        return numbers
    if len(trimmed) <= FEW_TEXTS:
        return _match_numbers(trimmed, decimal)
    half = len(trimmed) // 2
    return np.append(_split_numbers(trimmed[:half], decimal), _split_numbers(trimmed[half:], decimal))


def _cast_numbers(texts: pa.Array, decimal: str) -> NDArray[np.float64] | None:
    """The numbers of texts if Arrow can cast all of them, and None otherwise.

    Arrow takes `inf` and `nan` for numbers, so whatever is not finite is looked at by the rule.
    """
    if decimal == ",":
        if pc.any(pc.match_substring(texts, ".")).as_py():
            return None
        texts = pc.replace_substring(texts, ",", ".")
    try:
        cast = texts.cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    numbers = np.asarray(cast.to_numpy(zero_copy_only=False))  # null is NaN
    odd = np.flatnonzero(~np.isfinite(numbers))
    if len(odd) > cast.null_count:
        numbers = numbers.copy()
        numbers[odd] = _match_numbers(texts.take(pa.array(odd)), ".")
    return numbers


def _match_numbers(trimmed: pa.Array, decimal: str) -> NDArray[np.float64]:
    """The rule: what is written as a number is one, and nothing else."""
    if decimal == ",":
        swapped = pc.replace_substring(trimmed, ",", ".")
        trimmed = pc.if_else(pc.match_substring(trimmed, ".").fill_null(True), None, swapped)
    looks_right = pc.match_substring_regex(trimmed, NUMBER)
    cleaned = pc.if_else(looks_right.fill_null(False), pc.replace_substring_regex(trimmed, r"^\+", ""), None)
    return np.asarray(cleaned.cast(pa.float64()).fill_null(float("nan")).to_numpy(zero_copy_only=False))


def to_days(values: pa.Array, order: DateOrder = "ymd") -> NDArray[np.int64]:
    """Whole days since 1970-01-01, with `NO_DAY` where there is no date. Of a timestamp it is the date that it names,
    in the zone that it is written in.
    """
    if pa.types.is_timestamp(values.type):
        local = values if values.type.tz is None else pc.local_timestamp(values)
        days = pc.floor_temporal(local, unit="day").cast(pa.date32(), safe=False)
    elif pa.types.is_date(values.type):
        days = values.cast(pa.date32(), safe=False)
    else:
        texts = to_texts(values).dictionary_encode()
        days = _read_days(pc.utf8_trim_whitespace(texts.dictionary), order).take(texts.indices)
    whole = days.cast(pa.int32()).cast(pa.int64()).fill_null(NO_DAY)
    return np.asarray(whole.to_numpy(zero_copy_only=False))


def _read_days(texts: pa.Array, order: DateOrder) -> pa.Array:
    """Dates of texts by whole numbers alone: a day that its month does not have is no date."""
    found = pc.extract_regex(texts, DATES[order])
    parts = [_whole_numbers(found, name) for name in ("y", "m", "d")]
    year, month, day = parts
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    lengths = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
    in_year = (month >= 1) & (month <= 12) & (year >= 1)
    known = np.where(in_year, month, 0)
    is_date = in_year & (day >= 1) & (day <= lengths[known] + (leap & (known == 2)))
    months = np.where(is_date, (year - 1970) * 12 + month - 1, 0).astype("datetime64[M]")
    days = months.astype("datetime64[D]").astype(np.int64) + np.where(is_date, day - 1, 0)
    return pa.array(days.astype(np.int32), mask=~is_date).cast(pa.date32())


def _whole_numbers(found: pa.Array, name: str) -> NDArray[np.int64]:
    digits = pc.if_else(found.is_valid(), found.field(name), "0")
    return np.asarray(digits.cast(pa.int64()).to_numpy(zero_copy_only=False))


def to_truths(values: pa.Array) -> tuple[Bools, Bools]:
    """Which values are true, and which are neither true nor false."""
    if pa.types.is_boolean(values.type):
        texts = pc.if_else(values, "true", "false")
    elif _is_number(values.type):
        numbers = to_numbers(values)
        return numbers == 1, (numbers != 0) & (numbers != 1)
    else:
        texts = to_texts(values)
    distinct = texts.dictionary_encode()
    spelled = pc.utf8_lower(pc.utf8_trim_whitespace(distinct.dictionary))
    true, false = (
        pc.is_in(spelled, value_set=pa.array(known)).take(distinct.indices).fill_null(False) for known in (TRUE, FALSE)
    )
    neither = pc.invert(pc.or_(true, false))
    return true.to_numpy(zero_copy_only=False), neither.to_numpy(zero_copy_only=False)


def to_texts(values: pa.Array) -> pa.Array:
    """Texts, and null for all where the type has none: Arrow's own errors quote a value, so none may come out."""
    if values.type == pa.string():
        return values
    try:
        return values.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return pa.nulls(len(values), pa.string())


def decoded(values: pa.Array) -> pa.Array:
    """A column of a dictionary as a plain one."""
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _is_number(kind: pa.DataType) -> bool:
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
    return any(test(kind) for test in tests)
