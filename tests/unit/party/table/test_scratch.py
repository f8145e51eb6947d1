"""Large tables are read into files without a name: the same codes, nothing left behind, and an error on a full disk."""

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from synod.common.runtime.errors import Code, SynodError
from synod.common.study.encoding import codings_of
from synod.party.table import encode, scratch, source
from synod.party.table.encode import Unit, read_table
from synod.party.table.scratch import make_arrays
from tests.support.sources import AGE, COLOUR, study_of, write_csv, write_parquet

TYPES: list[np.dtype[Any]] = [np.dtype(np.uint8), np.dtype(np.uint16)]


@pytest.fixture
def nothing_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "MOST_HELD_BYTES", 0)


@pytest.mark.usefixtures("nothing_is_held")
def test_arrays_are_zeros_in_files_that_have_no_name(tmp_path: Path) -> None:
    arrays = make_arrays(TYPES, 1000, tmp_path)
    assert [type(array) for array in arrays] == [np.memmap, np.memmap]
    assert [(array.dtype, len(array), int(array.max())) for array in arrays] == [(kind, 1000, 0) for kind in TYPES]
    arrays[1][:] = 77
    assert arrays[1].tolist() == [77] * 1000
    assert list(tmp_path.iterdir()) == []


def test_small_arrays_and_those_without_a_folder_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "MOST_HELD_BYTES", 3000)
    assert not any(isinstance(array, np.memmap) for array in make_arrays(TYPES, 1000, tmp_path))
    assert all(isinstance(array, np.memmap) for array in make_arrays(TYPES, 1001, tmp_path))
    assert not any(isinstance(array, np.memmap) for array in make_arrays(TYPES, 1001, None))


@pytest.mark.usefixtures("nothing_is_held")
def test_a_full_disk_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(SynodError, match="free disk space") as caught:
        make_arrays(TYPES, 10, tmp_path)
    assert caught.value.code is Code.STORAGE


@pytest.mark.usefixtures("nothing_is_held")
def test_a_table_is_the_same_in_files(tmp_path: Path) -> None:
    path = write_csv(tmp_path, {"id": [1, 2, 3], "colour": ["red", "blue", "red"], "age": [3, 256, 0]})
    study, folder = study_of(3, COLOUR, AGE), tmp_path / "state"
    folder.mkdir()
    held = read_table(path, codings_of(study), unit=None, expected_rows=3)
    filed = read_table(path, codings_of(study), unit=Unit("id", 1), expected_rows=3, scratch=folder)
    assert [column.tolist() for column in filed.columns] == [[0, 2, 0], [3, 256, 0]]
    assert filed.digest() == held.digest()
    assert all(isinstance(column, np.memmap) for column in filed.columns)
    assert list(folder.iterdir()) == []


@pytest.mark.usefixtures("nothing_is_held")
def test_what_was_read_is_written_out_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every four rows here, in batches of three: columns and the hashes of units."""
    written: list[int] = []
    monkeypatch.setattr(np.memmap, "flush", lambda array: written.append(array.itemsize))
    monkeypatch.setattr(source, "BATCH_ROWS", 3)
    monkeypatch.setattr(encode, "ROWS_BETWEEN", 4)
    path = write_parquet(tmp_path, {"id": [*range(9)], "colour": ["red"] * 9, "age": [3] * 9})
    study = study_of(9, COLOUR, AGE)
    read_table(path, codings_of(study), unit=Unit("id", 1), expected_rows=9, scratch=tmp_path)
    assert written == [1, 2, 8] * 2
