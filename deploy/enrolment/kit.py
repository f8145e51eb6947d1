"""The enrolment kit: all that a party needs to know of a curator, in one file that the curator's identity has signed.

Nothing in it is secret. It is authentic exactly as far as the fingerprint of its signer is: whoever joins compares that
with what the curator's operator said by phone or in person, and everything else follows from the signature.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationError

from synod.common.crypto.identity import Identity
from synod.common.protocol.envelope import open_document, sign_document
from synod.common.runtime.errors import check_failed, invalid
from synod.common.runtime.jsontext import DocumentError, read_json_file
from synod.common.runtime.settings import Address
from synod.common.study.broken import describe_validation_error
from synod.common.study.schema import Strict

CONTEXT = "kit"
FORMAT = "synod/kit/v1"
LARGEST_KIT_BYTES = 1 << 18
LONGEST_CONTACT = 500
USUAL_CONTACT = "Send it to the curator's operator."


def _check_line(text: str) -> str:
    if not text.isprintable() or not text.strip():
        raise ValueError("is one line of printable characters")
    return text


class _Content(Strict):
    format: Literal["synod/kit/v1"]
    address: Address
    ca: Annotated[str, Field(min_length=1, max_length=LARGEST_KIT_BYTES)]
    certificates: Annotated[str, Field(max_length=LONGEST_CONTACT), AfterValidator(_check_line)]


@dataclass(frozen=True, slots=True)
class Kit:
    """A curator as a party has to know it: where it is dialed, the certificates of the transport authority (PEM), who
    signs requests for certificates, in one line for people, and the fingerprint of its identity.
    """

    address: str
    ca: str
    certificates: str
    curator: str


def write_kit(identity: Identity, *, address: str, ca: str, certificates: str) -> bytes:
    """A kit as a file, signed by the curator's identity.

    Guarantee: address and authority cannot be changed without changing the fingerprint that people compare.
    """
    content = {"format": FORMAT, "address": address, "ca": ca, "certificates": certificates}
    try:
        _Content.model_validate(content)
    except ValidationError as error:
        raise describe_validation_error(error, "the kit") from None
    return (json.dumps(sign_document(CONTEXT, content, identity), indent=2) + "\n").encode()


def read_kit(path: Path) -> Kit:
    """Reads a kit. 1. it is a JSON document of a bounded size; 2. the key that it names has signed it; 3. it holds what
    a kit holds, and nothing else. Whose key that is, a person says.
    """
    # 1
    try:
        document = read_json_file(path, LARGEST_KIT_BYTES)
    except OSError as error:
        raise invalid(f"{path} cannot be read: {error.strerror}.", "Check the path.") from None
    except DocumentError as error:
        raise invalid(f"{path} {error.reason}.", "Ask the curator's operator for the kit again.") from None
    # 2
    signed = open_document(CONTEXT, document)
    # 3
    try:
        content = _Content.model_validate(signed.content)
    except ValidationError as error:
        raise describe_validation_error(error, str(path)) from None
    return Kit(content.address, content.ca, content.certificates, signed.fingerprint)


def require_expected(kit: Kit, expected: str) -> None:
    """Refuses a kit of another curator than the operator expects."""
    if kit.curator != expected:
        raise check_failed(
            f"the kit is signed by {kit.curator}, which is not what `--expect` says. Nothing was made.",
            "Call the curator's operator; do not use this kit.",
        )
