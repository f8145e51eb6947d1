"""Numbers, dates and truths out of texts and out of Parquet's types, each beside the standard library's reading."""

import random
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from synod.party.table.text import NO_DAY, DateOrder, to_days, to_numbers, to_truths

EPOCH = date(1970, 1, 1)
FORMATS: dict[DateOrder, str] = {"ymd": "{y:04}-{m:02}-{d:02}", "dmy": "{d}.{m}.{y:04}", "mdy": "{m:02}/{d:02}/{y:04}"}


def days(values: list[Any], order: DateOrder = "ymd", kind: Any = None) -> list[int | None]:
    return [None if day == NO_DAY else day for day in to_days(pa.array(values, kind), order).tolist()]


@pytest.mark.parametrize("order", FORMATS)
def test_dates_are_those_of_the_standard_library(order: DateOrder) -> None:
    """Any day, month and year, whether there is such a date or not."""
    rng = random.Random(5)
    parts = [(rng.randint(0, 2300), rng.randint(0, 13), rng.randint(0, 32)) for _ in range(3000)]
    parts += [(year, 2, 29) for year in (1600, 1700, 1900, 2000, 2023, 2024)]

    def slow(y: int, m: int, d: int) -> int | None:
        try:
            return (date(y, m, d) - EPOCH).days
        except ValueError:
            return None

    texts = [FORMATS[order].format(y=y, m=m, d=d) for y, m, d in parts]
    assert days(texts, order) == [slow(*part) for part in parts]


def test_of_a_timestamp_it_is_the_date_that_it_names() -> None:
    texts = ["2020-02-01 23:59", "2020-02-01T23:59:59.5Z", " 2020-02-01T00:00:00+05:30 ", "1969-12-31 23:00"]
    assert days(texts) == [18293, 18293, 18293, -1]
    assert days(["2020-02-01x", "2020-02-01 soon", "20200201", "2020-2", "", None]) == [None] * 6


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_of_parquet(unit: str) -> None:
    local = [datetime(1969, 12, 31, 23, 30, tzinfo=UTC), datetime(2020, 2, 1, tzinfo=UTC), None]
    moments = [moment and moment.replace(tzinfo=None) for moment in local]
    assert days(moments, kind=pa.timestamp(unit)) == [-1, 18293, None]
    assert days(local, kind=pa.timestamp(unit, tz="+01:00")) == [0, 18293, None]
    assert days([date(2020, 2, 1), EPOCH - timedelta(days=1)], kind=pa.date32()) == [18293, -1]
    assert days([date(2020, 2, 1), EPOCH - timedelta(days=1)], kind=pa.date64()) == [18293, -1]


def test_numbers_are_no_dates() -> None:
    assert days([18293, 1]) == [None, None]


def test_truths_in_every_usual_spelling() -> None:
    true, neither = to_truths(pa.array(["True", "TRUE", " true ", "t", "Yes", "y", "1", "1.0"]))
    assert true.all()
    assert not neither.any()
    true, neither = to_truths(pa.array(["False", "FALSE", "f", "No", "n", "0", "0.0"]))
    assert not true.any()
    assert not neither.any()
    assert to_truths(pa.array(["maybe", "2", "", None]))[1].all()
    for column in (pa.array([True, False, None]), pa.array([1, 0, None]), pa.array([1.0, 0.0, None])):
        assert [found.tolist() for found in to_truths(column)] == [[True, False, False], [False, False, True]]
    assert to_truths(pa.array([2.0, -1.0]))[1].all()


def test_with_a_decimal_comma_a_point_is_no_decimal_sign() -> None:
    """1.234 would be a thousand times too small, or too large: nobody guesses."""
    texts = pa.array(["1,5", "-,5", "7", "1,5e3", "1.5", "1.234,5", "1,2,3", None])
    found = to_numbers(texts, ",")
    assert found[:4].tolist() == [1.5, -0.5, 7.0, 1500.0]
    assert np.isnan(found[4:]).all()
    assert np.isnan(to_numbers(pa.array(["1,5"]))).all()
