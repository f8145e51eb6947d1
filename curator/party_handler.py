"""What the curator does for a party's call, on plain values: moves, enrolment, submissions, declines.

The gRPC shell parses and replies; decisions are here. A caller is known by its certificate's name and believed only
as far as the identity that the roster pins has signed.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from synod.common.crypto.canonical import canonical_bytes
from synod.common.crypto.identity import fingerprint
from synod.common.protocol.notices import (
    LOST,
    DeclineReason,
    lost_to,
    require_acknowledgement,
    require_decline,
    sign_announcement,
    sign_end,
)
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.parsing import AnyQuery, answerers_of, read_query
from synod.common.protocol.signed_query import SignedQuery
from synod.common.protocol.submission import AnsweredStep, Submission
from synod.common.protocol.transcript import Enrolment, check_enrolment, read_transcript
from synod.common.runtime.errors import Code, SynodError, check_failed
from synod.curator.checks import AskedRound, check_account, check_header, check_payload
from synod.curator.context import Context
from synod.curator.events.event import EventKind, event_of
from synod.curator.records import PendingStudy, SeenHead, State, StudyRecord
from synod.curator.roster.losses import lose_revoked
from synod.curator.roster.rotation import Witnessed, followed_by, follows, learn_rotations, witness

T = TypeVar("T")


class MoveKind(Enum):
    """What a party may do: enrol, answer a round, or record a study's end."""

    ENROL = "enrol"
    ANSWER = "answer"
    CLOSE_PUBLISHED = "published"
    CLOSE_ABORTED = "aborted"
    CLOSE_LOST = "lost"


class DocumentKind(Enum):
    """What a party may fetch."""

    STUDY = "study"
    TRANSCRIPT = "transcript"


TOLD = {
    DeclineReason.REVOKED: "its operator revoked the approval",
    DeclineReason.CHECK_FAILED: "a check on its side failed; its operator sees which",
}
"""Reasons that end a study, in the words that others are told."""


MOST_ROUNDS = 64
MOST_CLOSING_MOVES = 64  # in one reply; the others come as these are acknowledged
CLOSING_MOVES = {State.PUBLISHED: MoveKind.CLOSE_PUBLISHED, State.ABORTED: MoveKind.CLOSE_ABORTED}


@dataclass(frozen=True, slots=True)
class NextMove:
    """What a party may do next in a study; that the study is there, or has ended, with the curator's signature. Who is
    asked to enrol is told who has.
    """

    study_hash: bytes
    name: str
    kind: MoveKind
    label: str = ""
    signature: bytes = b""
    enrolled: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Notice:
    """A party's word about a study, with the key and the signature that are to be checked."""

    party: str
    study_hash: bytes
    identity: bytes
    signature: bytes


class PartyHandler:
    """The curator's side of a party's calls."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._queries: dict[tuple[bytes, str], AnyQuery] = {}
        self._rounds: dict[tuple[bytes, str], AskedRound] = {}

    def see(self, party: str, identity: bytes, head: SeenHead) -> str:
        """Notes that a party called, and the head of its ledger if that is signed by an identity of a roster; returns
        the fingerprint of that identity, or nothing.
        """
        self._context.see(party)
        return self._note_head(party, identity, head)

    def _note_head(self, party: str, identity: bytes, head: SeenHead) -> str:
        if not self._store.is_pinned(party, fingerprint(identity)) or not head.is_signed_by(identity):
            return ""
        self._store.see_head(identity, head)
        return fingerprint(identity)

    def greet(self, party: str, identity: bytes, head: SeenHead, rotations: Sequence[bytes]) -> Witnessed:
        """Learns how the caller's identity was rotated, and says what was seen before of its ledger; that is told to an
        identity alone that a roster pins, or that followed such a one. Whoever only greets is not here for a sum: its
        ledger may be behind what it is told, or it is no daemon but a command that looks.
        """
        learn_rotations(self._store, party, rotations)
        told = witness(self._store, party, identity, head.ledger)
        return told if self._note_head(party, identity, head) else Witnessed(None, identity, ())

    def moves(self, party: str, signer: str, skip: set[bytes]) -> list[NextMove]:
        """The next moves of a party, one for each study at most; of ended studies those alone whose roster pins
        `signer`, the identity that has signed the caller's head, or one that it followed: no other could acknowledge
        the end. What it costs does not depend on how many studies of the party have ended.
        """
        self._context.skipped[party] = skip
        self._context.away.discard(party)
        keys = followed_by(self._store, party, signer)
        pending = self._store.pending_studies(party, keys, skip, most_ended=MOST_CLOSING_MOVES)
        return [move for study in pending if (move := self._move(party, study)) is not None]

    def leave(self, party: str) -> None:
        """Notes that a party's poll was cut off: it stopped, died, or lost the network."""
        self._context.away.add(party)

    def _move(self, party: str, pending: PendingStudy) -> NextMove | None:
        study_hash, name = pending.study_hash, pending.name
        if pending.outcome is not None and not self._ends_as_lost(party, study_hash, pending.outcome):
            signature = sign_end(self._context.identity, study_hash, pending.outcome.value)
            return NextMove(study_hash, name, CLOSING_MOVES[pending.outcome], signature=signature)
        if pending.outcome is not None:
            return self._close_lost(party, pending)
        if self._store.enrolment(study_hash, party) is None:
            signature = sign_announcement(self._context.identity, study_hash)
            enrolled = tuple(sorted(self._store.enrolled(study_hash)))
            return NextMove(study_hash, name, MoveKind.ENROL, signature=signature, enrolled=enrolled)
        query = self._store.unanswered(study_hash)
        if query is not None and self._is_awaited(party, study_hash, query.label):
            return NextMove(study_hash, name, MoveKind.ANSWER, query.label)
        return self._close_lost(party, pending) if self._is_lost(party, study_hash) else None

    def _close_lost(self, party: str, pending: PendingStudy) -> NextMove:
        signature = sign_end(self._context.identity, pending.study_hash, lost_to(party))
        return NextMove(pending.study_hash, pending.name, MoveKind.CLOSE_LOST, signature=signature)

    def _ends_as_lost(self, party: str, study_hash: bytes, outcome: State | None) -> bool:
        """Whether a study that goes on, or was published, did so without the party."""
        return outcome in (None, State.PUBLISHED) and self._is_lost(party, study_hash)

    def _is_awaited(self, party: str, study_hash: bytes, label: str) -> bool:
        """Whether an open round waits for the party's answer."""
        if self._store.submission(study_hash, label, party) is not None:
            return False
        record = self._store.study(study_hash)
        step = plan_study(record.study).step(label)
        return party in step.answerers and party in answerers_of(self._query(record, label), step, record.study)

    def _is_lost(self, party: str, study_hash: bytes) -> bool:
        return any(loss.party == party for loss in self._store.losses(study_hash))

    def require_known(self, party: str) -> None:
        """Refuses a caller that no study has on its roster."""
        if not self._store.is_on_a_roster(party):
            raise SynodError(
                Code.NOT_ON_ROSTER,
                f"{party} is on no roster of this curator.",
                "The certificate's name must be the roster's.",
            )

    def record_for(self, party: str, study_hash: bytes) -> StudyRecord:
        """A study, if the caller is on its roster."""
        record = self._store.study(study_hash)
        if not _is_on_roster(party, record):
            raise SynodError(
                Code.NOT_ON_ROSTER,
                f"{party} is not on the roster of {record.study.name}.",
                "The certificate's name must be the roster's.",
            )
        return record

    def enrol(self, study_hash: bytes, enrolment: Enrolment) -> None:
        """Takes a party's signed keys."""
        record = self.record_for(enrolment.name, study_hash)
        check_enrolment(enrolment, record.study, study_hash)
        if self._store.enrolment(study_hash, enrolment.name) == enrolment:
            return
        if record.outcome is not None:
            raise SynodError(Code.NOT_READY, f"{record.study.name} has ended ({record.outcome.value}).")
        self._store.add_enrolment(study_hash, enrolment)
        self._context.changes.announce(study_hash)
        now, enrolled = self._context.clock(), self._store.enrolled(study_hash)
        approved = event_of(EventKind.APPROVED, record.study, now=now, party=enrolment.name, enrolled=enrolled)
        self._context.tell(approved)

    def open_round(self, party: str, submission: Submission) -> AskedRound:
        """The round that a submission is for, its header checked (1 to 3).

        A submission that is stored already is welcome again, even after the study's end: the reply may be lost.
        """
        record = self.record_for(party, submission.study_hash)
        envelope = self._store.transcript(submission.study_hash)
        skipped = self._store.skipped(submission.study_hash)
        labels = [step.label for step in plan_study(record.study).steps if step.label not in skipped]
        has_ended = record.outcome is not None and not self.is_stored(party, submission)
        if envelope is None or submission.label not in labels or has_ended:
            raise SynodError(Code.NOT_READY, f"{record.study.name} has no such round open.")
        asked = self._round(record, submission.label, envelope)
        check_header(party, submission, asked)
        return asked

    def is_stored(self, party: str, submission: Submission) -> bool:
        """Whether this very submission is stored."""
        return self._store.submission(submission.study_hash, submission.label, party) == submission

    def _query(self, record: StudyRecord, label: str) -> AnyQuery:
        """The query of a round, read once: what the log holds of a round never changes."""
        return _remember(
            self._queries,
            (record.study_hash, label),
            lambda: read_query(json.loads(self._store.query(record.study_hash, label)), record.study),
        )

    def _round(self, record: StudyRecord, label: str, envelope: bytes) -> AskedRound:
        """A round under the study's transcript, of which there is one."""
        study = record.study
        return _remember(
            self._rounds,
            (record.study_hash, label),
            lambda: AskedRound.bind(
                study, read_transcript(envelope), plan_study(study).step(label), self._query(record, label)
            ),
        )

    def check(self, party: str, submission: Submission, asked: AskedRound, payload: bytes) -> None:
        """Checks an answer's bytes (4) and its countersignature; slow for a large answer, and free of side effects."""
        if self.is_stored(party, submission):
            return
        check_payload(party, submission, payload, asked)
        steps, curator = self._steps_so_far(party, asked), asked.transcript.curator
        check_account(party, submission, steps, asked.identity_of(party), curator)

    def accept(self, party: str, submission: Submission, payload: bytes) -> None:
        """Stores a checked answer, once (5). Until it polls again nobody knows whether its party is still there."""
        self._store.add_submission(party, submission, payload)
        self._context.away.add(party)
        self._context.changes.announce(submission.study_hash)

    def query(self, party: str, study_hash: bytes, label: str) -> SignedQuery:
        """The query of a round of a study that the caller is on, with the signature that the log has."""
        query = self._query(self.record_for(party, study_hash), label)
        return SignedQuery(query, self._store.query_signature(study_hash, label))

    def document(self, party: str, study_hash: bytes, kind: DocumentKind) -> bytes:
        """A document of a study that the caller is on."""
        record = self.record_for(party, study_hash)
        if kind is DocumentKind.STUDY:
            return canonical_bytes(record.study.to_json())
        envelope = self._store.transcript(study_hash)
        if envelope is None:
            raise SynodError(Code.NOT_READY, f"not all parties of {record.study.name} have enrolled yet.")
        return envelope

    def _steps_so_far(self, party: str, asked: AskedRound) -> list[AnsweredStep]:
        steps: list[AnsweredStep] = []
        for step in plan_study(asked.study).steps_of(party):
            if step.label == asked.step.label:
                return [*steps, AnsweredStep(step.label, asked.query_hash.hex(), step.cost)]
            earlier = self._store.submission(asked.transcript.study_hash, step.label, party)
            if earlier is None:
                raise check_failed(f"{party} has not answered the round {step.label} yet.")
            steps.append(AnsweredStep(step.label, earlier.query.hex(), step.cost))
        raise AssertionError("the step is the party's own")

    def decline(self, notice: Notice, reason: DeclineReason) -> None:
        """Takes a party's no: not (yet) approved is noted, anything else ends the study. A study that may lose a party
        goes on without one that has revoked its approval, and what a lost party declines changes nothing.

        A certificate alone cannot end one, nor what the party signed for another purpose or study: the identity that
        the roster pins must have signed this study and this reason.
        """
        record = self.record_for(notice.party, notice.study_hash)
        if reason is DeclineReason.NOT_APPROVED:  # shown to the curator's operator, and nothing rests on it
            self._store.add_not_approved(notice.study_hash, notice.party)
            return
        self._require_identity(notice, record)
        require_decline(notice.identity, notice.party, notice.study_hash, reason, notice.signature)
        if record.outcome is not None or self._is_lost(notice.party, notice.study_hash):
            return
        revoked = reason is DeclineReason.REVOKED
        if not (revoked and lose_revoked(self._context, record, notice.party, f"{TOLD[reason]}.")):
            self._context.end_study(record.study, State.ABORTED, f"{notice.party} declined: {TOLD[reason]}.")
            self._context.changes.announce(notice.study_hash, *(entry.name for entry in record.study.roster))

    def acknowledge(self, notice: Notice) -> None:
        """Notes that a party knows of a study's end, or that it goes on without it, so that it is told no more.

        A certificate alone cannot keep an end from a party, nor can an acknowledgement of another study or end; and
        nobody can acknowledge one that is still to come.
        """
        record = self.record_for(notice.party, notice.study_hash)
        self._require_identity(notice, record)
        if self._ends_as_lost(notice.party, notice.study_hash, record.outcome):
            outcome = LOST
        elif record.outcome is not None:
            outcome = record.outcome.value
        else:
            raise SynodError(Code.NOT_READY, f"{record.study.name} has not ended.", "Go on with it.")
        require_acknowledgement(notice.identity, notice.party, notice.study_hash, outcome, notice.signature)
        self._store.acknowledge(notice.study_hash, notice.party)

    def _require_identity(self, notice: Notice, record: StudyRecord) -> None:
        """The identity is the one that the roster pins, or one that it was rotated to since."""
        study, party = record.study, notice.party
        if not follows(self._store, party, study.roster[study.index_of(party)].key, fingerprint(notice.identity)):
            raise check_failed(f"the identity key of {party} is not the one on the roster of {study.name}.")


def _is_on_roster(party: str, record: StudyRecord) -> bool:
    return any(entry.name == party for entry in record.study.roster)


def _remember(known: dict[tuple[bytes, str], T], key: tuple[bytes, str], make: Callable[[], T]) -> T:
    """What is known by a study and a label, or is made now; few are kept."""
    if key not in known:
        if len(known) >= MOST_ROUNDS:
            known.clear()
        known[key] = make()
    return known[key]
