"""What a party signs about an answer, and about all its answers so far. Both sides build these statements."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from synod.common.crypto.canonical import Json
from synod.common.crypto.identity import Identity, fingerprint
from synod.common.privacy.cost import Cost
from synod.common.runtime.errors import check_failed


@dataclass(frozen=True, slots=True)
class AnsweredStep:
    """One step of a party's account: what was asked, and what it cost."""

    label: str
    query: str
    cost: Cost


def account_statement(party: str, curator: bytes, transcript: bytes, steps: Sequence[AnsweredStep]) -> Json:
    """What the countersignature covers: T, the fingerprint of the curator's key, the steps, the spend."""
    return {
        "party": party,
        "curator": fingerprint(curator),
        "transcript": transcript.hex(),
        "steps": [[step.label, step.query, str(step.cost)] for step in steps],
        "spent": str(Cost.total(step.cost for step in steps)),
    }


@dataclass(frozen=True, slots=True)
class Submission:
    """An answer's header: what it is bound to, its length and hash, and the two signatures."""

    study_hash: bytes
    transcript: bytes
    label: str
    query: bytes
    key_id: bytes
    length: int
    digest: bytes
    signature: bytes = b""
    account_signature: bytes = b""

    def statement(self, party: str) -> Json:
        """What `signature` covers."""
        return {
            "party": party,
            "study": self.study_hash.hex(),
            "transcript": self.transcript.hex(),
            "label": self.label,
            "query": self.query.hex(),
            "key": self.key_id.hex(),
            "length": self.length,
            "digest": self.digest.hex(),
        }

    def signed_by(self, identity: Identity, party: str, curator: bytes, steps: Sequence[AnsweredStep]) -> "Submission":
        """The same header with both signatures; `steps` are all that the party answered, this one included, and
        `curator` is the key of the curator that asked.
        """
        account = account_statement(party, curator, self.transcript, steps)
        return replace(
            self,
            signature=identity.sign("answer", self.statement(party)),
            account_signature=identity.sign("account", account),
        )

    def to_json(self) -> dict[str, Json]:
        """For storing."""
        return {key: value.hex() if isinstance(value, bytes) else value for key, value in asdict(self).items()}

    @staticmethod
    def from_json(data: dict[str, Any]) -> "Submission":
        """Reads what `to_json` wrote; anything else is a failed check."""
        try:
            fields: dict[str, Any] = {
                key: value if key in ("label", "length") else bytes.fromhex(value) for key, value in data.items()
            }
            submission = Submission(**fields)
        except (AttributeError, TypeError, ValueError):
            raise check_failed("an answer's header is malformed.") from None
        if type(submission.label) is not str or type(submission.length) is not int:
            raise check_failed("an answer's header is malformed.")
        return submission


def digest_of(payload: bytes) -> bytes:
    """SHA-256 of an answer's bytes."""
    return hashlib.sha256(payload).digest()
