"""What the two sides say of a study apart from questions and answers, each signed in a context of its own.

The curator announces a study and its end, with the identity that each party's configuration pins; a party declines a
study and acknowledges its end, with the identity that the roster pins. Each statement names the study, so that no
signature is good for another one. There is no transcript yet when a study is announced, and none if it ends before all
have enrolled: the study's hash, which covers the roster, stands for both.
"""

from enum import Enum

from synod.common.crypto.canonical import Json
from synod.common.crypto.identity import Identity, require_signature

ANNOUNCEMENT, END, DECLINE, ACKNOWLEDGEMENT = "announce", "end", "decline", "acknowledge"
LOST = "lost"


class DeclineReason(Enum):
    """Why a party does not go on, as it signs it."""

    NOT_APPROVED = "not-approved"
    REVOKED = "revoked"
    CHECK_FAILED = "check-failed"


def _announcement(study_hash: bytes) -> Json:
    return {"study": study_hash.hex()}


def _end(study_hash: bytes, outcome: str) -> Json:
    return {"study": study_hash.hex(), "outcome": outcome}


def _decline(party: str, study_hash: bytes, reason: str) -> Json:
    return {"party": party, "study": study_hash.hex(), "reason": reason}


def _acknowledgement(party: str, study_hash: bytes, outcome: str) -> Json:
    return {"party": party, "study": study_hash.hex(), "outcome": outcome}


# The curator's


def lost_to(party: str) -> str:
    """The end of a study at one party, without which it goes on: no other party may take it for its own."""
    return f"{LOST}: {party}"


def sign_announcement(curator: Identity, study_hash: bytes) -> bytes:
    """That this curator runs the study, and invites its roster."""
    return curator.sign(ANNOUNCEMENT, _announcement(study_hash))


def require_announcement(curator: bytes, study_hash: bytes, signature: bytes) -> None:
    """Raises unless the curator of this key has announced the study.

    Guarantee: who lacks that key can make no party approve or enrol.
    """
    require_signature(curator, ANNOUNCEMENT, _announcement(study_hash), signature, signer="the curator")


def sign_end(curator: Identity, study_hash: bytes, outcome: str) -> bytes:
    """That the study has ended so."""
    return curator.sign(END, _end(study_hash, outcome))


def require_end(curator: bytes, study_hash: bytes, outcome: str, signature: bytes) -> None:
    """Raises unless the curator of this key says that the study has ended so.

    Guarantee: who lacks that key can end no study at a party.
    """
    require_signature(curator, END, _end(study_hash, outcome), signature, signer="the curator")


# A party's


def sign_decline(identity: Identity, party: str, study_hash: bytes, reason: DeclineReason) -> bytes:
    """That the party does not go on with the study, and the kind of its reason."""
    return identity.sign(DECLINE, _decline(party, study_hash, reason.value))


def require_decline(identity: bytes, party: str, study_hash: bytes, reason: DeclineReason, signature: bytes) -> None:
    """Raises unless the identity declines this study for this reason.

    Guarantee: nothing else that a party signs, and no decline of another study, ends this one.
    """
    require_signature(identity, DECLINE, _decline(party, study_hash, reason.value), signature, signer=party)


def sign_acknowledgement(identity: Identity, party: str, study_hash: bytes, outcome: str) -> bytes:
    """That the party knows how the study ended."""
    return identity.sign(ACKNOWLEDGEMENT, _acknowledgement(party, study_hash, outcome))


def require_acknowledgement(identity: bytes, party: str, study_hash: bytes, outcome: str, signature: bytes) -> None:
    """Raises unless the identity says that the party knows of this end of this study."""
    require_signature(identity, ACKNOWLEDGEMENT, _acknowledgement(party, study_hash, outcome), signature, signer=party)
