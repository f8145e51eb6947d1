"""One way to write a value as bytes: canonical JSON (RFC 8785) without floating-point numbers, and its hash.

Everything that is signed, hashed or compared across machines goes through here. Exact decimals and fractions
travel as strings, so that no two implementations can round them differently.
"""

import hashlib
from collections.abc import Mapping, Sequence
from json.encoder import encode_basestring

Json = None | bool | int | str | Sequence["Json"] | Mapping[str, "Json"]

LARGEST_INTEGER = 2**53 - 1


def canonical_bytes(value: Json) -> bytes:
    """The RFC 8785 form of `value`: keys sorted by UTF-16 code units, no white space, integers only."""
    return _write(value).encode("utf-8", "strict")


def canonical_hash(value: Json) -> bytes:
    """SHA-256 of the canonical form."""
    return hashlib.sha256(canonical_bytes(value)).digest()


def _write(value: Json) -> str:
    match value:
        case str():
            return encode_basestring(value)  # as `json.dumps` writes it, without making an encoder for each text
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            if abs(value) > LARGEST_INTEGER:
                raise ValueError("an integer beyond 2**53 - 1 has no canonical form")
            return str(value)
        case dict() | Mapping():  # dicts, lists and tuples are named as well because abstract classes are slow to ask
            keys = sorted(value) if "".join(value).isascii() else sorted(value, key=_utf16)
            return "{" + ",".join([f"{encode_basestring(key)}:{_write(value[key])}" for key in keys]) + "}"
        case list() | tuple() | Sequence() if not isinstance(value, bytes | bytearray | memoryview):
            return "[" + ",".join([_write(item) for item in value]) + "]"
        case _:
            raise TypeError(f"a {type(value).__name__} has no canonical form")


def _utf16(key: str) -> bytes:
    return key.encode("utf-16-be")
