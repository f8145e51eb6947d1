"""A sealed stream opens to the same bytes with its passphrase, and to nothing if a byte, a chunk or the end is not as
it was written.
"""

import io

import pytest

from synod.common.crypto import sealedfile
from synod.common.crypto.sealedfile import MAGIC, SALT_BYTES, TAG_BYTES, SealedReader, SealedWriter
from synod.common.runtime.errors import Code, SynodError

CHUNK = 64
PLAIN = bytes(range(256)) * 2


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealedfile, "CHUNK_BYTES", CHUNK)
    monkeypatch.setitem(sealedfile.SCRYPT, "n", 2)


def seal(data: bytes, step: int = 7) -> bytes:
    sink = io.BytesIO()
    writer = SealedWriter(sink, b"correct horse")
    for start in range(0, len(data), step):
        writer.write(data[start : start + step])
    writer.finish()
    return sink.getvalue()


def unseal(sealed: bytes, passphrase: bytes = b"correct horse", step: int = 11) -> bytes:
    source = io.BytesIO(sealed)
    assert source.read(len(MAGIC)) == MAGIC
    reader = SealedReader(source, passphrase)
    parts = []
    while part := reader.read(step):
        parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize("length", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 500])
def test_what_is_sealed_opens_to_the_same_bytes(length: int) -> None:
    assert unseal(seal(PLAIN[:length])) == PLAIN[:length]
    assert unseal(seal(PLAIN[:length], step=1000), step=1000) == PLAIN[:length]


def test_nothing_is_in_the_clear_and_no_two_are_alike() -> None:
    first, second = seal(b"secret " * 50), seal(b"secret " * 50)
    assert b"secret" not in first
    assert first[len(MAGIC) :] != second[len(MAGIC) :]


def chunks(sealed: bytes) -> tuple[bytes, list[bytes]]:
    start = len(MAGIC) + SALT_BYTES
    size = CHUNK + TAG_BYTES
    return sealed[:start], [sealed[i : i + size] for i in range(start, len(sealed), size)]


def test_a_changed_missing_swapped_or_foreign_chunk_is_refused() -> None:
    head, parts = chunks(seal(PLAIN[: 3 * CHUNK + 5]))
    _, others = chunks(seal(PLAIN[: 3 * CHUNK + 5]))
    assert len(parts) == 4
    changed = bytearray(parts[1])
    changed[3] ^= 1
    broken = [
        [parts[0], bytes(changed), *parts[2:]],
        parts[:3],
        parts[:1],
        [],
        parts[1:],
        [parts[1], parts[0], *parts[2:]],
        [*parts, parts[3]],
        [others[0], *parts[1:]],
    ]
    for lines in broken:
        with pytest.raises(SynodError, match="does not open with this passphrase, or is damaged") as caught:
            unseal(head + b"".join(lines))
        assert caught.value.code is Code.CHECK_FAILED


def test_another_passphrase_opens_nothing() -> None:
    with pytest.raises(SynodError, match="does not open with this passphrase"):
        unseal(seal(PLAIN), b"wrong horse")
