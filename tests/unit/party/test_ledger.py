"""The ledger: an unbroken chain, charge and answer in one transaction, and a cap that two studies cannot pass."""

import json
import multiprocessing
import sqlite3
from fractions import Fraction
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest

from synod.common.privacy.cost import Cost
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.study import Study
from synod.party.account import ApprovalState
from synod.party.ledger import LEDGER_FILE, MIGRATIONS, Ledger, StoredAnswer
from tests.support.studies import categorical, make_study

SNAPSHOT = bytes(range(32))


def cost(amount: str) -> Cost:
    return Cost.pure(Fraction(amount))


def approve(ledger: Ledger, study: Study, *, epsilon: str = "1", cap: str = "2", dataset: str = "d") -> None:
    ledger.approve(
        study, dataset=dataset, cost=cost(epsilon), cap=cost(cap), snapshot=SNAPSHOT, source=(dataset.encode(),), now=2
    )


def charge(ledger: Ledger, study: Study, epsilon: str, *, label: str = "moments", payload: bytes = b"answer") -> None:
    entry = {"label": label, "query": "aa", "transcript": "bb", "cost": str(cost(epsilon)), "answer": "cc"}
    ledger.charge(study.digest(), dict(entry), StoredAnswer({"label": label}, payload), now=3)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path, history_lost=False, now=1)


@pytest.fixture
def study() -> Study:
    return make_study()


def kinds(ledger: Ledger) -> list[str]:
    return [entry["kind"] for entry in ledger.entries()]


def test_a_study_from_approval_to_end(ledger: Ledger, study: Study) -> None:
    approve(ledger, study)
    charge(ledger, study, "1")
    charge(ledger, study, "0", label="rows")
    ledger.end_study(study.digest(), ApprovalState.PUBLISHED, now=9)
    assert kinds(ledger) == ["opened", "approved", "charged", "charged", "closed"]
    assert [entry["time"] for entry in ledger.entries()] == [1, 2, 3, 3, 9]
    assert ledger.study(study.digest()) == study
    approval = ledger.account().approvals[study.digest().hex()]
    assert (approval.state, approval.snapshot, approval.spent) == (ApprovalState.PUBLISHED, SNAPSHOT.hex(), cost("1"))


def test_everything_is_there_after_opening_again(ledger: Ledger, study: Study, tmp_path: Path) -> None:
    approve(ledger, study)
    charge(ledger, study, "1/3", payload=b"\x00\xff")
    secret, head, entries = ledger.secret(), ledger.head(), ledger.entries()
    ledger.close()
    again = Ledger.open(tmp_path)
    assert (again.secret(), again.head(), again.entries()) == (secret, head, entries)
    assert again.answer(study.digest(), "moments") == StoredAnswer({"label": "moments"}, b"\x00\xff")
    assert again.answer(study.digest(), "rows") is None
    assert again.account().spent("d") == cost("1/3")


def test_the_head_moves_with_every_entry(ledger: Ledger, study: Study) -> None:
    first = ledger.head()
    approve(ledger, study)
    second = ledger.head()
    assert (first.sequence, second.sequence) == (1, 2)
    assert ledger.hash_at(1) == first.hash != second.hash == ledger.hash_at(2)
    assert ledger.hash_at(3) is None
    assert ledger.hash_at(0) is None


def test_only_the_owner_may_read_it(ledger: Ledger, tmp_path: Path) -> None:
    assert (tmp_path / LEDGER_FILE).stat().st_mode & 0o077 == 0


def test_two_ledgers_have_different_secrets(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    made = [Ledger.create(tmp_path / name, history_lost=False, now=1).secret() for name in ("a", "b")]
    assert made[0] != made[1]
    assert len(made[0]) == 32


def test_create_never_replaces_and_open_never_creates(ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(SynodError, match="already"):
        Ledger.create(tmp_path, history_lost=False, now=1)
    (tmp_path / "empty").mkdir()
    with pytest.raises(SynodError, match="synod party init"):
        Ledger.open(tmp_path / "empty")
    assert list((tmp_path / "empty").iterdir()) == []


# The chain


def tamper(folder: Path, statement: str, *values: Any) -> None:
    connection = sqlite3.connect(folder / LEDGER_FILE)
    with connection:
        connection.execute(statement, values)
    connection.close()


def rewrite(folder: Path, sequence: int, **changes: Any) -> None:
    connection = sqlite3.connect(folder / LEDGER_FILE)
    with connection:
        ((body,),) = connection.execute("SELECT body FROM entries WHERE sequence = ?", (sequence,)).fetchall()
        entry = {**json.loads(body), **changes}
        text = json.dumps(entry, sort_keys=True, separators=(",", ":"))
        connection.execute("UPDATE entries SET body = ? WHERE sequence = ?", (text.encode(), sequence))
    connection.close()


@pytest.fixture
def history(ledger: Ledger, study: Study, tmp_path: Path) -> Path:
    """Four entries in a closed ledger."""
    ledger.declare_spent("d", cost("1/2"), now=1)
    approve(ledger, study, cap="10")
    charge(ledger, study, "1")
    ledger.close()
    Ledger.open(tmp_path).close()
    return tmp_path


TAMPERINGS = {
    "declared less": lambda folder: rewrite(folder, 2, spent=str(cost("0"))),
    "reserved more": lambda folder: rewrite(folder, 3, reserved=str(cost("5"))),
    "charged less": lambda folder: rewrite(folder, 4, cost=str(cost("1/10"))),
    "another time": lambda folder: rewrite(folder, 1, time=7),
    "another snapshot": lambda folder: rewrite(folder, 3, snapshot="00" * 32),
    "first gone": lambda folder: tamper(folder, "DELETE FROM entries WHERE sequence = 1"),
    "middle gone": lambda folder: tamper(folder, "DELETE FROM entries WHERE sequence = 2"),
    "moved": lambda folder: tamper(folder, "UPDATE entries SET sequence = 9 WHERE sequence = 4"),
    "another hash": lambda folder: tamper(folder, "UPDATE entries SET hash = zeroblob(32) WHERE sequence = 4"),
    "copied": lambda folder: tamper(folder, "INSERT INTO entries SELECT 5, body, hash FROM entries WHERE sequence = 4"),
}


@pytest.mark.parametrize("tampering", TAMPERINGS.values(), ids=TAMPERINGS.keys())
def test_a_broken_chain_is_not_opened(history: Path, tampering: Any) -> None:
    tampering(history)
    with pytest.raises(SynodError, match="chain is broken") as caught:
        Ledger.open(history)
    assert caught.value.code is Code.CHECK_FAILED


def test_a_ledger_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / LEDGER_FILE).write_bytes(b"not a database, but a text of some length" * 100)
    with pytest.raises(SynodError) as caught:
        Ledger.open(tmp_path)
    assert caught.value.code is Code.STORAGE


def test_an_emptied_ledger_is_not_opened(history: Path) -> None:
    """No entry at all is no ledger: it must not come back as one that has spent nothing."""
    tamper(history, "DELETE FROM entries")
    with pytest.raises(SynodError, match="chain is gone") as caught:
        Ledger.open(history)
    assert caught.value.code is Code.CHECK_FAILED


# The budget


def test_a_second_study_beyond_the_cap_is_refused(ledger: Ledger, study: Study) -> None:
    approve(ledger, study, epsilon="3/2")
    with pytest.raises(SynodError, match=r"holds epsilon 1\.5 ") as caught:
        approve(ledger, make_study(name="second"), epsilon="1")
    assert caught.value.code is Code.REFUSED
    approve(ledger, make_study(name="third"), epsilon="1/2")
    assert kinds(ledger) == ["opened", "approved", "approved"]


def test_a_study_is_approved_once_and_never_again(ledger: Ledger, study: Study) -> None:
    approve(ledger, study, epsilon="1/2")
    for _ in range(2):
        with pytest.raises(SynodError, match="in the ledger already"):
            approve(ledger, study, epsilon="1/2")
        ledger.end_study(study.digest(), ApprovalState.REVOKED, now=4)
    assert kinds(ledger) == ["opened", "approved", "revoked"]


def test_another_connection_sees_what_is_held(ledger: Ledger, study: Study, tmp_path: Path) -> None:
    other = Ledger.open(tmp_path)
    other.account()
    approve(ledger, study, epsilon="3/2")
    with pytest.raises(SynodError, match=r"holds epsilon 1\.5 "):
        approve(other, make_study(name="second"), epsilon="1")


def approve_at_once(folder: Path, number: int, barrier: Barrier) -> None:
    ledger = Ledger.open(folder)
    ledger.account()
    barrier.wait(timeout=60)
    try:
        approve(ledger, make_study(name=f"study-{number}"), epsilon="1", cap="5/2")
    except SynodError as error:
        assert error.code is Code.REFUSED, error  # noqa: PT017


def test_processes_together_cannot_pass_the_cap(ledger: Ledger, tmp_path: Path) -> None:
    ledger.close()
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(6)
    workers = [context.Process(target=approve_at_once, args=(tmp_path, n, barrier)) for n in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=100)
        assert worker.exitcode == 0
    account = Ledger.open(tmp_path).account()
    assert len(account.approvals) == 2
    assert account.held("d") == cost("2")


def approve_either_at_once(folder: Path, number: int, barrier: Barrier) -> None:
    ledger = Ledger.open(folder)
    asked = Cost(Fraction(number % 2), Fraction((number + 1) % 2, 100))
    study = make_study(name=f"study-{number}")
    barrier.wait(timeout=60)
    try:
        cap = Cost(Fraction(5, 2), Fraction(1, 100))
        ledger.approve(study, dataset="d", cost=asked, cap=cap, snapshot=SNAPSHOT, source=(b"d",), now=2)
    except SynodError as error:
        assert error.code is Code.REFUSED, error  # noqa: PT017


def test_processes_of_both_kinds_together_cannot_pass_either_cap(ledger: Ledger, tmp_path: Path) -> None:
    ledger.close()
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(6)
    workers = [context.Process(target=approve_either_at_once, args=(tmp_path, n, barrier)) for n in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=100)
        assert worker.exitcode == 0
    account = Ledger.open(tmp_path).account()
    assert len(account.approvals) == 3
    assert account.held("d") == Cost(Fraction(2), Fraction(1, 100))


def test_a_charge_of_the_other_kind_is_beyond_the_reservation(ledger: Ledger, study: Study) -> None:
    approve(ledger, study, epsilon="1")
    entry = {"label": "moments", "query": "aa", "transcript": "bb", "cost": "rho:1/1000", "answer": "cc"}
    with pytest.raises(SynodError, match="more than what is left"):
        ledger.charge(study.digest(), dict(entry), StoredAnswer({}, b""), now=3)


def test_a_charge_beyond_the_reservation_is_refused(ledger: Ledger, study: Study) -> None:
    approve(ledger, study, epsilon="1")
    charge(ledger, study, "3/4")
    with pytest.raises(SynodError, match="more than what is left") as caught:
        charge(ledger, study, "1/2", label="more")
    assert caught.value.code is Code.REFUSED
    assert ledger.answer(study.digest(), "more") is None
    charge(ledger, study, "1/4", label="rest")
    assert ledger.account().spent("d") == cost("1")


def test_nothing_is_charged_without_an_open_approval(ledger: Ledger, study: Study) -> None:
    with pytest.raises(SynodError, match="not approved"):
        charge(ledger, study, "0")
    approve(ledger, study)
    ledger.end_study(study.digest(), ApprovalState.REVOKED, now=4)
    with pytest.raises(SynodError, match="not approved"):
        charge(ledger, study, "0")
    assert ledger.answer(study.digest(), "moments") is None


def test_a_step_is_charged_once(ledger: Ledger, study: Study) -> None:
    """Even where the reservation would cover it, and even if it is free: the answer's place is taken."""
    approve(ledger, study, epsilon="2")
    charge(ledger, study, "1")
    charge(ledger, study, "0", label="rows")
    before = ledger.entries()
    for label, epsilon in (("moments", "1"), ("rows", "0")):
        with pytest.raises((SynodError, sqlite3.IntegrityError)):
            charge(ledger, study, epsilon, label=label, payload=b"another")
    assert ledger.entries() == before
    stored = ledger.answer(study.digest(), "moments")
    assert stored is not None
    assert stored.payload == b"answer"


@pytest.mark.parametrize("outcome", [state for state in ApprovalState if state is not ApprovalState.OPEN])
def test_an_end_frees_what_was_not_charged(ledger: Ledger, study: Study, outcome: ApprovalState) -> None:
    approve(ledger, study, epsilon="2")
    charge(ledger, study, "1/2")
    with pytest.raises(SynodError, match=r"holds epsilon 1\.5 "):
        approve(ledger, make_study(name="second"), epsilon="3/2")
    ledger.end_study(study.digest(), outcome, now=4)
    assert ledger.account().approvals[study.digest().hex()].state is outcome
    approve(ledger, make_study(name="second"), epsilon="3/2")
    account = ledger.account()
    assert (account.spent("d"), account.held("d")) == (cost("1/2"), cost("3/2"))


def test_a_second_end_changes_nothing(ledger: Ledger, study: Study) -> None:
    ledger.end_study(study.digest(), ApprovalState.ABORTED, now=4)
    assert kinds(ledger) == ["opened"]
    approve(ledger, study)
    ledger.end_study(study.digest(), ApprovalState.ABORTED, now=4)
    ledger.end_study(study.digest(), ApprovalState.PUBLISHED, now=5)
    assert kinds(ledger) == ["opened", "approved", "closed"]
    assert ledger.account().approvals[study.digest().hex()].state is ApprovalState.ABORTED


def test_a_declaration_never_goes_down(ledger: Ledger, study: Study) -> None:
    ledger.declare_spent("d", cost("3/2"), now=2)
    with pytest.raises(SynodError, match="declared") as caught:
        ledger.declare_spent("d", cost("1"), now=3)
    assert caught.value.code is Code.REFUSED
    with pytest.raises(SynodError, match=r"has spent epsilon 1\.5 "):
        approve(ledger, study, epsilon="1")
    ledger.declare_spent("d", cost("7/4"), now=4)
    ledger.declare_spent("other", cost("0"), now=4)
    assert ledger.account().spent("d") == cost("7/4")


# The disk


def fill_disk(ledger: Ledger) -> None:
    """The file may not grow by a page any more: SQLite then fails as it does on a full disk."""
    connection = ledger._connection
    ((pages,),) = connection.execute("PRAGMA page_count").fetchall()
    connection.execute(f"PRAGMA max_page_count = {pages}")


def test_disk_full_charges_nothing_and_stores_nothing(ledger: Ledger, study: Study, tmp_path: Path) -> None:
    approve(ledger, study)
    before = ledger.entries()
    fill_disk(ledger)
    with pytest.raises(SynodError, match=r"free disk space.*nothing was spent") as caught:
        charge(ledger, study, "1", payload=bytes(1 << 20))
    assert caught.value.code is Code.STORAGE
    ledger.close()
    again = Ledger.open(tmp_path)
    assert again.entries() == before
    assert again.answer(study.digest(), "moments") is None
    charge(again, study, "1", payload=bytes(1 << 20))
    assert again.account().spent("d") == cost("1")


def test_disk_full_reserves_nothing(ledger: Ledger, tmp_path: Path) -> None:
    wide = make_study(schema=[categorical(f"column-{i:03}", [str(j) for j in range(100)]) for i in range(100)])
    fill_disk(ledger)
    with pytest.raises(SynodError, match="free disk space") as caught:
        approve(ledger, wide)
    assert caught.value.code is Code.STORAGE
    ledger.close()
    again = Ledger.open(tmp_path)
    assert kinds(again) == ["opened"]
    approve(again, wide)


def test_charge_and_answer_stand_or_fall_together(ledger: Ledger, study: Study) -> None:
    """An answer that cannot be stored takes its charge with it, whatever stops it."""
    approve(ledger, study)
    with pytest.raises(TypeError):
        ledger.charge(
            study.digest(),
            {"label": "moments", "query": "aa", "transcript": "bb", "cost": str(cost("1"))},
            StoredAnswer({"score": 0.5}, b"no float has a canonical form"),
            now=3,
        )
    assert kinds(ledger) == ["opened", "approved"]
    charge(ledger, study, "1")


@pytest.mark.parametrize(("version", "words"), [(0, "from before Synod 0.1"), (99, "newer version of Synod")])
def test_a_ledger_of_an_unknown_version_is_refused(ledger: Ledger, tmp_path: Path, version: int, words: str) -> None:
    ledger.close()
    with sqlite3.connect(tmp_path / LEDGER_FILE) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        connection.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(SynodError, match=words) as caught:
        Ledger.open(tmp_path)
    assert caught.value.code is Code.STORAGE


def test_an_entry_that_could_not_be_read_again_is_never_stored(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path, history_lost=False, now=1)
    before = ledger.head()
    with pytest.raises(SynodError, match="cannot read"):
        ledger.declare_spent("table", Cost.pure(Fraction(1, 10**2000)), now=2)
    assert ledger.head() == before
    assert Ledger.open(tmp_path).account().declared == {}
