"""Identities: Ed25519 keys that the roster pins, and signatures that each have a context string of their own.

An identity is apart from the TLS key: the transport authority is never trusted for who is on the roster.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from synod.common.crypto.canonical import Json, canonical_bytes
from synod.common.crypto.keyfiles import read_key, write_key
from synod.common.runtime.errors import check_failed, invalid

PUBLIC_KEY_BYTES = 32
SIGNATURE_BYTES = 64


def fingerprint(public_key: bytes) -> str:
    """How people compare keys: `sha256:` and 64 hexadecimal digits."""
    return "sha256:" + hashlib.sha256(public_key).hexdigest()


def _framed(context: str, value: Json) -> bytes:
    return b"synod/v1/" + context.encode() + b"\0" + canonical_bytes(value)


@dataclass(frozen=True, slots=True)
class Identity:
    """A private Ed25519 key; never printed."""

    _key: Ed25519PrivateKey

    def __repr__(self) -> str:
        return f"Identity({self.fingerprint})"

    @property
    def public_key(self) -> bytes:
        """The raw 32-byte public key."""
        return self._key.public_key().public_bytes_raw()

    @property
    def fingerprint(self) -> str:
        """The public key's fingerprint."""
        return fingerprint(self.public_key)

    def sign(self, context: str, value: Json) -> bytes:
        """Signs the canonical form of `value` under `context`.

        Guarantee: a signature made for one context never verifies under another.
        """
        return self._key.sign(_framed(context, value))

    @staticmethod
    def generate() -> "Identity":
        """A new identity from the operating system's generator."""
        return Identity(Ed25519PrivateKey.generate())

    def save(self, path: Path, passphrase: bytes | None = None) -> None:
        """Writes the key for its owner alone, encrypted if there is a passphrase; refuses to replace a file."""
        write_key(path, self._key, passphrase)

    @staticmethod
    def load(path: Path, passphrase: bytes | None = None) -> "Identity":
        """Reads the key that `save` wrote."""
        try:
            key = read_key(path, passphrase)
        except FileNotFoundError:
            raise invalid(f"there is no identity key at {path}.", "Run `init` first.") from None
        except (OSError, TypeError, ValueError) as error:
            raise invalid(f"the identity key at {path} cannot be read ({type(error).__name__}).") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise invalid(f"the key at {path} is not an Ed25519 key.")
        return Identity(key)


def verify(public_key: bytes, context: str, value: Json, signature: bytes) -> bool:
    """Whether `signature` is `public_key`'s over `value` under `context`."""
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, _framed(context, value))
    except (InvalidSignature, TypeError, ValueError):  # what has no canonical form was never signed
        return False
    return True


def require_signature(public_key: bytes, context: str, value: Json, signature: bytes, *, signer: str) -> None:
    """Raises unless the signature is valid."""
    if not verify(public_key, context, value, signature):
        raise check_failed(f"the signature of {signer} on {context} is not valid.", "Nothing was changed by it.")
