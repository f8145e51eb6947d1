"""Identities: signatures under their own context only, and keys that nobody else can read."""

import hashlib
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from synod.common.crypto.identity import Identity, fingerprint, require_signature, verify
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.files import write_private_file

CONTEXTS = [
    "enrol", "transcript", "query", "answer", "account", "head", "manifest", "announce", "end", "decline",
    "acknowledge", "", "enro", "enrol\0",
]  # fmt: skip


@pytest.fixture(scope="module")
def identity() -> Identity:
    return Identity.generate()


def test_a_signature_holds_under_its_context_only(identity: Identity) -> None:
    for context in CONTEXTS:
        signature = identity.sign(context, {"x": 1})
        assert [verify(identity.public_key, other, {"x": 1}, signature) for other in CONTEXTS] == [
            other == context for other in CONTEXTS
        ]


def test_a_signature_holds_for_its_value_and_key_only(identity: Identity) -> None:
    signature = identity.sign("enrol", {"x": 1, "y": "2"})
    assert verify(identity.public_key, "enrol", {"y": "2", "x": 1}, signature)
    assert not verify(identity.public_key, "enrol", {"x": "1", "y": "2"}, signature)
    assert not verify(identity.public_key, "enrol", {"x": 1}, signature)
    assert not verify(Identity.generate().public_key, "enrol", {"x": 1, "y": "2"}, signature)
    for place in (0, 31, 32, 63):
        altered = bytearray(signature)
        altered[place] ^= 1
        assert not verify(identity.public_key, "enrol", {"x": 1, "y": "2"}, bytes(altered))


@pytest.mark.parametrize("signature", [b"", b"x", bytes(63), bytes(64), bytes(65)])
def test_what_is_no_signature_does_not_verify(identity: Identity, signature: bytes) -> None:
    assert not verify(identity.public_key, "enrol", None, signature)


@pytest.mark.parametrize("key", [b"", bytes(31), bytes(33)])
def test_what_is_no_key_does_not_verify(identity: Identity, key: bytes) -> None:
    assert not verify(key, "enrol", None, identity.sign("enrol", None))


def test_what_has_no_canonical_form_does_not_verify(identity: Identity) -> None:
    assert not verify(identity.public_key, "enrol", {"x": 0.5}, bytes(64))  # type: ignore[dict-item]
    assert not verify(identity.public_key, "enrol", 2**60, bytes(64))


def test_an_invalid_signature_is_a_failed_check_that_names_the_signer(identity: Identity) -> None:
    require_signature(identity.public_key, "head", 5, identity.sign("head", 5), signer="north")
    with pytest.raises(SynodError, match="the signature of north on head is not valid") as caught:
        require_signature(identity.public_key, "head", 6, identity.sign("head", 5), signer="north")
    assert caught.value.code is Code.CHECK_FAILED


def test_fingerprints_are_of_the_public_key(identity: Identity) -> None:
    assert identity.fingerprint == fingerprint(identity.public_key)
    assert identity.fingerprint == "sha256:" + hashlib.sha256(identity.public_key).hexdigest()
    assert len(identity.public_key) == 32


def test_a_key_file_is_its_owners_alone_and_is_never_replaced(tmp_path: Path, identity: Identity) -> None:
    path = tmp_path / "state" / "identity.pem"
    identity.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Identity.load(path).public_key == identity.public_key
    content = path.read_bytes()
    with pytest.raises(SynodError, match="is there already"):
        Identity.generate().save(path)
    assert path.read_bytes() == content
    assert [found.name for found in path.parent.iterdir()] == ["identity.pem"]


def test_a_draft_left_by_a_crash_is_no_key_and_does_not_stand_in_the_way(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    (tmp_path / "secret.draft").write_bytes(b"half")
    write_private_file(path, b"whole")
    assert path.read_bytes() == b"whole"
    assert [found.name for found in tmp_path.iterdir()] == ["secret"]


def test_no_key_in_repr_or_errors(tmp_path: Path, identity: Identity) -> None:
    path = tmp_path / "identity.pem"
    identity.save(path)
    key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    assert isinstance(key, Ed25519PrivateKey)
    secret, body = key.private_bytes_raw().hex(), path.read_text().splitlines()[1]
    path.write_text(path.read_text().replace("-----END", "----END"))
    with pytest.raises(SynodError) as caught:
        Identity.load(path)
    for text in (repr(identity), str(identity), f"{identity}", repr([identity]), str(caught.value)):
        assert secret not in text
        assert body not in text
    assert repr(identity) == f"Identity({identity.fingerprint})"


def test_unusable_key_files_end_in_a_sentence(tmp_path: Path) -> None:
    other = ec.generate_private_key(ec.SECP256R1())
    locked = serialization.BestAvailableEncryption(b"password")
    cases = {
        "absent": (None, "there is no identity key"),
        "empty": (b"", "cannot be read"),
        "garbage": (b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "cannot be read"),
        "other": (other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), "is not an Ed25519 key"),
        "locked": (
            Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked),
            "is encrypted",
        ),
    }
    for name, (content, sentence) in cases.items():
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(SynodError, match=sentence) as caught:
            Identity.load(path)
        assert str(path) in caught.value.sentence
        assert caught.value.code is Code.INVALID
