"""The snapshot: the encoded table as it was approved, kept for the owner alone until the study ends.

Answers are computed from it, never from the table. Its digest is in the ledger under the ledger's secret, so a snapshot
that has changed is refused. Files have bit planes (planes.py beside it); the digest is of the codes, however kept.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from synod.common.crypto.canonical import canonical_bytes
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.files import sync_files, sync_folder
from synod.common.study.encoding import CodeColumn, Codes
from synod.common.study.study import Study
from synod.party.table.planes import PlaneColumn, parts_of, write_planes

ROWS_FILE = "rows.npy"


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """An encoded table as it was read: one array of codes for each attribute, in the schema's order."""

    columns: tuple[Codes, ...]

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return len(self.columns[0])

    def digest(self) -> bytes:
        """SHA-256 over the shape and every code."""
        return digest_codes(self.columns)


@dataclass(frozen=True, slots=True, eq=False)
class KeptSnapshot:
    """An encoded table as it is kept: columns that are read in slices, so that no more of it is in memory."""

    columns: tuple[PlaneColumn, ...]

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return len(self.columns[0])

    def digest(self) -> bytes:
        """SHA-256 over the shape and every code: that of the snapshot that was saved."""
        return digest_codes(self.columns)

    def files(self) -> Iterator[tuple[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]]]:
        """What it is kept in: the names of array files, and their arrays."""
        yield ROWS_FILE, np.array(self.rows, dtype=np.int64)
        for index, column in enumerate(self.columns):
            yield _name(index), column.planes


def digest_codes(columns: Sequence[CodeColumn]) -> bytes:
    """SHA-256 over the shape and every code."""
    header = canonical_bytes([[column.dtype.str, len(column)] for column in columns])
    running = hashlib.sha256(len(header).to_bytes(8, "big") + header)
    for column in columns:
        for part in parts_of(column):
            running.update(np.ascontiguousarray(part).data)
    return running.digest()


def save_snapshot(folder: Path, snapshot: Snapshot) -> None:
    """Writes the columns for the owner alone, durably; a folder left by a crash is replaced."""
    try:
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True, mode=0o700)
        np.save(folder / ROWS_FILE, np.array(snapshot.rows, dtype=np.int64), allow_pickle=False)
        for index, column in enumerate(snapshot.columns):
            with (folder / _name(index)).open("wb") as file:
                write_planes(file, column)
        sync_files(folder)
        sync_folder(folder.parent)
    except OSError as error:
        drop_snapshot(folder)
        raise SynodError(
            Code.STORAGE,
            f"the snapshot of the table cannot be kept ({type(error).__name__}).",
            "Check free disk space, the volume and its permissions; nothing was spent.",
        ) from None


def load_snapshot(folder: Path, study: Study, sealed: bytes, *, seal: Callable[[bytes], bytes]) -> KeptSnapshot:
    """Maps the columns back, and refuses them if they are not what was approved; the study then waits, others go on."""
    try:
        rows = int(np.load(folder / ROWS_FILE, allow_pickle=False)[()])
        names = [folder / _name(index) for index in range(len(study.attributes))]
        planes = (np.load(name, mmap_mode="r", allow_pickle=False) for name in names)
        snapshot = KeptSnapshot(tuple(PlaneColumn(lines, rows) for lines in planes))
    except (OSError, ValueError, TypeError, EOFError):
        raise SynodError(
            Code.NOT_READY,
            "the snapshot of the approved table is gone.",
            "Restore it from a backup, or revoke the study.",
        ) from None
    if seal(snapshot.digest()) != sealed:
        raise SynodError(
            Code.NOT_READY,
            "the snapshot is not the table that was approved.",
            "Restore it, or revoke the study.",
        )
    return snapshot


def _name(index: int) -> str:
    return f"{index:04}.npy"


def drop_snapshot(folder: Path) -> None:
    """Removes a snapshot that is no longer needed."""
    shutil.rmtree(folder, ignore_errors=True)
