"""A curator with many ended studies, uploads that never end and callers that call without end: the others notice none
of it. What is done is counted: steps of SQLite, bytes held, calls let in.
"""

import asyncio
import tempfile
import threading
import time
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

import grpc
import pytest

from synod.common.crypto.canonical import canonical_bytes
from synod.common.protocol.heads import Head
from synod.common.protocol.submission import Submission
from synod.common.protocol.transcript import PROTOCOL
from synod.common.runtime.wire import CHUNK_BYTES, chunks_of
from synod.common.study.study import Study
from synod.curator import rpc as rpc_module
from synod.curator import store as store_module
from synod.curator.context import Context
from synod.curator.party_handler import MOST_CLOSING_MOVES, PartyHandler
from synod.curator.records import State
from synod.curator.rpc import CHECKED_AT_ONCE, PartyServicer
from synod.curator.store import Store
from synod.v1 import party_pb2 as pb
from tests.support.curators import CallOf, make_context, open_moments, stored_answer
from tests.support.keys import identity_of
from tests.support.parties import PartyUnderTest, make_transcript, open_parties, seal
from tests.support.studies import make_study

SECONDS = 30.0
FEW, MANY = 100, 3_000  # more than the studies that the store keeps parsed


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    context = make_context(tmp_path)
    yield context
    context.store.close()


def head_of(party: str, sequence: int = 1) -> pb.LedgerHead:
    """A head of a ledger as the party signs it."""
    identity, ledger = identity_of(party), bytes(32)
    signature = identity.sign("head", Head(sequence, ledger, ledger).statement())
    return pb.LedgerHead(
        sequence=sequence, hash=ledger, ledger=ledger, identity=identity.public_key, signature=signature
    )


# Ended studies


def add_ended(store: Store, count: int, *, acknowledged: bool) -> None:
    """Studies that have ended; each has a document of its own, as parsing is what a look at it costs."""
    study = make_study()
    content, entries = study.to_json(), [(entry.name, entry.key) for entry in study.roster]
    with store._transaction():
        (first,) = store._connection.execute("SELECT count(*) FROM studies").fetchone()
        for number in range(first, first + count):
            study_hash = number.to_bytes(32, "big")
            document = canonical_bytes({**content, "name": f"ended-{number}"})
            store._connection.execute(
                "INSERT INTO studies VALUES (?, ?, ?, ?, 'published', '')",
                (study_hash, f"ended-{number}", document, number),
            )
            store._connection.executemany(
                "INSERT INTO rosters VALUES (?, ?, ?, ?)",
                [(name, study_hash, key, int(acknowledged)) for name, key in entries],
            )


@contextmanager
def counted_steps(store: Store) -> Iterator[list[int]]:
    """How many steps SQLite's machine makes: what it reads, and not how fast."""
    steps = [0]

    def count() -> int:
        steps[0] += 1
        return 0

    store._connection.set_progress_handler(count, 1)
    try:
        yield steps
    finally:
        store._connection.set_progress_handler(None, 0)


def poll(context: Context, head: pb.LedgerHead, *skip: bytes) -> list[Any]:
    servicer = PartyServicer(context)

    async def calls() -> list[Any]:
        greeting = await servicer.Greet(pb.GreetRequest(protocol=PROTOCOL, head=head), CallOf("north"))
        assert greeting.protocol == PROTOCOL
        work = await servicer.PullWork(pb.PullWorkRequest(head=head, skip=skip), CallOf("north"))
        return list(work.moves)

    return asyncio.run(calls())


def cost_of_polls(context: Context, head: pb.LedgerHead, *skip: bytes) -> tuple[int, int]:
    """Steps of SQLite and studies parsed by a greeting and a poll."""
    store_module._parse.cache_clear()
    with counted_steps(context.store) as steps:
        poll(context, head, *skip)
    return steps[0], store_module._parse.cache_info().misses


@pytest.mark.parametrize("acknowledged", [True, False], ids=["acknowledged", "not acknowledged"])
@pytest.mark.parametrize("signer", ["north", "ghost"])
def test_greetings_and_polls_cost_the_same_whatever_has_ended(
    context: Context, acknowledged: bool, signer: str
) -> None:
    """A party that was away for years, too, and a caller that has the certificate but another identity."""
    context.store.add_study(make_study(), now=5)
    add_ended(context.store, FEW, acknowledged=acknowledged)
    poll(context, head_of(signer))  # the head is stored now
    few = cost_of_polls(context, head_of(signer))
    add_ended(context.store, MANY - FEW, acknowledged=acknowledged)
    many = cost_of_polls(context, head_of(signer))
    assert few[1] == many[1] == 0
    assert many[0] <= 1.1 * few[0]


def test_skipping_costs_what_the_caller_sends(context: Context) -> None:
    context.store.add_study(make_study(), now=5)
    skip = [number.to_bytes(32, "big") for number in range(1, FEW)]
    add_ended(context.store, 2 * FEW, acknowledged=False)
    poll(context, head_of("north"))
    few = cost_of_polls(context, head_of("north"), *skip)
    add_ended(context.store, MANY, acknowledged=False)
    assert cost_of_polls(context, head_of("north"), *skip)[0] <= 1.1 * few[0]
    assert not {move.study_hash for move in poll(context, head_of("north"), *skip)} & set(skip)


def test_a_party_that_was_away_is_told_of_every_end(context: Context) -> None:
    """Some at a time, and the open study each time."""
    study = make_study()
    context.store.add_study(study, now=5)
    add_ended(context.store, FEW, acknowledged=False)
    told: set[bytes] = set()
    for _ in range(2 + FEW // MOST_CLOSING_MOVES):
        first, *closing = poll(context, head_of("north"))
        assert first.study_hash == study.digest()
        assert len(closing) <= MOST_CLOSING_MOVES
        for move in closing:
            told.add(move.study_hash)
            context.store.acknowledge(move.study_hash, "north")
    assert len(told) == FEW


# Uploads


class Refused(Exception):  # noqa: N818
    """A call that the curator has ended with a status."""


class Call(CallOf):
    """A call that can be refused."""

    async def abort(self, code: grpc.StatusCode, details: str, trailing_metadata: object) -> None:
        raise Refused(code.name, details)


@dataclass
class Chunk:
    """A `SubmitRequest` with a chunk, whose bytes are Python's own, so that they can be counted."""

    chunk: bytes

    def WhichOneof(self, group: str) -> str:
        return "chunk"


@dataclass
class Sender:
    """What one party sends in an upload; it waits after its parts until it is told to end."""

    header: pb.SubmissionHeader
    chunks: int = 1
    chunk_bytes: int = CHUNK_BYTES
    sent: int = 0
    ends: asyncio.Event = field(default_factory=asyncio.Event)

    async def __aiter__(self) -> AsyncIterator[Any]:
        self.sent += 1
        yield pb.SubmitRequest(header=self.header)
        for _ in range(self.chunks):
            self.sent += 1
            yield Chunk(bytes(self.chunk_bytes))
        await self.ends.wait()


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def run(scene: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scene(), SECONDS))


def whole(submission: Submission, payload: bytes, party: str) -> AsyncIterator[pb.SubmitRequest]:
    """A sound upload."""

    async def parts() -> AsyncIterator[pb.SubmitRequest]:
        yield pb.SubmitRequest(header=write_header(submission, party))
        for chunk in chunks_of(payload):
            yield pb.SubmitRequest(chunk=chunk)

    return parts()


def write_header(submission: Submission, party: str) -> pb.SubmissionHeader:
    return pb.SubmissionHeader(**asdict(submission), head=head_of(party))


@pytest.fixture(scope="module")
def parties(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[PartyUnderTest]]:
    """Everybody has answered the first round, in their own ledgers."""
    study = make_study()
    made = open_parties(tmp_path_factory.mktemp("ledgers"), study)
    document = seal(make_transcript(study, made))
    for party in made:
        party.answer(document)
    yield made
    for party in made:
        party.ledger.close()


@pytest.fixture
def servicer(context: Context, parties: list[PartyUnderTest]) -> PartyServicer:
    """A curator that waits for everybody's answer to the first round."""
    study = parties[0].study
    context.store.add_study(study, now=5)
    open_moments(context, study, parties)
    return PartyServicer(context)


def submit(servicer: PartyServicer, party: PartyUnderTest) -> Awaitable[pb.SubmitResponse]:
    answer = whole(*stored_answer(party, "moments"), party.name)
    return servicer.Submit(answer, Call(party.name))


def stored(context: Context, study: Study) -> set[str]:
    return context.store.submitters(study.digest(), "moments")


def hanging(servicer: PartyServicer, party: PartyUnderTest) -> tuple[Sender, "asyncio.Task[pb.SubmitResponse]"]:
    """An upload that has begun and does not end."""
    submission, _ = stored_answer(party, "moments")
    sender = Sender(write_header(submission, party.name), chunk_bytes=1)
    return sender, asyncio.ensure_future(servicer.Submit(aiter(sender), Call(party.name)))


def test_a_party_has_one_upload_for_a_round_and_hinders_nobody_else(
    servicer: PartyServicer, context: Context, parties: list[PartyUnderTest]
) -> None:
    north, harbour, _ = parties

    async def scene() -> None:
        _, first = hanging(servicer, north)
        await settle()
        for _ in range(3):
            with pytest.raises(Refused, match="another upload of north for round moments is under way"):
                await submit(servicer, north)
        await submit(servicer, harbour)
        assert stored(context, north.study) == {"harbour"}
        first.cancel()  # as gRPC does when the connection is lost
        await settle()
        await submit(servicer, north)
        assert stored(context, north.study) == {"north", "harbour"}

    run(scene)


def test_an_upload_that_fails_makes_room_for_the_next(
    servicer: PartyServicer, context: Context, parties: list[PartyUnderTest]
) -> None:
    north = parties[0]

    async def scene() -> None:
        submission, payload = stored_answer(north, "moments")
        for bad, words in ((payload[:-1], "not the one that its header describes"), (payload + b"x", "longer than")):
            with pytest.raises(Refused, match=words):
                await servicer.Submit(whole(submission, bad, "north"), Call("north"))
        await submit(servicer, north)
        assert stored(context, north.study) == {"north"}

    run(scene)


def test_an_upload_that_takes_too_long_ends(
    servicer: PartyServicer, parties: list[PartyUnderTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rpc_module, "UPLOAD_SECONDS", 0.05)

    async def scene() -> None:
        with pytest.raises(Refused, match="the upload took too long"):
            await hanging(servicer, parties[0])[1]
        monkeypatch.setattr(rpc_module, "UPLOAD_SECONDS", SECONDS)
        await submit(servicer, parties[0])

    run(scene)


def test_of_a_name_on_no_roster_nothing_is_read(servicer: PartyServicer, parties: list[PartyUnderTest]) -> None:
    async def scene() -> None:
        submission, _ = stored_answer(parties[0], "moments")
        sender = Sender(write_header(submission, "north"))
        with pytest.raises(Refused, match="ghost is on no roster of this curator"):
            await servicer.Submit(aiter(sender), Call("ghost"))
        assert sender.sent == 0

    run(scene)


def test_of_an_answer_that_is_stored_only_the_header_is_read(
    servicer: PartyServicer, context: Context, parties: list[PartyUnderTest]
) -> None:
    async def scene() -> None:
        await submit(servicer, parties[0])
        for _ in range(2):  # the second time after the end
            sender, again = hanging(servicer, parties[0])
            assert (await again).digest == stored_answer(parties[0], "moments")[0].digest
            assert sender.sent == 1
            context.store.end_study(parties[0].study.digest(), State.ABORTED, "why")

    run(scene)


def test_an_answer_that_is_whole_after_the_end_leaves_no_payload(
    servicer: PartyServicer, context: Context, parties: list[PartyUnderTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The study ends while the answer is checked: its round was open when its header came."""
    study, check = parties[0].study, PartyHandler.check

    def end_then_check(self: PartyHandler, *arguments: Any) -> None:
        context.store.end_study(study.digest(), State.ABORTED, "why")
        check(self, *arguments)

    monkeypatch.setattr(PartyHandler, "check", end_then_check)

    async def scene() -> None:
        with pytest.raises(Refused, match="the study has ended"):
            await submit(servicer, parties[0])

    run(scene)
    assert context.store._rows("SELECT * FROM submissions") == []


def test_a_full_disk_is_told_and_nothing_is_stored(
    servicer: PartyServicer, context: Context, parties: list[PartyUnderTest], monkeypatch: pytest.MonkeyPatch
) -> None:

    def take_no_byte(**_: object) -> IO[bytes]:
        return Path("/dev/full").open("wb", buffering=0)

    monkeypatch.setattr(tempfile, "TemporaryFile", take_no_byte)

    async def scene() -> None:
        with pytest.raises(Refused, match="the curator cannot keep the answer"):
            await submit(servicer, parties[0])

    run(scene)
    assert stored(context, parties[0].study) == set()


# What is held of uploads


@pytest.fixture
def unchecked(context: Context, monkeypatch: pytest.MonkeyPatch) -> PartyServicer:
    """A curator that takes any header, so that many and large uploads are possible."""
    context.store.add_study(make_study(), now=5)
    monkeypatch.setattr(PartyHandler, "open_round", lambda *_: None)
    monkeypatch.setattr(PartyHandler, "is_stored", lambda *_: False)
    return PartyServicer(context)


def begin(servicer: PartyServicer, count: int, chunks: int) -> tuple[list[Sender], list["asyncio.Task[Any]"]]:
    length = 2 * chunks * CHUNK_BYTES
    senders = [
        Sender(pb.SubmissionHeader(label=f"round-{number}", length=length, head=head_of("north")), chunks)
        for number in range(count)
    ]
    return senders, [asyncio.ensure_future(servicer.Submit(aiter(sender), Call("north"))) for sender in senders]


def test_unfinished_uploads_hold_no_bytes_in_memory(unchecked: PartyServicer, tmp_path: Path) -> None:
    uploads, chunks = 80, 2

    async def scene() -> None:
        tracemalloc.start()
        try:
            senders, tasks = begin(unchecked, uploads, chunks)
            while any(sender.sent <= chunks for sender in senders):
                await asyncio.sleep(0)
            await settle()
            held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert held < uploads * chunks * CHUNK_BYTES / 20
        assert not any(task.done() for task in tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run(scene)
    assert {path.name.split("-")[0] for path in tmp_path.iterdir()} == {"store.sqlite"}


def test_few_answers_are_in_memory_whole_at_once(unchecked: PartyServicer, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[int] = []
    within, lock = [0], threading.Lock()

    def slow_check(*_: object) -> None:
        with lock:
            within[0] += 1
            reads.append(within[0])
        time.sleep(0.02)
        with lock:
            within[0] -= 1

    monkeypatch.setattr(PartyHandler, "check", slow_check)
    monkeypatch.setattr(PartyHandler, "accept", lambda *_: None)

    async def scene() -> None:
        senders, tasks = begin(unchecked, 12, 1)
        for sender in senders:
            sender.ends.set()
        await asyncio.gather(*tasks)

    run(scene)
    assert len(reads) == 12
    assert max(reads) <= CHECKED_AT_ONCE
