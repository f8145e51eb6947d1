"""The transcript T: what all parties of a study must have in common before any of them answers.

T = SHA-256(protocol version, study hash, Paillier n and h_s, and for each roster entry in order: name, identity
key, X25519 key, rows, nonce). Masks are derived under T, so parties that were told different things do not cancel.
"""

from dataclasses import dataclass
from typing import Any

from synod.common.crypto.canonical import Json, canonical_hash
from synod.common.crypto.identity import PUBLIC_KEY_BYTES, Identity, fingerprint, require_signature
from synod.common.crypto.paillier import PublicKey
from synod.common.runtime.errors import check_failed
from synod.common.study.study import Study

PROTOCOL = "synod/v1"
NONCE_BYTES = 32


@dataclass(frozen=True, slots=True)
class Enrolment:
    """One party's keys for one study, signed with its identity."""

    name: str
    identity: bytes
    exchange: bytes
    nonce: bytes
    signature: bytes = b""

    def statement(self, study_hash: bytes) -> Json:
        """What the signature covers."""
        return {
            "protocol": PROTOCOL,
            "study": study_hash.hex(),
            "name": self.name,
            "identity": self.identity.hex(),
            "exchange": self.exchange.hex(),
            "nonce": self.nonce.hex(),
        }

    def signed_by(self, identity: Identity, study_hash: bytes) -> "Enrolment":
        """The same enrolment with its signature."""
        signature = identity.sign("enrol", self.statement(study_hash))
        return Enrolment(self.name, self.identity, self.exchange, self.nonce, signature)


@dataclass(frozen=True, slots=True)
class Transcript:
    """A study's hash, its Paillier key and all enrolments in the roster's order."""

    study_hash: bytes
    key: PublicKey
    enrolments: tuple[Enrolment, ...]

    def to_json(self) -> dict[str, Json]:
        """The transcript with its signatures, as it travels and as the manifest holds it."""
        return {
            "protocol": PROTOCOL,
            "study": self.study_hash.hex(),
            "key": self.key.to_json(),
            "enrolments": [
                {
                    "name": e.name,
                    "identity": e.identity.hex(),
                    "exchange": e.exchange.hex(),
                    "nonce": e.nonce.hex(),
                    "signature": e.signature.hex(),
                }
                for e in self.enrolments
            ],
        }

    def digest(self, study: Study) -> bytes:
        """T, for a study whose roster the enrolments follow."""
        roster: list[Json] = [
            [e.name, e.identity.hex(), e.exchange.hex(), entry.rows, e.nonce.hex()]
            for e, entry in zip(self.enrolments, study.roster, strict=True)
        ]
        return canonical_hash([PROTOCOL, self.study_hash.hex(), self.key.to_json(), roster])


def parse_transcript(data: Any) -> Transcript:
    """Reads what `to_json` wrote; anything else is a failed check."""
    try:
        if data["protocol"] != PROTOCOL:
            raise check_failed("the transcript is of another protocol version.", "Update the older side.")
        enrolments = tuple(
            Enrolment(
                str(e["name"]),
                *(bytes.fromhex(e[key]) for key in ("identity", "exchange", "nonce", "signature")),
            )
            for e in data["enrolments"]
        )
        return Transcript(bytes.fromhex(data["study"]), PublicKey.from_json(data["key"]), enrolments)
    except (KeyError, TypeError, ValueError) as error:
        raise check_failed(f"the transcript is malformed ({type(error).__name__}).") from None


def check_enrolment(enrolment: Enrolment, study: Study, study_hash: bytes) -> None:
    """Checks one enrolment against the roster.

    1. its name is on the roster; 2. its identity key is the one that the roster pins; 3. its sizes are right;
    4. its signature is valid for this study.
    """
    pinned = {entry.name: entry.key for entry in study.roster}
    # 1
    if enrolment.name not in pinned:
        raise check_failed(f"{enrolment.name} is not on the roster of {study.name}.")
    # 2
    if fingerprint(enrolment.identity) != pinned[enrolment.name]:
        raise check_failed(
            f"the identity key of {enrolment.name} is not the one on the roster of {study.name}.",
            "Compare `synod party fingerprint` with the study's roster.",
        )
    # 3
    sizes = (len(enrolment.identity), len(enrolment.exchange), len(enrolment.nonce))
    if sizes != (PUBLIC_KEY_BYTES, PUBLIC_KEY_BYTES, NONCE_BYTES):
        raise check_failed(f"the enrolment of {enrolment.name} has keys of the wrong size.")
    # 4
    require_signature(
        enrolment.identity,
        "enrol",
        enrolment.statement(study_hash),
        enrolment.signature,
        signer=enrolment.name,
    )


def check_transcript(transcript: Transcript, study: Study, study_hash: bytes) -> None:
    """Checks that the transcript is this study's: its hash, and each roster entry enrolled once, in order."""
    if transcript.study_hash != study_hash:
        raise check_failed("the transcript is of another study.")
    if [e.name for e in transcript.enrolments] != [entry.name for entry in study.roster]:
        raise check_failed("the transcript's parties are not those of the approved roster.")
    for enrolment in transcript.enrolments:
        check_enrolment(enrolment, study, study_hash)
    if len({e.exchange for e in transcript.enrolments}) != len(transcript.enrolments):
        raise check_failed("two parties of the transcript have the same exchange key.")
