"""Whole studies that lose a party: a real store, handler, session and ledgers; the dead party just stops calling."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from synod.common.protocol.transcript import seal_transcript
from synod.common.study.study import Study
from synod.curator.context import Context
from synod.curator.party_handler import MoveKind, PartyHandler
from synod.curator.records import State
from synod.curator.roster.losses import awaited_answers, lose_party
from tests.support.curators import (
    Clock,
    make_context,
    make_move,
    make_session,
)
from tests.support.parties import PartyUnderTest, make_transcript, open_parties
from tests.support.studies import LINEAR, binary, categorical, make_study

MOST_SECONDS = 120
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
    "distdiffgen": {"name": "distdiffgen", "theta": "0.01"},
}


def make_case(folder: Path, method: str = "hpdp-dp", **changes: Any) -> tuple[Study, list[PartyUnderTest]]:
    usual: dict[str, Any] = {"names": NAMES, "rows": ROWS, "schema": SCHEMA, "epsilon": "40"}
    study = make_study(**{**usual, "may_lose": 1, "method": METHODS[method], **changes})
    return study, open_parties(folder / "parties", study)


class Run:
    """A study that is run; a party is dead from the given number of its answers on, and given up when nothing else is
    waited for. What is compared never depends on how fast the session is.
    """

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
        handler, moves = PartyHandler(context), 0
        task = asyncio.create_task(make_session(context, self.study).run())
        try:
            while True:
                clock.now += 10
                for party in self.parties:
                    if self.is_dead(party) and context.store.enrolment(self.study.digest(), party.name):
                        continue
                    context.see(party.name)
                    for move in handler.moves(party.name, party.identity.fingerprint, set()):
                        make_move(handler, party, move)
                        self.told.append((party.name, move.kind))
                        moves += 1
                        if self.is_dead(party):
                            context.sightings.pop(party.name)
                        if moves >= kill_after:
                            return None
                        await asyncio.sleep(0)
                record = context.store.study(self.study.digest())
                if record.outcome is not None:
                    await asyncio.gather(task, return_exceptions=True)
                    return record.outcome
                if blocking := self.blocking(context):
                    if not self.gives_up:
                        return None
                    self.give_up(context, blocking)
                await asyncio.sleep(0.004)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            context.store.close()

    def blocking(self, context: Context) -> tuple[str, ...]:
        """The dead parties that the study waits for, if it waits for nobody else."""
        record = context.store.study(self.study.digest())
        query, gathering = context.store.unanswered(record.study_hash), context.gathering.get(record.study_hash)
        awaited = awaited_answers(context.store, record, query) if query else gathering.parties if gathering else ()
        dead = {party.name for party in self.parties if self.is_dead(party)}
        return awaited if dead.issuperset(awaited) else ()

    def give_up(self, context: Context, names: Sequence[str]) -> None:
        record = context.store.study(self.study.digest())
        self.effects += [lose_party(context, record, name, "its server burned down") for name in names]

    def go(self, kill_after: int = 10_000) -> State | None:
        """Runs to the end, or, with None, until so many moves are made or, if nobody is given up, nothing moves."""
        return asyncio.run(asyncio.wait_for(self._go(kill_after), MOST_SECONDS))

    @property
    def release(self) -> Path:
        return self.folder / "curator" / "releases" / self.study.digest().hex()


def seal_of(study: Study, parties: Sequence[PartyUnderTest], context: Context) -> bytes:
    return seal_transcript(make_transcript(study, parties), context.identity)
