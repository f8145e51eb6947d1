"""Files that must be there after a crash of the machine, and files that only their owner may read."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from synod.common.runtime.errors import invalid


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """An error in the block names the file: a full disk is met when bytes are written, and says no name then."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def write_private_file(path: Path, data: bytes) -> None:
    """Creates a file that only its owner may read; durable, whole or not at all, and never over another."""
    with new_private_file(path) as file:
        file.write(data)


@contextmanager
def new_private_file(path: Path) -> Iterator[BinaryIO]:
    """The same for what is written in parts: the file is there once the block has ended well."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f"{path.name}.draft")
    draft.unlink(missing_ok=True)
    try:
        with naming(path), os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _publish(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(path.parent)


def _publish(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)
    except FileExistsError:
        raise invalid(f"{path} is there already.", "Move it away first if it is no longer needed.") from None


def erase_file(path: Path) -> None:
    """Removes a file that held a secret; one that is not there is fine.

    Guarantee: its bytes are overwritten with zeros, on disk, before its name goes. What a disk or a file system keeps
    elsewhere (spare cells, snapshots, backups) is not reached.
    """
    try:
        with path.open("r+b") as file:
            file.write(bytes(os.fstat(file.fileno()).st_size))
            file.flush()
            os.fsync(file.fileno())
    except FileNotFoundError:
        return
    path.unlink()
    sync_folder(path.parent)


def write_public_file(path: Path, data: bytes) -> None:
    """Durable, and whole or not at all: a daemon may read the file at any moment, and the machine may stop."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.draft")
    with naming(path), draft.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync_folder(path.parent)


def write_new_file(path: Path, data: bytes) -> None:
    """A file for others to read; never over another."""
    try:
        with naming(path), path.open("xb") as file:
            file.write(data)
    except FileExistsError:
        raise invalid(f"{path} is there already.", "Name another file.") from None


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_files(folder: Path) -> None:
    """Makes every file of a folder durable, and the folder."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
    sync_folder(folder)
