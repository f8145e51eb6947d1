"""Whole studies that lose a party: a real store, handler, session and ledgers; the dead party just stops calling."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from synod.common.privacy.cost import FREE
from synod.common.protocol.manifest import verify_release
from synod.common.protocol.notices import DeclineReason, sign_decline
from synod.common.protocol.plan import plan_study
from synod.common.runtime.errors import SynodError
from synod.curator import session as session_module
from synod.curator.party_handler import DocumentKind, MoveKind, Notice, PartyHandler
from synod.curator.records import State
from synod.curator.release.redraw import check_release
from synod.curator.roster.losses import lose_party
from synod.party.account import ApprovalState
from synod.party.release import compare_release
from tests.support.curators import (
    approve_everywhere,
    copy_parties,
    make_move,
    release_files,
    stored_answer,
)
from tests.support.keys import CURATOR, identity_of
from tests.support.losing import METHODS, NAMES, ROWS, SCHEMA, Run, make_case, seal_of
from tests.support.parties import PartyUnderTest
from tests.support.studies import make_study


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "RECHECK_SECONDS", 0.005)


def charged_once(parties: Sequence[PartyUnderTest]) -> bool:
    return all(len(party.charges()) == len(set(party.charges())) for party in parties)


QUICK = [("hpdp-dp", "north", 0), ("adaptive", "harbour", 1), ("dp-subn", "hill", 1)]
CASES = [(method, *case) for method in METHODS for case in (("north", 0), ("harbour", 1), ("hill", 1))]


@pytest.mark.parametrize(
    ("method", "name", "answers"),
    [pytest.param(*case, marks=() if case in QUICK else pytest.mark.slow) for case in CASES],
)
def test_a_study_goes_on_without_a_party(tmp_path: Path, method: str, name: str, answers: int) -> None:
    study, parties = make_case(tmp_path, method)
    run = Run(tmp_path, study, parties)
    run.dead = {name: answers}
    assert run.go() is State.PUBLISHED
    checked = check_release(run.release, None)  # and the recipe runs again over the released answers
    verdict = checked.verdict
    assert any("bit for bit" in line for line in checked.lines)
    (dead,) = (party for party in parties if party.name == name)
    planned = [step.label for step in plan_study(study).steps_of(name)]
    assert dead.charges() == planned[:answers]
    if answers < len(planned):
        assert [(one.party, one.since) for one in verdict.losses] == [(name, planned[answers])]
        assert any(f"went on without {name} (from {planned[answers]} on)" in line for line in verdict.lines)
        report = (run.release / "report.html").read_text()
        assert f"{name} was lost (its server burned down)" in report
        behind = [entry for entry in study.roster if entry.name != name or answers]
        authors = " and ".join(f"{{{entry.name}}}" for entry in behind)
        assert f"author       = {{{authors}}}" in report
        assert f"from {sum(entry.rows for entry in behind):,} real ones" in report
    assert charged_once(parties)
    accounts = {account.name: len(account.steps) for account in verdict.accounts}
    assert accounts == {party.name: len(party.charges()) for party in parties}
    assert (run.release / "synthetic.csv").read_text().count("\n") == (study.rows or 0) + 1


def test_a_lost_party_that_comes_back_is_told_and_gets_the_rest_back(tmp_path: Path) -> None:
    study, parties = make_case(tmp_path, "adaptive")
    run = Run(tmp_path, study, parties)
    run.dead = {"harbour": 1}
    assert run.go() is State.PUBLISHED
    context, _ = run.open()
    handler = PartyHandler(context)
    back = parties[1]
    (move,) = handler.moves("harbour", identity_of("harbour").fingerprint, set())
    make_move(handler, back, move)
    assert handler.moves("harbour", identity_of("harbour").fingerprint, set()) == []
    assert len(back.charges()) == 1
    verdict = verify_release(run.release, None)
    lines = compare_release(
        verdict,
        back.ledger.entries(),
        name="harbour",
        key=back.identity.fingerprint,
        curator=identity_of(CURATOR).fingerprint,
    )
    assert any("all 1 answers" in line for line in lines)
    context.store.close()


def test_a_lost_party_is_told_while_the_study_goes_on(tmp_path: Path) -> None:
    study, parties = make_case(tmp_path, "adaptive")
    run = Run(tmp_path, study, parties)
    run.dead, run.gives_up = {"harbour": 1}, False
    assert run.go(kill_after=8) is None  # all enrolled, all answered the first round
    context, _ = run.open()
    lose_party(context, context.store.study(study.digest()), "harbour", "gone")
    handler = PartyHandler(context)
    (move,) = handler.moves("harbour", identity_of("harbour").fingerprint, set())
    assert move.kind is MoveKind.CLOSE_LOST
    make_move(handler, parties[1], move)
    assert handler.moves("harbour", identity_of("harbour").fingerprint, set()) == []
    approval = parties[1].ledger.account().approvals[study.digest().hex()]
    assert approval.state is ApprovalState.LOST
    assert approval.held == FREE
    context.store.close()
    run.dead = {"harbour": 0}
    assert run.go() is State.PUBLISHED


def test_an_answer_that_was_on_its_way_when_its_step_was_skipped_changes_nothing(tmp_path: Path) -> None:
    """The party has paid for it; the release does not have it, and agrees with the party's ledger all the same."""
    study, parties = make_case(tmp_path, "dp-subn")
    run = Run(tmp_path, study, parties)
    run.dead, run.gives_up = {"harbour": 1}, False
    assert run.go() is None  # the study waits for harbour's own step
    context, _ = run.open()
    handler, back, label = PartyHandler(context), parties[1], "update-harbour"
    asked = handler.query("harbour", study.digest(), label)
    transcript = handler.document("harbour", study.digest(), DocumentKind.TRANSCRIPT)
    back.answer(transcript, asked.query.to_proto(), label, asked.signature)
    submission, payload = stored_answer(back, label)
    opened = handler.open_round("harbour", submission)
    handler.check("harbour", submission, opened, payload)
    effect = lose_party(context, context.store.study(study.digest()), "harbour", "gone")
    assert effect == "harbour is lost: its own step is skipped, and the study goes on."
    handler.accept("harbour", submission, payload)
    with pytest.raises(SynodError, match="has no such round open"):
        handler.open_round("harbour", submission)
    context.store.close()
    run.dead = {"harbour": 0}
    assert run.go() is State.PUBLISHED
    verdict = check_release(run.release, None).verdict
    assert [(one.party, one.since) for one in verdict.losses] == [("harbour", label)]
    assert back.charges() == ["correlations", label]
    names = {"name": "harbour", "key": back.identity.fingerprint, "curator": identity_of(CURATOR).fingerprint}
    lines = compare_release(verdict, back.ledger.entries(), **names)
    assert any("all 1 answers" in line for line in lines)


def test_a_kill_anywhere_leaves_the_release_as_it_is(tmp_path: Path) -> None:
    """The curator is killed after some moves and comes back: who takes part is in the log, never chosen again."""
    study = make_study(names=NAMES, rows=ROWS, schema=SCHEMA, epsilon="40", may_lose=1, method=METHODS["adaptive"])
    ledgers = approve_everywhere(tmp_path / "ledgers", study)
    releases = []
    for kill in (10_000, 3, 6, 9, 11):
        folder = tmp_path / str(kill)
        folder.mkdir()
        parties = copy_parties(study, ledgers, folder / "parties")
        run = Run(folder, study, parties)
        run.dead = {"harbour": 1}
        assert (run.go(kill) or run.go()) is State.PUBLISHED
        verify_release(run.release, None)
        files = release_files(folder / "curator", study)
        releases.append({name: files[name] for name in ("synthetic.csv", "model.json", "report.html")})
        assert charged_once(parties)
    assert all(one == releases[0] for one in releases)


def test_nobody_pays_for_a_round_that_a_dead_party_would_block(tmp_path: Path) -> None:
    """Also in a study that may lose nobody: the sum opens when all are here."""
    study, parties = make_case(tmp_path, may_lose=0)
    run = Run(tmp_path, study, parties)
    run.dead, run.gives_up = {"valley": 0}, False
    assert run.go() is None  # everybody has enrolled, and nothing moves
    assert all(party.charges() == [] for party in parties)
    run.dead = {}
    assert run.go() is State.PUBLISHED


def test_a_revoked_approval_loses_the_party_where_the_study_may(tmp_path: Path) -> None:
    for may_lose, expected in ((0, State.ABORTED), (1, State.PUBLISHED)):
        folder = tmp_path / str(may_lose)
        folder.mkdir()
        study, parties = make_case(folder, "adaptive", may_lose=may_lose)
        run = Run(folder, study, parties)
        run.gives_up = False
        assert run.go(kill_after=4) is None  # all enrolled
        context, _ = run.open()
        enrolled = [context.store.enrolment(study.digest(), name) for name in NAMES]
        assert all(enrolled)
        context.store.fix_transcript(study.digest(), seal_of(study, parties, context))
        handler, identity = PartyHandler(context), identity_of("valley")
        for reason in (
            DeclineReason.REVOKED,
            DeclineReason.CHECK_FAILED,
        ):  # the latter is late, and changes nothing more
            signature = sign_decline(identity, "valley", study.digest(), reason)
            handler.decline(Notice("valley", study.digest(), identity.public_key, signature), reason)
        assert context.store.study(study.digest()).outcome is (None if may_lose else State.ABORTED)
        context.store.close()
        run.dead = {"valley": 0}
        assert run.go() is expected
