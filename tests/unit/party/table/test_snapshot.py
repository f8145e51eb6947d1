"""The snapshot: what was approved comes back, and anything else is refused."""

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from synod.common.runtime.errors import Code, SynodError
from synod.common.study.encoding import codings_of
from synod.party.table.encode import read_table
from synod.party.table.snapshot import Snapshot, drop_snapshot, load_snapshot, save_snapshot
from tests.support.sources import AGE, COLOUR, study_of, write_csv


def make_snapshot(columns: Sequence[Sequence[int]], dtypes: str = "BB") -> Snapshot:
    arrays = [np.array(column, dtype=dtype) for column, dtype in zip(columns, dtypes, strict=True)]
    return Snapshot(tuple(arrays))


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
    assert sorted(path.name for path in (tmp_path / "s").iterdir()) == ["0000.npy", "0001.npy", "rows.npy"]
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
    assert Snapshot((column,)).digest() == Snapshot((column.copy(),)).digest()


def array_file(array: object) -> bytes:
    file = io.BytesIO()
    np.save(file, np.asarray(array))
    return file.getvalue()


PLANES = [[0b01000000], [0b10000000]]  # of the codes 1, 2, 0
DAMAGES: dict[str, tuple[str, bytes | None]] = {
    "value": ("0001.npy", array_file(np.array([[0b01100000], [0b10000000]], dtype=np.uint8))),
    "codes in place of planes": ("0001.npy", array_file(np.array([1, 2, 0], dtype=np.uint8))),
    "planes of another type": ("0001.npy", array_file(np.array(PLANES, dtype=np.int64))),
    "planes of more rows": ("0001.npy", array_file(np.array([[64, 0], [128, 0]], dtype=np.uint8))),
    "too many planes": ("0001.npy", array_file(np.zeros((33, 1), dtype=np.uint8))),
    "no planes": ("0001.npy", array_file(np.zeros((0, 1), dtype=np.uint8))),
    "gone": ("0001.npy", None),
    "empty": ("0001.npy", b""),
    "cut": ("0001.npy", array_file(np.array(PLANES, dtype=np.uint8))[:-1]),
    "junk": ("0001.npy", b"\x80\x04K\x01."),
    "swap": ("0001.npy", array_file(np.array([[0b00100000], [0b01000000]], dtype=np.uint8))),
    "no rows": ("rows.npy", None),
    "fewer rows": ("rows.npy", array_file(2)),
    "negative rows": ("rows.npy", array_file(-3)),
    "rows that are no number": ("rows.npy", array_file([3, 3])),
}


def test_the_planes_of_these_tests_are_those_of_the_snapshot(tmp_path: Path) -> None:
    save_snapshot(tmp_path / "s", make_snapshot([[0, 1, 2], [1, 2, 0]]))
    assert np.load(tmp_path / "s" / "0001.npy").tolist() == PLANES


@pytest.mark.parametrize(("name", "content"), DAMAGES.values(), ids=DAMAGES)
def test_a_tampered_snapshot_is_refused(tmp_path: Path, name: str, content: bytes | None) -> None:
    snapshot = make_snapshot([[0, 1, 2], [1, 2, 0]])
    save_snapshot(tmp_path / "s", snapshot)
    file = tmp_path / "s" / name
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    with pytest.raises(SynodError, match="snapshot") as caught:
        load_snapshot(tmp_path / "s", study_of(3, COLOUR, AGE), snapshot.digest(), seal=bytes)
    assert caught.value.code is Code.NOT_READY


def test_a_snapshot_without_its_folder_is_refused(tmp_path: Path) -> None:
    snapshot, folder = make_snapshot([[0, 1, 2], [1, 2, 0]]), tmp_path / "s"
    save_snapshot(folder, snapshot)
    drop_snapshot(folder)
    with pytest.raises(SynodError, match="snapshot") as caught:
        load_snapshot(folder, study_of(3, COLOUR, AGE), snapshot.digest(), seal=bytes)
    assert caught.value.code is Code.NOT_READY


def test_a_snapshot_needs_no_table_any_more(tmp_path: Path) -> None:
    path = write_csv(tmp_path, {"age": [3, 2, 1]})
    study = study_of(3, AGE)
    snapshot = read_table(path, codings_of(study), unit=None, expected_rows=3)
    save_snapshot(tmp_path / "s", snapshot)
    write_csv(tmp_path, {"age": [5, 5, 5]})
    back = load_snapshot(tmp_path / "s", study, snapshot.digest(), seal=bytes)
    assert [column.tolist() for column in back.columns] == [[3, 2, 1]]
