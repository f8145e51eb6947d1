"""The daemon: dials out, pulls moves, makes them. It decides when, never what.

It may be killed at any moment: every move is idempotent, and an answer is in the ledger before it leaves.
"""

import logging
import random
import threading
from collections.abc import Callable
from datetime import UTC, datetime

from synod.common.crypto.certificates import ExpiryReminder
from synod.common.crypto.identity import Identity, fingerprint, verify
from synod.common.protocol.heads import Head, LedgerBehindError
from synod.common.protocol.notices import DeclineReason, lost_to, require_announcement, require_end
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.parsing import QUERIES, parse_query
from synod.common.protocol.signed_query import SignedQuery
from synod.common.protocol.submission import Submission
from synod.common.protocol.transcript import PROTOCOL
from synod.common.runtime.errors import Code, SynodError, refused
from synod.common.runtime.settings import PartySettings
from synod.common.study.study import Study
from synod.party.account import ApprovalState
from synod.party.approval import check_study, reserve, snapshot_folder
from synod.party.client import CuratorClient, Greeting
from synod.party.inbox.announced import forget_announced, hear_again, keep_announced, read_announced_study
from synod.party.ledger import Ledger
from synod.party.rotation import check_not_rotated, own_keys
from synod.party.rounds import Responder, answer_round, check_round, enrol, next_step, open_approval, read_agreed
from synod.party.table.encode import TableError
from synod.party.table.snapshot import drop_snapshot, load_snapshot
from synod.v1 import party_pb2 as pb

log = logging.getLogger("synod.party")

WAIT_SECONDS = 20
RECHECK_SECONDS = 2
LONGEST_BACKOFF_SECONDS = 30.0
LARGEST_SKEW_SECONDS = 300
HASH_BYTES = 32
ANOTHER_CURATOR = "Compare fingerprints by phone; if it sent a rotation, see `synod party accept-rotation --help`."
MOST_COMPLAINTS = 10_000
RETRIED = (Code.UNREACHABLE, Code.UNAUTHENTICATED, Code.STORAGE, Code.INTERNAL)
OUTCOMES = {
    pb.MOVE_KIND_CLOSE_PUBLISHED: ApprovalState.PUBLISHED,
    pb.MOVE_KIND_CLOSE_ABORTED: ApprovalState.ABORTED,
    pb.MOVE_KIND_CLOSE_LOST: ApprovalState.LOST,
}


class Daemon:
    """One party's daemon over one ledger. `waiting_since` says of studies that wait for something here, by hash, since
    when; it is replaced and never changed, so that another thread may read it.
    """

    def __init__(
        self,
        settings: PartySettings,
        ledger: Ledger,
        identity: Identity,
        *,
        clock: Callable[[], float],
        tell_contact: Callable[[bool], None],
    ) -> None:
        self._settings = settings
        self._ledger = ledger
        self._identity = identity
        self._clock = clock
        self._tell_contact = tell_contact
        self._responder = Responder(
            settings.name, identity, ledger, settings.curator, settings.workers, settings.max_cells
        )
        self._stopped = threading.Event()
        self._client = CuratorClient(settings, identity)
        self._reminder = ExpiryReminder(settings.tls)
        self._waiting: set[bytes] = set()
        self.waiting_since: dict[bytes, int] = {}
        self._finished: set[bytes] = set()
        self._reported: set[bytes] = set()
        self._failures = 0
        self._complaints: set[tuple[bytes, str]] = set()
        self._auto_approves = settings.approve == "auto"
        self._curator_key = b""

    def stop(self) -> None:
        """Ends `run` soon; safe to call from a signal handler."""
        self._stopped.set()
        self._client.close()

    def run(self) -> None:
        """Serves until stopped; reconnects with backoff and jitter."""
        while not self._stopped.is_set():
            try:
                self._converse()
            except SynodError as error:
                if self._stopped.is_set():
                    return
                if error.code not in RETRIED:
                    raise
                self._failures += 1
                self._tell_contact(False)
                pause = min(LONGEST_BACKOFF_SECONDS, 0.5 * 2 ** min(self._failures, 10)) * random.uniform(0.5, 1.0)  # noqa: S311
                log.warning("waiting for the curator", extra={"why": str(error), "retry_seconds": round(pause, 1)})
                self._stopped.wait(pause)

    def _converse(self) -> None:
        """One conversation: greet, then moves until the curator goes away."""
        rotations = [rotation.to_bytes() for rotation in self._ledger.account().own_rotations]
        self._check_greeting(self._client.greet(self._ledger.head(), rotations))
        self._failures = 0
        self._tell_contact(True)
        log.info("connected", extra={"address": self._settings.address})
        while not self._stopped.is_set():
            wait = RECHECK_SECONDS if self._waiting else WAIT_SECONDS
            skip = sorted(self._waiting | self._finished)
            self._report_revocations()
            self._look_at_certificate()
            moves = self._client.pull(self._ledger.head(), skip, wait)
            self._tell_contact(True)
            self._waiting.clear()
            for move in moves:
                self._make(move)
            self.waiting_since = {study: self.waiting_since.get(study, self._now()) for study in self._waiting}

    def _look_at_certificate(self) -> None:
        """Uses a renewed certificate without a restart, and says once a day if this one expires soon."""
        if self._client.renew():
            log.info("the certificate was renewed")
        for told in self._reminder.due(now=datetime.fromtimestamp(self._clock(), UTC)):
            log.warning("a certificate expires", extra={"why": told})

    def _report_revocations(self) -> None:
        """Tells the curator at once, so that no other party spends on a study that cannot be published."""
        for approval in self._ledger.account().approvals.values():
            study_hash = bytes.fromhex(approval.study)
            if approval.state is ApprovalState.REVOKED and study_hash not in self._reported:
                self._send_decline(study_hash, DeclineReason.REVOKED)
                self._reported.add(study_hash)

    def _send_decline(self, study_hash: bytes, reason: DeclineReason) -> None:
        try:
            self._client.decline(study_hash, reason, self._ledger.head())
        except SynodError as error:
            if error.code in RETRIED:
                raise
            if self._is_new(study_hash, error):
                log.info("the curator does not take this no", extra={"hash": study_hash.hex()[:16], "why": str(error)})

    def _check_greeting(self, greeting: Greeting) -> None:
        """1. the protocol is ours; 2. the curator is the pinned one; 3. our ledger is not behind what it has seen;
        4. the clocks agree, or the operator is told.
        """
        # 1
        if greeting.protocol != PROTOCOL:
            raise refused("the curator speaks another protocol version.", "Update the older side.")
        # 2
        if fingerprint(greeting.curator) != self._settings.curator:
            raise refused("the curator's key is not the one that `curator` pins.", ANOTHER_CURATOR)
        self._curator_key = greeting.curator
        # 3
        self._check_newest(greeting)
        # 4
        skew = abs(greeting.unix_seconds - self._clock())
        if skew > LARGEST_SKEW_SECONDS:
            log.warning("this machine's clock and the curator's differ", extra={"seconds": round(skew)})

    def _check_alone(self) -> None:
        """Refuses to charge anything anew if the curator has seen another copy of this ledger since the greeting.

        Guarantee: of two copies that serve at once, the one that the curator has not seen ends here, before it charges
        and without declining, so that the other can go on with the study.
        """
        self._check_newest(self._client.greet(self._ledger.head()))

    def _check_newest(self, greeting: Greeting) -> None:
        """Refuses an old copy: the curator shows what this party has signed and its ledger does not have."""
        check_not_rotated(self._ledger.account(), self._identity, greeting.rotations)
        if greeting.highest is not None:
            check_not_behind(self._ledger, self._identity, greeting.highest)

    def _make(self, move: pb.Move) -> None:
        """Makes one move; what cannot be made is declined, and the rest goes on.

        What somebody else than the curator has announced is not even declined: a signed no would end the study.
        """
        if len(move.study_hash) != HASH_BYTES:
            log.warning("the curator names a study by something that is not a hash")
            return
        try:
            self._require_signature(move)
        except SynodError as unsigned:
            self._complain(move, unsigned)
            self._waiting.add(move.study_hash)
            return
        if move.kind == pb.MOVE_KIND_ANSWER and self._ledger.answer(move.study_hash, move.label) is None:
            self._check_alone()
        try:
            self._carry_out(move)
        except Exception as failure:
            error = failure if isinstance(failure, SynodError) else _defect(failure)
            if error.code in RETRIED or isinstance(error, LedgerBehindError):
                raise
            self._complain(move, error)
            if move.kind in OUTCOMES:  # there is nothing left to decline
                self._finished.add(move.study_hash)
            else:
                self._decline(move.study_hash, error)

    def _complain(self, move: pb.Move, error: SynodError) -> None:
        if self._is_new(move.study_hash, error):
            context = {"study": move.study_name, "hash": move.study_hash.hex()[:16]}
            log.warning("move not made", extra={**context, "why": str(error)})

    def _is_new(self, study_hash: bytes, error: SynodError) -> bool:
        """Whether this is wrong with a study for the first time: it is said once, not at every recheck."""
        if (study_hash, str(error)) in self._complaints:
            return False
        if len(self._complaints) >= MOST_COMPLAINTS:  # whoever poses as the curator can think of studies without end
            self._complaints.clear()
        self._complaints.add((study_hash, str(error)))
        return True

    def _require_signature(self, move: pb.Move) -> None:
        """A study's announcement and its end are the curator's word; what it asks is signed beside the query."""
        if move.kind == pb.MOVE_KIND_ENROL:
            require_announcement(self._curator_key, move.study_hash, move.signature)
        elif move.kind in OUTCOMES:
            outcome = OUTCOMES[move.kind]
            end = lost_to(self._settings.name) if outcome is ApprovalState.LOST else outcome.value
            require_end(self._curator_key, move.study_hash, end, move.signature)

    def _carry_out(self, move: pb.Move) -> None:
        match move.kind:
            case pb.MOVE_KIND_ENROL:
                self._enrol(move)
            case pb.MOVE_KIND_ANSWER:
                self._answer(move)
            case pb.MOVE_KIND_CLOSE_PUBLISHED | pb.MOVE_KIND_CLOSE_ABORTED | pb.MOVE_KIND_CLOSE_LOST:
                self._close(move)
            case _:
                raise refused("the curator asks for a move of no known kind.")

    def _decline(self, study_hash: bytes, error: SynodError) -> None:
        waiting = error.code is Code.NOT_READY
        reason = DeclineReason.NOT_APPROVED if waiting else DeclineReason.CHECK_FAILED
        approval = self._ledger.account().approvals.get(study_hash.hex())
        if approval is not None and approval.state is ApprovalState.REVOKED:
            reason = DeclineReason.REVOKED
        self._send_decline(study_hash, reason)
        # An approved study is still to be closed, which frees what it holds; only one never approved is done with.
        may_change = approval is not None or self._settings.approve == "ask"
        (self._waiting if may_change else self._finished).add(study_hash)

    def _enrol(self, move: pb.Move) -> None:
        if move.study_hash.hex() not in self._ledger.account().approvals:
            if not self._auto_approves:
                self._keep_announced(move)
                raise SynodError(
                    Code.NOT_READY,
                    f"the study {move.study_name} waits for approval here.",
                    "See `synod party studies`.",
                )
            self._approve_automatically(move)
        approval = open_approval(self._ledger, move.study_hash)
        self._client.enrol(move.study_hash, enrol(self._responder, approval), self._ledger.head())
        log.info("enrolled", extra={"study": move.study_name})

    def _keep_announced(self, move: pb.Move) -> None:
        """Keeps an announced study for the operator to look at; what cannot be kept is said, and holds up nothing."""
        folder, now = self._settings.state, self._now()
        try:
            if not hear_again(folder, move.study_hash, move.enrolled, now=now):
                study = self._announced_study(move.study_hash)
                keep_announced(folder, study, curator=self._curator_key, signature=move.signature, now=now)
                hear_again(folder, move.study_hash, move.enrolled, now=now)
        except SynodError as error:
            if error.code in (Code.UNREACHABLE, Code.UNAUTHENTICATED):
                raise
            self._complain(move, error)

    def _announced_study(self, study_hash: bytes) -> Study:
        return read_announced_study(self._client.document(study_hash, pb.DOCUMENT_KIND_STUDY), study_hash)

    def _approve_automatically(self, move: pb.Move) -> None:
        study = self._announced_study(move.study_hash)
        try:
            reserve(self._settings, check_study(self._settings, study), now=self._now())
        except SynodError as error:
            if error.code in RETRIED:
                raise
            # Whether a table fits is a fact about its rows: it is told once, not to study after study.
            self._auto_approves = not isinstance(error, TableError)
            log.warning("not approved", extra={"study": study.name, "why": str(error)})
            self._keep_announced(move)
            raise SynodError(
                Code.NOT_READY,
                "the study is not approved here.",
                "See `synod party approve STUDY --dry-run`.",
            ) from None
        log.info("approved by `approve: auto`", extra={"study": study.name})

    def _answer(self, move: pb.Move) -> None:
        approval = self._ledger.account().approvals.get(move.study_hash.hex())
        if approval is not None and approval.state is not ApprovalState.OPEN:
            raise refused(
                f"the approval of {approval.name} has ended ({approval.state.value}): nothing of it leaves any more."
            )
        stored = self._ledger.answer(move.study_hash, move.label)
        if stored is None:
            self._answer_anew(move)
            stored = self._ledger.answer(move.study_hash, move.label)
            assert stored is not None
        self._client.submit(Submission.from_json(stored.header), stored.payload, self._ledger.head())
        log.info("answered", extra={"study": move.study_name, "round": move.label, "bytes": len(stored.payload)})

    def _answer_anew(self, move: pb.Move) -> None:
        approval = open_approval(self._ledger, move.study_hash)
        study = self._ledger.study(move.study_hash)
        transcript = self._client.document(move.study_hash, pb.DOCUMENT_KIND_TRANSCRIPT)
        read_agreed(self._responder, study, transcript)
        step = next_step(self._responder, approval, study, move.label)
        most_bytes = QUERIES[step.kind].message_bytes(step, study)
        told = self._client.query(move.study_hash, move.label, most_bytes)
        signed = SignedQuery(parse_query(told.query, study), told.signature)
        asked = check_round(self._responder, approval, study, move.label, transcript, signed)
        folder = snapshot_folder(self._settings, move.study_hash)
        snapshot = load_snapshot(folder, study, bytes.fromhex(approval.snapshot), seal=self._ledger.seal)
        answer_round(self._responder, approval, asked, snapshot, now=self._now())

    def _close(self, move: pb.Move) -> None:
        outcome = OUTCOMES[move.kind]
        self._require_answered(move.study_hash, outcome)
        self._ledger.end_study(move.study_hash, outcome, now=self._now())
        drop_snapshot(snapshot_folder(self._settings, move.study_hash))
        self._forget_announced(move)
        self._client.acknowledge(move.study_hash, outcome.value, self._ledger.head())
        self._finished.add(move.study_hash)
        log.info("study ended", extra={"study": move.study_name, "outcome": outcome.value})

    def _forget_announced(self, move: pb.Move) -> None:
        try:
            forget_announced(self._settings.state, move.study_hash)
        except SynodError as error:  # the ledger has the end, and nothing rests on the list
            self._complain(move, error)

    def _require_answered(self, study_hash: bytes, outcome: ApprovalState) -> None:
        """Nothing is published without every answer of this party: a ledger that lacks one must not free its cost."""
        approval = self._ledger.account().approvals.get(study_hash.hex())
        if approval is None or approval.state is not ApprovalState.OPEN or outcome is not ApprovalState.PUBLISHED:
            return
        steps = plan_study(self._ledger.study(study_hash)).steps_of(self._settings.name)
        if len(approval.charges) < len(steps):
            raise refused(
                f"{approval.name} was published, and this ledger has not charged all that it asked of this party: it "
                "is an old copy, or the curator says what is not so.",
                "Restore the newest ledger; what the study holds stays reserved.",
            )

    def _now(self) -> int:
        return int(self._clock())


def _defect(failure: Exception) -> SynodError:
    """A failure that nobody foresaw, without its text, which may hold a value."""
    log.error("a defect in a move", exc_info=failure)
    return SynodError(Code.CHECK_FAILED, f"a defect: {type(failure).__name__}.", "Please report it.")


def check_not_behind(ledger: Ledger, identity: Identity, seen: pb.LedgerHead) -> None:
    """Refuses a ledger that the curator has seen further along: an old copy of it, or a clone's."""
    head = Head(seen.sequence, seen.hash, seen.ledger)
    keys = own_keys(ledger.account(), identity)
    if not any(verify(key, "head", head.statement(), seen.signature) for key in keys):
        return  # not signed by us, so it says nothing about our ledger
    if ledger.hash_at(head.sequence) != head.hash:
        raise LedgerBehindError("the curator has seen")
