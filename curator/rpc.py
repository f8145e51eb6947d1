"""The gRPC shell: each method parses, calls, replies. Nothing is decided here."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc

from synod.common.protocol.heads import Head, StatedHeads
from synod.common.protocol.notices import DeclineReason
from synod.common.protocol.parts import split_message
from synod.common.protocol.submission import Submission
from synod.common.protocol.transcript import PROTOCOL, Enrolment
from synod.common.runtime.errors import Code, SynodError, invalid
from synod.common.runtime.wire import CHUNK_BYTES, UPLOAD_SECONDS, caller_name, chunks_of, replies, streams
from synod.curator.checks import AskedRound
from synod.curator.context import Context
from synod.curator.party_handler import DocumentKind, MoveKind, Notice, PartyHandler
from synod.curator.records import SeenHead
from synod.curator.study_handler import StudyHandler
from synod.curator.uploads import Upload, Uploads
from synod.v1 import party_pb2 as pb
from synod.v1 import party_pb2_grpc as rpc
from synod.v1 import study_pb2 as spb
from synod.v1 import study_pb2_grpc as srpc

Call = grpc.aio.ServicerContext[Any, Any]

LONGEST_WAIT_SECONDS = 60
CHECKED_AT_ONCE = 2  # answers that are in memory whole; more would gain little, and a large one holds up no small one
MOVE_KINDS = {
    MoveKind.ENROL: pb.MOVE_KIND_ENROL,
    MoveKind.ANSWER: pb.MOVE_KIND_ANSWER,
    MoveKind.CLOSE_PUBLISHED: pb.MOVE_KIND_CLOSE_PUBLISHED,
    MoveKind.CLOSE_ABORTED: pb.MOVE_KIND_CLOSE_ABORTED,
    MoveKind.CLOSE_LOST: pb.MOVE_KIND_CLOSE_LOST,
}
DOCUMENT_KINDS = {
    pb.DOCUMENT_KIND_STUDY: DocumentKind.STUDY,
    pb.DOCUMENT_KIND_TRANSCRIPT: DocumentKind.TRANSCRIPT,
}
DECLINE_REASONS = {
    pb.DECLINE_REASON_NOT_APPROVED: DeclineReason.NOT_APPROVED,
    pb.DECLINE_REASON_REVOKED: DeclineReason.REVOKED,
    pb.DECLINE_REASON_CHECK_FAILED: DeclineReason.CHECK_FAILED,
}


class PartyServicer(rpc.PartyServiceServicer):
    """The parties' side."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._handler = PartyHandler(context)
        self._uploads = Uploads(context.folder)
        self._checking = asyncio.Semaphore(CHECKED_AT_ONCE)

    def _see(self, call: Call, head: pb.LedgerHead) -> str:
        return self._handler.see(caller_name(call), head.identity, _read_seen(head))

    def _caller(self, call: Call, head: pb.LedgerHead) -> str:
        self._see(call, head)
        return caller_name(call)

    @replies
    async def Greet(self, request: pb.GreetRequest, call: Call) -> pb.GreetResponse:
        """Says who is there."""
        if request.protocol != PROTOCOL:
            raise invalid(f"this curator speaks {PROTOCOL}.", "Update the older side.")
        party, head = caller_name(call), request.head
        seen = self._handler.greet(party, head.identity, _read_seen(head), request.rotations)
        reply = pb.GreetResponse(
            protocol=PROTOCOL,
            unix_seconds=int(self._context.clock()),
            curator_identity=self._context.identity.public_key,
            rotations=[rotation.to_bytes() for rotation in seen.rotations],
        )
        if (highest := seen.highest) is not None:
            told = pb.LedgerHead(
                sequence=highest.sequence,
                hash=highest.hash,
                signature=highest.signature,
                identity=seen.identity,
                ledger=highest.ledger,
            )
            reply.highest_head.CopyFrom(told)
        return reply

    @replies
    async def PullWork(self, request: pb.PullWorkRequest, call: Call) -> pb.PullWorkResponse:
        """Waits for moves."""
        party, signer = caller_name(call), self._see(call, request.head)
        loop = asyncio.get_running_loop()
        until = loop.time() + min(request.wait_seconds, LONGEST_WAIT_SECONDS)
        skip, changes = set(request.skip), self._context.changes
        while not (moves := self._handler.moves(party, signer, skip)) and loop.time() < until and not changes.closed:
            try:
                await changes.wait(party, until - loop.time())
            except asyncio.CancelledError:
                self._handler.leave(party)
                raise
        return pb.PullWorkResponse(
            moves=[
                pb.Move(
                    study_hash=move.study_hash,
                    study_name=move.name,
                    kind=MOVE_KINDS[move.kind],
                    label=move.label,
                    signature=move.signature,
                    enrolled=move.enrolled,
                )
                for move in moves
            ]
        )

    @streams
    async def GetDocument(self, request: pb.GetDocumentRequest, call: Call) -> AsyncIterator[pb.GetDocumentResponse]:
        """Streams a document."""
        kind = DOCUMENT_KINDS.get(request.kind)
        if kind is None:
            raise invalid("a request for a document names its kind.")
        document = self._handler.document(caller_name(call), request.study_hash, kind)
        for chunk in chunks_of(document):
            yield pb.GetDocumentResponse(chunk=chunk)

    @streams
    async def GetQuery(self, request: pb.GetQueryRequest, call: Call) -> AsyncIterator[pb.SignedQuery]:
        """Streams the signed query of a round."""
        asked = self._handler.query(caller_name(call), request.study_hash, request.label)
        signed = pb.SignedQuery(query=asked.query.to_proto(), signature=asked.signature)
        for part in split_message(signed, CHUNK_BYTES):
            yield part

    @replies
    async def Enrol(self, request: pb.EnrolRequest, call: Call) -> pb.EnrolResponse:
        """Takes an enrolment."""
        party = self._caller(call, request.head)
        self._handler.enrol(request.study_hash, read_enrolment(party, request))
        return pb.EnrolResponse()

    @replies
    async def Submit(self, request: AsyncIterator[pb.SubmitRequest], call: Call) -> pb.SubmitResponse:
        """Takes an answer: its sender's name is checked before anything is read, its header before its bytes are read,
        and it is stored whole or not at all. One that is stored already is not read again.
        """
        self._handler.require_known(caller_name(call))
        async with _time_limit(UPLOAD_SECONDS):
            first = await anext(aiter(request), None)
            if first is None or first.WhichOneof("part") != "header":
                raise invalid("an upload starts with its header.")
            party = self._caller(call, first.header.head)
            submission = read_header(first.header)
            asked = self._handler.open_round(party, submission)
            if not self._handler.is_stored(party, submission):
                with self._uploads.open(party, submission) as upload:
                    await _receive(request, upload)
                    await self._take(party, submission, asked, upload)
        return pb.SubmitResponse(digest=submission.digest)

    async def _take(self, party: str, submission: Submission, asked: AskedRound, upload: Upload) -> None:
        async with self._checking:
            payload = await asyncio.to_thread(upload.read)
            await asyncio.to_thread(self._handler.check, party, submission, asked, payload)
            self._handler.accept(party, submission, payload)

    @replies
    async def Decline(self, request: pb.DeclineRequest, call: Call) -> pb.DeclineResponse:
        """Takes a no."""
        if request.reason not in DECLINE_REASONS:
            raise invalid("a decline states its reason.")
        self._handler.decline(self._notice(call, request), DECLINE_REASONS[request.reason])
        return pb.DeclineResponse()

    @replies
    async def Acknowledge(self, request: pb.AcknowledgeRequest, call: Call) -> pb.AcknowledgeResponse:
        """Takes a party's word that it knows of an end."""
        self._handler.acknowledge(self._notice(call, request))
        return pb.AcknowledgeResponse()

    def _notice(self, call: Call, request: pb.DeclineRequest | pb.AcknowledgeRequest) -> Notice:
        party = self._caller(call, request.head)
        return Notice(party, request.study_hash, request.head.identity, request.signature)


def _read_seen(head: pb.LedgerHead) -> SeenHead:
    return SeenHead(head.ledger, head.sequence, head.hash, head.signature)


def read_enrolment(party: str, request: pb.EnrolRequest) -> Enrolment:
    """A party's enrolment as a value."""
    approved, *earlier = (
        Head(head.sequence, head.hash, head.ledger) for head in (request.approved_head, *request.open_heads)
    )
    heads = StatedHeads(approved, tuple(earlier))
    return Enrolment(party, request.identity, request.exchange, request.nonce, heads, request.signature)


def read_header(header: pb.SubmissionHeader) -> Submission:
    """The header as a value."""
    return Submission(
        header.study_hash,
        header.transcript,
        header.label,
        header.query,
        header.key_id,
        header.length,
        header.digest,
        header.signature,
        header.account_signature,
    )


async def _receive(request: AsyncIterator[pb.SubmitRequest], upload: Upload) -> None:
    async for message in request:
        if message.WhichOneof("part") != "chunk" or len(message.chunk) > CHUNK_BYTES:
            raise invalid("after its header, an upload is chunks of at most 512 KiB.")
        upload.add(message.chunk)
        del message  # or it would be held until the next one comes


@asynccontextmanager
async def _time_limit(seconds: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise SynodError(Code.UNREACHABLE, "the upload took too long.", "Check the network, and try again.") from None


class StudyServicer(srpc.StudyServiceServicer):
    """The operator's side."""

    def __init__(self, handler: StudyHandler, operators: tuple[str, ...] | None) -> None:
        self._handler = handler
        self._operators = operators

    def _require_operator(self, call: Call) -> None:
        """`Access` has let in operators alone; where the configuration lists some, it takes one of these."""
        if self._operators is not None and caller_name(call) not in self._operators:
            raise SynodError(
                Code.NOT_ON_ROSTER,
                f"{caller_name(call)} is not an operator of this curator.",
                "Its certificate's name must be listed under `operators` in the curator's configuration.",
            )

    @replies
    async def SubmitStudy(self, request: spb.SubmitStudyRequest, call: Call) -> spb.SubmitStudyResponse:
        """Takes a study."""
        self._require_operator(call)
        return spb.SubmitStudyResponse(study_hash=await self._handler.submit(request.study))

    @replies
    async def GetStatus(self, request: spb.GetStatusRequest, call: Call) -> spb.GetStatusResponse:
        """Says how studies stand."""
        self._require_operator(call)
        if request.name:
            return spb.GetStatusResponse(studies=[self._handler.status(request.name)])
        studies, older = await self._handler.list_studies(request.after)
        return spb.GetStatusResponse(studies=studies, older=older)

    @streams
    async def FetchRelease(
        self, request: spb.FetchReleaseRequest, call: Call
    ) -> AsyncIterator[spb.FetchReleaseResponse]:
        """Streams a release."""
        self._require_operator(call)
        for path in self._handler.release_files(request.name):
            name = path.name
            with path.open("rb") as file:
                while (chunk := file.read(CHUNK_BYTES)) or name:
                    yield spb.FetchReleaseResponse(file_name=name, chunk=chunk)
                    name = ""

    @replies
    async def AbortStudy(self, request: spb.AbortStudyRequest, call: Call) -> spb.AbortStudyResponse:
        """Ends a study."""
        self._require_operator(call)
        self._handler.abort(request.name, by=caller_name(call))
        return spb.AbortStudyResponse()

    @replies
    async def LoseParty(self, request: spb.LosePartyRequest, call: Call) -> spb.LosePartyResponse:
        """Goes on without a party."""
        self._require_operator(call)
        effect = self._handler.lose(request.study_hash, request.party, request.reason)
        return spb.LosePartyResponse(effect=effect)
