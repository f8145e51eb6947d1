"""The transcript T: what all parties of a study must have in common before any of them answers.

T = SHA-256(protocol version, study hash, Paillier n and h_s, the curator's identity key, and for each roster entry in
order: name, identity key, X25519 key, rows, nonce, heads of its ledger). Masks are derived under T, so parties that
were told different things do not cancel. Whoever has signed T has agreed on who may ask, and on who seals the release.
"""

from dataclasses import dataclass, replace
from typing import Any

from synod.common.crypto.canonical import Json, canonical_bytes, canonical_hash
from synod.common.crypto.identity import PUBLIC_KEY_BYTES, Identity, fingerprint, require_signature
from synod.common.crypto.paillier import PublicKey
from synod.common.protocol.envelope import SignedDocument, open_document, read_document, sign_document
from synod.common.protocol.heads import StatedHeads
from synod.common.runtime.errors import check_failed
from synod.common.study.study import Study

PROTOCOL = "synod/v1"
NONCE_BYTES = 32


@dataclass(frozen=True, slots=True)
class Enrolment:
    """One party's keys for one study and what it states of its ledger, signed with its identity."""

    name: str
    identity: bytes
    exchange: bytes
    nonce: bytes
    heads: StatedHeads
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
            "heads": self.heads.to_json(),
        }

    def signed_by(self, identity: Identity, study_hash: bytes) -> "Enrolment":
        """The same enrolment with its signature."""
        return replace(self, signature=identity.sign("enrol", self.statement(study_hash)))

    def to_json(self) -> dict[str, Json]:
        """As transcripts and the curator's store hold it."""
        return {
            "name": self.name,
            "identity": self.identity.hex(),
            "exchange": self.exchange.hex(),
            "nonce": self.nonce.hex(),
            "heads": self.heads.to_json(),
            "signature": self.signature.hex(),
        }

    @staticmethod
    def from_json(data: Any) -> "Enrolment":
        """Reads what `to_json` wrote; raises KeyError, TypeError or ValueError at anything else."""
        identity, exchange, nonce, signature = (
            bytes.fromhex(data[key]) for key in ("identity", "exchange", "nonce", "signature")
        )
        return Enrolment(str(data["name"]), identity, exchange, nonce, StatedHeads.from_json(data["heads"]), signature)


@dataclass(frozen=True, slots=True)
class Transcript:
    """A study's hash, its Paillier key, the curator's identity key and all enrolments in the roster's order."""

    study_hash: bytes
    key: PublicKey
    curator: bytes
    enrolments: tuple[Enrolment, ...]

    def to_json(self) -> dict[str, Json]:
        """The transcript with the parties' signatures, which `seal_transcript` puts into the curator's envelope."""
        return {
            "protocol": PROTOCOL,
            "study": self.study_hash.hex(),
            "key": self.key.to_json(),
            "curator": self.curator.hex(),
            "enrolments": [enrolment.to_json() for enrolment in self.enrolments],
        }

    def digest(self, study: Study) -> bytes:
        """T, for a study whose roster the enrolments follow."""
        roster: list[Json] = [
            [e.name, e.identity.hex(), e.exchange.hex(), entry.rows, e.nonce.hex(), e.heads.to_json()]
            for e, entry in zip(self.enrolments, study.roster, strict=True)
        ]
        return canonical_hash([PROTOCOL, self.study_hash.hex(), self.key.to_json(), self.curator.hex(), roster])


def parse_transcript(data: Any) -> Transcript:
    """Reads what `to_json` wrote; anything else is a failed check."""
    try:
        if data["protocol"] != PROTOCOL:
            raise check_failed("the transcript is of another protocol version.", "Update the older side.")
        enrolments = tuple(Enrolment.from_json(enrolment) for enrolment in data["enrolments"])
        study_hash, curator = (bytes.fromhex(data[key]) for key in ("study", "curator"))
        return Transcript(study_hash, PublicKey.from_json(data["key"]), curator, enrolments)
    except (KeyError, TypeError, ValueError) as error:
        raise check_failed(f"the transcript is malformed ({type(error).__name__}).") from None


def seal_transcript(transcript: Transcript, identity: Identity) -> bytes:
    """The transcript in the curator's signed envelope, as parties fetch it and as the manifest holds it."""
    return canonical_bytes(sign_document("transcript", transcript.to_json(), identity))


def read_transcript(envelope: bytes) -> Transcript:
    """The transcript in an envelope that the curator signed whom the transcript names."""
    return _signed_by_its_curator(read_document("transcript", envelope))


def open_transcript(envelope: Any) -> Transcript:
    """The same for an envelope as a JSON value."""
    return _signed_by_its_curator(open_document("transcript", envelope))


def _signed_by_its_curator(signed: SignedDocument) -> Transcript:
    transcript = parse_transcript(signed.content)
    if canonical_bytes(transcript.to_json()) != canonical_bytes(signed.content):
        raise check_failed("the transcript is not in canonical form.")
    if signed.signer != transcript.curator:
        raise check_failed("the transcript is not signed by the curator that it names.")
    return transcript


def check_enrolment(enrolment: Enrolment, study: Study, study_hash: bytes) -> None:
    """Checks one enrolment against the roster.

    1. its name is on the roster; 2. its identity key is the one that the roster pins; 3. its sizes are right,
    and its heads are of one ledger; 4. its signature is valid for this study.
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
    if not enrolment.heads.is_sound():
        raise check_failed(f"the enrolment of {enrolment.name} states heads that no ledger can have.")
    # 4
    require_signature(
        enrolment.identity,
        "enrol",
        enrolment.statement(study_hash),
        enrolment.signature,
        signer=enrolment.name,
    )


def check_transcript(transcript: Transcript, study: Study, study_hash: bytes) -> None:
    """Checks that the transcript is this study's.

    1. it has the study's hash; 2. each roster entry is enrolled once, in order, with a key of its own; 3. the curator
    is nobody on the roster, so that no party's key can ask or seal.
    """
    # 1
    if transcript.study_hash != study_hash:
        raise check_failed("the transcript is of another study.")
    # 2
    if [e.name for e in transcript.enrolments] != [entry.name for entry in study.roster]:
        raise check_failed("the transcript's parties are not those of the approved roster.")
    for enrolment in transcript.enrolments:
        check_enrolment(enrolment, study, study_hash)
    if len({e.exchange for e in transcript.enrolments}) != len(transcript.enrolments):
        raise check_failed("two parties of the transcript have the same exchange key.")
    # 3
    if study.pins(fingerprint(transcript.curator)):
        raise check_failed("the curator of the transcript is a party of the roster.")
