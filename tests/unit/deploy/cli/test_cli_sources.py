"""Commands that take a table take one of a database or a folder: draft, join, doctor, launch."""

from pathlib import Path

import pytest
import yaml

from synod.common.runtime.settings import Database
from synod.deploy.cli.launch import find_equal
from synod.deploy.launch.site import plan_names, plan_paths
from tests.support.commands import complaint, synod, write_party
from tests.support.databases import PASSWORD, Server, duckdb_table

COLUMNS = "sex varchar, age integer, income double precision, ward varchar"
ROWS = ("'F', 30, 500, 'a'", "'M', 40, NULL, 'b'", "'F', 50, 1000, 'c'")


@pytest.fixture
def table(tmp_path: Path) -> Database:
    return duckdb_table(tmp_path, COLUMNS, ROWS)


def test_draft_of_a_database(table: Database, tmp_path: Path) -> None:
    ending = synod("study", "draft", f"{table.url}#stays")
    assert ending.code == 0, ending.err
    drafted = yaml.safe_load(ending.out)
    assert [one["name"] for one in drafted["schema"]] == ["sex", "age", "income", "ward"]
    assert "name: stays, key" in ending.out
    config = write_party(tmp_path / "party")
    told = synod("study", "draft", f"{table.url}#stays", "--config", config).err
    assert "needs no `format`" in told
    assert "there is no table or view for none of" in complaint(synod("study", "draft", f"{table.url}#none"), 2)


def test_a_password_in_an_argument_is_not_repeated() -> None:
    told = complaint(synod("study", "draft", "postgresql://me:Zachariah@localhost/x#t"), 2)
    assert "TABLE: source.url: must not have a password in it" in told
    assert "Zachariah" not in told


def test_doctor_looks_at_a_database(postgresql: Server, table: Database, tmp_path: Path) -> None:
    secret = tmp_path / "db.password"
    secret.write_text(PASSWORD)
    secret.chmod(0o644)
    source = postgresql.table(COLUMNS, ROWS).model_copy(update={"password_file": secret})
    config = write_party(tmp_path / "party", source=source.written())
    told = synod("party", "doctor", "--config", config).out
    assert f"ok   table: {source.name} can be read, with 4 columns" in told
    assert f"WARN keys: others may read or change {secret}" in told
    secret.write_text("wrong")
    secret.chmod(0o600)
    told = synod("party", "doctor", "--config", config).out
    assert "FAIL table: the server of" in told
    assert "WARN keys" not in told
    local = write_party(tmp_path / "local", source=f"{table.url}#stays")
    assert "ok   table: stays of" in synod("party", "doctor", "--config", local).out


def test_names_of_organizations_after_tables(tmp_path: Path, table: Database) -> None:
    server = Database(url="postgresql://localhost/x", table="public.Stays_2026")
    query = Database(url="postgresql://localhost/x", query="SELECT 1")
    assert plan_names([table, server, query, tmp_path / "Lake", tmp_path / "a.CSV.gz"]) == [
        "stays", "stays-2026", "query", "lake", "a"
    ]  # fmt: skip
    paths = plan_paths(tmp_path / "site", [Database(url="duckdb:x.duckdb", table="t"), tmp_path / "Lake"])
    assert paths.members[0].table == Database(url=f"duckdb:{Path.cwd()}/x.duckdb", table="t")


def test_the_same_table_twice_is_found(tmp_path: Path, table: Database) -> None:
    other = duckdb_table(tmp_path, COLUMNS, ROWS[:2])
    server = Database(url="postgresql://a@localhost/x", table="t")
    same = Database(url="postgresql://b@localhost/x", table="t")
    assert find_equal([table, other, server]) == []
    assert find_equal([table, server, table, same]) == [(table, table), (server, same)]
