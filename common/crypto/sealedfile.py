"""A stream of bytes encrypted with a passphrase: AES-256-GCM in chunks, under a key that scrypt makes of it.

Chunks are numbered and the last one says so, so that none can be left out, swapped or cut off. Neither side ever
holds more than a chunk. The passphrase is that of `keyfiles`: the first line of a file.
"""

import secrets
from collections.abc import Iterator
from typing import BinaryIO, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from synod.common.runtime.errors import check_failed

MAGIC = b"synod-sealed/1\n"
SALT_BYTES = 16
CHUNK_BYTES = 1 << 20
TAG_BYTES = 16
COUNTER_BYTES = 11
SCRYPT = {"length": 32, "n": 1 << 15, "r": 8, "p": 1}


class Readable(Protocol):
    """What can be read from in parts."""

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes; none at the end."""


class SealedWriter:
    """Encrypts what is written to it; `finish` writes the last chunk, without which nothing opens.

    Guarantee: the salt is fresh, so a key encrypts one stream, and no chunk's number is used twice under it.
    """

    def __init__(self, sink: BinaryIO, passphrase: bytes) -> None:
        salt = secrets.token_bytes(SALT_BYTES)
        self._sink, self._cipher = sink, _cipher(passphrase, salt)
        self._buffer, self._number = bytearray(), 0
        sink.write(MAGIC + salt)

    def write(self, data: bytes) -> int:
        """Takes bytes; whole chunks go out, but never the last."""
        self._buffer += data
        while len(self._buffer) > CHUNK_BYTES:
            self._emit(bytes(self._buffer[:CHUNK_BYTES]), last=False)
            del self._buffer[:CHUNK_BYTES]
        return len(data)

    def finish(self) -> None:
        """Writes what is left as the last chunk."""
        self._emit(bytes(self._buffer), last=True)
        self._buffer.clear()

    def _emit(self, chunk: bytes, *, last: bool) -> None:
        self._sink.write(self._cipher.encrypt(_nonce(self._number, last=last), chunk, MAGIC))
        self._number += 1


class SealedReader:
    """Reads what a `SealedWriter` wrote, after its first line.

    Guarantee: every byte that it returns was written under this passphrase, at this place; the end is reported only
    where the writer finished.
    """

    def __init__(self, source: Readable, passphrase: bytes) -> None:
        self._source = source
        self._cipher = _cipher(passphrase, source.read(SALT_BYTES))
        self._chunks = self._open()
        self._buffer = bytearray()

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes; none at the end."""
        while len(self._buffer) < size and (chunk := next(self._chunks, b"")):
            self._buffer += chunk
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def _open(self) -> Iterator[bytes]:
        number, chunk = 0, read_exactly(self._source, CHUNK_BYTES + TAG_BYTES)
        while True:
            following = read_exactly(self._source, CHUNK_BYTES + TAG_BYTES)
            try:
                yield self._cipher.decrypt(_nonce(number, last=not following), chunk, MAGIC)
            except InvalidTag:
                raise check_failed(
                    "the file does not open with this passphrase, or is damaged.",
                    "Check the passphrase file, and that the file was copied whole.",
                ) from None
            if not following:
                return
            number, chunk = number + 1, following


def read_exactly(source: Readable, size: int) -> bytes:
    """So many bytes, or fewer where the source ends; a pipe may hand them out in parts."""
    found = bytearray()
    while len(found) < size and (part := source.read(size - len(found))):
        found += part
    return bytes(found)


def _cipher(passphrase: bytes, salt: bytes) -> AESGCM:
    return AESGCM(Scrypt(salt=salt, **SCRYPT).derive(passphrase))


def _nonce(number: int, *, last: bool) -> bytes:
    return number.to_bytes(COUNTER_BYTES, "big") + bytes([last])
