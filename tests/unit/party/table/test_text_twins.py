"""The fast readings of texts beside the rules, one text at a time by the standard library: equal to the last text.

Numbers are cast where Arrow can, dates and truths are read once for each different text. Whatever people write must
come out as the rule says, whatever stands beside it in the batch.
"""

import re
from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from synod.party.table import text as reading
from synod.party.table.text import FALSE, NO_DAY, TRUE, to_days, to_numbers, to_truths

# What Unicode calls white space; Python's own strip takes four separators of files more.
BLANKS = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
DATE = re.compile(
    r"([0-9]{4})[-/.]([0-9]{1,2})[-/.]([0-9]{1,2})"
    r"([T ][0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?( ?(Z|[+-][0-9]{2}:?[0-9]{2}))?)?",
    re.ASCII,
)
NASTY = (
    "", " ", "7", " 7 ", "+7", "-7", "+-7", "- 7", "7.", ".7", ".", "+.", "1e5", "1E+5", "1e-5", "1e", "e5",
    "1e5.0", "1e400", "-1e400", "1e-400", "1e309", "0x1", "0x1p3", "1_000", "1,5", "1.5", "1.234,5", "1,2,3", ",5",
    "5,", "nan", "NaN", "NAN", "nan(1)", "-nan", "inf", "-inf", "+inf", "Infinity", "INF", "NA", "null", "None",
    "\u0667", "\uff11", "\u00bd", "\u22127", "7\x00", "\x007", "\ufeff7", "7\u200b", "\u00a07\u00a0", "\u30007",
    "1e99999999999999999999", "0" * 400 + "1", "9" * 400, "0." + "0" * 400 + "1", "9007199254740993", "0.1", "1d5",
    "1f", "--7", "7-", "true", "2020-01-02", "12:30",
)  # fmt: skip
WRITTEN = st.one_of(
    st.none(),
    st.sampled_from(NASTY),
    st.text("0123456789+-.,eE_xX \tnaifNI", max_size=8),
    st.floats(width=64).map(repr),
    st.integers(-(10**20), 10**20).map(str),
)


def number_of(text: str | None, decimal: str) -> float:
    trimmed = (text or "").strip(BLANKS)
    if decimal == ",":
        trimmed = "" if "." in trimmed else trimmed.replace(",", ".")
    return float(trimmed) if NUMBER.fullmatch(trimmed) else float("nan")


def check_numbers(texts: list[str | None], decimal: str) -> None:
    found = to_numbers(pa.array(texts, pa.string()), decimal)
    expected = np.array([number_of(text, decimal) for text in texts], dtype=np.float64)
    assert found.tobytes() == expected.tobytes() or np.array_equal(found, expected, equal_nan=True), texts


@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("text", NASTY)
def test_a_nasty_spelling_alone_and_among_others(text: str, decimal: str) -> None:
    check_numbers([text], decimal)
    check_numbers(["1", text, None, "2"], decimal)


@settings(max_examples=300, deadline=None)
@given(st.lists(WRITTEN, max_size=12), st.sampled_from([".", ","]), st.sampled_from([1, 2, 256]))
@example(["inf", "1"], ".", 256)
@example(["1", None, "1e400"], ",", 1)
def test_numbers_are_those_of_the_rule(texts: list[str | None], decimal: str, few: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "FEW_TEXTS", few)
        check_numbers(texts, decimal)


def test_one_odd_text_among_many_leaves_the_others_as_they_are() -> None:
    texts: list[str | None] = [str(place / 8) for place in range(5000)]
    texts[777], texts[778], texts[4999], texts[3000] = "seven", None, "nan", " +7"
    check_numbers(texts, ".")


def day_of(text: str | None) -> int:
    match = DATE.fullmatch((text or "").strip(BLANKS))
    try:
        year, month, day = map(int, match.groups()[:3]) if match else (0, 0, 0)
        return (date(year, month, day) - date(1970, 1, 1)).days
    except ValueError:
        return int(NO_DAY)


DATES = st.one_of(
    st.none(),
    st.sampled_from([*NASTY, "2020-02-30", "2020-02-29", "1900-02-29", "0000-01-01", "2020-1-2T3:04Z", "2020-1-2 3:4"]),
    st.dates().map(lambda day: f" {day} "),
    st.datetimes().map(lambda moment: moment.isoformat()),
    st.text("0123456789-/.T: Z+", max_size=12),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(DATES, max_size=12).map(lambda texts: texts + texts[:3]))
def test_dates_are_those_of_the_rule(texts: list[str | None]) -> None:
    assert to_days(pa.array(texts, pa.string())).tolist() == [day_of(text) for text in texts]


TRUTHS = st.one_of(
    st.none(), st.sampled_from([*TRUE, *FALSE, *NASTY, " Yes", "NO\t", "tRuE", "01"]), st.text(max_size=3)
)


@settings(max_examples=200, deadline=None)
@given(st.lists(TRUTHS, max_size=12).map(lambda texts: texts + texts[:3]))
def test_truths_are_those_of_the_rule(texts: list[str | None]) -> None:
    spelled = [None if text is None else text.strip(BLANKS).lower() for text in texts]
    true, neither = to_truths(pa.array(texts, pa.string()))
    assert true.tolist() == [text in TRUE for text in spelled]
    assert neither.tolist() == [text not in TRUE and text not in FALSE for text in spelled]
