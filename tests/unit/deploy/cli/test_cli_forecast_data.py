"""`synod study forecast --data`: remarks on columns of real rows, which stay in the house."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from synod.common.runtime.errors import SynodError
from synod.curator.methods import hpdp_dp
from synod.deploy.study.numbers import NOTE, read_numbers
from tests.support.commands import complaint, synod, write_study
from tests.support.studies import categorical, integer, make_study, real

SCHEMA = [
    integer("age", 0, 100),
    integer("gain", 0, 99_999),
    real("income", "0", "1000000", nullable=True),
    categorical("ward", ("a", "b")),
]
NETWORK = {"name": "dp-subn"}
ROWS = 2_000
ROOT = Path(__file__).resolve().parents[4]


def people(rows: int = ROWS, seed: int = 1) -> dict[str, Any]:
    """Ages as a bell, gains that are mostly none, incomes with a long tail and a few missing."""
    rng = np.random.default_rng(seed)
    gain = np.where(rng.random(rows) < 0.9, 0, rng.integers(1, 90_000, rows))
    income = np.clip(np.exp(rng.normal(10, 1, rows)), 0, 999_999)
    return {
        "age": np.clip(np.rint(rng.normal(50, 12, rows)), 0, 100).astype(int),
        "gain": gain,
        "income": [None if place % 20 == 0 else value for place, value in enumerate(income)],
        "ward": rng.choice(["a", "b"], rows),
    }


def write_people(path: Path, **changes: Any) -> Path:
    pa.parquet.write_table(pa.table(people() | changes), path)
    return path


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return write_study(tmp_path / "study.yaml", schema=SCHEMA)


def remarks(*arguments: object) -> list[str]:
    """Those on the schema."""
    found: list[str] = json.loads(synod("study", "forecast", *arguments, "--json", "--quick").out)["remarks"]
    return found


def remarks_on_rows(*arguments: object) -> list[str]:
    found: list[str] = json.loads(synod("study", "forecast", *arguments, "--json", "--quick").out)["remarks_on_rows"]
    return found


def test_without_rows_the_schema_is_enough_for_a_general_sentence(study: Path) -> None:
    assert remarks(study) == [hpdp_dp.warn_of_bells()]
    ending = synod("study", "forecast", study, "--quick")
    assert f"- {hpdp_dp.warn_of_bells()}\n" in ending.out
    assert "--data TABLE" in ending.out
    assert "`adaptive` keeps" in ending.out
    assert NOTE not in ending.out
    assert not {"note", "remarks_on_rows"} & set(json.loads(synod("study", "forecast", study, "--json", "--quick").out))


@pytest.mark.parametrize(
    "changes",
    [
        {"schema": [categorical("ward", 3)]},
        {"schema": [categorical("a", 2), integer("one", 3, 3)]},
        {"method": NETWORK},
    ],
    ids=["no number", "a number with one value", "a method that keeps shapes"],
)
def test_no_sentence_where_there_is_nothing_to_warn_of(tmp_path: Path, changes: dict[str, Any]) -> None:
    assert remarks(write_study(tmp_path / "study.yaml", **changes)) == []


def test_columns_that_are_no_bell_are_named(tmp_path: Path, study: Path) -> None:
    table = write_people(tmp_path / "people.parquet")
    gain, income = remarks_on_rows(study, "--data", table)
    assert gain.startswith("gain is skewed (skewness ")
    assert " and has a spike (89.7% of its values are 0, its minimum)" in gain
    assert income.startswith("income is skewed (skewness ")
    assert "spike" not in income
    for remark in (gain, income):
        assert remark.endswith("the method `adaptive` keeps such columns.")
    ending = synod("study", "forecast", study, "--data", table, "--quick")
    assert (ending.code, ending.err) == (0, "")
    assert f"- {hpdp_dp.warn_of_bells()}\n{NOTE}\n- {gain}\n- {income}\n" in ending.out
    assert remarks(study, "--data", table) == remarks(study), "what is said of the schema stays"
    assert json.loads(synod("study", "forecast", study, "--data", table, "--json", "--quick").out)["note"] == NOTE


def test_bells_only_are_said_to_be_fine(tmp_path: Path, study: Path) -> None:
    bell = np.rint(np.random.default_rng(2).normal(50_000, 9_000, ROWS)).astype(int)
    table = write_people(tmp_path / "people.parquet", gain=bell, income=bell * 10.0)
    assert remarks_on_rows(study, "--data", table) == []
    assert (
        f"{NOTE}\n- The method has no remarks on these rows.\n"
        in synod("study", "forecast", study, "--data", table, "--quick").out
    )


def test_tables_and_folders_are_pooled(tmp_path: Path) -> None:
    study = make_study(schema=[integer("age", 0, 9), real("x", "-1", "1", nullable=True), integer("one", 1, 1)])
    (tmp_path / "more").mkdir()
    (tmp_path / "one.csv").write_text("age,x,one\n1,0.25,1\n9,,1\n")
    (tmp_path / "more" / "two.csv").write_text("age,x,one\n3,-1,1\n")
    numbers = read_numbers([tmp_path / "one.csv", tmp_path / "more"], study)
    assert set(numbers) == {"age", "x"}, "a number whose only value is public says nothing"
    assert numbers["age"].tolist() == [1, 9, 3]
    assert numbers["x"].tolist() == [0.25, -1]


def test_values_stay_apart_that_the_method_would_round_together(tmp_path: Path) -> None:
    """A spike is one value: 256 levels would make one of all small incomes."""
    study = make_study(schema=[integer("gain", 0, 10**6), real("income", "0", "1000000")])
    (tmp_path / "t.csv").write_text("gain,income\n1,1\n2,2\n999999,3\n")
    numbers = read_numbers([tmp_path / "t.csv"], study)
    assert numbers["gain"].tolist() == [1, 2, 999_999]
    assert np.allclose(numbers["income"], [1, 2, 3], atol=0.1)


def test_only_the_forecast_asks_for_advice() -> None:
    """What is said of real rows is not private, so nothing that publishes may call it."""
    modules = [path for room in ("common", "party", "curator", "deploy") for path in (ROOT / room).rglob("*.py")]
    callers = {path.relative_to(ROOT).as_posix() for path in modules if ".advise" in path.read_text()}
    assert callers == {"deploy/study/forecast.py"}


def test_a_table_of_another_schema(tmp_path: Path, study: Path) -> None:
    table = write_people(tmp_path / "people.parquet", age=np.full(ROWS, 777))
    told = complaint(synod("study", "forecast", study, "--data", table, "--quick"), 2)
    assert "people.parquet does not fit the study's schema: column age" in told
    assert "777" not in told, "no value of a row is shown"
    assert "there is no table at" in complaint(
        synod("study", "forecast", study, "--data", tmp_path / "none", "--quick"), 2
    )


def test_a_table_without_rows(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age\n")
    with pytest.raises(SynodError, match="has no rows"):
        read_numbers([tmp_path / "t.csv"], make_study(schema=[integer("age", 0, 9)]))
