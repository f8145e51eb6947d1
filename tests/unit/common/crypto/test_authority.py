"""The transport authority: requests that it signs, requests that it refuses, and its list of revoked certificates."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding

from synod.common.crypto.authority import (
    CERTIFICATE_DAYS,
    issue_certificate,
    known_key,
    make_authority,
    revoke_certificates,
    sign_request,
)
from synod.common.crypto.certificates import Holder, Role, check_own_certificate, key_fingerprint
from synod.common.crypto.issued import ISSUED, read_issued
from synod.common.crypto.requests import make_request, read_request
from synod.common.crypto.revocations import Revocations, RevokedList, read_revocations
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.settings import TlsFiles

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
NORTH = Holder(Role.PARTY, "north")
CURATOR = Holder(Role.CURATOR, "curator")


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    folder = tmp_path / "authority"
    make_authority(folder, now=NOW)
    return folder


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """Where a party keeps its own files."""
    folder = tmp_path / "house"
    folder.mkdir()
    return folder


def ask(house: Path, holder: Holder = NORTH, hosts: tuple[str, ...] = ()) -> Path:
    path = house / f"{holder.name}.csr"
    make_request(path, holder, hosts, key_path=house / f"{holder.name}.key", passphrase=None)
    return path


def serial_of(path: Path) -> int:
    return x509.load_pem_x509_certificate(path.read_bytes()).serial_number


# Requests


@pytest.mark.parametrize(
    ("holder", "hosts"),
    [(NORTH, ()), (Holder(Role.OPERATOR, "north"), ()), (CURATOR, ("curator.example.org", "127.0.0.1", "::1"))],
)
def test_a_signed_request_is_a_certificate_for_the_key_that_stayed(
    authority: Path, house: Path, holder: Holder, hosts: tuple[str, ...]
) -> None:
    request = read_request(ask(house, holder, hosts))
    assert (request.holder, request.hosts) == (holder, hosts)
    path = sign_request(authority, request, now=NOW)
    files = TlsFiles(ca=authority / "ca.pem", certificate=path, key=house / f"{holder.name}.key")
    check_own_certificate(files, holder.role, holder.name, now=NOW + timedelta(days=CERTIFICATE_DAYS))
    assert not (authority / f"{holder.name}.key").exists(), "no private key came here"
    assert files.key.stat().st_mode & 0o077 == 0


def test_a_request_holds_nothing_of_the_private_key(house: Path) -> None:
    request = x509.load_pem_x509_csr(ask(house).read_bytes())
    key = serialization.load_pem_private_key((house / "north.key").read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    secret = key.private_numbers().private_value.to_bytes(32, "big")
    assert secret not in request.public_bytes(Encoding.DER)


def test_a_second_request_keeps_the_key(house: Path) -> None:
    first, key = read_request(ask(house)), (house / "north.key").read_bytes()
    assert read_request(ask(house)).fingerprint == first.fingerprint
    assert (house / "north.key").read_bytes() == key


def test_both_sides_see_the_same_fingerprint(authority: Path, house: Path) -> None:
    made = make_request(house / "a.csr", NORTH, (), key_path=house / "a.key", passphrase=None)
    read = read_request(house / "a.csr")
    assert made.fingerprint == read.fingerprint
    assert known_key(authority, NORTH) == ""
    sign_request(authority, read, now=NOW)
    assert known_key(authority, NORTH) == made.fingerprint
    assert key_fingerprint(ec.generate_private_key(ec.SECP256R1()).public_key()) != made.fingerprint


@pytest.mark.parametrize(("holder", "hosts"), [(NORTH, ("curator.example.org",)), (CURATOR, ())])
def test_a_curator_has_hosts_and_nobody_else_has(house: Path, holder: Holder, hosts: tuple[str, ...]) -> None:
    with pytest.raises(SynodError, match="host") as caught:
        ask(house, holder, hosts)
    assert caught.value.code is Code.INVALID
    assert list(house.iterdir()) == []


def write_csr(path: Path, *names: x509.GeneralName, key: Any = None, extra: bool = False) -> Path:
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "north")])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    if extra:
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    signed = builder.sign(key or ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    path.write_bytes(signed.public_bytes(Encoding.PEM))
    return path


PARTY = x509.UniformResourceIdentifier("synod:party:north")


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ((), "does not say whether"),
        ((x509.DNSName("north"),), "does not say whether"),
        ((PARTY, x509.UniformResourceIdentifier("synod:operator:north")), "does not say whether"),
        ((PARTY, x509.DNSName("curator.example.org")), "names no host"),
        ((PARTY, x509.UniformResourceIdentifier("https://elsewhere")), "asks for more"),
        ((PARTY, x509.RFC822Name("a@example.org")), "asks for more"),
    ],
)
def test_requests_for_anything_else_are_refused(house: Path, names: tuple[x509.GeneralName, ...], told: str) -> None:
    with pytest.raises(SynodError, match=told):
        read_request(write_csr(house / "odd.csr", *names))


def test_a_request_to_be_an_authority_is_refused(house: Path) -> None:
    with pytest.raises(SynodError, match="asks for more"):
        read_request(write_csr(house / "odd.csr", PARTY, extra=True))


@pytest.mark.parametrize("key", [ec.generate_private_key(ec.SECP384R1()), generate_private_key(65_537, 2048)])
def test_keys_of_another_kind_are_refused(house: Path, key: Any) -> None:
    with pytest.raises(SynodError, match="is not of the curve P-256"):
        read_request(write_csr(house / "odd.csr", PARTY, key=key))


def test_a_request_that_is_not_signed_by_its_key_is_refused(house: Path) -> None:
    path = ask(house)
    der = bytearray(x509.load_pem_x509_csr(path.read_bytes()).public_bytes(Encoding.DER))
    der[-1] ^= 1
    path.write_bytes(x509.load_der_x509_csr(bytes(der)).public_bytes(Encoding.PEM))
    with pytest.raises(SynodError, match="is not signed by its own key") as caught:
        read_request(path)
    assert caught.value.code is Code.CHECK_FAILED


@pytest.mark.parametrize(
    "content", [None, b"", b"garbage", b"-----BEGIN CERTIFICATE REQUEST-----\n" + b"A" * (1 << 20)]
)
def test_what_is_no_request_is_said_so(house: Path, content: bytes | None) -> None:
    if content is not None:
        (house / "odd.csr").write_bytes(content)
    with pytest.raises(SynodError, match="is not a request for a certificate"):
        read_request(house / "odd.csr")


def test_a_name_is_not_signed_away_to_another_role(authority: Path, house: Path) -> None:
    """A party that calls itself operator does not replace the operator's certificate."""
    issue_certificate(authority, Holder(Role.OPERATOR, "operator"), [], now=NOW)
    before = (authority / "operator.pem").read_bytes()
    request = read_request(ask(house, Holder(Role.PARTY, "operator")))
    with pytest.raises(SynodError, match="is there already, and is for the operator operator"):
        sign_request(authority, request, now=NOW)
    assert (authority / "operator.pem").read_bytes() == before


# Revocation


def read_all(authority: Path, before: Revocations | None = None) -> Revocations:
    return read_revocations(authority / "revoked.pem", authority / "ca.pem", before)


def revoked(authority: Path, before: Revocations | None = None) -> RevokedList:
    return read_all(authority, before).lists[name_of(authority)]


def name_of(authority: Path) -> str:
    return key_fingerprint(x509.load_pem_x509_certificate((authority / "ca.pem").read_bytes()).public_key())


def test_a_new_authority_has_revoked_nobody(authority: Path) -> None:
    assert revoked(authority).serials == frozenset()


def test_every_certificate_of_a_holder_is_revoked_and_no_other(authority: Path, house: Path) -> None:
    request = read_request(ask(house))
    serials = {serial_of(sign_request(authority, request, now=NOW)) for _ in range(3)}
    assert len(serials) == 3
    issue_certificate(authority, Holder(Role.PARTY, "south"), [], now=NOW)
    assert revoke_certificates(authority, NORTH, now=NOW) == 3
    before, first = read_all(authority), revoked(authority)
    assert first.serials == serials
    assert revoke_certificates(authority, NORTH, now=NOW) == 0
    assert revoked(authority, before) == first
    (house / "north.key").unlink()
    renewed = serial_of(sign_request(authority, read_request(ask(house)), now=NOW))
    assert renewed not in revoked(authority).serials, "a new key that is signed after a revocation is good"
    assert revoke_certificates(authority, NORTH, now=NOW) == 1
    assert revoked(authority, before).serials == {*serials, renewed}
    assert revoked(authority).number > first.number


def test_a_revoked_key_is_never_signed_again(authority: Path, house: Path) -> None:
    """Not as a renewal, not by a request that was made before, and not under another name."""
    request = read_request(ask(house))
    sign_request(authority, request, now=NOW)
    revoke_certificates(authority, NORTH, now=NOW)
    (house / "south.key").write_bytes((house / "north.key").read_bytes())
    noted, before = (authority / ISSUED).read_bytes(), (authority / "north.pem").read_bytes()
    for again in (request, read_request(ask(house)), read_request(ask(house, Holder(Role.PARTY, "south")))):
        with pytest.raises(SynodError, match="was revoked") as caught:
            sign_request(authority, again, now=NOW)
        assert caught.value.code is Code.REFUSED
    assert (authority / ISSUED).read_bytes() == noted
    assert (authority / "north.pem").read_bytes() == before
    assert not (authority / "south.pem").exists()


def test_nothing_is_signed_where_the_notes_of_a_revoked_certificate_are_gone(authority: Path, house: Path) -> None:
    sign_request(authority, read_request(ask(house)), now=NOW)
    issue_certificate(authority, Holder(Role.PARTY, "south"), [], now=NOW)
    revoke_certificates(authority, NORTH, now=NOW)
    kept = (authority / ISSUED).read_text().splitlines(keepends=True)
    (authority / ISSUED).write_text(kept[1])
    with pytest.raises(SynodError, match="a revoked key might be signed again") as caught:
        sign_request(authority, read_request(ask(house)), now=NOW)
    assert caught.value.code is Code.CHECK_FAILED
    (authority / ISSUED).write_text(kept[0])
    with pytest.raises(SynodError, match="was revoked"):
        sign_request(authority, read_request(ask(house)), now=NOW)


@pytest.mark.parametrize("length", [1, 30, 60, -2])
def test_a_line_that_a_crash_cut_off_stops_nothing(authority: Path, house: Path, length: int) -> None:
    """Its certificate was never written. The next line does not run on from it."""
    first = serial_of(sign_request(authority, read_request(ask(house)), now=NOW))
    path = authority / ISSUED
    path.write_text(path.read_text() + path.read_text()[:length])
    second = serial_of(sign_request(authority, read_request(ask(house)), now=NOW))
    assert [noted.serial for noted in read_issued(authority).issued] == [first, second]
    path.write_text(path.read_text() + path.read_text()[:length])
    assert revoke_certificates(authority, NORTH, now=NOW) == 2
    assert revoked(authority).serials == {first, second}


@pytest.mark.parametrize("damage", [b"", b"12ab synod:party:no", b"\xff\xfe", b"zz synod:party:north x y"])
def test_a_line_that_cannot_be_read_is_told_after_the_others_were_revoked(
    authority: Path, house: Path, damage: bytes
) -> None:
    path = authority / ISSUED
    first = serial_of(sign_request(authority, read_request(ask(house)), now=NOW))
    path.write_bytes(path.read_bytes() + damage + b"\n")
    second = serial_of(sign_request(authority, read_request(ask(house)), now=NOW))
    with pytest.raises(SynodError, match=r"2 more certificates .* cannot be read \(2\)") as caught:
        revoke_certificates(authority, NORTH, now=NOW)
    assert caught.value.code is Code.CHECK_FAILED
    assert revoked(authority).serials == {first, second}


def test_notes_are_added_one_at_a_time(authority: Path, house: Path) -> None:
    request = read_request(ask(house))
    with ThreadPoolExecutor(8) as workers:
        list(workers.map(lambda _: sign_request(authority, request, now=NOW), range(24)))
    assert len({noted.serial for noted in read_issued(authority).issued}) == 24
    assert {noted.key for noted in read_issued(authority).issued} == {request.fingerprint}


def test_an_authority_signs_with_its_own_certificate_of_several(authority: Path, tmp_path: Path) -> None:
    make_authority(tmp_path / "other", now=NOW)
    own, other = (authority / "ca.pem").read_bytes(), (tmp_path / "other" / "ca.pem").read_bytes()
    (authority / "ca.pem").write_bytes(other + own)
    files = issue_certificate(authority, NORTH, [], now=NOW)
    check_own_certificate(files, Role.PARTY, "north", now=NOW)
    assert revoke_certificates(authority, NORTH, now=NOW) == 1
    (authority / "ca.pem").write_bytes(other)
    with pytest.raises(SynodError, match="belongs to no certificate"):
        issue_certificate(authority, Holder(Role.PARTY, "south"), [], now=NOW)


# Several authorities


@pytest.fixture
def other(tmp_path: Path) -> Path:
    make_authority(tmp_path / "other", now=NOW)
    return tmp_path / "other"


def put(folder: Path, *authorities: Path) -> Revocations:
    """What a curator reads that has the files of these authorities, one after another."""
    folder.mkdir(exist_ok=True)
    for name in ("ca.pem", "revoked.pem"):
        (folder / name).write_bytes(b"".join((authority / name).read_bytes() for authority in authorities))
    return read_all(folder)


def revoke_some(authority: Path, name: str) -> int:
    holder = Holder(Role.PARTY, name)
    files = issue_certificate(authority, holder, [], now=NOW)
    revoke_certificates(authority, holder, now=NOW)
    return serial_of(files.certificate)


def test_the_first_list_of_a_new_authority_is_not_older(authority: Path, other: Path, tmp_path: Path) -> None:
    gone = revoke_some(authority, "north")
    before = put(tmp_path / "curator", authority)
    put(tmp_path / "curator", other)
    after = read_all(tmp_path / "curator", before)
    assert {issuer: listed.number for issuer, listed in after.lists.items()} == {
        name_of(authority): 2,
        name_of(other): 1,
    }
    old, new = (x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes()) for folder in (authority, other))
    assert after.has(old, gone), "an authority that is gone has revoked what it has revoked"
    assert not after.has(new, gone), "another authority's certificate of that number is another"


def test_an_older_list_is_refused_after_a_detour_over_another_authority(
    authority: Path, other: Path, tmp_path: Path
) -> None:
    old = put(tmp_path / "old", authority)
    revoke_some(authority, "north")
    seen = put(tmp_path / "curator", authority)
    put(tmp_path / "curator", other)
    seen = read_all(tmp_path / "curator", seen)
    assert old.lists[name_of(authority)].number == 1
    with pytest.raises(SynodError, match="is older than the one read before"):
        read_all(tmp_path / "old", seen)


def test_two_authorities_have_two_lists(authority: Path, other: Path, tmp_path: Path) -> None:
    serials = {revoke_some(authority, "north"), revoke_some(other, "south")}
    both = put(tmp_path / "curator", authority, other)
    assert {serial for listed in both.lists.values() for serial in listed.serials} == serials
    lists = tmp_path / "curator" / "revoked.pem"
    lists.write_bytes((authority / "revoked.pem").read_bytes())
    with pytest.raises(SynodError, match="has no list of one of the authorities"):
        read_all(tmp_path / "curator")
    (tmp_path / "curator" / "ca.pem").write_bytes((other / "ca.pem").read_bytes())
    with pytest.raises(SynodError, match="is from another authority"):
        read_all(tmp_path / "curator")


def test_a_party_is_revoked_and_an_operator_of_that_name_is_not(authority: Path, house: Path) -> None:
    sign_request(authority, read_request(ask(house)), now=NOW)
    with pytest.raises(SynodError, match="no certificate for the operator north"):
        revoke_certificates(authority, Holder(Role.OPERATOR, "north"), now=NOW)
    assert revoked(authority).serials == frozenset()


def test_a_list_of_another_authority_is_refused(authority: Path, tmp_path: Path) -> None:
    make_authority(tmp_path / "other", now=NOW)
    with pytest.raises(SynodError, match="is from another authority"):
        read_revocations(tmp_path / "other" / "revoked.pem", authority / "ca.pem", None)


def test_an_older_list_is_refused(authority: Path) -> None:
    old = (authority / "revoked.pem").read_bytes()
    issue_certificate(authority, NORTH, [], now=NOW)
    revoke_certificates(authority, NORTH, now=NOW)
    newer = read_all(authority)
    (authority / "revoked.pem").write_bytes(old)
    with pytest.raises(SynodError, match="is older than the one read before"):
        revoked(authority, newer)


@pytest.mark.parametrize("content", [None, b"", b"garbage"])
def test_what_is_no_list_is_said_so(authority: Path, content: bytes | None) -> None:
    (authority / "revoked.pem").unlink()
    if content is not None:
        (authority / "revoked.pem").write_bytes(content)
    with pytest.raises(SynodError, match="cannot be read as a list of revoked certificates"):
        revoked(authority)
