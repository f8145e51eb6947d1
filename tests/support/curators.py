"""A curator without a network: a real store, a handler, and actors that make the moves that they are given."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

from synod.common.crypto.identity import Identity
from synod.common.protocol.queries import parse_query
from synod.common.protocol.submission import Submission
from synod.common.study.study import Study
from synod.curator.context import Changes, Context
from synod.curator.party_handler import DocumentKind, MoveKind, NextMove, PartyHandler
from synod.curator.session import Session
from synod.curator.store import Store
from synod.party.account import ApprovalState
from tests.support.parties import CURATOR, Actor, identity_of, paillier_key

MOST_STEPS = 2_000


class Clock:
    """Time that passes only when told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def make_context(folder: Path, clock: Clock | None = None, identity: Identity | None = None) -> Context:
    return Context(Store(folder), identity or identity_of(CURATOR), folder, Changes(), 1, clock or Clock())


def make_session(context: Context, study: Study) -> Session:
    return Session(context, study, paillier_key())


def hand_in(handler: PartyHandler, party: str, submission: Submission, payload: bytes) -> None:
    """What the gRPC shell does with an upload."""
    asked = handler.open_round(party, submission)
    handler.check(party, submission, asked, payload)
    handler.accept(party, submission, payload)


def stored_answer(actor: Actor, label: str) -> tuple[Submission, bytes]:
    stored = actor.ledger.answer(actor.study.digest(), label)
    assert stored is not None
    return Submission.from_json(stored.header), stored.payload


def make_move(handler: PartyHandler, actor: Actor, move: NextMove) -> None:
    """What a daemon does with a move."""
    study_hash = actor.study.digest()
    match move.kind:
        case MoveKind.ENROL:
            handler.enrol(study_hash, actor.secrets.enrolment(actor.name, identity_of(actor.name)))
        case MoveKind.ANSWER:
            if actor.ledger.answer(study_hash, move.label) is None:
                transcript = handler.document(actor.name, study_hash, DocumentKind.TRANSCRIPT, "")
                document = handler.document(actor.name, study_hash, DocumentKind.QUERY, move.label)
                query = parse_query(json.loads(document), actor.study)
                actor.answer(move.label, query, transcript)
            hand_in(handler, actor.name, *stored_answer(actor, move.label))
        case ended:
            actor.ledger.end_study(study_hash, ApprovalState(ended.value), now=9)
            handler.acknowledge(actor.name, study_hash)


async def play(context: Context, actors: Sequence[Actor], *, most_moves: int = 1_000) -> list[tuple[str, str, str]]:
    """Lets the actors make their moves, one at a time, until `most_moves` are made or all know of the end.

    Returns the moves: who, what, which round.
    """
    handler = PartyHandler(context)
    made: list[tuple[str, str, str]] = []
    ended: set[str] = set()
    for _ in range(MOST_STEPS):
        for actor in actors:
            for move in handler.moves(actor.name, set()):
                if len(made) >= most_moves:
                    return made
                make_move(handler, actor, move)
                made.append((actor.name, move.kind.value, move.label))
                if move.kind in (MoveKind.CLOSE_PUBLISHED, MoveKind.CLOSE_ABORTED):
                    ended.add(actor.name)
                await asyncio.sleep(0)
        if ended == {actor.name for actor in actors}:
            return made
        await asyncio.sleep(0.005)
    raise AssertionError(f"the study does not end: {made}")
