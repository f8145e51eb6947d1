"""Databases that cannot be read: a clear sentence, no value, no password, nothing spent and nothing half approved."""

import logging
import sys
import traceback
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from synod.common.crypto.identity import Identity
from synod.common.protocol.queries.marginals import SumMarginals
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.settings import Database, PartySettings
from synod.common.study.study import Study
from synod.party.approval import check_study, identity_path, initialize, reserve, snapshot_folder
from synod.party.count.tables import exact_counts
from synod.party.ledger import Ledger
from synod.party.table.encode import TableError
from synod.party.table.engines.duckdb import DuckdbSession
from synod.party.table.snapshot import load_snapshot
from synod.party.table.source import read_header
from tests.support.databases import OWNER, PASSWORD, READER, Server, duckdb_file, duckdb_table
from tests.support.parties import make_settings
from tests.support.studies import make_study

CANARY = "Zachariah"
COLUMNS = "sex varchar, age varchar, income double precision, ward varchar"
ROWS = ("'F', '30', 500, 'a'", "'M', '40', NULL, 'b'", "'F', '50', 1000, 'c'")
BAD_ROW = f"'{CANARY}', '{CANARY}', 7, '{CANARY}'"
MANY = "FROM generate_series(1, 300000) AS g(i)"


@pytest.fixture
def settings(tmp_path: Path) -> PartySettings:
    made = make_settings(tmp_path)
    initialize(made, spent=None, now=5)
    return made


def study_for(settings: PartySettings, **changes: Any) -> Study:
    key = Identity.load(identity_path(settings)).fingerprint
    study = make_study(rows=(3, 5, 5), **changes)
    first, *rest = study.roster
    return study.model_copy(update={"roster": (first.model_copy(update={"key": key}), *rest), "rows": 13}).resolve()


def kinds(settings: PartySettings) -> list[str]:
    ledger = Ledger.open(settings.state)
    try:
        return [entry["kind"] for entry in ledger.entries()]
    finally:
        ledger.close()


def approve(settings: PartySettings, source: Database, **changes: Any) -> Study:
    own = settings.model_copy(update={"source": source})
    study = study_for(own, **changes)
    reserve(own, check_study(own, study), now=6)
    return study


def refusal(settings: PartySettings, source: Database, caplog: pytest.LogCaptureFixture) -> SynodError:
    """What approval says: it has spent and kept nothing, and told no value and no password."""
    with caplog.at_level(logging.DEBUG), pytest.raises(SynodError) as caught:
        approve(settings, source)
    told = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + repr(source) + caplog.text
    assert CANARY not in told
    assert PASSWORD not in told
    assert kinds(settings) == ["opened"]
    folder = snapshot_folder(settings, study_for(settings).digest())
    assert not folder.parent.exists() or not list(folder.parent.iterdir())
    return caught.value


def test_both_are_approved_where_nothing_is_wrong(settings: PartySettings, postgresql: Server, tmp_path: Path) -> None:
    approve(settings, postgresql.table(COLUMNS, ROWS), epsilon="1")
    approve(settings, duckdb_table(tmp_path, COLUMNS, ROWS), name="second", epsilon="1")
    assert kinds(settings) == ["opened", "approved", "approved"]


def test_misfits_have_no_value(
    settings: PartySettings, postgresql: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = (*ROWS[:2], BAD_ROW)
    for source in (postgresql.table(COLUMNS, rows), duckdb_table(tmp_path, COLUMNS, rows)):
        error = refusal(settings, source, caplog)
        assert isinstance(error, TableError)
        assert CANARY not in repr(error.misfits)
        assert sorted((one.column, one.rows) for one in error.misfits) == [("age", 1), ("sex", 1), ("ward", 1)]


def test_a_wrong_password(settings: PartySettings, postgresql: Server, caplog: pytest.LogCaptureFixture) -> None:
    wrong = settings.state.parent / "wrong"
    wrong.write_text(CANARY)
    source = postgresql.table(COLUMNS, ROWS).model_copy(update={"password_file": wrong})
    error = refusal(settings, source, caplog)
    assert "the server of public.t" in error.sentence
    assert "refuses this user or its password" in error.sentence
    assert error.code is Code.UNREACHABLE
    missing = source.model_copy(update={"password_file": wrong.with_name("none")})
    assert "of the password cannot be read" in refusal(settings, missing, caplog).sentence
    wrong.write_text("\n")
    assert "has no password" in refusal(settings, source, caplog).sentence


def test_the_password_may_come_from_the_environment(postgresql: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    source = postgresql.table(COLUMNS, ROWS).model_copy(update={"password_file": None})
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert len(read_header(source)) == 4


def test_no_server_no_database_no_table_no_right(
    settings: PartySettings, postgresql: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = postgresql.table(COLUMNS, ROWS)
    nowhere = source.model_copy(update={"url": f"postgresql://{READER}@/postgres?host={tmp_path}"})
    nameless = postgresql.source(database="none", table="t")
    for place in (nowhere, nameless):
        error = refusal(settings, place, caplog)
        assert "does not answer, or refuses the database" in error.sentence
        assert error.code is Code.UNREACHABLE
    assert "there is no table or view for" in refusal(settings, postgresql.source(table="none"), caplog).sentence
    assert "there is no table or view for" in refusal(settings, postgresql.source(table="x.none"), caplog).sentence
    postgresql.run(f"REVOKE ALL ON {source.table} FROM {READER}")
    assert "may not be read by this user" in refusal(settings, source, caplog).sentence


def test_a_renamed_column(
    settings: PartySettings, postgresql: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source, local = postgresql.table(COLUMNS, ROWS), duckdb_table(tmp_path, COLUMNS, ROWS)
    rename = "ALTER TABLE {} RENAME COLUMN ward TO word"
    postgresql.run(rename.format(source.table))
    assert local.file is not None
    duckdb_file(local.file, rename.format("stays"))
    for one in (source, local):
        assert "has no column 'ward'." in refusal(settings, one, caplog).sentence


def test_a_query_that_is_none(settings: PartySettings, postgresql: Server, caplog: pytest.LogCaptureFixture) -> None:
    told = refusal(settings, postgresql.source(query=f"SELEKT '{CANARY}'"), caplog).sentence
    assert "the query of postgres cannot be read: the database refuses the query (42601)" in told


def test_a_query_changes_nothing(settings: PartySettings, postgresql: Server, caplog: pytest.LogCaptureFixture) -> None:
    """Not even with the rights of an owner."""
    source = postgresql.table(COLUMNS, ROWS)
    query = f"WITH gone AS (DELETE FROM {source.table} RETURNING *) SELECT * FROM gone"
    refusal(settings, postgresql.source(OWNER, query=query), caplog)
    postgresql.run("CREATE OR REPLACE FUNCTION empty_all() RETURNS text LANGUAGE plpgsql AS "
                   f"$$BEGIN DELETE FROM {source.table}; RETURN 'F'; END$$")  # fmt: skip
    sly = f"SELECT empty_all() AS sex, age, income, ward FROM {source.table}"
    assert "broke off while it was read" in refusal(settings, postgresql.source(OWNER, query=sly), caplog).sentence
    approve(settings, source)


def test_a_view_that_fails_at_a_late_row(
    settings: PartySettings, postgresql: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The engine's own error quotes the value."""
    late = f"CASE WHEN i > 290000 THEN CAST('{CANARY}' || i AS integer) ELSE 30 END AS age"
    body = f"SELECT 'F' AS sex, {late}, 5.0 AS income, 'a' AS ward {MANY}"
    postgresql.run(f"CREATE OR REPLACE VIEW late AS {body}", f"GRANT SELECT ON late TO {READER}")
    path = duckdb_file(tmp_path / "late.duckdb", f"CREATE VIEW late AS {body}")
    for source in (postgresql.source(table="late"), Database(url=f"duckdb:{path}", table="late")):
        assert "broke off while it was read" in refusal(settings, source, caplog).sentence


def test_a_server_that_goes_away_in_the_middle(
    settings: PartySettings, postgresql: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """The server ends the connection itself, at a row that comes after many that were sent."""
    gone = "CASE WHEN i = 290000 THEN pg_terminate_backend(pg_backend_pid())::text ELSE 'F' END AS sex"
    query = f"SELECT {gone}, 30 AS age, 5.0 AS income, 'a' AS ward {MANY}"
    error = refusal(settings, postgresql.source(query=query), caplog)
    assert "broke off while it was read" in error.sentence
    assert "nothing was spent" in error.hint
    approve(settings, postgresql.table(COLUMNS, ROWS))


def test_a_table_that_changes_after_approval_changes_nothing(settings: PartySettings, postgresql: Server) -> None:
    source = postgresql.table(COLUMNS, ROWS)
    study = approve(settings, source)
    postgresql.run(f"UPDATE {source.table} SET sex = '{CANARY}'", f"DROP TABLE {source.table}")
    with closing(Ledger.open(settings.state)) as ledger:
        (approval,) = ledger.account().approvals.values()
        folder, sealed = snapshot_folder(settings, study.digest()), bytes.fromhex(approval.snapshot)
        kept = load_snapshot(folder, study, sealed, seal=ledger.seal)
    assert exact_counts(SumMarginals(((0,),)), study, kept.columns).tolist() == [2, 1], "as it was approved"


def test_an_address_may_leave_the_host_to_its_options(postgresql: Server) -> None:
    source = postgresql.table(COLUMNS, ROWS)
    url = f"postgresql:///postgres?host={postgresql.folder}&user={READER}"
    assert read_header(source.model_copy(update={"url": url})) == ["sex", "age", "income", "ward"]


def test_nothing_is_written_beside_a_file_of_duckdb(settings: PartySettings, tmp_path: Path) -> None:
    source = duckdb_table(tmp_path, COLUMNS, ROWS)
    assert source.file is not None
    folder = source.file.parent
    with closing(DuckdbSession(source)) as session:
        session._connection.execute("SET memory_limit = '60MB'")
        before = sorted(folder.rglob("*"))
        many = "SELECT i * 7919 % 5000011 AS a, repeat('x', 40) || i AS b FROM range(2000000) AS t(i) ORDER BY a"
        with pytest.raises(Exception, match=r"[Mm]emory|temp"):
            next(session.batches(many, 1000))
        assert sorted(folder.rglob("*")) == before
    assert sorted(folder.rglob("*")) == before


def test_another_user_or_protection_is_the_same_dataset(settings: PartySettings, postgresql: Server) -> None:
    source = postgresql.table(COLUMNS, ROWS)
    approve(settings, source, epsilon="1")
    postgresql.run(f"UPDATE {source.table} SET age = '31'")
    url = postgresql.url(OWNER) + "&sslmode=prefer"
    renamed = settings.model_copy(update={"dataset": "visits"})
    with pytest.raises(SynodError, match="was approved as the dataset table"):
        approve(renamed, source.model_copy(update={"url": url}), name="second", epsilon="1")


def test_files_of_duckdb_that_cannot_be_opened(
    settings: PartySettings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "none.duckdb"
    source = Database(url=f"duckdb:{path}", table="stays")
    assert "there is no file for stays of none.duckdb" in refusal(settings, source, caplog).sentence
    path.write_text(CANARY * 1000)
    assert "the file of stays of none.duckdb cannot be opened" in refusal(settings, source, caplog).sentence
    assert not list(tmp_path.glob("none.duckdb.*"))


def test_a_view_of_duckdb_reaches_no_other_file(
    settings: PartySettings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = tmp_path / "other.csv"
    other.write_text(f"sex,age,income,ward\n{CANARY},30,5,a\n")
    path = duckdb_file(tmp_path / "sly.duckdb", f"CREATE VIEW stays AS SELECT * FROM '{other}'")
    source = Database(url=f"duckdb:{path}", table="stays")
    assert "may not be read" in refusal(settings, source, caplog).sentence
    ward = source.model_copy(update={"table": None, "query": "SELECT * FROM CANARY"})
    assert "there is no table" in refusal(settings, ward, caplog).sentence, "a variable of the program is no table"


@pytest.mark.parametrize(("module", "extra"), [("duckdb", "duckdb"), ("adbc_driver_postgresql", "postgres")])
def test_a_driver_that_is_not_installed(
    settings: PartySettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
    module: str, extra: str,
) -> None:  # fmt: skip
    local = duckdb_table(tmp_path, COLUMNS, ROWS)
    monkeypatch.setitem(sys.modules, module, None)
    source = local if extra == "duckdb" else Database(url="postgresql://localhost/x", table="t")
    assert f"synod-dp[{extra}]" in refusal(settings, source, caplog).hint


def test_an_encoding_of_the_server_is_no_matter(postgresql: Server) -> None:
    postgresql.run("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    postgresql.run('CREATE TABLE t ("größe" text)', f"GRANT SELECT ON t TO {READER}", database="latin")
    assert read_header(postgresql.source(database="latin", table="t")) == ["größe"]
