"""A folder of Parquet files, or a pattern, as one table: the order of rows, what must agree, what changes meanwhile."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from synod.party.table.marks import mark_source
from synod.party.table.snapshot import Snapshot
from synod.party.table.source import count_rows, open_batches
from tests.support.sources import AGE, COLOUR, SECRET, misfits, read, refusal, study_of


def put(path: Path, **columns: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pa.parquet.write_table(pa.table(columns), path)
    return path


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Written in another order than that of the names."""
    made = tmp_path / "lake"
    put(made / "b.parquet", age=[3, 4])
    put(made / "a" / "z.parquet", age=[1])
    put(made / "c.parquet", age=[5])
    put(made / "a" / "a.parquet", age=[0])
    (made / "_SUCCESS").touch()
    put(made / "_temporary" / "x.parquet", age=[9])
    put(made / ".hidden.parquet", age=[9])
    return made


def test_rows_follow_the_order_of_the_paths(lake: Path) -> None:
    assert read(lake, study_of(5, AGE)) == [[0, 1, 3, 4, 5]]
    assert count_rows(lake) == 5


def test_a_pattern_is_the_files_that_it_matches(lake: Path) -> None:
    assert read(lake / "[bc].parquet", study_of(3, AGE)) == [[3, 4, 5]]
    assert read(lake / "**" / "a.parquet", study_of(1, AGE)) == [[0]]
    assert read(lake / "**" / "*.parquet", study_of(5, AGE)) == [[0, 1, 3, 4, 5]]


def test_a_folder_that_is_named_is_no_hidden_one(lake: Path) -> None:
    assert read(lake / "_temporary" / "*.parquet", study_of(1, AGE)) == [[9]]


def test_a_file_that_is_named_like_a_pattern_is_that_file(tmp_path: Path) -> None:
    put(tmp_path / "a1.parquet", age=[1])
    assert read(put(tmp_path / "a[1].parquet", age=[2]), study_of(1, AGE)) == [[2]]


def test_nothing_there(lake: Path) -> None:
    (lake.parent / "empty").mkdir()
    for source in (lake.parent / "empty", lake / "none-*.parquet"):
        assert "there is no table" in str(refusal(source, study_of(1, AGE)))
    (lake / "notes.txt").write_text(SECRET)
    assert "notes.txt of" in str(refusal(lake / "*", study_of(1, AGE)))


def test_files_that_differ_are_refused(lake: Path) -> None:
    put(lake / "d.parquet", age=["6"])
    assert "differ in the type of 'age'" in str(refusal(lake, study_of(6, AGE)))
    put(lake / "d.parquet", age=[6], colour=["red"])
    assert "a.parquet and d.parquet are files of one table, and differ in the column 'colour'" in str(
        refusal(lake, study_of(6, AGE))
    )
    put(lake / "d.parquet", colour=["red"])
    assert "differ in the column 'age'" in str(refusal(lake, study_of(6, AGE)))


def test_columns_may_be_in_another_order(tmp_path: Path) -> None:
    put(tmp_path / "a.parquet", age=[1], colour=["red"])
    put(tmp_path / "b.parquet", colour=["blue"], age=[2])
    assert read(tmp_path, study_of(2, AGE, COLOUR)) == [[1, 2], [0, 2]]


def test_misfits_and_missing_columns_are_told_as_of_a_file(lake: Path) -> None:
    put(lake / "d.parquet", age=[257])
    assert [(one.column, one.rows) for one in misfits(lake, study_of(6, AGE))] == [("age", 1)]
    assert "lake has no column 'colour'" in str(refusal(lake, study_of(6, AGE, COLOUR)))


def test_a_broken_file_of_it_ends_in_a_sentence(lake: Path) -> None:
    (lake / "d.parquet").write_text(SECRET)
    assert "lake cannot be read as a PARQUET table" in str(refusal(lake, study_of(6, AGE)))


def come(lake: Path) -> None:
    put(lake / "late.parquet", age=[6])


def go(lake: Path) -> None:
    (lake / "a" / "a.parquet").unlink()


def change(lake: Path) -> None:
    put(lake / "a" / "a.parquet", age=[7])


@pytest.mark.parametrize("happens", [come, go, change])
def test_a_folder_that_changes_while_it_is_read_is_refused(
    lake: Path, monkeypatch: pytest.MonkeyPatch, happens: Any
) -> None:
    """What was read is no state that the table ever had."""
    opened = pa.parquet.ParquetFile

    def open_and_change(path: Path, **how: Any) -> Any:
        if path.name == "c.parquet":
            happens(lake)
        return opened(path, **how)

    monkeypatch.setattr(pa.parquet, "ParquetFile", open_and_change)
    assert "changed while they were read" in str(refusal(lake, study_of(5, AGE)))


def test_batches_have_a_bounded_size(lake: Path) -> None:
    put(lake / "b.parquet", age=[1] * 100_000)
    assert max(map(len, rows_of(lake))) <= 65_536


def rows_of(lake: Path) -> Iterator[pa.RecordBatch]:
    return open_batches(lake, ["age"])


def test_marks_know_a_folder_that_was_moved_or_changed(lake: Path) -> None:
    snapshot = Snapshot(())
    place, content, rows = mark_source(lake, snapshot)
    moved = lake.rename(lake.with_name("moved"))
    elsewhere, same, _ = mark_source(moved, snapshot)
    assert (elsewhere != place, same == content) == (True, True)
    change(moved)
    assert mark_source(moved, snapshot)[1] != content
    assert mark_source(moved, snapshot)[0] == elsewhere
    assert mark_source(moved, snapshot)[2] == rows
