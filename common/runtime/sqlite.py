"""Durable SQLite: write-ahead log, full sync, a schema version, and errors that say what the operator can do.

Both the party's ledger and the curator's store are built on it; what they keep is their own affair. A schema is a list
of migrations: the first one makes the tables, each later one changes them, and none is edited once it is published.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from synod.common.runtime.errors import Code, SynodError

BUSY_SECONDS = 30
KINDS = {
    "SQLITE_FULL": "the disk is full",
    "SQLITE_READONLY": "it may not be written",
    "SQLITE_CANTOPEN": "it cannot be opened",
    "SQLITE_BUSY": "another process holds it",
}
"""What SQLite calls its troubles, for people."""


def open_database(
    path: Path, *, create: bool, migrations: Sequence[str], overwrites: bool = False
) -> sqlite3.Connection:
    """Opens a database whose commits survive a crash of the process and of the machine, and brings its schema up to
    date. Migration i, statements that each end with a semicolon, leads from schema version i to i + 1.

    Guarantee: with `overwrites`, what this connection deletes is overwritten with zeros in the pages of the database;
    copies in the write-ahead log are gone after `empty_log`.
    """
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
    try:
        with storage_errors(path):
            _check_version(connection, path, create=create, newest=len(migrations))
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            if overwrites:
                connection.execute("PRAGMA secure_delete = ON")
            for version in range(_schema_version(connection), len(migrations)):
                _migrate(connection, version, migrations[version])
    except BaseException:
        connection.close()
        raise
    return connection


def _schema_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _check_version(connection: sqlite3.Connection, path: Path, *, create: bool, newest: int) -> None:
    """Refuses a schema that this version does not know, before anything is written."""
    version = _schema_version(connection)
    if version > newest:
        raise SynodError(
            Code.STORAGE,
            f"the database at {path} is from a newer version of Synod (schema {version}; this one knows {newest}).",
            "Update Synod; the database was not changed.",
        )
    if version == 0 and (not create or connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()):
        raise SynodError(
            Code.STORAGE,
            f"the database at {path} has no schema version: it is empty, or from before Synod 0.1.",
            "Restore it from a backup, or move it away and start with a new one; it was not changed.",
        )


def _migrate(connection: sqlite3.Connection, version: int, migration: str) -> None:
    with transaction(connection):
        if _schema_version(connection) == version:  # read under the lock: another process may have been faster
            for statement in migration.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {version + 1}")


def empty_log(connection: sqlite3.Connection) -> bool:
    """Moves all commits from the write-ahead log into the database and cuts the log to nothing, so that no older copy
    of a page is left in it; False where another process reads, and it has to be tried again.
    """
    with storage_errors(connection):
        ((is_busy, _, _),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return not is_busy


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing, and on disk before it returns."""
    with storage_errors(connection):
        connection.execute("BEGIN IMMEDIATE")
    try:
        with storage_errors(connection):
            yield
            connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def storage_errors(database: Path | sqlite3.Connection | None) -> Iterator[None]:
    """Turns what SQLite and the file system raise into one readable sentence, which names the file."""
    try:
        yield
    except sqlite3.IntegrityError:
        raise
    except (sqlite3.Error, OSError) as error:
        path = _file_of(database) if isinstance(database, sqlite3.Connection) else database
        where = f" at {path}" if path else ""
        kind = getattr(error, "sqlite_errorname", type(error).__name__)
        told = f"{kind}: {KINDS[kind]}" if kind in KINDS else kind
        raise SynodError(
            Code.STORAGE,
            f"the database{where} cannot be used ({told}).",
            "Check free disk space, the volume and its permissions; nothing was spent.",
        ) from error


def _file_of(connection: sqlite3.Connection) -> Path | None:
    """The file of a database; None where it is in memory, or cannot even say that."""
    try:
        names = [name for _, which, name in connection.execute("PRAGMA database_list") if which == "main" and name]
    except sqlite3.Error:
        return None
    return Path(names[0]) if names else None
