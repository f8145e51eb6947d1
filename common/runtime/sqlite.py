"""Durable SQLite: write-ahead log, full sync, and errors that say what the operator can do.

Both the party's ledger and the curator's store stand on it; what they keep is their own affair.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from synod.common.runtime.errors import Code, SynodError

BUSY_SECONDS = 30


def open_database(path: Path, *, create: bool) -> sqlite3.Connection:
    """Opens a database whose commits survive a crash of the process and of the machine."""
    with storage_errors(path):
        if create:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)
        connection = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode=rw",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing, and on disk before it returns."""
    with storage_errors(None):
        connection.execute("BEGIN IMMEDIATE")
    try:
        with storage_errors(None):
            yield
            connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def storage_errors(path: Path | None) -> Iterator[None]:
    """Turns what SQLite and the file system raise into one readable sentence."""
    where = f" at {path}" if path else ""
    try:
        yield
    except sqlite3.IntegrityError:
        raise
    except (sqlite3.Error, OSError) as error:
        kind = getattr(error, "sqlite_errorname", type(error).__name__)
        raise SynodError(
            Code.STORAGE,
            f"the database{where} cannot be used ({kind}).",
            "Check free disk space, the volume and its permissions; nothing was spent.",
        ) from error
