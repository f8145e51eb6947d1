"""Keys and coins that are functions of a name or a number, so that two sides of a test can make the same ones."""

import hashlib
from functools import cache

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from synod.common.crypto.identity import Identity
from synod.common.crypto.paillier import SecretKey, generate_key
from synod.common.privacy.coins import Coins

CURATOR = "curator"
"""The name under which tests make the curator's identity."""


def seed_bytes(*parts: object) -> bytes:
    """32 bytes that are a function of `parts`."""
    return hashlib.sha256(repr(parts).encode()).digest()


def seeded(seed: int) -> Coins:
    """Coins that are a function of a number."""
    return Coins(seed.to_bytes(32, "big"))


@cache
def identity_of(name: str) -> Identity:
    """The identity of the party, or the curator, of this name."""
    return Identity(Ed25519PrivateKey.from_private_bytes(seed_bytes("identity", name)))


@cache
def paillier_key(seed: int = 1, bits: int = 2048) -> SecretKey:
    """One of the curator's Paillier keys."""
    return generate_key(bits, coins=seeded(seed))


def pinned(index: int) -> str:
    """A well-formed fingerprint that belongs to nobody."""
    return f"sha256:{index:064x}"
