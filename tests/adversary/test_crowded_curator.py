"""A curator with many ended studies, uploads that never end and callers that call without end: the others notice none
of it. What is done is counted: steps of SQLite, bytes held, calls let in.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from synod.common.crypto.canonical import canonical_bytes
from synod.common.protocol.submission import head_statement
from synod.common.protocol.transcript import PROTOCOL
from synod.curator import store as store_module
from synod.curator.context import Context
from synod.curator.party_handler import MOST_CLOSING_MOVES
from synod.curator.rpc import PartyServicer
from synod.curator.store import Store
from synod.v1 import party_pb2 as pb
from tests.support.curators import CallOf, make_context
from tests.support.keys import identity_of
from tests.support.studies import make_study

FEW, MANY = 100, 3_000  # more than the studies that the store keeps parsed


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    context = make_context(tmp_path)
    yield context
    context.store.close()


def head_of(party: str, sequence: int = 1) -> pb.LedgerHead:
    """A head of a ledger as the party signs it."""
    identity, ledger = identity_of(party), bytes(32)
    signature = identity.sign("head", head_statement(sequence, ledger, ledger))
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
