"""Keys in files: with a passphrase nothing of them is in the clear, and a file without one is not taken for it."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from synod.common.crypto.authority import make_authority, sign_request
from synod.common.crypto.certificates import Holder, Role, check_own_certificate, read_tls
from synod.common.crypto.identity import Identity
from synod.common.crypto.keyfiles import read_key, read_passphrase, write_key
from synod.common.crypto.requests import make_request, read_request
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.settings import TlsFiles

PASSPHRASE = b"correct horse"
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
NORTH = Holder(Role.PARTY, "north")


@pytest.mark.parametrize("key", [ec.generate_private_key(ec.SECP256R1()), Ed25519PrivateKey.generate()])
def test_a_key_is_read_with_its_passphrase_and_no_other(
    tmp_path: Path, key: ec.EllipticCurvePrivateKey | Ed25519PrivateKey
) -> None:
    path = tmp_path / "own.key"
    write_key(path, key, PASSPHRASE)
    assert path.stat().st_mode & 0o077 == 0
    form = serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    assert read_key(path, PASSPHRASE).private_bytes(*form) == key.private_bytes(*form)
    with pytest.raises(TypeError):
        serialization.load_pem_private_key(path.read_bytes(), None)
    for wrong, told in ((None, "is encrypted"), (b"another", "does not open with the passphrase")):
        with pytest.raises(SynodError, match=told) as caught:
            read_key(path, wrong)
        assert "horse" not in str(caught.value)
        assert "another" not in str(caught.value)


def test_a_key_in_the_clear_is_not_taken_for_an_encrypted_one(tmp_path: Path) -> None:
    write_key(tmp_path / "own.key", Ed25519PrivateKey.generate(), None)
    with pytest.raises(SynodError, match="is not encrypted, although `passphrase_file` is set"):
        read_key(tmp_path / "own.key", PASSPHRASE)


def test_an_identity_survives_its_passphrase(tmp_path: Path) -> None:
    identity = Identity.generate()
    identity.save(tmp_path / "identity.pem", PASSPHRASE)
    assert Identity.load(tmp_path / "identity.pem", PASSPHRASE).public_key == identity.public_key
    with pytest.raises(SynodError, match="is encrypted"):
        Identity.load(tmp_path / "identity.pem")


def test_grpc_is_given_the_key_in_the_clear_and_no_repr_is(tmp_path: Path) -> None:
    make_authority(tmp_path, now=NOW)
    (tmp_path / "passphrase").write_bytes(PASSPHRASE)
    request, key_path = tmp_path / "north.csr", tmp_path / "north.key"
    for _ in range(2):  # the key is made, and used again
        make_request(request, NORTH, (), key_path=key_path, passphrase=PASSPHRASE)
        assert b"ENCRYPTED" in key_path.read_bytes()
    certificate = sign_request(tmp_path, read_request(request), now=NOW)
    files = TlsFiles(
        ca=tmp_path / "ca.pem", certificate=certificate, key=key_path, passphrase_file=tmp_path / "passphrase"
    )
    check_own_certificate(files, Role.PARTY, "north", now=NOW)
    tls = read_tls(files)
    assert tls.key.startswith(b"-----BEGIN PRIVATE KEY-----")
    assert "PRIVATE KEY" not in repr(tls)
    with pytest.raises(SynodError, match="is encrypted") as caught:
        read_tls(files.model_copy(update={"passphrase_file": None}))
    assert caught.value.code is Code.UNAUTHENTICATED


@pytest.mark.parametrize(
    ("content", "read"),
    [(b"secret", b"secret"), (b"secret\n", b"secret"), (b"a b\r\nmore\n", b"a b"), (b" x \n", b" x ")],
)
def test_a_passphrase_is_the_first_line(tmp_path: Path, content: bytes, read: bytes) -> None:
    (tmp_path / "passphrase").write_bytes(content)
    assert read_passphrase(tmp_path / "passphrase") == read
    assert read_passphrase(None) is None


@pytest.mark.parametrize("content", [None, b"", b"\n", b"\nsecret\n"])
def test_no_passphrase_is_an_error(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "passphrase").write_bytes(content)
    with pytest.raises(SynodError, match="passphrase file"):
        read_passphrase(tmp_path / "passphrase")
