"""A ledger that is stolen after a study: neither the study's secret nor anything derived from it is in its bytes."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from synod.common.privacy.cost import Cost
from synod.common.runtime import sqlite as sqlite_module
from synod.common.runtime.errors import SynodError
from synod.party import ledger as ledger_module
from synod.party.account import ApprovalState
from synod.party.answer import Secrets
from synod.party.ledger import LEDGER_FILE, MIGRATIONS, Ledger, StoredAnswer
from tests.support.simulation import SimulatedSite, World, make_site, run_world
from tests.support.studies import NAMES, make_study

PURPOSES = ("exchange", "nonce", "noise", "choice", "encryption", "synthesis")
PARTY = 1
COST, CAP = Cost.parse("epsilon:1/100"), Cost.parse("epsilon:9")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> SimulatedSite:
    return make_site(tmp_path_factory.mktemp("site"))


def everything(folder: Path) -> bytes:
    """All bytes of all files below a folder."""
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def derived(world: World) -> dict[str, bytes]:
    """What an open study's answers are derived from, and what is kept of one: none of it may outlive the study."""
    study_hash = world.site.study.digest()
    with world.ledger(PARTY) as ledger:
        ((drawn,),) = ledger._rows("SELECT value FROM study_secrets WHERE study = ?", study_hash)
        root = ledger.study_root(study_hash)
        approval = ledger.account().approvals[study_hash.hex()]
        answer = ledger.answer(study_hash, "moments")
    secrets = Secrets(root, study_hash, bytes.fromhex(approval.snapshot))
    found = {"secret": drawn, "root": root, **{purpose: secrets.derive(purpose) for purpose in PURPOSES}}
    if answer is not None:
        found["answer"] = answer.payload[:64]
    return found


def left_behind(site: SimulatedSite, *, ends_by: str = "published") -> list[str]:
    """Runs a study over the real code to its end, and searches what the party then has on disk; says what was found."""
    with run_world(site, draws_secrets=True) as world:
        state = world.settings(PARTY).state
        for _ in range(2):
            for index in range(len(NAMES)):
                world.converse(index)
        wanted = derived(world)
        assert {"secret", "answer"} <= {name for name, value in wanted.items() if value in everything(state)}
        if ends_by == "published":
            world.finish()
        with world.ledger(PARTY) as ledger:
            if ends_by != "published":
                ledger.end_study(site.study.digest(), ApprovalState(ends_by), now=9)
            (approval,) = ledger.account().approvals.values()
            assert approval.state.value == ends_by
            found = everything(state)  # while the ledger is open, and there is a log beside it
            with pytest.raises(SynodError, match="erased"):
                ledger.study_root(site.study.digest())
        world.stop_party(PARTY)
        found += everything(state)
        assert ends_by != "published" or list((state / "snapshots").iterdir()) == []
    return [name for name, value in wanted.items() if value in found]


@pytest.mark.parametrize("ends_by", ["published", "aborted", "revoked"])
def test_nothing_of_an_ended_study_s_secrets_is_on_disk(site: SimulatedSite, ends_by: str) -> None:
    assert left_behind(site, ends_by=ends_by) == []


def test_without_overwriting_the_secret_stays_in_the_pages(
    site: SimulatedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(path: Path, **options: object) -> sqlite3.Connection:
        connection = sqlite_module.open_database(path, **options)  # type: ignore[arg-type]
        connection.execute("PRAGMA secure_delete = OFF")
        return connection

    monkeypatch.setattr("tests.support.simulation.open_unsynced", opened)
    assert "secret" in left_behind(site, ends_by="aborted")


def test_without_an_empty_log_the_secret_stays_in_the_log(site: SimulatedSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "empty_log", lambda _: True)
    assert "secret" in left_behind(site, ends_by="aborted")


def test_a_process_killed_between_the_end_and_the_emptied_log_leaves_it_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger.create(tmp_path, history_lost=False, now=1)
    secret = _approve(ledger, "first")
    with monkeypatch.context() as patched:
        patched.setattr(ledger_module, "empty_log", lambda _: False)
        ledger.end_study(make_study(name="first").digest(), ApprovalState.ABORTED, now=4)
    assert secret in everything(tmp_path)
    Ledger.open(tmp_path)  # beside the killed one, whose log is still there
    assert secret not in everything(tmp_path)


@pytest.mark.parametrize("later", ["end_study", "open"])
def test_a_reader_that_holds_the_log_up_only_delays_it(tmp_path: Path, later: str) -> None:
    ledger, study = Ledger.create(tmp_path, history_lost=False, now=1), make_study(name="first")
    secret = _approve(ledger, "first")
    reader = sqlite3.connect(tmp_path / LEDGER_FILE)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM entries").fetchall()
    ledger._connection.execute("PRAGMA busy_timeout = 1")
    ledger.end_study(study.digest(), ApprovalState.PUBLISHED, now=4)
    assert secret in everything(tmp_path)
    assert [entry["kind"] for entry in ledger.entries()] == ["opened", "approved", "closed"]
    reader.close()
    if later == "open":
        Ledger.open(tmp_path)
    else:
        ledger.end_study(study.digest(), ApprovalState.PUBLISHED, now=5)
    assert secret not in everything(tmp_path)
    assert [entry["kind"] for entry in ledger.entries()] == ["opened", "approved", "closed"]


def _approve(ledger: Ledger, name: str) -> bytes:
    study = make_study(name=name)
    ledger.approve(study, dataset="d", cost=COST, cap=CAP, snapshot=bytes(32), source=(), now=2)
    ((secret,),) = ledger._rows("SELECT value FROM study_secrets WHERE study = ?", study.digest())
    return bytes(secret)


def test_many_studies_in_many_pages_leave_nothing_but_the_open_ones(tmp_path: Path) -> None:
    """Rows of ended studies were moved between pages when others came; no page keeps a copy."""
    ledger = Ledger.create(tmp_path, history_lost=False, now=1)
    secrets = [_approve(ledger, f"study-{number}") for number in range(150)]
    for number in range(0, 150, 2):
        ledger.end_study(make_study(name=f"study-{number}").digest(), ApprovalState.PUBLISHED, now=3)
    found = everything(tmp_path)
    assert [secret in found for secret in secrets] == [number % 2 == 1 for number in range(150)]


def test_each_study_has_other_coins_although_the_ledger_is_the_same(tmp_path: Path) -> None:
    roots = []
    for number in range(2):
        ledger = Ledger.create(tmp_path / str(number), history_lost=False, now=1)
        for name in ("first", "second"):
            _approve(ledger, name)
            roots.append(ledger.study_root(make_study(name=name).digest()))
        assert ledger.secret() not in roots
    assert len(set(roots)) == 4


# Ledgers from before studies had secrets


@contextmanager
def of_schema(version: int) -> Iterator[None]:
    """Ledgers as an earlier version made them."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ledger_module, "MIGRATIONS", MIGRATIONS[:version])
        yield


def test_an_open_study_of_an_older_ledger_keeps_its_coins_until_its_end(tmp_path: Path) -> None:
    studies = {name: make_study(name=name) for name in ("open", "closed", "revoked")}
    with of_schema(1):
        old = Ledger.create(tmp_path, history_lost=False, now=1)
    connection = sqlite3.connect(tmp_path / LEDGER_FILE)
    connection.execute("CREATE TABLE study_secrets (study BLOB PRIMARY KEY, value BLOB NOT NULL)")
    connection.commit()
    for name, study in studies.items():
        _approve(old, name)
        charge = {"label": "moments", "query": "aa", "transcript": "bb", "cost": "epsilon:0", "answer": "cc"}
        old.charge(study.digest(), dict(charge), StoredAnswer({}, f"answer of {name}".encode()), now=3)
    old.end_study(studies["closed"].digest(), ApprovalState.PUBLISHED, now=4)
    old.end_study(studies["revoked"].digest(), ApprovalState.REVOKED, now=4)
    connection.execute("UPDATE answers SET payload = x'0102030405060708' WHERE payload = x''")  # as it was then
    connection.execute("DROP TABLE study_secrets")
    connection.commit()
    connection.close()
    old.close()

    ledger = Ledger.open(tmp_path)
    assert ledger.study_root(studies["open"].digest()) == ledger.secret()
    stored = {name: ledger.answer(study.digest(), "moments") for name, study in studies.items()}
    assert {name: answer and answer.payload for name, answer in stored.items()} == {
        "open": b"answer of open", "closed": b"", "revoked": b"",
    }  # fmt: skip
    for name in ("closed", "revoked"):
        with pytest.raises(SynodError, match="erased"):
            ledger.study_root(studies[name].digest())
    ledger.end_study(studies["open"].digest(), ApprovalState.PUBLISHED, now=5)
    with pytest.raises(SynodError, match="erased"):
        ledger.study_root(studies["open"].digest())
    assert b"answer of open" not in everything(tmp_path)
