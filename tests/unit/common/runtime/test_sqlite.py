"""Durable SQLite: settings that survive a crash, all or nothing, and a full disk that leaves nothing behind."""

import sqlite3
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from synod.common.runtime import sqlite as sqlite_module
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.sqlite import open_database, storage_errors, transaction

SCHEMA = ("CREATE TABLE facts (name TEXT PRIMARY KEY, body BLOB);",)
DATA = "data.sqlite"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = open_database(tmp_path / "folder" / DATA, create=True, migrations=SCHEMA)
    yield connection
    connection.close()


def names(connection: sqlite3.Connection) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM facts ORDER BY name")]


def insert(connection: sqlite3.Connection, statements: list[str], error: BaseException | None = None) -> None:
    """All statements in one transaction, which then may go wrong."""
    with transaction(connection):
        for statement in statements:
            connection.execute(statement)
        if error is not None:
            raise error


def pragma(connection: sqlite3.Connection, name: str) -> object:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def test_commits_are_durable(database: sqlite3.Connection) -> None:
    assert pragma(database, "journal_mode") == "wal"
    assert pragma(database, "synchronous") == 2  # FULL
    assert pragma(database, "foreign_keys") == 1


def test_the_file_is_its_owners_alone(database: sqlite3.Connection, tmp_path: Path) -> None:
    with transaction(database):
        database.execute("INSERT INTO facts VALUES ('a', 'x')")
    for path in (tmp_path / "folder").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name


def test_a_transaction_is_kept(database: sqlite3.Connection, tmp_path: Path) -> None:
    with transaction(database):
        database.execute("INSERT INTO facts VALUES ('a', 'x')")
        database.execute("INSERT INTO facts VALUES ('b', 'x')")
    other = open_database(tmp_path / "folder" / DATA, create=False, migrations=SCHEMA)
    assert names(other) == ["a", "b"]
    other.close()


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), SynodError(Code.REFUSED, "No.")])
def test_an_error_inside_takes_everything_back(database: sqlite3.Connection, error: BaseException) -> None:
    with pytest.raises(type(error)):
        insert(database, ["INSERT INTO facts VALUES ('a', 'x')"], error)
    assert names(database) == []
    assert not database.in_transaction
    with transaction(database):
        database.execute("INSERT INTO facts VALUES ('b', 'x')")
    assert names(database) == ["b"]


def test_a_broken_rule_of_the_table_is_not_mistaken_for_a_broken_disk(database: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        insert(database, ["INSERT INTO facts VALUES ('a', 'x')", "INSERT INTO facts VALUES ('a', 'y')"])
    assert names(database) == []


def test_a_full_disk_is_said_and_nothing_is_stored(database: sqlite3.Connection) -> None:
    with transaction(database):
        database.execute("INSERT INTO facts VALUES ('before', 'x')")
    pages = database.execute("PRAGMA page_count").fetchone()[0]
    database.execute(f"PRAGMA max_page_count = {pages + 2}")
    both = ["INSERT INTO facts VALUES ('small', 'x')", "INSERT INTO facts VALUES ('large', zeroblob(1000000))"]
    with pytest.raises(SynodError, match=r"cannot be used \(SQLITE_FULL: the disk is full\)") as caught:
        insert(database, both)
    assert caught.value.code is Code.STORAGE
    assert "free disk space" in caught.value.hint
    assert not database.in_transaction
    assert names(database) == ["before"]
    database.execute(f"PRAGMA max_page_count = {pages + 1000}")
    with transaction(database):
        database.execute("INSERT INTO facts VALUES ('large', zeroblob(1000000))")
    assert names(database) == ["before", "large"]


def test_a_second_writer_waits_and_then_is_told(database: sqlite3.Connection, tmp_path: Path) -> None:
    other = open_database(tmp_path / "folder" / DATA, create=False, migrations=SCHEMA)
    other.execute("PRAGMA busy_timeout = 1")
    with transaction(database):
        with pytest.raises(SynodError, match="SQLITE_BUSY"), transaction(other):
            raise AssertionError("two writers")
        database.execute("INSERT INTO facts VALUES ('a', 'x')")
    assert names(other) == ["a"]
    other.close()


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(SynodError, match=r"absent\.sqlite cannot be used") as caught:
        open_database(tmp_path / "absent.sqlite", create=False, migrations=SCHEMA)
    assert caught.value.code is Code.STORAGE
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_database_is_said(tmp_path: Path) -> None:
    path = tmp_path / "data.sqlite"
    path.write_bytes(b"not a database at all, but long enough to look at" * 50)
    with pytest.raises(SynodError, match="SQLITE_NOTADB"):
        open_database(path, create=False, migrations=SCHEMA)


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SynodError, match="cannot be used") as caught:
        open_database(tmp_path / "file" / "data.sqlite", create=True, migrations=SCHEMA)
    assert caught.value.code is Code.STORAGE


def test_errors_hold_no_values() -> None:
    with pytest.raises(SynodError) as caught, storage_errors(None):
        raise sqlite3.OperationalError("near 'patient 4711': syntax error")
    assert "4711" not in str(caught.value)


# The schema's version

SECOND = "ALTER TABLE facts ADD COLUMN note TEXT NOT NULL DEFAULT 'old'; INSERT INTO facts (name) VALUES ('migrated');"
BROKEN = "ALTER TABLE facts ADD COLUMN note TEXT; INSERT INTO nowhere VALUES (1);"


def refusal(path: Path, *, create: bool = False) -> str:
    """What is said of a database that is not opened, and that is the same afterwards."""
    before = path.read_bytes()
    with pytest.raises(SynodError) as caught:
        open_database(path, create=create, migrations=SCHEMA)
    assert caught.value.code is Code.STORAGE
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
    return str(caught.value)


def make_plain(path: Path, *statements: str) -> Path:
    """A database that SQLite made, and not we."""
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


def test_a_new_database_has_the_newest_version(database: sqlite3.Connection, tmp_path: Path) -> None:
    assert pragma(database, "user_version") == 1
    newest = open_database(tmp_path / DATA, create=True, migrations=(*SCHEMA, SECOND))
    assert (pragma(newest, "user_version"), names(newest)) == (2, ["migrated"])
    newest.close()


def test_a_database_of_a_newer_version_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = make_plain(tmp_path / DATA, *SCHEMA, "PRAGMA user_version = 2")
    for create in (False, True):
        told = refusal(path, create=create)
        assert "newer version of Synod (schema 2; this one knows 1)" in told
        assert "Update Synod" in told


def test_a_database_from_before_versions_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = make_plain(tmp_path / DATA, *SCHEMA)
    for create in (False, True):
        assert "from before Synod 0.1" in refusal(path, create=create)


def test_an_empty_file_is_not_taken_for_a_database(tmp_path: Path) -> None:
    (tmp_path / DATA).touch()
    assert "it is empty" in refusal(tmp_path / DATA)


def test_a_migration_is_made_once_and_keeps_what_is_there(database: sqlite3.Connection, tmp_path: Path) -> None:
    database.execute("INSERT INTO facts VALUES ('a', 'x')")
    for _ in range(2):
        other = open_database(tmp_path / "folder" / DATA, create=False, migrations=(*SCHEMA, SECOND))
        assert pragma(other, "user_version") == 2
        rows = other.execute("SELECT name, body, note FROM facts ORDER BY name").fetchall()
        assert rows == [("a", "x", "old"), ("migrated", None, "old")]
        other.close()


def test_a_migration_that_is_cut_short_leaves_the_version_before(database: sqlite3.Connection, tmp_path: Path) -> None:
    database.execute("INSERT INTO facts VALUES ('a', 'x')")
    with pytest.raises(SynodError, match="cannot be used"):
        open_database(tmp_path / "folder" / DATA, create=False, migrations=(*SCHEMA, BROKEN))
    assert pragma(database, "user_version") == 1
    assert database.execute("SELECT * FROM facts").fetchall() == [("a", "x")]
    other = open_database(tmp_path / "folder" / DATA, create=False, migrations=(*SCHEMA, SECOND))
    assert (pragma(other, "user_version"), names(other)) == (2, ["a", "migrated"])
    other.close()


def test_two_processes_do_not_make_one_migration_twice(
    database: sqlite3.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one migrates between our look at the version and our transaction."""
    path, begin = tmp_path / "folder" / DATA, sqlite_module.transaction

    def late(connection: sqlite3.Connection) -> AbstractContextManager[None]:
        monkeypatch.setattr(sqlite_module, "transaction", begin)
        open_database(path, create=False, migrations=(*SCHEMA, SECOND)).close()
        return begin(connection)

    monkeypatch.setattr(sqlite_module, "transaction", late)
    other = open_database(path, create=False, migrations=(*SCHEMA, SECOND))
    assert (pragma(other, "user_version"), names(other)) == (2, ["migrated"])
    other.close()
