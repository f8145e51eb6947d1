"""Values to codes: what fits is encoded; what does not is reported by column, rule and count, and by nothing else."""

import datetime
import decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from synod.party.table import source as opening
from synod.party.table.encode import Misfit
from tests.support.sources import (
    AGE,
    COLOUR,
    COUNT,
    MASS,
    MISSING,
    NO_UNIT,
    NOT_NUMBER,
    NOT_WHOLE,
    OUTSIDE,
    REPEATED,
    SECRET,
    Writer,
    formats,
    misfits,
    read,
    study_of,
    write_csv,
    write_parquet,
)


@formats
def test_values_become_the_codes_of_the_schema(tmp_path: Path, write: Writer) -> None:
    path = write(
        tmp_path,
        {"mass": [-1.0, 0.0, 1.0, 0.5], "extra": [SECRET] * 4, "colour": ["blue", "red", "green", "blue"],
         "age": [0, 1, 128, 256]},
    )  # fmt: skip
    assert read(path, study_of(4)) == [[2, 0, 1, 2], [0, 1, 128, 256], [0, 128, 256, 192]]


def test_csv_reads_numbers_as_people_write_them(tmp_path: Path) -> None:
    path = write_csv(tmp_path, {"age": [" 7 ", "+7", "7.0", "0.7e1", "007", "70E-1"]})
    assert read(path, study_of(6, AGE)) == [[7] * 6]


@pytest.mark.parametrize(
    "text", ["seven", "7a", "0x7", "1e", "--7", "1_0", "nan", "inf", "Infinity", "1e999", "\u0667", "."]
)
def test_csv_refuses_what_is_not_a_number(tmp_path: Path, text: str) -> None:
    path = write_csv(tmp_path, {"mass": ["0.5", text, "0.5"]})
    assert misfits(path, study_of(3, MASS)) == [Misfit("mass", NOT_NUMBER, 1)]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_parquet_refuses_what_is_not_a_finite_number(tmp_path: Path, value: float) -> None:
    path = tmp_path / "table.parquet"
    pa.parquet.write_table(pa.table({"mass": pa.array([0.5, value, value])}), path)
    assert misfits(path, study_of(3, MASS)) == [Misfit("mass", NOT_NUMBER, 2)]


@formats
def test_a_fraction_is_no_whole_number(tmp_path: Path, write: Writer) -> None:
    path = write(tmp_path, {"age": [1.0, 1.5, 2.0, 2.25]})
    assert misfits(path, study_of(4, AGE)) == [Misfit("age", NOT_WHOLE, 2)]


@formats
def test_numbers_outside_of_the_bounds(tmp_path: Path, write: Writer) -> None:
    path = write(tmp_path, {"age": [-1, 0, 256, 257, 300], "mass": [-1.0, 1.0, -1.0000001, 0.0, 0.0]})
    assert misfits(path, study_of(5, AGE, MASS)) == [Misfit("age", OUTSIDE, 3), Misfit("mass", OUTSIDE, 1)]


@formats
def test_unknown_category(tmp_path: Path, write: Writer) -> None:
    path = write(tmp_path, {"colour": ["red", SECRET, "Red", "green "]})
    assert misfits(path, study_of(4, COLOUR)) == [Misfit("colour", OUTSIDE, 3)]


@formats
def test_missing_where_not_nullable(tmp_path: Path, write: Writer) -> None:
    path = write(tmp_path, {"colour": ["red", None, None], "age": [None, 3, 4], "mass": [0.0, 0.5, 1.0]})
    assert misfits(path, study_of(3)) == [Misfit("age", MISSING, 1), Misfit("colour", MISSING, 2)]


@formats
def test_a_missing_value_has_the_last_code(tmp_path: Path, write: Writer) -> None:
    schema = [{**attribute, "nullable": True} for attribute in (COLOUR, AGE, MASS)]
    path = write(tmp_path, {"colour": ["red", None, "blue"], "age": [None, 3, 4], "mass": [0.0, None, 1.0]})
    assert read(path, study_of(3, *schema)) == [[0, 3, 2], [257, 3, 4], [128, 257, 256]]


@formats
def test_clip_moves_numbers_to_the_nearest_bound(tmp_path: Path, write: Writer) -> None:
    schema = {**AGE, "out_of_domain": "clip"}
    assert read(write(tmp_path, {"age": [-9, 5, 999]}), study_of(3, schema)) == [[0, 5, 256]]


@formats
def test_clip_does_not_excuse_what_is_no_number_or_missing(tmp_path: Path, write: Writer) -> None:
    schema = {**MASS, "out_of_domain": "clip"}
    path = write(tmp_path, {"mass": [float("inf"), None, 5.0], "id": [1, 2, 3]})
    assert misfits(path, study_of(3, schema)) == [Misfit("mass", MISSING, 1), Misfit("mass", NOT_NUMBER, 1)]


@formats
def test_null_takes_what_is_outside_for_missing(tmp_path: Path, write: Writer) -> None:
    schema = [{**attribute, "nullable": True, "out_of_domain": "null"} for attribute in (COLOUR, AGE)]
    path = write(tmp_path, {"colour": ["red", SECRET, "blue"], "age": [257, 3, -1]})
    assert read(path, study_of(3, *schema)) == [[0, 3, 2], [257, 3, 257]]


@formats
def test_all_misfits_come_together(tmp_path: Path, write: Writer) -> None:
    path = write(tmp_path, {"colour": [SECRET, None, "red", "x"], "age": [1000, None, None, 7], "id": [1, 1, 2, None]})
    found = misfits(path, study_of(3, COLOUR, AGE), unit="id")
    assert found == [
        Misfit("(rows)", COUNT, 4),
        Misfit("age", MISSING, 2),
        Misfit("age", OUTSIDE, 1),
        Misfit("colour", MISSING, 1),
        Misfit("colour", OUTSIDE, 2),
        Misfit("id", REPEATED, 1),
        Misfit("id", NO_UNIT, 1),
    ]


def test_a_word_does_not_hide_what_else_is_wrong_in_its_column(tmp_path: Path) -> None:
    path = write_csv(tmp_path, {"age": [SECRET, None, "300", "7"], "mass": ["0"] * 4})
    assert misfits(path, study_of(4, AGE, MASS)) == [
        Misfit("age", MISSING, 1),
        Misfit("age", NOT_WHOLE, 1),
        Misfit("age", OUTSIDE, 1),
    ]


@formats
@pytest.mark.parametrize("rows", [3, 5])
def test_more_or_fewer_rows_than_the_roster_says(tmp_path: Path, write: Writer, rows: int) -> None:
    path = write(tmp_path, {"age": [1, 2, 3, 4]})
    assert misfits(path, study_of(rows, AGE)) == [Misfit("(rows)", COUNT, 4)]


def test_a_table_of_no_rows(tmp_path: Path) -> None:
    empty = pa.table({"age": pa.array([], pa.int64()), "id": pa.array([], pa.string())})
    pa.parquet.write_table(empty, tmp_path / "table.parquet")
    assert misfits(tmp_path / "table.parquet", study_of(2, AGE), unit="id") == [Misfit("(rows)", COUNT, 0)]
    (tmp_path / "table.csv").write_text("age,id\n")
    assert misfits(tmp_path / "table.csv", study_of(2, AGE), unit="id") == [Misfit("(rows)", COUNT, 0)]


def test_csv_quotes_and_commas_in_categories(tmp_path: Path) -> None:
    schema = {"name": "a, b", "type": "categorical", "categories": ["x,y", 'say "x"', "plain"]}
    (tmp_path / "table.csv").write_text('"a, b"\n"x,y"\n"say ""x"""\nplain\n"plain"\n')
    assert read(tmp_path / "table.csv", study_of(4, schema)) == [[0, 1, 2, 2]]


def test_csv_texts_that_look_like_numbers_or_nulls_stay_texts(tmp_path: Path) -> None:
    schema = {"name": "code", "type": "categorical", "categories": ["01", "1", "NA", "null", "true", "1.0"]}
    path = write_csv(tmp_path, {"code": ["1", "01", "NA", "null", "true", "1.0"]})
    assert read(path, study_of(6, schema)) == [[1, 0, 2, 3, 4, 5]]


CATEGORICALS: dict[str, tuple[pa.Array, list[str]]] = {
    "int8": (pa.array([2, 1, None], pa.int8()), ["1", "2"]),
    "uint64": (pa.array([2, 1, None], pa.uint64()), ["1", "2"]),
    "bool": (pa.array([False, True, None]), ["true", "false"]),
    "dictionary": (pa.array(["n", "y", None]).dictionary_encode(), ["y", "n"]),
    "large text": (pa.array(["n", "y", None], pa.large_string()), ["y", "n"]),
    "dictionary of large text": (pa.array(["n", "y", None], pa.large_string()).dictionary_encode(), ["y", "n"]),
    "dictionary of numbers": (pa.array([2, 1, None]).dictionary_encode(), ["1", "2"]),
    "date": (pa.array([datetime.date(2020, 1, 2), datetime.date(2020, 1, 1), None]), ["2020-01-01", "2020-01-02"]),
}


@pytest.mark.parametrize(("column", "categories"), CATEGORICALS.values(), ids=CATEGORICALS.keys())
def test_parquet_categories_of_other_types(tmp_path: Path, column: pa.Array, categories: list[str]) -> None:
    schema = {"name": "x", "type": "categorical", "categories": categories, "nullable": True}
    pa.parquet.write_table(pa.table({"x": column}), tmp_path / "table.parquet")
    assert read(tmp_path / "table.parquet", study_of(3, schema)) == [[1, 0, 2]]


NUMBERS: dict[str, pa.Array] = {
    "int16": pa.array([7, 8, None], pa.int16()),
    "float32": pa.array([7, 8, None], pa.float32()),
    "decimal": pa.array([decimal.Decimal("7.00"), decimal.Decimal("8.00"), None]),
    "text": pa.array(["7", "8", None]),
    "large text": pa.array(["7", "8", None], pa.large_string()),
    "dictionary": pa.array(["7", "8", None]).dictionary_encode(),
    "dictionary of numbers": pa.array([7, 8, None]).dictionary_encode(),
}


@pytest.mark.parametrize("column", NUMBERS.values(), ids=NUMBERS.keys())
def test_parquet_numbers_of_other_types(tmp_path: Path, column: pa.Array) -> None:
    pa.parquet.write_table(pa.table({"age": column}), tmp_path / "table.parquet")
    assert read(tmp_path / "table.parquet", study_of(3, {**AGE, "nullable": True})) == [[7, 8, 257]]


UNREADABLE: dict[str, tuple[pa.Array, str]] = {
    "dictionary": (pa.array(["7", SECRET, SECRET]).dictionary_encode(), NOT_WHOLE),
    "large text": (pa.array(["7", SECRET, SECRET], pa.large_string()), NOT_WHOLE),
    "date": (pa.array([None, datetime.date(1961, 4, 12), datetime.date(1961, 4, 12)]), NOT_WHOLE),
    "list": (pa.array([None, [1961], [1961]]), NOT_WHOLE),
    "great": (pa.array([7, 2**53 + 1, -(2**63)]), OUTSIDE),
    "greatest": (pa.array([7, 2**64 - 1, 2**64 - 1], pa.uint64()), OUTSIDE),
    "bytes": (pa.array([None, b"\xff", SECRET.encode()]), NOT_WHOLE),
}


@pytest.mark.parametrize(("column", "rule"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_parquet_numbers_that_are_none_stay_secret(tmp_path: Path, column: pa.Array, rule: str) -> None:
    """Arrow's own sentence for these quotes the value; it must not come out."""
    pa.parquet.write_table(pa.table({"age": column}), tmp_path / "table.parquet")
    assert misfits(tmp_path / "table.parquet", study_of(3, {**AGE, "nullable": True})) == [Misfit("age", rule, 2)]


@pytest.mark.parametrize("column", [pa.array([["red"], ["x"]]), pa.array([b"\xff", b"\xfe"])], ids=["list", "bytes"])
def test_parquet_categories_that_are_no_text(tmp_path: Path, column: pa.Array) -> None:
    pa.parquet.write_table(pa.table({"colour": column}), tmp_path / "table.parquet")
    assert misfits(tmp_path / "table.parquet", study_of(2, COLOUR)) == [Misfit("colour", OUTSIDE, 2)]


@formats
def test_units_are_unique_and_there(tmp_path: Path, write: Writer) -> None:
    ids = ["p1", "p2", "p3", "p4"]
    assert read(write(tmp_path, {"id": ids, "age": [1, 2, 3, 4]}), study_of(4, AGE), unit="id") == [[1, 2, 3, 4]]
    path = write(tmp_path, {"id": ["p1", "p2", "p1", "p1"], "age": [1, 2, 3, 4]})
    assert misfits(path, study_of(4, AGE), unit="id") == [Misfit("id", REPEATED, 2)]
    path = write(tmp_path, {"id": ["p1", None, None, "p2"], "age": [1, 2, 3, 4]})
    assert misfits(path, study_of(4, AGE), unit="id") == [Misfit("id", NO_UNIT, 2)]


def test_units_of_a_dictionary_type(tmp_path: Path) -> None:
    ids = pa.array(["p1", "p2", "p1", None]).dictionary_encode()
    pa.parquet.write_table(pa.table({"id": ids, "age": [1, 2, 3, 4]}), tmp_path / "table.parquet")
    found = misfits(tmp_path / "table.parquet", study_of(4, AGE), unit="id")
    assert found == [Misfit("id", REPEATED, 1), Misfit("id", NO_UNIT, 1)]


def test_units_that_repeat_in_another_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "BATCH_ROWS", 4)
    path = write_parquet(tmp_path, {"id": [*range(9), 0], "age": [1] * 10})
    assert misfits(path, study_of(10, AGE), unit="id") == [Misfit("id", REPEATED, 1)]


def test_counts_add_up_over_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "BATCH_ROWS", 3)
    path = write_parquet(tmp_path, {"age": [999, 1, 2, 999, 3, None, None, 999]})
    assert misfits(path, study_of(8, AGE)) == [Misfit("age", MISSING, 2), Misfit("age", OUTSIDE, 3)]


@formats
@pytest.mark.parametrize(("most", "beyond"), [(1, 3), (2, 1), (3, 0), (4, 0)])
def test_a_unit_has_as_many_rows_as_the_study_says(tmp_path: Path, write: Writer, most: int, beyond: int) -> None:
    path = write(tmp_path, {"id": [SECRET, "p2", SECRET, "p2", SECRET, "p3"], "age": [1, 2, 3, 4, 5, 6]})
    study = study_of(6, AGE, max_rows_per_unit=most)
    if beyond:
        rule = REPEATED if most == 1 else f"the unit of privacy appears in more than {most} rows"
        assert misfits(path, study, unit="id") == [Misfit("id", rule, beyond)]
    else:
        assert read(path, study, unit="id") == [[1, 2, 3, 4, 5, 6]]


@formats
@pytest.mark.parametrize("blank", [None, "", "  "])
def test_a_row_of_nobody_is_not_one_of_somebody_else(tmp_path: Path, write: Writer, blank: str | None) -> None:
    """Two rows without a person could be of one: they are refused, however many rows a person may have."""
    path = write(tmp_path, {"id": ["p1", blank, blank, "p2"], "age": [1, 2, 3, 4]})
    assert misfits(path, study_of(4, AGE, max_rows_per_unit=9), unit="id") == [Misfit("id", NO_UNIT, 2)]


@formats
def test_blanks_around_a_name_make_no_other_person(tmp_path: Path, write: Writer) -> None:
    path = write(tmp_path, {"id": ["p1", " p1", "p1 ", "p2"], "age": [1, 2, 3, 4]})
    assert misfits(path, study_of(4, AGE), unit="id") == [Misfit("id", REPEATED, 2)]


@pytest.mark.parametrize(
    ("ids", "found"),
    [
        (pa.array([1.5, float("nan"), 1.5, None]), [Misfit("id", REPEATED, 1), Misfit("id", NO_UNIT, 2)]),
        (pa.array([7, 8, 7, 9], pa.int64()), [Misfit("id", REPEATED, 1)]),
        (pa.array([[1], [2], [1], [3]]), [Misfit("id", NO_UNIT, 4)]),
    ],
    ids=["reals", "integers", "lists, which name nobody"],
)
def test_units_of_other_types(tmp_path: Path, ids: pa.Array, found: list[Misfit]) -> None:
    pa.parquet.write_table(pa.table({"id": ids, "age": [1, 2, 3, 4]}), tmp_path / "table.parquet")
    assert misfits(tmp_path / "table.parquet", study_of(4, AGE), unit="id") == found
