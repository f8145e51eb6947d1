"""Signed documents: content with its signer's key and signature beside it, in one form for every document.

The signature covers everything but itself, in a context of its own, so that no document passes for one of another
kind. Who the signer must be is decided by whoever reads it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from synod.common.crypto.canonical import Json, canonical_bytes
from synod.common.crypto.identity import Identity, fingerprint, verify
from synod.common.runtime.errors import check_failed
from synod.common.runtime.jsontext import DocumentError, read_json

SIGNER, SIGNATURE = "signer", "signature"


@dataclass(frozen=True, slots=True)
class SignedDocument:
    """Content whose signature is valid, and the key that it is valid for."""

    content: dict[str, Any]
    signer: bytes

    @property
    def fingerprint(self) -> str:
        """The signer's fingerprint."""
        return fingerprint(self.signer)


def sign_document(context: str, content: Mapping[str, Json], identity: Identity) -> dict[str, Json]:
    """The content with its signer and signature."""
    assert not {SIGNER, SIGNATURE} & set(content)
    whole: dict[str, Json] = {**content, SIGNER: identity.public_key.hex()}
    return {**whole, SIGNATURE: identity.sign(context, whole).hex()}


def open_document(context: str, document: Any) -> SignedDocument:
    """The content of a signed document, if its signature is valid; `context` says what kind it must be."""
    try:
        signer, signature = (read_hex(document[key]) for key in (SIGNER, SIGNATURE))
        whole = {key: value for key, value in document.items() if key != SIGNATURE}
        canonical_bytes(whole)
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        raise check_failed(f"the {context} is not a signed document.") from None
    if not verify(signer, context, whole, signature):
        raise check_failed(f"the signature on the {context} is not valid.", "It was altered, or signed by another key.")
    return SignedDocument({key: value for key, value in whole.items() if key != SIGNER}, signer)


def read_hex(text: str) -> bytes:
    """Bytes from their one written form, so that a document cannot be altered and still be valid."""
    data = bytes.fromhex(text)
    if data.hex() != text:
        raise ValueError("not bytes in their one written form")
    return data


def read_document(context: str, document: bytes) -> SignedDocument:
    """The same for a document as bytes."""
    try:
        data = read_json(document)
    except DocumentError as error:
        raise check_failed(f"the {context} {error.reason}.") from None
    return open_document(context, data)
