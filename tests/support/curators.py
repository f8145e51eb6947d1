"""A curator without a network: a real store, handler and session, and parties that make the moves they are given."""

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from synod.common.crypto.canonical import canonical_bytes
from synod.common.crypto.identity import Identity
from synod.common.protocol.notices import DeclineReason, sign_acknowledgement, sign_decline
from synod.common.protocol.queries.moments import SumMoments
from synod.common.protocol.submission import Submission, digest_of
from synod.common.protocol.transcript import seal_transcript
from synod.common.study.study import Study
from synod.curator.context import Changes, Context
from synod.curator.party_handler import DocumentKind, MoveKind, NextMove, Notice, PartyHandler
from synod.curator.session import Session
from synod.curator.store import Store
from synod.party.account import ApprovalState
from tests.support.keys import CURATOR, identity_of, paillier_key
from tests.support.parties import PartyUnderTest, make_transcript, open_parties

MOST_STEPS = 2_000
WAIT_SECONDS = 60

Made = tuple[str, str, str]
"""A move that was made: who, what, which round."""


@dataclass(frozen=True, slots=True)
class CallOf:
    """A call that came with a certificate."""

    name: str

    def auth_context(self) -> dict[str, list[bytes]]:
        """The caller's name as gRPC tells it."""
        return {"peer_uri": [f"synod:party:{self.name}".encode()]}


class Clock:
    """Time that passes only when told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def make_context(folder: Path, clock: Clock | None = None, identity: Identity | None = None) -> Context:
    """What the curator's handlers and sessions share; needs a running event loop."""
    return Context(Store(folder), identity or identity_of(CURATOR), folder, Changes(), 1, clock or Clock())


def make_session(context: Context, study: Study) -> Session:
    """The session of one study."""
    return Session(context, study, paillier_key())


def make_submission(study: Study, payload: bytes = b"answer", label: str = "moments") -> Submission:
    """A submission as a store keeps it; its signatures are nobody's."""
    return Submission(
        study.digest(), b"\4" * 32, label, b"\5" * 32, b"\6" * 32, len(payload), digest_of(payload), b"\7", b"\x08"
    )


def enrol_all(handler: PartyHandler, study: Study, parties: Sequence[PartyUnderTest]) -> None:
    """Everybody enrols."""
    for party in parties:
        handler.enrol(study.digest(), party.enrolment())


def open_moments(context: Context, study: Study, parties: Sequence[PartyUnderTest]) -> None:
    """As the session does it: the transcript is fixed, then the first query is logged."""
    enrol_all(PartyHandler(context), study, parties)
    envelope = seal_transcript(make_transcript(study, parties), context.identity)
    context.store.fix_transcript(study.digest(), envelope)
    body = canonical_bytes(SumMoments().to_json())
    context.store.open_query(study.digest(), "moments", body, signature=b"signed", now=6)


def hand_in(handler: PartyHandler, party: str, submission: Submission, payload: bytes) -> None:
    """What the gRPC shell does with an upload."""
    asked = handler.open_round(party, submission)
    handler.check(party, submission, asked, payload)
    handler.accept(party, submission, payload)


def stored_answer(party: PartyUnderTest, label: str) -> tuple[Submission, bytes]:
    """The party's answer as it hands it in."""
    stored = party.ledger.answer(party.study.digest(), label)
    assert stored is not None
    return Submission.from_json(stored.header), stored.payload


def declined(party: str, study: Study, reason: DeclineReason, signer: str | None = None) -> Notice:
    """A party's no, as its daemon signs it; or as somebody else does."""
    identity = identity_of(signer or party)
    signature = sign_decline(identity, party, study.digest(), reason)
    return Notice(party, study.digest(), identity.public_key, signature)


def acknowledged(party: str, study: Study, outcome: str, signer: str | None = None) -> Notice:
    """A party's word that it knows of an end, as its daemon signs it; or as somebody else does."""
    identity = identity_of(signer or party)
    signature = sign_acknowledgement(identity, party, study.digest(), outcome)
    return Notice(party, study.digest(), identity.public_key, signature)


def make_move(handler: PartyHandler, party: PartyUnderTest, move: NextMove) -> None:
    """What a daemon does with a move."""
    study_hash = party.study.digest()
    match move.kind:
        case MoveKind.ENROL:
            handler.enrol(study_hash, party.enrolment())
        case MoveKind.ANSWER:
            transcript = handler.document(party.name, study_hash, DocumentKind.TRANSCRIPT)
            asked = handler.query(party.name, study_hash, move.label)
            party.answer(transcript, asked.query.to_proto(), move.label, asked.signature)
            hand_in(handler, party.name, *stored_answer(party, move.label))
        case ended:
            party.ledger.end_study(study_hash, ApprovalState(ended.value), now=9)
            handler.acknowledge(acknowledged(party.name, party.study, ended.value))


async def make_moves(context: Context, parties: Sequence[PartyUnderTest], *, most_moves: int = 1_000) -> list[Made]:
    """Lets the parties make their moves, one at a time, until `most_moves` are made or all know of the end."""
    handler = PartyHandler(context)
    made: list[Made] = []
    ended: set[str] = set()
    for _ in range(MOST_STEPS):
        for party in parties:
            context.see(party.name)
            for move in handler.moves(party.name, party.identity.fingerprint, set()):
                if len(made) >= most_moves:
                    return made
                make_move(handler, party, move)
                made.append((party.name, move.kind.value, move.label))
                if move.kind in (MoveKind.CLOSE_PUBLISHED, MoveKind.CLOSE_ABORTED):
                    ended.add(party.name)
                await asyncio.sleep(0)
        if ended == {party.name for party in parties}:
            return made
        await asyncio.sleep(0.005)
    raise AssertionError(f"the study does not end: {made}")


async def _run_study(folder: Path, study: Study, parties: Sequence[PartyUnderTest], stops: Sequence[int]) -> list[Made]:
    made: list[Made] = []
    for most_moves in (*stops, 1_000):
        context = make_context(folder)
        context.store.add_study(study, now=5)
        task = asyncio.create_task(make_session(context, study).run())
        made += await make_moves(context, parties, most_moves=most_moves)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        context.store.close()
    return made


def run_study(folder: Path, study: Study, parties: Sequence[PartyUnderTest], stops: Sequence[int] = ()) -> list[Made]:
    """Runs a study to its end; after each number of moves in `stops` the curator is gone and comes back."""
    return asyncio.run(asyncio.wait_for(_run_study(folder, study, parties, stops), WAIT_SECONDS))


def approve_everywhere(folder: Path, study: Study) -> Path:
    """Makes a ledger for everybody on the roster, and closes them all; `copy_parties` works on copies."""
    for party in open_parties(folder, study):
        party.ledger.close()
    return folder


def copy_parties(study: Study, ledgers: Path, folder: Path) -> list[PartyUnderTest]:
    """Everybody over copies of their ledgers."""
    shutil.copytree(ledgers, folder)
    return open_parties(folder, study)


def release_files(folder: Path, study: Study) -> dict[str, bytes]:
    """The files of a release that the curator of `folder` has published."""
    return {path.name: path.read_bytes() for path in (folder / "releases" / study.digest().hex()).iterdir()}
