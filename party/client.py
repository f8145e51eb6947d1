"""The party's end of the wire: one method for each call, plain values in and out, errors as sentences."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

import grpc

from synod.common.crypto.certificates import Role, check_own_certificate, read_changed_tls, read_tls
from synod.common.crypto.identity import Identity
from synod.common.protocol.heads import Head
from synod.common.protocol.notices import DeclineReason, sign_acknowledgement, sign_decline
from synod.common.protocol.submission import Submission
from synod.common.protocol.transcript import PROTOCOL, Enrolment
from synod.common.runtime.errors import Code, SynodError, check_failed
from synod.common.runtime.jsontext import LARGEST_DOCUMENT_BYTES
from synod.common.runtime.settings import PartySettings
from synod.common.runtime.watched import Watched
from synod.common.runtime.wire import CALL_SECONDS, UPLOAD_SECONDS, chunks_of, explain, open_channel
from synod.v1 import party_pb2 as pb
from synod.v1 import party_pb2_grpc as rpc

log = logging.getLogger("synod.party")

T = TypeVar("T")
PART_BYTES = 4096  # what parts may repeat of a query, and its signature
DECLINE_REASONS = {
    DeclineReason.NOT_APPROVED: pb.DECLINE_REASON_NOT_APPROVED,
    DeclineReason.REVOKED: pb.DECLINE_REASON_REVOKED,
    DeclineReason.CHECK_FAILED: pb.DECLINE_REASON_CHECK_FAILED,
}


@dataclass(frozen=True, slots=True)
class Greeting:
    """What the curator says of itself and of this party's ledger."""

    protocol: str
    unix_seconds: int
    highest: pb.LedgerHead | None
    curator: bytes
    rotations: tuple[bytes, ...] = ()


class CuratorClient:
    """A connection to the curator."""

    def __init__(self, settings: PartySettings, identity: Identity) -> None:
        self._settings = settings
        self._address = settings.address
        self._identity = identity
        self._tls = Watched(
            [path for _, path in settings.tls if path is not None],
            lambda before: read_changed_tls(settings.tls, before) if before else read_tls(settings.tls),
            reject=lambda error: log.error("a changed file is not used", extra={"why": str(error)}),
        )
        self._opened_with = self._tls.current()
        self._dial()

    def _dial(self) -> None:
        self._channel = open_channel(self._address, self._opened_with, proxy=self._settings.proxy)
        self._stub = rpc.PartyServiceStub(self._channel)

    def renew(self) -> bool:
        """Opens a new connection if the certificate was renewed since the last one, and says whether it was."""
        tls = self._tls.current()
        if tls is self._opened_with:
            return False
        old, self._opened_with = self._channel, tls
        self._dial()
        old.close()
        return True

    def close(self) -> None:
        """Ends the connection; a call that waits ends with it."""
        self._channel.close()

    def greet(self, head: Head, rotations: Sequence[bytes] = ()) -> Greeting:
        """Introduces this party, with the rotations of its identity, if its certificate is still one that the curator
        can accept.
        """
        check_own_certificate(self._settings.tls, Role.PARTY, self._settings.name, now=datetime.now(UTC))
        self.renew()
        request = pb.GreetRequest(protocol=PROTOCOL, head=self._signed(head), rotations=rotations)
        reply = self._call(lambda: self._stub.Greet(request, timeout=CALL_SECONDS))
        highest = reply.highest_head if reply.HasField("highest_head") else None
        return Greeting(reply.protocol, reply.unix_seconds, highest, reply.curator_identity, tuple(reply.rotations))

    def pull(self, head: Head, skip: Sequence[bytes], wait_seconds: int) -> list[pb.Move]:
        """Waits for moves."""
        request = pb.PullWorkRequest(head=self._signed(head), wait_seconds=wait_seconds, skip=list(skip))
        reply = self._call(lambda: self._stub.PullWork(request, timeout=wait_seconds + CALL_SECONDS))
        return list(reply.moves)

    def document(self, study_hash: bytes, kind: pb.DocumentKind.ValueType) -> bytes:
        """Fetches a document of a study."""
        request = pb.GetDocumentRequest(study_hash=study_hash, kind=kind)
        return self._call(lambda: _join(self._stub.GetDocument(request, timeout=UPLOAD_SECONDS)))

    def query(self, study_hash: bytes, label: str, most_bytes: int) -> pb.SignedQuery:
        """Fetches the signed query of an open round; one of more than `most_bytes` is not read to its end."""
        request = pb.GetQueryRequest(study_hash=study_hash, label=label)
        return self._call(lambda: _merge(self._stub.GetQuery(request, timeout=UPLOAD_SECONDS), most_bytes))

    def enrol(self, study_hash: bytes, enrolment: Enrolment, head: Head) -> None:
        """Enrols in a study."""
        request = pb.EnrolRequest(
            study_hash=study_hash,
            identity=enrolment.identity,
            exchange=enrolment.exchange,
            nonce=enrolment.nonce,
            signature=enrolment.signature,
            head=self._signed(head),
            approved_head=_unsigned(enrolment.heads.approved),
            open_heads=[_unsigned(one) for one in enrolment.heads.open],
        )
        self._call(lambda: self._stub.Enrol(request, timeout=CALL_SECONDS))

    def submit(self, submission: Submission, payload: bytes, head: Head) -> None:
        """Uploads an answer that is in the ledger already."""
        parts = self._parts(submission, payload, head)
        self._call(lambda: self._stub.Submit(parts, timeout=UPLOAD_SECONDS))

    def decline(self, study_hash: bytes, reason: DeclineReason, head: Head) -> None:
        """Says that no move will be made."""
        request = pb.DeclineRequest(
            study_hash=study_hash,
            reason=DECLINE_REASONS[reason],
            head=self._signed(head),
            signature=sign_decline(self._identity, self._settings.name, study_hash, reason),
        )
        self._call(lambda: self._stub.Decline(request, timeout=CALL_SECONDS))

    def acknowledge(self, study_hash: bytes, outcome: str, head: Head) -> None:
        """Confirms a study's end."""
        signature = sign_acknowledgement(self._identity, self._settings.name, study_hash, outcome)
        request = pb.AcknowledgeRequest(study_hash=study_hash, head=self._signed(head), signature=signature)
        self._call(lambda: self._stub.Acknowledge(request, timeout=CALL_SECONDS))

    def _parts(self, submission: Submission, payload: bytes, head: Head) -> Iterator[pb.SubmitRequest]:
        header = pb.SubmissionHeader(
            study_hash=submission.study_hash,
            transcript=submission.transcript,
            label=submission.label,
            query=submission.query,
            key_id=submission.key_id,
            length=submission.length,
            digest=submission.digest,
            signature=submission.signature,
            account_signature=submission.account_signature,
            head=self._signed(head),
        )
        yield pb.SubmitRequest(header=header)
        for chunk in chunks_of(payload):
            yield pb.SubmitRequest(chunk=chunk)

    def _signed(self, head: Head) -> pb.LedgerHead:
        return pb.LedgerHead(
            sequence=head.sequence,
            hash=head.hash,
            signature=self._identity.sign("head", head.statement()),
            identity=self._identity.public_key,
            ledger=head.ledger,
        )

    def _call(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except grpc.RpcError as error:
            raise explain(error, self._address) from None
        except ValueError:  # what grpc raises on a channel that `close` has closed
            raise SynodError(Code.UNREACHABLE, "the connection was closed on this side.") from None


def _unsigned(head: Head) -> pb.LedgerHead:
    """A head that the enrolment's signature covers."""
    return pb.LedgerHead(sequence=head.sequence, hash=head.hash, ledger=head.ledger)


def _join(parts: Iterable[pb.GetDocumentResponse]) -> bytes:
    document = bytearray()
    for part in parts:
        document += part.chunk
        if len(document) > LARGEST_DOCUMENT_BYTES:
            raise check_failed("a document of the curator's is larger than any that this version reads.")
    return bytes(document)


def _merge(parts: Iterable[pb.SignedQuery], most_bytes: int) -> pb.SignedQuery:
    query, size = pb.SignedQuery(), 0
    for part in parts:
        size += part.ByteSize() + 1
        if size > most_bytes + PART_BYTES:
            raise check_failed("the curator's query is longer than any that the approved plan allows.")
        query.MergeFrom(part)
    return query
