"""Rotations: how an identity key follows another, said by both.

The holder of a name signs, with the old key and with the new one, that the new key takes the old one's place under that
name: the old signature says that it is the same holder, the new one that the holder has the key. Whoever knew the old
key can move on to the new one, and only from the old one: a statement that is out of order, of another name or signed
by somebody else changes nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from synod.common.crypto.canonical import Json, canonical_bytes
from synod.common.crypto.identity import PUBLIC_KEY_BYTES, Identity, fingerprint, require_signature
from synod.common.protocol.envelope import read_hex
from synod.common.protocol.transcript import PROTOCOL
from synod.common.runtime.errors import check_failed
from synod.common.runtime.jsontext import DocumentError, read_json

CONTEXT = "rotation"
LARGEST_ROTATION_BYTES = 4096
KEYS = {"protocol", "name", "old", "new", "old_signature", "new_signature"}


@dataclass(frozen=True, slots=True)
class Rotation:
    """A statement that both keys have signed; `name` is a party's, or `curator`."""

    name: str
    old: bytes
    new: bytes
    old_signature: bytes
    new_signature: bytes

    def to_json(self) -> dict[str, Json]:
        """The statement with its signatures, as it is handed out."""
        signatures: dict[str, Json] = {
            "old_signature": self.old_signature.hex(),
            "new_signature": self.new_signature.hex(),
        }
        return {**_statement(self.name, self.old, self.new), **signatures}

    def to_bytes(self) -> bytes:
        """The same in its one written form."""
        return canonical_bytes(self.to_json())


def _statement(name: str, old: bytes, new: bytes) -> dict[str, Json]:
    return {"protocol": PROTOCOL, "name": name, "old": old.hex(), "new": new.hex()}


def sign_rotation(name: str, old: Identity, new: Identity) -> Rotation:
    """The statement that `new` takes the place of `old` under this name."""
    statement = _statement(name, old.public_key, new.public_key)
    return Rotation(name, old.public_key, new.public_key, old.sign(CONTEXT, statement), new.sign(CONTEXT, statement))


def recall_rotation(data: Any) -> Rotation:
    """A statement that was checked before it was kept, from its fields; raises ValueError where they are not those."""
    if set(data) != KEYS or data["protocol"] != PROTOCOL or not isinstance(data["name"], str):
        raise ValueError("not a rotation")
    return Rotation(data["name"], *(read_hex(data[key]) for key in ("old", "new", "old_signature", "new_signature")))


def parse_rotation(data: Any) -> Rotation:
    """Reads a statement; anything but one that both of its keys have signed is a failed check."""
    try:
        rotation = recall_rotation(data)
    except (TypeError, ValueError):
        raise check_failed(
            "this is not a rotation of an identity.", "Ask for the file that `rotate-identity` wrote."
        ) from None
    if {len(rotation.old), len(rotation.new)} != {PUBLIC_KEY_BYTES} or rotation.old == rotation.new:
        raise check_failed("a rotation is from one key to another one.")
    statement = _statement(rotation.name, rotation.old, rotation.new)
    name = rotation.name
    require_signature(rotation.old, CONTEXT, statement, rotation.old_signature, signer=f"the old key of {name}")
    require_signature(rotation.new, CONTEXT, statement, rotation.new_signature, signer=f"the new key of {name}")
    return rotation


def read_rotation(document: bytes) -> Rotation:
    """The same for a document as bytes."""
    if len(document) > LARGEST_ROTATION_BYTES:
        raise check_failed("the rotation is longer than any that this version reads.")
    try:
        data = read_json(document)
    except DocumentError as error:
        raise check_failed(f"the rotation {error.reason}.") from None
    return parse_rotation(data)


def move_key(name: str, key: str, rotations: Iterable[Rotation]) -> str:
    """The fingerprint that a name has after these rotations, each from the key that it has then.

    Guarantee: who holds no key that the name had, one after another from `key` on, cannot make this return another
    key; the order of the rotations is the one in which they were signed.
    """
    for rotation in rotations:
        if rotation.name != name:
            raise check_failed(f"the rotation is of {rotation.name}, and not of {name}.")
        if fingerprint(rotation.old) != key:
            raise check_failed(
                f"the rotation of {name} is not from the key that is known for it.",
                "It is out of order, was used before, or is from somebody else: ask its holder by phone.",
            )
        key = fingerprint(rotation.new)
    return key


def successors(key: bytes, rotations: Mapping[bytes, Rotation]) -> list[Rotation]:
    """The rotations that follow a key, in order; `rotations` has them by their old key."""
    followed: list[Rotation] = []
    seen = {key}
    while (rotation := rotations.get(key)) is not None and rotation.new not in seen:
        followed.append(rotation)
        key = rotation.new
        seen.add(key)
    return followed
