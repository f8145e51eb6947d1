"""Opening a table: header, batches and row count; what cannot be read ends in a sentence without its content."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from synod.common.runtime.errors import SynodError
from synod.party.table import csv_source
from synod.party.table import source as opening
from synod.party.table.source import count_rows
from tests.support.sources import (
    AGE,
    COLOUR,
    MASS,
    SECRET,
    Writer,
    formats,
    read,
    refusal,
    study_of,
    write_csv,
    write_parquet,
)


@formats
def test_a_missing_column_is_named(tmp_path: Path, write: Writer) -> None:
    path = write(tmp_path, {"age": [1, 2]})
    assert "has no column 'mass'." in str(refusal(path, study_of(2, AGE, MASS)))
    assert "has no column 'colour' and 1 others" in str(refusal(path, study_of(2)))
    assert "has no column 'id'." in str(refusal(path, study_of(2, AGE), unit="id"))


def test_a_column_that_appears_twice(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(f"age,{COLOUR['name']},age\n1,red,{SECRET}\n")
    assert "the column age appears twice" in str(refusal(tmp_path / "table.csv", study_of(1, AGE)))
    twice = pa.table([pa.array([1]), pa.array([2])], names=["age", "age"])
    pa.parquet.write_table(twice, tmp_path / "table.parquet")
    assert "the column age appears twice" in str(refusal(tmp_path / "table.parquet", study_of(1, AGE)))


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
    monkeypatch.setattr(csv_source, "BATCH_BYTES", 4096)
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


def test_a_byte_order_mark_is_no_part_of_the_header(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_bytes(b"\xef\xbb\xbfage\n7\n")
    assert read(tmp_path / "table.csv", study_of(1, AGE)) == [[7]]


@pytest.mark.parametrize("rows", [7, 8, 9, 16, 17])
def test_batches_follow_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(opening, "BATCH_ROWS", 8)
    path = write_parquet(tmp_path, {"age": list(range(rows))})
    assert read(path, study_of(rows, AGE)) == [list(range(rows))]


def test_the_real_batch_boundary(tmp_path: Path) -> None:
    rows = 2 * opening.BATCH_ROWS + 3
    values = np.arange(rows) % 257
    path = write_parquet(tmp_path, {"age": values.tolist()})
    assert read(path, study_of(rows, AGE)) == [values.tolist()]


def test_csv_batches_follow_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_source, "BATCH_BYTES", 1024)
    values = [i % 257 for i in range(5_000)]
    assert read(write_csv(tmp_path, {"age": values}), study_of(5_000, AGE)) == [values]


@formats
def test_count_rows(tmp_path: Path, write: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "BATCH_ROWS", 3)
    assert count_rows(write(tmp_path, {"age": [1, 2, 3, 4], "x": ["a"] * 4})) == 4


def test_too_many_columns_are_refused_before_arrow_sees_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many, most = tmp_path / "many.csv", tmp_path / "most.csv"
    many.write_text(",".join(f"c{i}" for i in range(10_001)) + "\n")
    most.write_text(",".join(f"c{i}" for i in range(10_000)) + "\n")
    assert len(opening.read_header(most)) == 10_000
    pa.parquet.write_table(pa.table({f"c{i}": [1] for i in range(10_001)}), tmp_path / "many.parquet")
    with pytest.raises(SynodError, match=r"many.parquet has more than 10,000 columns"):
        opening.read_header(tmp_path / "many.parquet")
    monkeypatch.setattr(pa.csv, "open_csv", None)
    with pytest.raises(SynodError, match=r"many.csv has more than 10,000 columns"):
        opening.read_header(many)


def test_a_header_of_one_name_many_times_is_looked_at_once(tmp_path: Path) -> None:
    path = tmp_path / "same.csv"
    path.write_text("a," * 9_999 + "a\n")
    with pytest.raises(SynodError, match="the column a appears twice"):
        opening.read_header(path)
