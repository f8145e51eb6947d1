"""A party's connection in a simulation: it can lose a request or a reply, repeat a call, or keep it for later."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from synod.common.crypto.identity import Identity
from synod.common.protocol.heads import Head
from synod.common.protocol.notices import DeclineReason, sign_acknowledgement, sign_decline
from synod.common.protocol.submission import Submission
from synod.common.protocol.transcript import PROTOCOL, Enrolment
from synod.common.runtime.errors import Code, SynodError
from synod.curator.party_handler import TOLD, Notice
from synod.curator.records import SeenHead
from synod.curator.rpc import DOCUMENT_KINDS, MOVE_KINDS
from synod.party.client import Greeting
from synod.v1 import party_pb2 as pb
from tests.support.simulated_processes import Curator

T = TypeVar("T")
FAULTS = ("lose request", "lose reply", "repeat", "delay")


class Quiet(Exception):  # noqa: N818
    """The daemon has made its moves and would wait for more."""


@dataclass
class Message:
    """A call as it goes over the wire: it can be made at any later time, and again."""

    party: str
    name: str
    body: Callable[[Curator], Any]


class Network(Protocol):
    """What a line needs of the simulation that it is part of."""

    hides_heads: bool
    sent: list[Message]
    delayed: list[Message]
    left: dict[tuple[str, str], set[tuple[Submission, bytes]]]
    declined: list[tuple[str, str]]

    def deliver(self, message: Message) -> Any:
        """The curator gets a message, and replies."""


class Line:
    """A party's connection; the methods are those of `CuratorClient`."""

    def __init__(self, network: Network, party: str, identity: Identity) -> None:
        self._network, self._party, self._identity = network, party, identity
        self.fault, self.countdown, self.pulls = "", 0, 0

    def close(self) -> None:
        """Nothing to close."""

    def renew(self) -> bool:
        """No certificate, so none that is renewed."""
        return False

    def greet(self, head: Head, rotations: Sequence[bytes] = ()) -> Greeting:
        """Tells the ledger's head, and hears which one the curator saw last."""

        def body(curator: Curator) -> Greeting:
            told = curator.handler.greet(self._party, self._identity.public_key, self._seen(head), rotations)
            highest, seen, known = told.highest, None, tuple(rotation.to_bytes() for rotation in told.rotations)
            if highest is not None and not self._network.hides_heads:
                seen = pb.LedgerHead(
                    sequence=highest.sequence, hash=highest.hash, signature=highest.signature, ledger=highest.ledger
                )
            key = curator.context.identity.public_key
            shown = () if self._network.hides_heads else known
            return Greeting(PROTOCOL, int(curator.context.clock()), seen, key, shown)

        return self._call("greet", body)

    def pull(self, head: Head, skip: Sequence[bytes], wait_seconds: int) -> list[pb.Move]:
        """Asks for moves; the second time the daemon would wait for more, and it is as if there were none."""
        self.pulls += 1

        def body(curator: Curator) -> list[pb.Move]:
            moves = curator.handler.moves(self._party, self._see(curator, head), set(skip))
            return [
                pb.Move(
                    study_hash=m.study_hash,
                    study_name=m.name,
                    kind=MOVE_KINDS[m.kind],
                    label=m.label,
                    signature=m.signature,
                )
                for m in moves
            ]

        moves = self._call("pull", body)
        if self.pulls > 1:
            raise Quiet
        return moves

    def document(self, study_hash: bytes, kind: pb.DocumentKind.ValueType) -> bytes:
        """Fetches a document."""
        return self._call("document", lambda c: c.handler.document(self._party, study_hash, DOCUMENT_KINDS[kind]))

    def query(self, study_hash: bytes, label: str, most_bytes: int) -> pb.SignedQuery:
        """Fetches the signed query of a round."""
        asked = self._call("query", lambda c: c.handler.query(self._party, study_hash, label))
        query = asked.query.to_proto()
        assert query.ByteSize() <= most_bytes
        return pb.SignedQuery(query=query, signature=asked.signature)

    def enrol(self, study_hash: bytes, enrolment: Enrolment, head: Head) -> None:
        """Enrols."""

        def body(curator: Curator) -> None:
            self._see(curator, head)
            curator.handler.enrol(study_hash, enrolment)

        self._call("enrol", body)

    def submit(self, submission: Submission, payload: bytes, head: Head) -> None:
        """Hands an answer in."""
        self._network.left.setdefault((self._party, submission.label), set()).add((submission, payload))

        def body(curator: Curator) -> None:
            self._see(curator, head)
            asked = curator.handler.open_round(self._party, submission)
            curator.handler.check(self._party, submission, asked, payload)
            curator.handler.accept(self._party, submission, payload)

        self._call("submit", body)

    def decline(self, study_hash: bytes, reason: DeclineReason, head: Head) -> None:
        """Declines the study."""
        signature = sign_decline(self._identity, self._party, study_hash, reason)
        notice = Notice(self._party, study_hash, self._identity.public_key, signature)

        def body(curator: Curator) -> None:
            self._see(curator, head)
            curator.handler.decline(notice, reason)

        self._network.declined.append((self._party, TOLD.get(reason, reason.value)))
        self._call("decline", body)

    def acknowledge(self, study_hash: bytes, outcome: str, head: Head) -> None:
        """Says that the study's end is known."""
        signature = sign_acknowledgement(self._identity, self._party, study_hash, outcome)
        notice = Notice(self._party, study_hash, self._identity.public_key, signature)

        def body(curator: Curator) -> None:
            self._see(curator, head)
            curator.handler.acknowledge(notice)

        self._call("acknowledge", body)

    def _see(self, curator: Curator, head: Head) -> str:
        return curator.handler.see(self._party, self._identity.public_key, self._seen(head))

    def _seen(self, head: Head) -> SeenHead:
        signature = self._identity.sign("head", head.statement())
        return SeenHead(head.ledger, head.sequence, head.hash, signature)

    def _call(self, name: str, body: Callable[[Curator], T]) -> T:
        message = Message(self._party, name, body)
        self._network.sent.append(message)
        fault = self.fault if self.countdown == 0 else ""
        self.countdown -= 1
        if fault in ("lose request", "delay"):
            if fault == "delay":
                self._network.delayed.append(message)
            raise lost()
        reply: T = self._network.deliver(message)
        if fault == "repeat":
            reply = self._network.deliver(message)
        if fault == "lose reply":
            raise lost()
        return reply


def lost() -> SynodError:
    """What a daemon gets when a request or its reply is lost."""
    return SynodError(Code.UNREACHABLE, "the line is dead.")
