"""Whole studies that lose a party: a real store, handler, session and ledgers; the dead party just stops calling."""

import asyncio
import json
from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from synod.common.privacy.cost import FREE
from synod.common.protocol.manifest import KEYS, MANIFEST_FILE, seal_manifest, verify_release
from synod.common.protocol.plan import plan_study
from synod.common.protocol.transcript import seal_transcript
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.study import Study
from synod.curator import session as session_module
from synod.curator.context import Context
from synod.curator.losses import lose_party
from synod.curator.party_handler import DeclineReason, MoveKind, PartyHandler
from synod.curator.records import State
from synod.party.account import ApprovalState
from synod.party.release import compare_release
from tests.support.curators import (
    Clock,
    approve_everywhere,
    copy_parties,
    make_context,
    make_move,
    make_session,
    release_files,
)
from tests.support.keys import CURATOR, identity_of
from tests.support.parties import PartyUnderTest, make_transcript, open_parties
from tests.support.studies import LINEAR, binary, categorical, make_study

MOST_STEPS = 800
QUIET = 12  # looks at a study that does not move before its operator gives a party up
NAMES = ("north", "harbour", "valley", "hill")
ROWS = (200, 300, 400, 500)
SCHEMA = [binary("a"), binary("b"), categorical("c", 3)]
METHODS: dict[str, dict[str, Any]] = {
    "hpdp-dp": LINEAR,
    "adaptive": {"name": "adaptive", "rounds": 3},
    "dp-subn": {"name": "dp-subn"},
    "dp-ccbn": {"name": "dp-ccbn"},
    "independent": {"name": "independent"},
    "privbayes": {"name": "privbayes"},
    "hpprivbayes": {"name": "hpprivbayes"},
    "histogram": {"name": "histogram"},
    "dpcocgen": {"name": "dpcocgen"},
}


def make_case(folder: Path, method: str = "hpdp-dp", **changes: Any) -> tuple[Study, list[PartyUnderTest]]:
    usual: dict[str, Any] = {"names": NAMES, "rows": ROWS, "schema": SCHEMA, "epsilon": "40"}
    study = make_study(**{**usual, "may_lose": 1, "method": METHODS[method], **changes})
    return study, open_parties(folder / "parties", study)


class Run:
    """A study that is run; a party is dead from the given number of its answers on, and then given up."""

    def __init__(self, folder: Path, study: Study, parties: Sequence[PartyUnderTest]) -> None:
        self.folder, self.study, self.parties = folder, study, parties
        self.dead: dict[str, int] = {}
        self.gives_up = True
        self.told: list[tuple[str, MoveKind]] = []
        self.effects: list[str] = []
        (folder / "curator").mkdir(exist_ok=True)

    def open(self) -> tuple[Context, Clock]:
        clock = Clock()
        context = make_context(self.folder / "curator", clock)
        context.store.add_study(self.study, now=5)
        return context, clock

    def is_dead(self, party: PartyUnderTest) -> bool:
        return len(party.charges()) >= self.dead.get(party.name, 1_000)

    async def _go(self, kill_after: int) -> State | None:
        context, clock = self.open()
        handler, quiet, moves = PartyHandler(context), 0, 0
        task = asyncio.create_task(make_session(context, self.study).run())
        try:
            for _ in range(MOST_STEPS):
                clock.now += 10
                quiet += 1
                for party in self.parties:
                    if self.is_dead(party) and context.store.enrolment(self.study.digest(), party.name):
                        continue
                    context.see(party.name)
                    for move in handler.moves(party.name, set()):
                        make_move(handler, party, move)
                        self.told.append((party.name, move.kind))
                        quiet, moves = 0, moves + 1
                        if self.is_dead(party):
                            context.sightings.pop(party.name)
                        if moves >= kill_after:
                            return None
                        await asyncio.sleep(0)
                record = context.store.study(self.study.digest())
                if record.outcome is not None:
                    await asyncio.gather(task, return_exceptions=True)
                    return record.outcome
                if quiet > QUIET and self.gives_up:
                    self.give_up(context)
                    quiet = 0
                await asyncio.sleep(0.004)
            raise AssertionError("the study does not end")
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            context.store.close()

    def give_up(self, context: Context) -> None:
        record = context.store.study(self.study.digest())
        for party in self.parties:
            if self.is_dead(party) and context.store.enrolment(self.study.digest(), party.name):
                self.effects.append(lose_party(context, record, party.name, "its server burned down"))

    def go(self, kill_after: int = 10_000) -> State | None:
        return asyncio.run(asyncio.wait_for(self._go(kill_after), 30))

    @property
    def release(self) -> Path:
        return self.folder / "curator" / "releases" / self.study.digest().hex()


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "RECHECK_SECONDS", 0.005)


def charged_once(parties: Sequence[PartyUnderTest]) -> bool:
    return all(len(party.charges()) == len(set(party.charges())) for party in parties)


QUICK = [("hpdp-dp", "north", 0), ("adaptive", "harbour", 1), ("dp-subn", "hill", 1)]
CASES = [
    (method, *case, *([pytest.mark.slow] if (method, *case) not in QUICK else []))
    for method in METHODS
    for case in (("north", 0), ("harbour", 1), ("hill", 1))
]


@pytest.mark.parametrize(("method", "name", "answers"), [pytest.param(*case[:3], marks=case[3:]) for case in CASES])
def test_a_study_goes_on_without_a_party(tmp_path: Path, method: str, name: str, answers: int) -> None:
    study, parties = make_case(tmp_path, method)
    run = Run(tmp_path, study, parties)
    run.dead = {name: answers}
    assert run.go() is State.PUBLISHED
    verdict = verify_release(run.release, None)
    (dead,) = (party for party in parties if party.name == name)
    planned = [step.label for step in plan_study(study).steps_of(name)]
    assert dead.charges() == planned[:answers]
    if answers < len(planned):
        assert [(one.party, one.since) for one in verdict.losses] == [(name, planned[answers])]
        assert any(f"went on without {name} (from {planned[answers]} on)" in line for line in verdict.lines)
        report = (run.release / "report.html").read_text()
        assert f"{name} was lost (its server burned down)" in report
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
    (move,) = handler.moves("harbour", set())
    make_move(handler, back, move)
    assert handler.moves("harbour", set()) == []
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
    (move,) = handler.moves("harbour", set())
    assert move.kind is MoveKind.CLOSE_LOST
    make_move(handler, parties[1], move)
    assert handler.moves("harbour", set()) == []
    approval = parties[1].ledger.account().approvals[study.digest().hex()]
    assert approval.state is ApprovalState.LOST
    assert approval.held == FREE
    context.store.close()
    run.dead = {"harbour": 0}
    assert run.go() is State.PUBLISHED


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
    with pytest.raises(AssertionError, match="does not end"):
        run.go()
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
        handler, key = PartyHandler(context), identity_of("valley").fingerprint
        handler.decline("valley", key, study.digest(), DeclineReason.REVOKED)
        handler.decline("valley", key, study.digest(), DeclineReason.CHECK_FAILED)  # late, and changes nothing more
        assert context.store.study(study.digest()).outcome is (None if may_lose else State.ABORTED)
        context.store.close()
        run.dead = {"valley": 0}
        assert run.go() is expected


def seal_of(study: Study, parties: Sequence[PartyUnderTest], context: Context) -> bytes:
    return seal_transcript(make_transcript(study, parties), context.identity)


def test_a_second_loss_is_refused_where_one_is_allowed(tmp_path: Path) -> None:
    study, parties = make_case(tmp_path)
    run = Run(tmp_path, study, parties)
    run.gives_up = False
    context, _ = run.open()
    record = context.store.study(study.digest())
    with pytest.raises(SynodError, match="still enrolling"):
        lose_party(context, record, "north", "gone")
    for party in parties:
        context.store.add_enrolment(study.digest(), party.enrolment())
    context.store.fix_transcript(study.digest(), seal_of(study, parties, context))
    with pytest.raises(SynodError, match="is not on the roster"):
        lose_party(context, record, "desert", "gone")
    for reason in ("", "two\nlines", "x" * 201):
        with pytest.raises(SynodError, match="one line"):
            lose_party(context, record, "north", reason)
    assert "next sum is asked without it" in lose_party(context, record, "north", "gone")
    assert "lost already" in lose_party(context, record, "north", "again")
    with pytest.raises(SynodError, match="may lose 1 of its parties, and no more"):
        lose_party(context, record, "harbour", "gone too")
    assert [loss.reason for loss in context.store.losses(study.digest())] == ["gone"]
    context.store.close()


Change = Callable[[dict[str, Any]], None]


def set_loss(**changes: Any) -> Change:
    return lambda manifest: manifest["losses"][0].update(changes)


def bring_back(manifest: dict[str, Any]) -> None:
    del manifest["queries"]["rows"]["present"]


def leave_out_another(manifest: dict[str, Any]) -> None:
    manifest["queries"]["rows"]["present"] = [0, 1, 2]


def add_header(manifest: dict[str, Any]) -> None:
    manifest["parties"]["north"]["steps"] = manifest["parties"]["harbour"]["steps"][:1]


TAMPERED: dict[str, Change] = {
    "no losses": lambda manifest: manifest.pop("losses"),
    "loss removed": lambda manifest: manifest["losses"].clear(),
    "another party": set_loss(party="harbour"),
    "nobody": set_loss(party="desert"),
    "another step": set_loss(since="rows"),
    "a number for a name": set_loss(party=1),
    "one too many": lambda manifest: manifest["losses"].append({**manifest["losses"][0], "party": "hill", "since": ""}),
    "twice": lambda manifest: manifest["losses"].append(manifest["losses"][0]),
    "back in a round": bring_back,
    "another left out": leave_out_another,
    "a header of the lost party": add_header,
}


def test_a_manifest_that_says_otherwise_of_losses_does_not_verify(tmp_path: Path) -> None:
    study, parties = make_case(tmp_path)
    run = Run(tmp_path, study, parties)
    run.dead = {"north": 0}
    assert run.go() is State.PUBLISHED
    verify_release(run.release, None)
    path = run.release / MANIFEST_FILE
    genuine = json.loads(path.read_bytes())
    assert genuine["parties"]["north"] == {"steps": [], "spent": "epsilon:0", "signature": ""}
    for name, change in TAMPERED.items():
        content = {key: deepcopy(value) for key, value in genuine.items() if key not in ("signer", "signature")}
        content = {key: content[key] for key in content if key in KEYS | {"losses"}}
        change(content)
        path.write_bytes(seal_manifest(content, identity_of(CURATOR)))
        with pytest.raises(SynodError) as caught:
            verify_release(run.release, None)
        assert caught.value.code is Code.CHECK_FAILED, name
    path.write_bytes(seal_manifest({key: genuine[key] for key in KEYS | {"losses"}}, identity_of(CURATOR)))
    verify_release(run.release, None)
