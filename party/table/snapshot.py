"""The snapshot: the encoded table as it was approved, kept for the owner alone until the study ends.

Answers are computed from it, never from the table. Its digest is in the ledger under the ledger's secret, so a snapshot
that has changed is refused.
"""

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from synod.common.crypto.canonical import canonical_bytes
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.files import sync_files, sync_folder
from synod.common.study.encoding import Codes
from synod.common.study.study import Study


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """An encoded table: one array of codes for each attribute, in the schema's order."""

    columns: tuple[Codes, ...]

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return len(self.columns[0])

    def digest(self) -> bytes:
        """SHA-256 over the shape and every code."""
        header = canonical_bytes([[column.dtype.str, len(column)] for column in self.columns])
        running = hashlib.sha256(len(header).to_bytes(8, "big") + header)
        for column in self.columns:
            running.update(np.ascontiguousarray(column).data)
        return running.digest()


def save_snapshot(folder: Path, snapshot: Snapshot) -> None:
    """Writes the columns for the owner alone, durably; a folder left by a crash is replaced."""
    try:
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True, mode=0o700)
        for index, column in enumerate(snapshot.columns):
            np.save(folder / f"{index:04}.npy", column, allow_pickle=False)
        sync_files(folder)
        sync_folder(folder.parent)
    except OSError as error:
        drop_snapshot(folder)
        raise SynodError(
            Code.STORAGE,
            f"the snapshot of the table cannot be kept ({type(error).__name__}).",
            "Check free disk space, the volume and its permissions; nothing was spent.",
        ) from None


def load_snapshot(folder: Path, study: Study, sealed: bytes, *, seal: Callable[[bytes], bytes]) -> Snapshot:
    """Maps the columns back, and refuses them if they are not what was approved; the study then waits, others go on."""
    try:
        names = [folder / f"{index:04}.npy" for index in range(len(study.attributes))]
        snapshot = Snapshot(tuple(np.load(name, mmap_mode="r", allow_pickle=False) for name in names))
    except (OSError, ValueError, EOFError):
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


def drop_snapshot(folder: Path) -> None:
    """Removes a snapshot that is no longer needed."""
    shutil.rmtree(folder, ignore_errors=True)
