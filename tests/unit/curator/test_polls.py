"""Long polls: a change wakes those whom it gives something to do, nobody else, and never too late."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from synod.common.crypto.canonical import canonical_bytes
from synod.common.protocol.heads import Head
from synod.common.protocol.notices import DeclineReason
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.marginals import LocalMarginals
from synod.common.protocol.queries.moments import SumMoments
from synod.common.protocol.transcript import Enrolment
from synod.common.study.study import Study
from synod.curator.context import Changes, Context, Subject
from synod.curator.party_handler import NextMove, Notice, PartyHandler
from synod.curator.records import State
from synod.curator.rpc import PartyServicer
from synod.curator.session import Session
from synod.curator.study_handler import StudyHandler
from synod.v1 import party_pb2 as pb
from tests.support.curators import CallOf, acknowledged, declined, make_context, make_session, make_submission
from tests.support.keys import identity_of
from tests.support.parties import heads_of
from tests.support.studies import NAMES, make_study

SECONDS = 20.0

MOMENTS = canonical_bytes(SumMoments().to_json())


class Polls:
    """Everybody's long polls, and how often each looked for a move."""

    def __init__(self, context: Context, *parties: str) -> None:
        self.looks: Counter[str] = Counter()
        self.context = context
        self.servicer = PartyServicer(context)
        look = self.servicer._handler.moves

        def counted(party: str, signer: str, skip: set[bytes]) -> list[NextMove]:
            self.looks[party] += 1
            return look(party, signer, skip)

        self.servicer._handler.moves = counted  # type: ignore[method-assign]
        self.tasks = {party: asyncio.create_task(self.poll(party)) for party in parties}

    async def poll(self, party: str) -> list[Any]:
        request = pb.PullWorkRequest(head=head_of(party), wait_seconds=int(SECONDS))
        return list((await self.servicer.PullWork(request, CallOf(party))).moves)

    async def woken(self, change: Callable[[], object]) -> set[str]:
        """Whose polls look again after a change."""
        await settle()
        self.looks.clear()
        change()
        await settle()
        return set(self.looks)

    def answered(self) -> set[str]:
        """Whose polls have brought a move."""
        return {party for party, task in self.tasks.items() if task.done() and task.result()}


def head_of(party: str) -> pb.LedgerHead:
    identity, head = identity_of(party), Head(1, bytes(32), bytes(32))
    return pb.LedgerHead(
        sequence=head.sequence,
        hash=head.hash,
        ledger=head.ledger,
        identity=identity.public_key,
        signature=identity.sign("head", head.statement()),
    )


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def run(scene: Callable[[], Awaitable[None]]) -> None:
    async def timed() -> None:
        await asyncio.wait_for(scene(), SECONDS / 2)

    asyncio.run(timed())


@pytest.fixture
def study() -> Study:
    return make_study()


@pytest.fixture
def context(tmp_path: Path, study: Study) -> Iterator[Context]:
    """A curator with one study in which everybody has enrolled."""
    context = make_context(tmp_path)
    add_enrolled(context, study)
    yield context
    context.store.close()


def add_enrolled(context: Context, study: Study) -> None:
    context.store.add_study(study, now=1)
    for entry in study.roster:
        context.store.add_enrolment(
            study.digest(), Enrolment(entry.name, b"\1", b"\2", b"\3", heads_of(entry.name, study))
        )


def test_an_accepted_answer_wakes_the_session_and_no_party(context: Context, study: Study) -> None:
    async def scene() -> None:
        context.store.open_query(study.digest(), "moments", MOMENTS, signature=b"signed", now=2)
        context.store.add_submission("harbour", make_submission(study), b"answer")
        polls = Polls(context, "harbour", "valley", "ghost")
        session = asyncio.create_task(context.changes.wait(study.digest()))
        other = asyncio.create_task(context.changes.wait(bytes(32)))
        handler = PartyHandler(context)
        assert await polls.woken(lambda: handler.accept("north", make_submission(study), b"answer")) == set()
        assert (session.done(), other.done()) == (True, False)

    run(scene)


def test_a_round_wakes_those_who_answer_it(context: Context) -> None:
    """Here the first round is one party's; the study's other parties sleep on."""
    study = make_study(name="alone", method={"name": "independent"})
    add_enrolled(context, study)
    first = next(step for step in plan_study(study).steps if step.label == "tables-harbour")
    assert first.answerers == ("harbour",)

    async def scene() -> None:
        polls = Polls(context, *NAMES)
        session = make_session(context, study)
        await session._fix_transcript()
        asked: list[asyncio.Task[Any]] = []
        query = LocalMarginals(((0,),))
        woken = await polls.woken(lambda: asked.append(asyncio.create_task(session.ask_one(first.label, query))))
        assert woken == {"harbour"}
        assert polls.answered() == {"harbour"}

    run(scene)


def test_an_end_wakes_the_whole_roster_and_the_session(context: Context, study: Study) -> None:
    async def scene() -> None:
        polls = Polls(context, *NAMES, "ghost")
        session = asyncio.create_task(context.changes.wait(study.digest()))
        handler, revoked = PartyHandler(context), DeclineReason.REVOKED
        assert await polls.woken(lambda: handler.decline(declined("north", study, revoked), revoked)) == set(NAMES)
        assert polls.answered() == set(NAMES)
        assert session.done()

    run(scene)


def test_a_no_that_is_only_noted_wakes_nobody(context: Context, study: Study) -> None:
    async def scene() -> None:
        polls = Polls(context, *NAMES)
        handler, notice = PartyHandler(context), Notice("north", study.digest(), b"", b"")
        assert await polls.woken(lambda: handler.decline(notice, DeclineReason.NOT_APPROVED)) == set()
        context.store.end_study(study.digest(), State.ABORTED)
        assert await polls.woken(lambda: handler.acknowledge(acknowledged("north", study, "aborted"))) == set()

    run(scene)


@pytest.mark.parametrize("by", ["the session", "the operator"])
def test_whoever_ends_a_study_tells_its_roster(context: Context, study: Study, by: str) -> None:
    async def scene() -> None:
        polls = Polls(context, *NAMES, "ghost")
        session, studies = make_session(context, study), StudyHandler(context)
        ends: dict[str, Callable[[], object]] = {
            "the session": lambda: session._end(State.PUBLISHED),
            "the operator": lambda: studies.abort(study.name, by="ops"),
        }
        waiting = asyncio.create_task(context.changes.wait(study.digest()))
        assert await polls.woken(ends[by]) == set(NAMES)
        assert polls.answered() == set(NAMES)
        assert waiting.done() == (by == "the operator")

    run(scene)


def test_a_new_study_wakes_its_roster(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    second = make_study(name="second", names=("north", "desert"), rows=(40, 7))

    async def no_key(self: StudyHandler, study: Study) -> None:
        """Without a Paillier key, and so without a session."""

    monkeypatch.setattr(StudyHandler, "_make_key", no_key)
    monkeypatch.setattr(StudyHandler, "_start", lambda self, study: None)

    async def scene() -> None:
        polls = Polls(context, *NAMES, "desert")
        document = canonical_bytes(second.to_json())
        woken = await polls.woken(lambda: asyncio.ensure_future(StudyHandler(context).submit(document)))
        assert woken == {"north", "desert"}
        assert polls.answered() == {"north", "desert"}

    run(scene)


def test_what_changes_while_a_poll_looks_is_not_missed(context: Context, study: Study) -> None:
    """The round opens after the look and before the wait: the poll looks again, long before its time is over."""

    async def scene() -> None:
        polls = Polls(context, "north")
        look = polls.servicer._handler.moves

        def open_after(party: str, signer: str, skip: set[bytes]) -> list[NextMove]:
            found = look(party, signer, skip)
            if not context.store.unanswered(study.digest()):
                context.store.open_query(study.digest(), "moments", MOMENTS, signature=b"signed", now=2)
                asyncio.get_running_loop().call_soon(context.changes.announce, "north")
            return found

        polls.servicer._handler.moves = open_after  # type: ignore[method-assign]
        (move,) = await polls.tasks["north"]
        assert (move.kind, move.label) == (pb.MOVE_KIND_ANSWER, "moments")
        assert polls.looks["north"] == 2

    run(scene)


@pytest.mark.parametrize("seconds", [None, SECONDS])
def test_a_wait_listens_from_its_first_instruction_on(seconds: float | None) -> None:
    async def scene() -> None:
        changes = Changes()
        waiting = asyncio.create_task(changes.wait("north", seconds))
        await asyncio.sleep(0)  # it has begun, and not gone on
        changes.announce("north")
        await waiting

    run(scene)


def test_stopping_ends_every_poll_and_wakes_every_session(context: Context, study: Study) -> None:
    async def scene() -> None:
        polls = Polls(context, *NAMES)
        session = asyncio.create_task(context.changes.wait(study.digest()))
        assert await polls.woken(context.changes.close) == set(NAMES)
        assert session.done()
        assert [await task for task in polls.tasks.values()] == [[], [], []]
        assert await polls.poll("north") == []

    run(scene)


def test_a_wait_ends_with_its_time() -> None:
    async def scene() -> None:
        changes = Changes()
        await changes.wait("north", 0.001)
        waiting = asyncio.create_task(changes.wait("north", SECONDS))
        await settle()
        changes.announce("north")
        await waiting

    run(scene)


def test_a_session_announces_to_parties_alone(context: Context, study: Study) -> None:
    """Nobody but itself waits for its study, so it need not wake itself."""
    told: list[tuple[Subject, ...]] = []

    class Noted(Changes):
        def announce(self, *subjects: Subject) -> None:
            told.append(subjects)
            super().announce(*subjects)

    async def scene() -> None:
        noted = Context(context.store, context.identity, context.folder, Noted(), 1, context.clock)
        session: Session = make_session(noted, study)
        await session._fix_transcript()
        assert told == []
        session._end(State.ABORTED, "why")
        assert told == [NAMES]

    run(scene)
