"""The reader of rows: what fits is encoded; what does not is told by column, rule and count, and by nothing else."""

import datetime
import decimal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from synod.common.runtime.errors import Code, SynodError
from synod.common.study.study import Study
from synod.party.table import source as dataset
from synod.party.table.source import Misfit, TableError, count_rows, load_snapshot, read_table, save_snapshot
from tests.support.studies import categorical, integer, make_study, real

SECRET = "Zachariah"  # a value that must never stand in an error
NOT_WHOLE = "not a whole number"
NOT_NUMBER = "not a number"
OUTSIDE = "outside the domain"
MISSING = "missing, but not nullable"
COUNT = "the row count is not the roster's"
REPEATED = "the unit of privacy stands in more than one row"
NO_UNIT = "the unit of privacy is missing"

COLOUR = categorical("colour", ("red", "green", "blue"))
AGE = integer("age", 0, 256)
MASS = real("mass", "-1", "1")


def study_of(rows: int, *schema: dict[str, Any]) -> Study:
    return make_study(rows=(rows, 5, 5), schema=schema or (COLOUR, AGE, MASS))


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
    snapshot = read_table(source, study, unit=unit, expected_rows=study.roster[0].rows)
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
def test_all_findings_come_together(tmp_path: Path, write: Writer) -> None:
    path = write(tmp_path, {"colour": [SECRET, None, "red", "x"], "age": [1000, None, None, 7], "id": [1, 1, 2, None]})
    found = misfits(path, study_of(3, COLOUR, AGE), unit="id")
    assert found == [
        Misfit("(rows)", COUNT, 4),
        Misfit("age", MISSING, 2),
        Misfit("age", OUTSIDE, 1),
        Misfit("colour", MISSING, 1),
        Misfit("colour", OUTSIDE, 2),
        Misfit("id", NO_UNIT, 1),
        Misfit("id", REPEATED, 1),
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


@formats
def test_a_missing_column_is_named(tmp_path: Path, write: Writer) -> None:
    path = write(tmp_path, {"age": [1, 2]})
    assert "has no column 'mass'." in str(refusal(path, study_of(2, AGE, MASS)))
    assert "has no column 'colour' and 1 others" in str(refusal(path, study_of(2)))
    assert "has no column 'id'." in str(refusal(path, study_of(2, AGE), unit="id"))


def test_a_column_that_stands_twice(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(f"age,{COLOUR['name']},age\n1,red,{SECRET}\n")
    assert "the column age stands twice" in str(refusal(tmp_path / "table.csv", study_of(1, AGE)))
    twice = pa.table([pa.array([1]), pa.array([2])], names=["age", "age"])
    pa.parquet.write_table(twice, tmp_path / "table.parquet")
    assert "the column age stands twice" in str(refusal(tmp_path / "table.parquet", study_of(1, AGE)))


BROKEN: dict[str, bytes] = {
    "empty": b"",
    "blank": b"\n\n",
    "long row": f"age,colour\n1,red\n2,red,{SECRET}\n".encode(),
    "short row": f"age,colour\n1,red\n{SECRET}\n".encode(),
    "not UTF-8": b"age,colour\n1,red\n2,bl\xffue\n",
    "header not UTF-8": b"age,col\xffour\n1,red\n",
    "UTF-16": "age,colour\n1,red\n".encode("utf-16"),
    "binary": bytes(range(256)) * 8,
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_csv_ends_in_a_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "table.csv").write_bytes(content)
    refusal(tmp_path / "table.csv", study_of(2, AGE, COLOUR))


def test_a_row_that_breaks_late_is_refused_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "BATCH_BYTES", 4096)
    (tmp_path / "table.csv").write_text("age,colour\n" + "1,red\n" * 5_000 + f"1,red,{SECRET}\n")
    refusal(tmp_path / "table.csv", study_of(5_000, AGE, COLOUR))


@pytest.mark.parametrize("damage", ["cut", "flip", "text"])
def test_a_broken_parquet_ends_in_a_sentence(tmp_path: Path, damage: str) -> None:
    path = write_parquet(tmp_path, {"age": list(range(100)), "colour": [SECRET] * 100})
    whole = path.read_bytes()
    broken = {"cut": whole[:-20], "flip": whole[:4] + bytes(200) + whole[204:], "text": b"age\n1\n"}[damage]
    path.write_bytes(broken)
    refusal(path, study_of(100, AGE, COLOUR))


def test_no_table_and_other_kinds_of_file(tmp_path: Path) -> None:
    assert "there is no table" in str(refusal(tmp_path / "none.csv", study_of(1, AGE)))
    assert "there is no table" in str(refusal(tmp_path, study_of(1, AGE)))
    (tmp_path / "table.xlsx").write_text("age\n1\n")
    assert "neither .csv nor .parquet" in str(refusal(tmp_path / "table.xlsx", study_of(1, AGE)))


def test_csv_quotes_and_commas_in_categories(tmp_path: Path) -> None:
    schema = categorical("a, b", ("x,y", 'say "x"', "plain"))
    (tmp_path / "table.csv").write_text('"a, b"\n"x,y"\n"say ""x"""\nplain\n"plain"\n')
    assert read(tmp_path / "table.csv", study_of(4, schema)) == [[0, 1, 2, 2]]


def test_csv_texts_that_look_like_numbers_or_nulls_stay_texts(tmp_path: Path) -> None:
    schema = categorical("code", ("01", "1", "NA", "null", "true", "1.0"))
    path = write_csv(tmp_path, {"code": ["1", "01", "NA", "null", "true", "1.0"]})
    assert read(path, study_of(6, schema)) == [[1, 0, 2, 3, 4, 5]]


def test_a_byte_order_mark_is_no_part_of_the_header(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_bytes(b"\xef\xbb\xbfage\n7\n")
    assert read(tmp_path / "table.csv", study_of(1, AGE)) == [[7]]


# Types that only Parquet has


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
    schema = categorical("x", categories, nullable=True)
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


# The unit of privacy


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
    assert found == [Misfit("id", NO_UNIT, 1), Misfit("id", REPEATED, 1)]


def test_units_that_repeat_in_another_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "BATCH_ROWS", 4)
    path = write_parquet(tmp_path, {"id": [*range(9), 0], "age": [1] * 10})
    assert misfits(path, study_of(10, AGE), unit="id") == [Misfit("id", REPEATED, 1)]


# Batches


@pytest.mark.parametrize("rows", [7, 8, 9, 16, 17])
def test_batches_follow_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(dataset, "BATCH_ROWS", 8)
    path = write_parquet(tmp_path, {"age": list(range(rows))})
    assert read(path, study_of(rows, AGE)) == [list(range(rows))]


def test_the_real_batch_boundary(tmp_path: Path) -> None:
    rows = 2 * dataset.BATCH_ROWS + 3
    values = np.arange(rows) % 257
    path = write_parquet(tmp_path, {"age": values.tolist()})
    assert read(path, study_of(rows, AGE)) == [values.tolist()]


def test_counts_add_up_over_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "BATCH_ROWS", 3)
    path = write_parquet(tmp_path, {"age": [999, 1, 2, 999, 3, None, None, 999]})
    assert misfits(path, study_of(8, AGE)) == [Misfit("age", MISSING, 2), Misfit("age", OUTSIDE, 3)]


def test_csv_batches_follow_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "BATCH_BYTES", 1024)
    values = [i % 257 for i in range(5_000)]
    assert read(write_csv(tmp_path, {"age": values}), study_of(5_000, AGE)) == [values]


@formats
def test_count_rows(tmp_path: Path, write: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "BATCH_ROWS", 3)
    assert count_rows(write(tmp_path, {"age": [1, 2, 3, 4], "x": ["a"] * 4})) == 4


# Snapshots


def make_snapshot(columns: Sequence[Sequence[int]], dtypes: str = "BB") -> dataset.Snapshot:
    arrays = [np.array(column, dtype=dtype) for column, dtype in zip(columns, dtypes, strict=True)]
    return dataset.Snapshot(tuple(arrays))


def test_a_snapshot_comes_back(tmp_path: Path) -> None:
    snapshot = make_snapshot([[0, 1, 2], [200, 100, 0]])
    save_snapshot(tmp_path / "s", snapshot)
    study = study_of(3, COLOUR, AGE)
    back = load_snapshot(tmp_path / "s", study, snapshot.digest(), seal=bytes)
    assert [column.tolist() for column in back.columns] == [[0, 1, 2], [200, 100, 0]]
    assert back.rows == 3
    assert (tmp_path / "s").stat().st_mode & 0o077 == 0


def test_saving_replaces_what_a_crash_left(tmp_path: Path) -> None:
    save_snapshot(tmp_path / "s", make_snapshot([[9], [9], [9]], "BBB"))
    snapshot = make_snapshot([[1], [2]])
    save_snapshot(tmp_path / "s", snapshot)
    assert sorted(path.name for path in (tmp_path / "s").iterdir()) == ["0000.npy", "0001.npy"]
    load_snapshot(tmp_path / "s", study_of(1, COLOUR, AGE), snapshot.digest(), seal=bytes)


def test_the_digest_tells_tables_apart() -> None:
    tables = [
        make_snapshot([[0, 1], [2, 3]]),
        make_snapshot([[0, 1], [3, 2]]),
        make_snapshot([[2, 3], [0, 1]]),
        make_snapshot([[0, 1, 2], [3]]),
        make_snapshot([[0, 1, 2, 3], []]),
        make_snapshot([[0, 1, 2, 3]], "B"),
        make_snapshot([[0, 1], [2, 3]], "BH"),
    ]
    assert len({table.digest() for table in tables}) == len(tables)
    assert make_snapshot([[0, 1], [2, 3]]).digest() == tables[0].digest()


def test_the_digest_does_not_depend_on_memory_order() -> None:
    column = np.arange(20, dtype=np.uint8)[::2]
    assert dataset.Snapshot((column,)).digest() == dataset.Snapshot((column.copy(),)).digest()


@pytest.mark.parametrize("damage", ["value", "gone", "empty", "cut", "junk", "folder", "swap"])
def test_a_tampered_snapshot_is_refused(tmp_path: Path, damage: str) -> None:
    snapshot = make_snapshot([[0, 1, 2], [1, 2, 0]])
    folder = tmp_path / "s"
    save_snapshot(folder, snapshot)
    file = folder / "0001.npy"
    match damage:
        case "value":
            np.save(file, np.array([1, 2, 1], dtype=np.uint8))
        case "gone":
            file.unlink()
        case "empty":
            file.write_bytes(b"")
        case "cut":
            file.write_bytes(file.read_bytes()[:-1])
        case "junk":
            file.write_bytes(b"\x80\x04K\x01.")
        case "folder":
            dataset.drop_snapshot(folder)
        case "swap":
            file.write_bytes((folder / "0000.npy").read_bytes())
    with pytest.raises(SynodError, match="snapshot") as caught:
        load_snapshot(folder, study_of(3, COLOUR, AGE), snapshot.digest(), seal=bytes)
    assert caught.value.code is Code.NOT_READY


def test_a_snapshot_needs_no_table_any_more(tmp_path: Path) -> None:
    path = write_csv(tmp_path, {"age": [3, 2, 1]})
    study = study_of(3, AGE)
    snapshot = read_table(path, study, unit=None, expected_rows=3)
    save_snapshot(tmp_path / "s", snapshot)
    write_csv(tmp_path, {"age": [5, 5, 5]})
    back = load_snapshot(tmp_path / "s", study, snapshot.digest(), seal=bytes)
    assert [column.tolist() for column in back.columns] == [[3, 2, 1]]
