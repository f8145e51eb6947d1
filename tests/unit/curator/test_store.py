"""The store: what is there already changes nothing, what contradicts it is refused, and a full disk stores nothing."""

import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from synod.common.crypto.canonical import canonical_bytes
from synod.common.protocol.heads import Head, StatedHeads
from synod.common.protocol.transcript import Enrolment
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.sqlite import open_database
from synod.common.study.study import Study
from synod.curator.party_store import MOST_LEDGERS, STORE_FILE
from synod.curator.records import OpenQuery, PendingStudy, SeenHead, State
from synod.curator.schema import MIGRATIONS
from synod.curator.store import Store
from tests.support.curators import make_submission
from tests.support.keys import identity_of
from tests.support.studies import make_study

ENROLMENT = Enrolment(
    "north",
    identity_of("north").public_key,
    b"\1" * 32,
    b"\2" * 32,
    StatedHeads(Head(9, b"\4" * 32, b"\5" * 32), (Head(2, b"\6" * 32, b"\5" * 32),)),
    b"\3" * 64,
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


@pytest.fixture
def study(store: Store) -> Study:
    study = make_study()
    store.add_study(study, now=10)
    return study


def conflict(error: pytest.ExceptionInfo[SynodError]) -> bool:
    return error.value.code is Code.CONFLICT


def test_a_study_comes_back_as_it_was(store: Store, study: Study, tmp_path: Path) -> None:
    store.close()
    again = Store(tmp_path)
    record = again.study(study.digest())
    assert (record.study, record.created, record.outcome, record.reason) == (study, 10, None, "")
    assert again.study_named(study.name) == record
    assert again.studies() == [record]


def test_what_is_stored_keeps_its_words(store: Store, study: Study, tmp_path: Path) -> None:
    store.add_not_approved(study.digest(), "north")
    store.end_study(study.digest(), State.ABORTED, "why")
    with sqlite3.connect(tmp_path / STORE_FILE) as connection:
        assert connection.execute("SELECT outcome FROM studies").fetchall() == [("aborted",)]
        kinds = {kind for (kind,) in connection.execute("SELECT kind FROM replies")}
    assert kinds == {"not-approved"}


def test_a_study_is_added_once_and_its_name_is_its_own(store: Store, study: Study) -> None:
    store.add_study(study, now=99)
    assert store.study(study.digest()).created == 10
    other = make_study(epsilon="2")
    with pytest.raises(SynodError, match="another study named") as caught:
        store.add_study(other, now=11)
    assert conflict(caught)
    with pytest.raises(SynodError, match="another study named") as caught:
        store.check_name(other)
    assert conflict(caught)
    store.check_name(study)
    assert len(store.studies()) == 1


def test_unknown_studies(store: Store) -> None:
    with pytest.raises(SynodError) as caught:
        store.study(bytes(32))
    assert caught.value.code is Code.NOT_FOUND
    with pytest.raises(SynodError) as caught:
        store.study_named("none")
    assert caught.value.code is Code.NOT_FOUND


def test_the_newest_study_comes_first(store: Store, study: Study) -> None:
    store.add_study(make_study(name="younger"), now=11)
    assert [record.study.name for record in store.studies()] == ["younger", "care-survey"]


def test_a_party_has_the_studies_of_its_rosters(store: Store, study: Study, tmp_path: Path) -> None:
    second = make_study(name="second", names=("north", "desert"), rows=(4, 7))
    store.add_study(second, now=11)
    store.close()
    again = Store(tmp_path)
    found = {name: pending(again, name) for name in ("north", "valley", "desert", "x")}
    assert found == {"north": ["second", "care-survey"], "valley": ["care-survey"], "desert": ["second"], "x": []}
    assert {name for name in found if again.is_on_a_roster(name)} == {"north", "valley", "desert"}
    assert again.is_pinned("desert", identity_of("desert").fingerprint)
    assert not again.is_pinned("desert", identity_of("north").fingerprint)
    assert not again.is_pinned("x", identity_of("x").fingerprint)


def pending(store: Store, party: str, *skip: Study, most_ended: int = 9, key: str = "") -> list[str]:
    skipped, key = {study.digest() for study in skip}, key or identity_of(party).fingerprint
    return [found.name for found in store.pending_studies(party, [key], skipped, most_ended=most_ended)]


def test_a_party_is_done_with_a_study_whose_end_it_has_acknowledged(store: Store, study: Study) -> None:
    others = [make_study(name=f"study-{i}") for i in range(4)]
    for other in others:
        store.add_study(other, now=11)
    for other in others[1:]:
        store.end_study(other.digest(), State.PUBLISHED)
    assert pending(store, "north")[:2] == ["study-0", "care-survey"]
    assert set(pending(store, "north")[2:]) == {"study-1", "study-2", "study-3"}
    store.acknowledge(others[1].digest(), "north")
    assert set(pending(store, "north")[2:]) == {"study-2", "study-3"}
    assert set(pending(store, "valley")[2:]) == {"study-1", "study-2", "study-3"}
    assert pending(store, "north", study, others[2]) == ["study-0", "study-3"]
    assert PendingStudy(study.digest(), study.name, None) in store.pending_studies("north", [], set(), most_ended=0)


def test_of_many_ends_some_are_told_at_a_time_and_in_the_end_all(store: Store) -> None:
    others = {f"study-{i}": make_study(name=f"study-{i}") for i in range(7)}
    for other in others.values():
        store.add_study(other, now=11)
        store.end_study(other.digest(), State.ABORTED)
    skipped = [others.pop("study-0"), others.pop("study-3")]
    told: list[str] = []
    while some := pending(store, "north", *skipped, most_ended=2):
        assert len(some) <= 2
        told += some
        for name in some:
            store.acknowledge(others[name].digest(), "north")
    assert sorted(told) == sorted(others)


def test_states_follow_from_what_is_stored(store: Store, study: Study) -> None:
    key = study.digest()

    def state() -> State:
        return store.state(store.study(key))

    assert state() is State.ENROLLING
    store.add_enrolment(key, ENROLMENT)
    assert state() is State.ENROLLING
    store.fix_transcript(key, b"envelope")
    assert state() is State.KEYED
    store.open_query(key, "moments", b"q", signature=b"signed", now=20)
    assert state() is State.RUNNING
    store.close_query(key, "moments", b"a")
    assert state() is State.RUNNING
    store.end_study(key, State.PUBLISHED)
    assert state() is State.PUBLISHED


def test_a_study_ends_once(store: Store, study: Study) -> None:
    store.end_study(study.digest(), State.ABORTED, "first")
    store.end_study(study.digest(), State.PUBLISHED, "second")
    record = store.study(study.digest())
    assert (record.outcome, record.reason) == (State.ABORTED, "first")


def test_an_end_drops_payloads_of_that_study_alone(store: Store, study: Study) -> None:
    other = make_study(name="other")
    store.add_study(other, now=11)
    for each in (study, other):
        store.add_submission("north", make_submission(each), b"answer")
    store.end_study(study.digest(), State.PUBLISHED)
    assert list(store.payloads(study.digest(), "moments", ["north"])) == [b""]
    assert list(store.payloads(other.digest(), "moments", ["north"])) == [b"answer"]
    assert store.submission(study.digest(), "moments", "north") == make_submission(study)


# Enrolments and transcripts


def test_an_enrolment_is_kept_for_good(store: Store, study: Study) -> None:
    store.add_enrolment(study.digest(), ENROLMENT)
    store.add_enrolment(study.digest(), ENROLMENT)
    assert store.enrolments(study.digest()) == {"north": ENROLMENT}
    for field in ("exchange", "nonce", "identity", "signature"):
        changed: Enrolment = replace(ENROLMENT, **{field: bytes(32)})  # type: ignore[arg-type]
        with pytest.raises(SynodError, match="other keys already") as caught:
            store.add_enrolment(study.digest(), changed)
        assert conflict(caught)
    assert store.enrolments(study.digest()) == {"north": ENROLMENT}
    assert store.enrolments(bytes(32)) == {}


def test_a_transcript_is_fixed_once(store: Store, study: Study) -> None:
    assert store.transcript(study.digest()) is None
    store.fix_transcript(study.digest(), b"first")
    store.fix_transcript(study.digest(), b"second")
    assert store.transcript(study.digest()) == b"first"


# The log


def test_the_log_of_queries(store: Store, study: Study, tmp_path: Path) -> None:
    key = study.digest()
    assert store.open_query(key, "moments", b"q1", signature=b"signed", now=20) is None
    assert store.open_query(key, "moments", b"q1", signature=b"signed again", now=21) is None
    assert store.query_signature(key, "moments") == b"signed", "a logged query keeps its signature"
    assert store.unanswered(key) == OpenQuery("moments", 1, 20)
    assert store.query(key, "moments") == b"q1"
    store.close_query(key, "moments", b"a1")
    assert store.unanswered(key) is None
    assert store.open_query(key, "rows", b"q2", signature=b"signed", now=30) is None
    assert store.unanswered(key) == OpenQuery("rows", 2, 30)
    store.close()
    assert Store(tmp_path).open_query(key, "moments", b"q1", signature=b"signed", now=40) == b"a1"


def test_an_empty_answer_is_an_answer(store: Store, study: Study) -> None:
    store.open_query(study.digest(), "rows", b"q", signature=b"signed", now=20)
    store.close_query(study.digest(), "rows", b"")
    assert store.open_query(study.digest(), "rows", b"q", signature=b"signed", now=21) == b""


@pytest.mark.parametrize("answered", [False, True])
def test_a_replay_that_asks_otherwise_is_stopped(store: Store, study: Study, answered: bool) -> None:
    store.open_query(study.digest(), "moments", b"q1", signature=b"signed", now=20)
    if answered:
        store.close_query(study.digest(), "moments", b"a1")
    with pytest.raises(SynodError, match="not the logged one") as caught:
        store.open_query(study.digest(), "moments", b"q2", signature=b"signed", now=21)
    assert caught.value.code is Code.CHECK_FAILED
    assert store.query(study.digest(), "moments") == b"q1"


def test_a_round_that_is_not_open_has_no_query(store: Store, study: Study) -> None:
    with pytest.raises(SynodError, match="not open") as caught:
        store.query(study.digest(), "moments")
    with pytest.raises(SynodError, match="not open"):
        store.query_signature(study.digest(), "moments")
    assert caught.value.code is Code.NOT_FOUND


def test_a_note_is_kept_for_good(store: Store, study: Study) -> None:
    assert store.note(study.digest(), "seed") is None
    store.add_note(study.digest(), "seed", 7)
    store.add_note(study.digest(), "seed", 8)
    store.add_note(study.digest(), "model", {"shift": [1, -2]})
    assert store.note(study.digest(), "seed") == 7
    assert store.note(study.digest(), "model") == {"shift": [1, -2]}


# Submissions


def test_a_submission_is_kept_once(store: Store, study: Study) -> None:
    submission = make_submission(study)
    store.add_submission("north", submission, b"answer")
    store.add_submission("north", submission, b"answer")
    store.add_submission("valley", submission, b"ANSWER")
    assert store.submission(study.digest(), "moments", "north") == submission
    assert store.submitters(study.digest(), "moments") == {"north", "valley"}
    assert list(store.payloads(study.digest(), "moments", ["valley", "north"])) == [b"ANSWER", b"answer"]
    assert store.answer_bytes(study.digest()) == 12
    assert store.submission(study.digest(), "rows", "north") is None


@pytest.mark.parametrize(
    "change", [{"digest": bytes(32)}, {"signature": b"x"}, {"account_signature": b"x"}, {"query": bytes(32)}], ids=str
)
def test_another_submission_for_the_same_round_is_refused(store: Store, study: Study, change: dict[str, bytes]) -> None:
    store.add_submission("north", make_submission(study), b"answer")
    with pytest.raises(SynodError, match="another answer stored") as caught:
        store.add_submission("north", replace(make_submission(study), **change), b"other")  # type: ignore[arg-type]
    assert conflict(caught)
    assert list(store.payloads(study.digest(), "moments", ["north"])) == [b"answer"]


# Parties


def test_not_approved_is_noted_once(store: Store, study: Study) -> None:
    assert not store.said_not_approved(study.digest(), "north")
    store.add_not_approved(study.digest(), "north")
    store.add_not_approved(study.digest(), "north")
    assert store.said_not_approved(study.digest(), "north")
    assert not store.said_not_approved(study.digest(), "valley")


def test_an_end_is_acknowledged_when_it_is_there_and_by_each_party_alone(store: Store, study: Study) -> None:
    store.acknowledge(study.digest(), "north")
    assert not store.acknowledged(study.digest(), "north")
    store.end_study(study.digest(), State.ABORTED)
    assert not store.acknowledged(study.digest(), "north")
    for _ in range(2):
        store.acknowledge(study.digest(), "north")
        assert [store.acknowledged(study.digest(), name) for name in ("north", "harbour")] == [True, False]


def test_the_highest_head_of_a_ledger_stays(store: Store) -> None:
    assert store.highest_head(b"id", b"L") is None
    store.see_head(b"id", SeenHead(b"L", 5, b"five", b"s5"))
    store.see_head(b"id", SeenHead(b"L", 4, b"four", b"s4"))
    store.see_head(b"id", SeenHead(b"L", 5, b"FIVE", b"S5"))
    assert store.highest_head(b"id", b"L") == SeenHead(b"L", 5, b"five", b"s5")
    store.see_head(b"id", SeenHead(b"L", 6, b"six", b"s6"))
    store.see_head(b"id", SeenHead(b"M", 1, b"one", b"s1"))
    store.see_head(b"other", SeenHead(b"L", 1, b"one", b"s1"))
    assert store.highest_head(b"id", b"L") == SeenHead(b"L", 6, b"six", b"s6")
    assert store.highest_head(b"id", b"M") == SeenHead(b"M", 1, b"one", b"s1")


def test_of_one_identity_the_last_ledgers_are_kept_and_of_another_all_the_same(store: Store) -> None:
    store.see_head(b"other", SeenHead(b"L", 1, b"one", b"s"))
    for number in range(3 * MOST_LEDGERS):
        store.see_head(b"id", SeenHead(bytes([number]), 1, b"one", b"s"))
        store.see_head(b"id", SeenHead(bytes([0]), 2 + number, b"more", b"s"))
    kept = [number for number in range(3 * MOST_LEDGERS) if store.highest_head(b"id", bytes([number])) is not None]
    assert kept == [0, *range(2 * MOST_LEDGERS + 1, 3 * MOST_LEDGERS)], "one that is in use stays"
    assert store.highest_head(b"other", b"L") is not None


# The disk


def test_a_full_disk_stores_nothing_and_says_so(store: Store, study: Study, tmp_path: Path) -> None:
    """Whatever is being written, it ends in the code that a session waits out."""
    connection = store._connection
    ((pages,),) = connection.execute("PRAGMA page_count").fetchall()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    big = bytes(1 << 20)
    key = study.digest()
    writes: tuple[Callable[[], object], ...] = (
        lambda: store.add_submission("north", make_submission(study, big), big),
        lambda: store.open_query(key, "moments", big, signature=b"signed", now=1),
        lambda: store.fix_transcript(key, big),
        lambda: store.add_note(key, "model", "x" * (1 << 20)),
        lambda: store.end_study(key, State.ABORTED, "x" * (1 << 20)),
    )
    for write in writes:
        with pytest.raises(SynodError, match="free disk space") as caught:
            write()
        assert caught.value.code is Code.STORAGE
    store.close()
    again = Store(tmp_path)
    assert again.submitters(key, "moments") == set()
    assert again.state(again.study(key)) is State.ENROLLING
    again.add_submission("north", make_submission(study, big), big)


def test_no_private_key_is_in_the_store(store: Store, study: Study, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / STORE_FILE) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert names == {
        "rotations",
        "studies",
        "rosters",
        "enrolments",
        "transcripts",
        "queries",
        "notes",
        "submissions",
        "replies",
        "heads",
        "losses",
        "skips",
    }
    assert (tmp_path / STORE_FILE).stat().st_mode & 0o077 == 0


def test_a_reader_on_another_thread_never_sees_a_transaction_half_done(tmp_path: Path) -> None:
    """Checks read on worker threads while the event loop writes, all on one connection."""
    store = Store(tmp_path)
    written = threading.Event()
    seen: list[bool] = []

    def look() -> None:
        written.wait(10)
        seen.append(store.said_not_approved(b"study", "north"))

    def write_and_fail() -> None:
        with store._transaction():
            store._connection.execute("INSERT INTO replies VALUES (?, ?, ?)", (b"study", "north", "not-approved"))
            written.set()
            reader.join(0.5)
            raise RuntimeError("undone")

    reader = threading.Thread(target=look)
    reader.start()
    with pytest.raises(RuntimeError, match="undone"):
        write_and_fail()
    reader.join(10)
    store.close()
    assert seen == [False]


@pytest.mark.parametrize(("version", "words"), [(0, "from before Synod 0.1"), (99, "newer version of Synod")])
def test_a_store_of_an_unknown_version_is_refused(store: Store, tmp_path: Path, version: int, words: str) -> None:
    store.close()
    with sqlite3.connect(tmp_path / STORE_FILE) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        connection.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(SynodError, match=words) as caught:
        Store(tmp_path)
    assert caught.value.code is Code.STORAGE


def test_a_store_of_the_first_version_keeps_what_is_sound_in_it(tmp_path: Path) -> None:
    """What was acknowledged before its end was not, and an answer from after the end goes."""
    running, ended = make_study(name="running"), make_study(name="ended")
    with closing(open_database(tmp_path / STORE_FILE, create=True, migrations=MIGRATIONS[:1])) as old:
        for study, outcome in ((running, None), (ended, "aborted")):
            document = canonical_bytes(study.to_json())
            old.execute(
                "INSERT INTO studies VALUES (?, ?, ?, 1, ?, '')", (study.digest(), study.name, document, outcome)
            )
            header = canonical_bytes(make_submission(study).to_json())
            for name in ("north", "valley"):
                old.execute("INSERT INTO rosters VALUES (?, ?, ?)", (name, study.digest(), f"key of {name}"))
                submission = (study.digest(), "moments", name, header, b"answer")
                old.execute("INSERT INTO submissions VALUES (?, ?, ?, ?, ?)", submission)
            for kind in ("acknowledged", "not-approved"):
                old.execute("INSERT INTO replies VALUES (?, ?, ?)", (study.digest(), "north", kind))
    store = Store(tmp_path)
    found = [pending(store, name, key=f"key of {name}") for name in ("north", "valley")]
    assert found == [["running"], ["running", "ended"]]
    store.end_study(running.digest(), State.PUBLISHED)
    assert pending(store, "north", key="key of north") == ["running"]
    assert store.said_not_approved(running.digest(), "north")
    assert list(store.payloads(ended.digest(), "moments", ["north", "valley"])) == [b"", b""]
    assert store.submission(ended.digest(), "moments", "north") == make_submission(ended)
    assert store.is_pinned("north", "key of north")
    store.close()


def test_an_upgrade_leaves_the_answers_of_a_running_study(tmp_path: Path) -> None:
    study = make_study()
    with closing(open_database(tmp_path / STORE_FILE, create=True, migrations=MIGRATIONS[:1])) as old:
        document = canonical_bytes(study.to_json())
        old.execute("INSERT INTO studies VALUES (?, ?, ?, 1, NULL, '')", (study.digest(), study.name, document))
        submission = (study.digest(), "moments", "north", b"{}", b"answer")
        old.execute("INSERT INTO submissions VALUES (?, ?, ?, ?, ?)", submission)
        old.execute("INSERT INTO queries VALUES (?, 'moments', 1, ?, 6, NULL)", (study.digest(), b"q1"))
    store = Store(tmp_path)
    assert list(store.payloads(study.digest(), "moments", ["north"])) == [b"answer"]
    assert (store.query(study.digest(), "moments"), store.query_signature(study.digest(), "moments")) == (b"q1", b"")
    store.open_query(study.digest(), "rows", b"q2", signature=b"signed", now=7)
    assert store.query_signature(study.digest(), "rows") == b"signed"
    store.close()


def test_an_answer_after_the_end_is_not_stored(store: Store, study: Study) -> None:
    """The study ends between the look at its round and the storing; a reply that was lost is still made good."""
    store.add_submission("north", make_submission(study), b"answer")
    store.end_study(study.digest(), State.ABORTED, "why")
    store.add_submission("north", make_submission(study), b"answer")
    with pytest.raises(SynodError, match="the study has ended") as caught:
        store.add_submission("valley", make_submission(study), b"answer")
    assert caught.value.code is Code.NOT_READY
    assert store.submitters(study.digest(), "moments") == {"north"}
    assert list(store.payloads(study.digest(), "moments", ["north"])) == [b""]
