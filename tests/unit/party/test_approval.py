"""The operator's verbs: init never replaces, approve reserves all or nothing, revoke frees the rest."""

import errno
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from threading import Event
from typing import Any, BinaryIO
from unittest import mock

import pytest

from synod.common.crypto.identity import Identity
from synod.common.privacy.cost import Cost
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.settings import PartySettings
from synod.common.study.encoding import CodeColumn
from synod.common.study.study import Study
from synod.party.account import ApprovalState
from synod.party.approval import (
    check_study,
    drop_ended_snapshots,
    identity_path,
    initialize,
    reserve,
    revoke,
    snapshot_folder,
)
from synod.party.ledger import LEDGER_FILE, Ledger, StoredAnswer
from synod.party.table.encode import TableError
from synod.party.table.planes import write_planes
from synod.party.table.snapshot import load_snapshot
from tests.support.parties import file_of, make_settings
from tests.support.studies import make_study

HEADER = "sex,age,income,ward"
LINES = ("F,30,500,a", "M,40,,b", "F,50,1000,c")
WAIT_SECONDS, SHORT_SECONDS = 60, 0.5


def write_table(settings: PartySettings, lines: tuple[str, ...] = LINES) -> None:
    file_of(settings).write_text("\n".join([HEADER, *lines]) + "\n")


@pytest.fixture
def settings(tmp_path: Path) -> PartySettings:
    made = make_settings(tmp_path)
    write_table(made)
    return made


def study_for(settings: PartySettings, rows: int = 3, **changes: Any) -> Study:
    """A study whose roster pins the key that `init` made."""
    key = Identity.load(identity_path(settings)).fingerprint
    study = make_study(rows=(rows, 5, 5), **changes)
    first, *rest = study.roster
    return study.model_copy(update={"roster": (first.model_copy(update={"key": key}), *rest), "rows": 13}).resolve()


def approve(settings: PartySettings, study: Study, *, now: int) -> Cost:
    checked = check_study(settings, study)
    reserve(settings, checked, now=now)
    return checked.cost


def entries(settings: PartySettings) -> list[dict[str, Any]]:
    ledger = Ledger.open(settings.state)
    try:
        return [dict(entry) for entry in ledger.entries()]
    finally:
        ledger.close()


def kinds(settings: PartySettings) -> list[str]:
    return [entry["kind"] for entry in entries(settings)]


# init


def test_init_makes_identity_and_ledger_for_the_owner_alone(settings: PartySettings) -> None:
    identity = initialize(settings, spent=None, now=5)
    assert identity.fingerprint == Identity.load(identity_path(settings)).fingerprint
    assert entries(settings)[0] | {"kind": "opened", "history_lost": False, "time": 5} == entries(settings)[0]
    for path in (settings.state, identity_path(settings), settings.state / LEDGER_FILE):
        assert path.stat().st_mode & 0o077 == 0


def test_init_again_replaces_nothing(settings: PartySettings) -> None:
    initialize(settings, spent=None, now=5)
    files = {path: path.read_bytes() for path in (identity_path(settings), settings.state / LEDGER_FILE)}
    with pytest.raises(SynodError, match="initialized already") as caught:
        initialize(settings, spent=None, now=6)
    assert caught.value.code is Code.INVALID
    assert {path: path.read_bytes() for path in files} == files


def test_a_ledger_without_its_identity_gets_no_new_one(settings: PartySettings) -> None:
    initialize(settings, spent=None, now=5)
    identity_path(settings).unlink()
    for spent in (None, Cost.pure(Fraction(1))):
        with pytest.raises(SynodError, match=r"Restore identity\.pem from its backup"):
            initialize(settings, spent=spent, now=6)
    assert not identity_path(settings).exists()
    assert len(entries(settings)) == 1


def lose_ledger(settings: PartySettings) -> None:
    for path in settings.state.glob(f"{LEDGER_FILE}*"):
        path.unlink()


def test_after_a_loss_everything_counts_as_spent_until_it_is_entered(settings: PartySettings) -> None:
    fingerprint = initialize(settings, spent=None, now=5).fingerprint
    lose_ledger(settings)
    assert initialize(settings, spent=None, now=6).fingerprint == fingerprint
    with pytest.raises(SynodError, match="fully spent") as caught:
        approve(settings, study_for(settings, epsilon="0.001"), now=7)
    assert caught.value.code is Code.REFUSED
    initialize(settings, spent=Cost.pure(Fraction(3, 2)), now=8)
    with pytest.raises(SynodError, match=r"has spent epsilon 1\.5 "):
        approve(settings, study_for(settings, epsilon="0.6"), now=9)
    approve(settings, study_for(settings, epsilon="0.5"), now=9)


def test_a_loss_can_be_entered_at_once(settings: PartySettings) -> None:
    initialize(settings, spent=None, now=5)
    lose_ledger(settings)
    initialize(settings, spent=Cost.pure(Fraction(1)), now=6)
    approve(settings, study_for(settings), now=9)
    assert kinds(settings) == ["opened", "declared", "approved"]


def seal_of(settings: PartySettings) -> Callable[[bytes], bytes]:
    return Ledger.open(settings.state).seal


def test_the_commands_never_make_a_ledger(settings: PartySettings) -> None:
    initialize(settings, spent=None, now=5)
    study = study_for(settings)
    lose_ledger(settings)
    for verb in (lambda: approve(settings, study, now=6), lambda: revoke(settings, bytes(32), now=6)):
        with pytest.raises(SynodError, match="there is no ledger"):
            verb()
    assert not (settings.state / LEDGER_FILE).exists()


# approve


def test_approval_reserves_and_keeps_the_table(settings: PartySettings) -> None:
    initialize(settings, spent=None, now=5)
    study = study_for(settings)
    assert approve(settings, study, now=6) == Cost.pure(Fraction(1))
    *_, entry = entries(settings)
    assert (entry["kind"], entry["reserved"], entry["dataset"]) == ("approved", "epsilon:1", "table")
    file_of(settings).unlink()
    folder = snapshot_folder(settings, study.digest())
    snapshot = load_snapshot(folder, study, bytes.fromhex(entry["snapshot"]), seal=seal_of(settings))
    assert entry["snapshot"] != snapshot.digest().hex(), "a bare digest would confirm guesses at rows"
    assert [column.tolist() for column in snapshot.columns] == [[0, 1, 0], [77, 102, 128], [128, 257, 256], [0, 1, 2]]


def test_a_rehearsal_reserves_nothing(settings: PartySettings) -> None:
    initialize(settings, spent=None, now=5)
    study = study_for(settings)
    assert check_study(settings, study).cost == Cost.pure(Fraction(1))
    assert kinds(settings) == ["opened"]
    assert not snapshot_folder(settings, study.digest()).exists()


def test_a_table_that_does_not_fit_reserves_nothing(settings: PartySettings) -> None:
    initialize(settings, spent=None, now=5)
    study = study_for(settings)
    write_table(settings, (*LINES[:2], "F,101,1000,d"))
    with pytest.raises(TableError) as caught:
        approve(settings, study, now=6)
    assert {(f.column, f.rows) for f in caught.value.misfits} == {("age", 1), ("ward", 1)}
    assert kinds(settings) == ["opened"]
    assert not snapshot_folder(settings, study.digest()).exists()


def test_policy_and_budget_are_asked_before_the_table(settings: PartySettings) -> None:
    initialize(settings, spent=None, now=5)
    file_of(settings).unlink()
    with pytest.raises(SynodError, match="of epsilon 2 in all"):
        approve(settings, study_for(settings, epsilon="2.5"), now=6)
    with pytest.raises(SynodError, match="pins another key"):
        approve(settings, make_study(rows=(3, 5, 5)), now=6)
    assert kinds(settings) == ["opened"]


def test_a_study_is_approved_once(settings: PartySettings) -> None:
    initialize(settings, spent=None, now=5)
    study = study_for(settings)
    approve(settings, study, now=6)
    before = {p: p.read_bytes() for p in snapshot_folder(settings, study.digest()).iterdir()}
    write_table(settings, LINES[::-1])
    with pytest.raises(SynodError, match="already") as caught:
        approve(settings, study, now=7)
    assert caught.value.code is Code.CONFLICT
    assert {p: p.read_bytes() for p in snapshot_folder(settings, study.digest()).iterdir()} == before


def test_the_answers_use_the_table_as_it_was_rehearsed(settings: PartySettings) -> None:
    """What the operator saw fit is what is kept, whatever happens to the file in between."""
    initialize(settings, spent=None, now=5)
    checked = check_study(settings, study_for(settings))
    write_table(settings, LINES[::-1])
    reserve(settings, checked, now=6)
    snapshot = bytes.fromhex(entries(settings)[-1]["snapshot"])
    kept = load_snapshot(
        snapshot_folder(settings, checked.study.digest()), checked.study, snapshot, seal=seal_of(settings)
    )
    assert kept.columns[1].tolist() == [77, 102, 128]


def test_a_refused_reservation_harms_no_snapshot_and_leaves_none(settings: PartySettings) -> None:
    """Two operators at once: both check_study, the file changes in between, one reserves."""
    initialize(settings, spent=None, now=5)
    study, second = study_for(settings, epsilon="1.5"), study_for(settings, name="second", epsilon="1")
    late_first = check_study(settings, study)
    late_second = check_study(settings, second)
    write_table(settings, LINES[::-1])
    approve(settings, study, now=6)
    approved = bytes.fromhex(entries(settings)[-1]["snapshot"])
    for late in (late_first, late_second):
        with pytest.raises(SynodError):
            reserve(settings, late, now=7)
    assert kinds(settings) == ["opened", "approved"]
    load_snapshot(snapshot_folder(settings, study.digest()), study, approved, seal=seal_of(settings))
    assert not snapshot_folder(settings, second.digest()).exists()


def test_two_studies_cannot_pass_the_cap_together(settings: PartySettings) -> None:
    initialize(settings, spent=None, now=5)
    approve(settings, study_for(settings, epsilon="1.5"), now=6)
    second = study_for(settings, name="second", epsilon="0.6")
    with pytest.raises(SynodError, match=r"holds epsilon 1\.5 ") as caught:
        approve(settings, second, now=6)
    assert caught.value.code is Code.REFUSED
    assert not snapshot_folder(settings, second.digest()).exists()
    approve(settings, study_for(settings, name="third", epsilon="0.5"), now=6)


def test_two_studies_of_two_kinds_cannot_pass_either_cap(settings: PartySettings) -> None:
    policy: dict[str, Any] = {"max_epsilon_total": "1", "max_rho_total": {"epsilon": "1", "delta": "1e-9"}}
    settings = make_settings(file_of(settings).parent, **policy)
    initialize(settings, spent=None, now=5)
    approve(settings, study_for(settings, epsilon="0.8"), now=6)
    approve(settings, study_for(settings, name="second", epsilon="0.8", delta="1e-9"), now=6)
    for name, epsilon, delta, key in (
        ("third", "0.3", 0, "max_epsilon_total"),
        ("fourth", "0.7", "1e-9", "max_rho_total"),
    ):
        with pytest.raises(SynodError, match=f"raise `{key}`") as caught:
            approve(settings, study_for(settings, name=name, epsilon=epsilon, delta=delta), now=6)
        assert caught.value.code is Code.REFUSED
    approve(settings, study_for(settings, name="fifth", epsilon="0.2"), now=6)
    approve(settings, study_for(settings, name="sixth", epsilon="0.5", delta="1e-9"), now=6)


def test_disk_full_while_the_table_is_kept(settings: PartySettings, monkeypatch: pytest.MonkeyPatch) -> None:
    initialize(settings, spent=None, now=5)
    study = study_for(settings)
    calls: list[BinaryIO] = []

    def fail_on_the_third(file: BinaryIO, column: CodeColumn) -> None:
        calls.append(file)
        if len(calls) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        write_planes(file, column)

    monkeypatch.setattr("synod.party.table.snapshot.write_planes", fail_on_the_third)
    with pytest.raises(SynodError, match="free disk space") as caught:
        approve(settings, study, now=6)
    assert caught.value.code is Code.STORAGE
    assert kinds(settings) == ["opened"]
    assert not snapshot_folder(settings, study.digest()).exists()
    approve(settings, study, now=7)


# revoke


def test_revoking_frees_what_was_not_charged_and_drops_the_table(settings: PartySettings) -> None:
    initialize(settings, spent=None, now=5)
    study = study_for(settings, epsilon="2")
    approve(settings, study, now=6)
    ledger = Ledger.open(settings.state)
    charge = {"label": "moments", "query": "aa", "transcript": "bb", "cost": "epsilon:1/2"}
    ledger.charge(study.digest(), dict(charge), StoredAnswer({}, b""), now=6)
    ledger.close()
    revoke(settings, study.digest(), now=7)
    assert kinds(settings)[-1] == "revoked"
    assert not snapshot_folder(settings, study.digest()).exists()
    approve(settings, study_for(settings, name="second", epsilon="1.5"), now=8)
    with pytest.raises(SynodError, match="of epsilon 2 in all"):
        approve(settings, study_for(settings, name="third", epsilon="0.1"), now=8)


def test_there_must_be_something_to_revoke(settings: PartySettings) -> None:
    initialize(settings, spent=None, now=5)
    study = study_for(settings)
    with pytest.raises(SynodError, match="no open approval") as caught:
        revoke(settings, study.digest(), now=7)
    assert caught.value.code is Code.NOT_FOUND
    approve(settings, study, now=8)
    revoke(settings, study.digest(), now=9)
    with pytest.raises(SynodError, match="no open approval"):
        revoke(settings, study.digest(), now=10)
    assert kinds(settings) == ["opened", "approved", "revoked"]


def test_only_snapshots_of_open_studies_stay(settings: PartySettings) -> None:
    """Whoever ended one study was killed before its snapshot was gone, and whoever approved another before it had."""
    initialize(settings, spent=None, now=1)
    studies = [study_for(settings, name=name, epsilon="0.1") for name in ("ended", "open", "killed")]
    folders = [snapshot_folder(settings, study.digest()) for study in studies]
    for study in studies[:2]:
        approve(settings, study, now=2)
    folders[2].mkdir()
    ledger = Ledger.open(settings.state)
    ledger.end_study(studies[0].digest(), ApprovalState.REVOKED, now=3)
    drop_ended_snapshots(settings, ledger.account())
    ledger.close()
    assert [folder.exists() for folder in folders] == [False, True, True], "an old ledger may not know of it"
    approve(settings, study_for(settings, name="next", epsilon="0.1"), now=4)
    assert [folder.exists() for folder in folders] == [False, True, False]


def test_of_two_who_approve_at_once_the_second_leaves_the_first_ones_snapshot(settings: PartySettings) -> None:
    """Both have read the table, which changed in between; the first is stopped before its ledger's transaction."""
    initialize(settings, spent=None, now=1)
    study = study_for(settings)
    first = check_study(settings, study)
    file_of(settings).write_text(file_of(settings).read_text().replace("F,", "M,"))
    second = check_study(settings, study)
    assert first.snapshot.digest() != second.snapshot.digest()
    saved, go_on = Event(), Event()
    honest = Ledger.approve

    def approve_late(ledger: Ledger, *arguments: Any, **named: Any) -> None:
        saved.set()
        assert go_on.wait(WAIT_SECONDS)
        honest(ledger, *arguments, **named)

    with ThreadPoolExecutor(2) as pool:
        with mock.patch.object(Ledger, "approve", approve_late):
            early = pool.submit(reserve, settings, first, now=2)
            assert saved.wait(WAIT_SECONDS)
            late = pool.submit(reserve, settings, second, now=2)
            done, _ = wait([late], timeout=SHORT_SECONDS)
            go_on.set()
            early.result(WAIT_SECONDS)
        assert not done, "the second did not wait for its turn"
        with pytest.raises(SynodError, match="is in the ledger already"):
            late.result(WAIT_SECONDS)
    with closing(Ledger.open(settings.state)) as ledger:
        (approval,) = ledger.account().approvals.values()
        load_snapshot(
            snapshot_folder(settings, study.digest()), study, bytes.fromhex(approval.snapshot), seal=ledger.seal
        )


# Persons

PERSONS = "person,sex,age,income,ward"


def test_a_study_of_persons_is_approved_where_nobody_has_more_rows(settings: PartySettings) -> None:
    own = settings.model_copy(update={"unit": "person"})
    lines = [f"{who},{line}" for who, line in zip(("Zoe", "Zoe", "Ann"), LINES, strict=True)]
    file_of(settings).write_text("\n".join([PERSONS, *lines]) + "\n")
    initialize(own, spent=None, now=5)
    for rows in (1, 2):
        study = study_for(own, name=f"rows-{rows}", max_rows_per_unit=rows)
        if rows == 1:
            with pytest.raises(TableError, match="does not fit") as caught:
                approve(own, study, now=6)
            assert [misfit.column for misfit in caught.value.misfits] == ["person"]
            assert "Zoe" not in str(caught.value) + str(caught.value.misfits)
        else:
            approve(own, study, now=6)
    (entry,) = [entry for entry in entries(own) if entry["kind"] == "approved"]
    assert entry["name"] == "rows-2"
    files = sorted(path.name for path in snapshot_folder(own, bytes.fromhex(entry["study"])).iterdir())
    assert files == [*(f"{index:04}.npy" for index in range(4)), "rows.npy"], "the person is not in the snapshot"


def test_persons_with_several_rows_need_a_column_before_anything_is_read(settings: PartySettings) -> None:
    initialize(settings, spent=None, now=5)
    file_of(settings).unlink()
    with pytest.raises(SynodError, match="which column tells persons apart") as caught:
        approve(settings, study_for(settings, max_rows_per_unit=2), now=6)
    assert caught.value.code is Code.REFUSED
    assert kinds(settings) == ["opened"]
