"""Dates and booleans: what a study writes, the codes that follow, and the values that come back."""

from datetime import date, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from synod.common.privacy.coins import Coins
from synod.common.runtime.errors import SynodError
from synod.common.study.attributes import DaysAttribute, TruthAttribute, name_day, plain, varies
from synod.common.study.encoding import codings_of, encode_numbers
from synod.common.study.study import Study, parse_study
from synod.curator.release.files import decode_table
from tests.support.studies import make_study, study_document

SEEN = {"name": "seen", "type": "date", "min": date(2020, 1, 15), "max": date(2022, 3, 1)}
ALIVE = {"name": "alive", "type": "boolean", "nullable": True}
GOLDEN = "0ebb68afe89d9fb2841d90f6d0b0cda57b2e58af8825135c1f6b61df63141ab0"
EPOCH = date(1970, 1, 1)


def one_date(**changes: Any) -> Study:
    return make_study(schema=({**SEEN, **changes}, ALIVE), method={"name": "independent"})


def test_a_study_with_both_is_canonical() -> None:
    """Fixed text: this is hashed and approved."""
    written = one_date().to_json()["schema"]
    assert written == [
        {
            "name": "seen", "nullable": False, "type": "date", "min": "2020-01-15", "max": "2022-03-01",
            "bins": "month", "out_of_domain": "refuse",
        },
        {"name": "alive", "nullable": True, "type": "boolean", "out_of_domain": "refuse"},
    ]  # fmt: skip
    assert parse_study(one_date().to_json(), "again").digest() == one_date().digest()
    assert one_date(min="2020-01-15").digest() == one_date().digest()


def test_the_hash_of_a_study_without_new_keys_is_what_it_was() -> None:
    """Computed by the version before dates, booleans and edges."""
    assert make_study().digest().hex() == GOLDEN


@pytest.mark.parametrize("bins", ["day", "month", "year"])
def test_bins_are_those_of_the_calendar(bins: str) -> None:
    """Every day of the range, beside the calendar of the standard library."""
    coding = codings_of(one_date(bins=bins))[0]
    first, last = date(2020, 1, 15), date(2022, 3, 1)
    every = [first + timedelta(days=place) for place in range((last - first).days + 1)]
    keys = [{"day": day, "month": (day.year, day.month), "year": day.year}[bins] for day in every]
    places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    codes = encode_numbers(coding, np.array([(day - EPOCH).days for day in every], dtype=np.float64))
    assert codes.tolist() == [places[key] for key in keys]
    assert coding.size == len(places)


def test_they_come_back_as_dates_and_truths() -> None:
    study = one_date()
    codings = codings_of(study)
    columns = [np.arange(27).astype(codings[0].dtype), np.array([0, 1, 2] * 9, np.uint8)]
    table = decode_table(study, columns, coins=Coins.public(3, "values"))
    assert table.schema.types == [pa.date32(), pa.bool_()]
    seen = table.column("seen").to_pylist()
    months = [(2020 + (place // 12), place % 12 + 1) for place in range(27)]
    assert [(day.year, day.month) for day in seen] == months
    assert min(seen) >= date(2020, 1, 15)
    assert seen[-1] == date(2022, 3, 1), "a last month of one day"
    assert table.column("alive").to_pylist() == [False, True, None] * 9


def test_codes_are_made_of_what_the_schema_has_already() -> None:
    seen, alive = (plain(attribute) for attribute in one_date().attributes)
    assert isinstance(seen, DaysAttribute)
    assert isinstance(alive, TruthAttribute)
    assert (name_day(seen.min), name_day(seen.max)) == ("2020-01-15", "2022-03-01")


def test_a_single_day_does_not_vary() -> None:
    study = one_date(max=date(2020, 1, 15))
    assert not varies(study.attributes[0])
    assert codings_of(study)[0].size == 1


REFUSED = {
    "min after max": ({"min": "2023-01-01"}, "min is after max"),
    "no date": ({"min": "2020-02-30"}, "must be a date"),
    "a number": ({"min": 2020}, "must be a date"),
    "nothing": ({"min": None}, "must be a date"),
    "weeks": ({"bins": "week"}, "'day', 'month' or 'year'"),
    "too many days": ({"min": "1000-01-01", "bins": "day"}, "more than 65000 bins"),
    "null without nullable": ({"out_of_domain": "null"}, "needs nullable"),
}


@pytest.mark.parametrize(("changes", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_range_of_dates_is_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(SynodError, match=why):
        parse_study(study_document(schema=({**SEEN, **changes},)), "the test's study")
