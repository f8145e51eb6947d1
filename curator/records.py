"""What the curator's store has of a study and its parties, as values."""

from dataclasses import dataclass
from enum import Enum

from synod.common.crypto.identity import PUBLIC_KEY_BYTES, SIGNATURE_BYTES, verify
from synod.common.protocol.heads import Head
from synod.common.study.study import Study


class State(Enum):
    """The life of a study."""

    ENROLLING = "enrolling"
    KEYED = "keyed"
    RUNNING = "running"
    PUBLISHED = "published"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True)
class StudyRecord:
    """A study as the store has it."""

    study_hash: bytes
    study: Study
    created: int
    outcome: State | None
    reason: str


@dataclass(frozen=True, slots=True)
class PendingStudy:
    """A study that a party is not done with: it has not ended, or the party has not acknowledged its end."""

    study_hash: bytes
    name: str
    outcome: State | None


@dataclass(frozen=True, slots=True)
class OpenQuery:
    """A query in the log that has no answer yet."""

    label: str
    sequence: int
    opened: int


@dataclass(frozen=True, slots=True)
class Loss:
    """A party that a study goes on without, why, and since when."""

    party: str
    reason: str
    declared: int


@dataclass(frozen=True, slots=True)
class SeenHead:
    """The head of a party's ledger as it was signed; the party is held to it when it comes back."""

    ledger: bytes
    sequence: int
    hash: bytes
    signature: bytes

    def is_signed_by(self, identity: bytes) -> bool:
        """Whether it is the head of a ledger, no part of it larger than such a part is, and the signature is this
        identity's. A caller that has no ledger yet sends an empty one, which is nobody's.
        """
        head = Head(self.sequence, self.hash, self.ledger)
        sizes = len(identity), len(self.signature)
        if sizes != (PUBLIC_KEY_BYTES, SIGNATURE_BYTES) or not head.is_sound():
            return False
        return verify(identity, "head", head.statement(), self.signature)
