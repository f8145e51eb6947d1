"""Small tables as CSV and Parquet files, and what reading them against a study gives: codes, misfits or a refusal."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from synod.common.runtime.errors import Code, SynodError
from synod.common.study.encoding import codings_of
from synod.common.study.study import Study
from synod.party.table.encode import Misfit, TableError, Unit, read_table
from tests.support.studies import make_study

SECRET = "Zachariah"  # a value that must never appear in an error
NOT_WHOLE = "not a whole number"
NOT_NUMBER = "not a number"
OUTSIDE = "outside the domain"
MISSING = "missing, but not nullable"
COUNT = "the row count is not the roster's"
REPEATED = "the unit of privacy appears in more than one row"
NO_UNIT = "the unit of privacy is missing"

COLOUR = {"name": "colour", "type": "categorical", "categories": ["red", "green", "blue"]}
AGE = {"name": "age", "type": "integer", "min": 0, "max": 256}
MASS = {"name": "mass", "type": "real", "min": "-1", "max": "1"}


def study_of(rows: int, *schema: dict[str, Any], **changes: Any) -> Study:
    return make_study(rows=(rows, 5, 5), schema=schema or (COLOUR, AGE, MASS), **changes)


Writer = Callable[[Path, dict[str, list[Any]]], Path]


def write_csv(folder: Path, columns: dict[str, list[Any]]) -> Path:
    lines = [",".join(columns)]
    lines += [",".join("" if v is None else str(v) for v in row) for row in zip(*columns.values(), strict=True)]
    path = folder / "table.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_parquet(folder: Path, columns: dict[str, list[Any]]) -> Path:
    path = folder / "table.parquet"
    pa.parquet.write_table(pa.table(columns), path)
    return path


def read(source: Path, study: Study, unit: str | None = None) -> list[list[int]]:
    column = None if unit is None else Unit(unit, study.max_rows_per_unit)
    snapshot = read_table(source, codings_of(study), unit=column, expected_rows=study.roster[0].rows)
    return [column.tolist() for column in snapshot.columns]


def misfits(source: Path, study: Study, unit: str | None = None) -> list[Misfit]:
    with pytest.raises(TableError) as caught:
        read(source, study, unit)
    error = caught.value
    assert error.code is Code.INVALID
    for text in (str(error), repr(error), repr(error.args)):
        assert not any(character.isdigit() for character in text), "an exception tells a count"
        assert SECRET not in text
        assert all(misfit.column not in text.split() for misfit in error.misfits)
    return sorted(error.misfits, key=lambda misfit: (misfit.column, misfit.rule))


def refusal(source: Path, study: Study, unit: str | None = None) -> SynodError:
    with pytest.raises(SynodError) as caught:
        read(source, study, unit)
    assert not isinstance(caught.value, TableError)
    assert caught.value.code is Code.INVALID
    assert SECRET not in str(caught.value)
    return caught.value


formats = pytest.mark.parametrize("write", [write_csv, write_parquet])
