"""Transport certificates: what is wrong with one is said before dialing, each fault in a sentence of its own."""

import stat
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID

from synod.common.crypto.authority import (
    AUTHORITY_DAYS,
    BACKDATE,
    CERTIFICATE_DAYS,
    issue_certificate,
    make_authority,
)
from synod.common.crypto.certificates import (
    MOST_AUTHORITIES,
    ExpiryReminder,
    Holder,
    Role,
    check_own_certificate,
    describe_expiry,
    read_changed_tls,
    read_holder,
    read_tls,
)
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.settings import TlsFiles

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_authority(tmp_path, now=NOW)
    return tmp_path


@pytest.fixture
def files(folder: Path) -> TlsFiles:
    return issue_certificate(folder, Holder(Role.PARTY, "north"), [], now=NOW)


def rejection(files: TlsFiles, name: str | None = "north", role: Role = Role.PARTY, *, now: datetime = NOW) -> str:
    with pytest.raises(SynodError) as caught:
        check_own_certificate(files, role, name, now=now)
    assert caught.value.code is Code.UNAUTHENTICATED
    return str(caught.value)


def read(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_a_sound_certificate_passes(files: TlsFiles) -> None:
    check_own_certificate(files, Role.PARTY, "north", now=NOW)
    check_own_certificate(files, Role.PARTY, None, now=NOW)
    check_own_certificate(files, Role.PARTY, "north", now=NOW - BACKDATE)
    check_own_certificate(files, Role.PARTY, "north", now=NOW + timedelta(days=CERTIFICATE_DAYS))


def test_expired(files: TlsFiles) -> None:
    sentence = rejection(files, now=NOW + timedelta(days=CERTIFICATE_DAYS, seconds=1))
    assert "north.pem expired on 2027-04-02 12:00 UTC. Ask for a new one." in sentence


def test_not_yet_valid(files: TlsFiles) -> None:
    sentence = rejection(files, now=NOW - BACKDATE - timedelta(seconds=1))
    assert "north.pem is valid only from 2026-03-01 11:55 UTC" in sentence
    assert "this machine's clock says 2026-03-01 11:54 UTC. Check the clock." in sentence


def test_issued_as_expired(folder: Path) -> None:
    files = issue_certificate(folder, Holder(Role.PARTY, "late"), [], now=NOW, days=-1)
    assert "expired on" in rejection(files, "late")


def test_from_another_authority(files: TlsFiles, tmp_path: Path) -> None:
    make_authority(tmp_path / "other", now=NOW)
    sentence = rejection(files.model_copy(update={"ca": tmp_path / "other" / "ca.pem"}))
    assert "north.pem is from another authority than" in sentence
    assert "other/ca.pem" in sentence


def test_signed_by_a_mere_certificate(files: TlsFiles, folder: Path) -> None:
    south = issue_certificate(folder, Holder(Role.PARTY, "south"), [], now=NOW)
    assert "from another authority" in rejection(files.model_copy(update={"ca": south.certificate}))


def test_for_another_name(files: TlsFiles) -> None:
    assert "north.pem is for the party north, not for the party south." in rejection(files, "south")


def test_with_another_key(files: TlsFiles, folder: Path) -> None:
    south = issue_certificate(folder, Holder(Role.PARTY, "south"), [], now=NOW)
    sentence = rejection(files.model_copy(update={"key": south.key}))
    assert "south.key does not belong to the certificate" in sentence
    assert "north.pem" in sentence


@pytest.mark.parametrize("content", [None, b"", b"garbage"])
@pytest.mark.parametrize(
    ("name", "sentence"),
    [("ca", "the certificate"), ("certificate", "the certificate"), ("key", "the TLS key")],
)
def test_unreadable_files_are_named(files: TlsFiles, name: str, sentence: str, content: bytes | None) -> None:
    path: Path = getattr(files, name)
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    assert f"{sentence} {path} cannot be read. Check `tls`" in rejection(files)


def test_keys_of_other_kinds_and_locked_keys(files: TlsFiles) -> None:
    key = serialization.load_pem_private_key(files.key.read_bytes(), password=None)
    files.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")))
    assert "north.key is encrypted. Name the file of its passphrase as `passphrase_file`." in rejection(files)
    other = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    files.key.write_bytes(other)
    assert "is not an elliptic-curve key" in rejection(files)


HOSTS = ["curator.example", "127.0.0.1", "::1"]


@pytest.mark.parametrize("role", Role)
def test_what_a_certificate_says(folder: Path, role: Role) -> None:
    files = issue_certificate(folder, Holder(role, "north"), HOSTS if role is Role.CURATOR else [], now=NOW)
    certificate, authority = read(files.certificate), read(files.ca)
    assert read_holder(certificate) == Holder(role, "north")
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.UniformResourceIdentifier) == [f"synod:{role.value}:north"]
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    if role is Role.CURATOR:
        assert names.get_values_for_type(x509.DNSName) == ["curator.example"]
        assert names.get_values_for_type(x509.IPAddress) == [IPv4Address("127.0.0.1"), IPv6Address("::1")]
        assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH]
    else:
        assert len(list(names)) == 1
        assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    for found, is_authority in ((certificate, False), (authority, True)):
        assert found.extensions.get_extension_for_class(x509.BasicConstraints).value.ca is is_authority
        assert found.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign is is_authority
    assert authority.not_valid_after_utc == NOW + timedelta(days=AUTHORITY_DAYS)


def test_keys_are_their_owners_alone(files: TlsFiles, folder: Path) -> None:
    for path in (files.key, folder / "ca.key"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("kept", ["ca.pem", "ca.key", "revoked.pem"])
def test_an_authority_is_never_replaced_not_even_in_part(folder: Path, kept: str) -> None:
    content = (folder / kept).read_bytes()
    for name in {"ca.pem", "ca.key", "revoked.pem"} - {kept}:
        (folder / name).unlink()
    with pytest.raises(SynodError, match=f"{kept} is there already"):
        make_authority(folder, now=NOW)
    assert [path.name for path in folder.iterdir()] == [kept]
    assert (folder / kept).read_bytes() == content


@pytest.mark.parametrize("kept", ["north.pem", "north.key"])
def test_a_certificate_is_never_replaced_not_even_in_part(files: TlsFiles, folder: Path, kept: str) -> None:
    content = (folder / kept).read_bytes()
    for name in {"north.pem", "north.key"} - {kept}:
        (folder / name).unlink()
    with pytest.raises(SynodError, match=f"{kept} is there already"):
        issue_certificate(folder, Holder(Role.PARTY, "north"), [], now=NOW)
    assert (folder / kept).read_bytes() == content
    assert {path.name for path in folder.iterdir()} == {"ca.pem", "ca.key", "revoked.pem", "issued.txt", kept}


@pytest.mark.parametrize("name", ["", "North", "a/b", "../ca", "x" * 64, "a b"])
def test_names_that_are_none_are_refused(folder: Path, name: str) -> None:
    with pytest.raises(SynodError, match="is not a name") as caught:
        issue_certificate(folder, Holder(Role.PARTY, name), [], now=NOW)
    assert caught.value.code is Code.INVALID


def test_hosts_that_are_none_are_refused_and_leave_nothing(folder: Path) -> None:
    with pytest.raises(SynodError, match="'m\u00fcnchen' is not a host name"):
        issue_certificate(folder, Holder(Role.CURATOR, "north"), ["m\u00fcnchen"], now=NOW)
    assert not (folder / "north.key").exists()


def test_no_authority_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(SynodError, match="no transport authority") as caught:
        issue_certificate(tmp_path, Holder(Role.PARTY, "north"), [], now=NOW)
    assert "synod certs init" in caught.value.hint


def test_an_authority_with_a_key_of_another_kind_is_refused(folder: Path) -> None:
    other = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "ca.key").write_bytes(other)
    with pytest.raises(SynodError, match="is not of an elliptic curve") as caught:
        issue_certificate(folder, Holder(Role.PARTY, "south"), [], now=NOW)
    assert caught.value.code is Code.INVALID
    assert not (folder / "south.key").exists()


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.CURATOR])
def test_for_another_role(files: TlsFiles, role: Role) -> None:
    assert f"is for the party north, not for the {role.value} north." in rejection(files, role=role)
    assert f"is for the party north, not for a {role.value}." in rejection(files, None, role)


@pytest.mark.parametrize(
    "uris",
    [
        [],
        ["https://north.example"],
        ["synod:"],
        ["synod:party"],
        ["synod:party:"],
        ["synod:north"],
        ["synod:admin:north"],
        ["synod:party:North"],
        ["synod:party:north:operator"],
        ["SYNOD:party:north"],
        ["synod:party:north", "synod:operator:north"],
        ["synod:party:north", "synod:party:south"],
        ["synod:party:north", "synod:"],
    ],
)
def test_a_certificate_names_exactly_one_holder(uris: list[str]) -> None:
    with pytest.raises(SynodError, match="whether it is a party's, an operator's or a curator's") as caught:
        Holder.of_uris(uris)
    assert caught.value.code is Code.UNAUTHENTICATED


@pytest.mark.parametrize("role", Role)
def test_a_holder_is_read_as_it_is_written(role: Role) -> None:
    holder = Holder(role, "operator")
    assert Holder.of_uris(["spiffe://elsewhere", holder.uri]) == holder


# Several authorities


@pytest.fixture
def other(tmp_path: Path) -> Path:
    make_authority(tmp_path / "other", now=NOW)
    return tmp_path / "other"


def test_all_authorities_of_a_bundle_are_used(files: TlsFiles, folder: Path, other: Path) -> None:
    """While an authority is replaced, certificates of both are good, and channels trust both."""
    successor = issue_certificate(other, Holder(Role.PARTY, "north"), [], now=NOW)
    own, new = files.ca.read_bytes(), successor.ca.read_bytes()
    files.ca.write_bytes(new + b"\nthe old one, until summer:\n" + own)
    assert read_tls(files).ca == new + own
    for current in (files, successor.model_copy(update={"ca": files.ca})):
        check_own_certificate(current, Role.PARTY, "north", now=NOW)
    files.ca.write_bytes(new)
    assert "is from another authority" in rejection(files)
    with pytest.raises(SynodError, match="is from another authority"):
        read_changed_tls(files, read_tls(files))


def test_an_authority_of_a_bundle_that_has_expired_concerns_its_own_certificates(files: TlsFiles, other: Path) -> None:
    later = NOW + timedelta(days=AUTHORITY_DAYS + 1)
    successor = other.parent / "successor"
    make_authority(successor, now=later)
    new = issue_certificate(successor, Holder(Role.PARTY, "north"), [], now=later)
    new.ca.write_bytes(files.ca.read_bytes() + new.ca.read_bytes())
    check_own_certificate(new, Role.PARTY, "north", now=later)
    assert describe_expiry(new, now=later) == []
    assert "expired" in rejection(files, now=later)


def test_a_file_of_too_many_authorities_is_refused(files: TlsFiles) -> None:
    one = files.ca.read_bytes()
    files.ca.write_bytes(one * MOST_AUTHORITIES)
    check_own_certificate(files, Role.PARTY, "north", now=NOW)
    files.ca.write_bytes(one * (MOST_AUTHORITIES + 1))
    assert f"holds {MOST_AUTHORITIES + 1} certificates, and may hold those of {MOST_AUTHORITIES}" in rejection(files)


def test_a_second_certificate_beside_ones_own_is_not_passed_over(files: TlsFiles) -> None:
    files.certificate.write_bytes(files.certificate.read_bytes() + files.ca.read_bytes())
    assert "holds 2 certificates, and must hold one's own alone." in rejection(files)


# Files that change


def test_a_renewed_certificate_is_read(files: TlsFiles, folder: Path, tmp_path: Path) -> None:
    before = read_tls(files)
    files.certificate.unlink()
    files.key.unlink()
    issue_certificate(folder, Holder(Role.PARTY, "north"), [], now=NOW + timedelta(days=300))
    after = read_changed_tls(files, before)
    assert after != before
    assert after.certificate == files.certificate.read_bytes()
    assert "PRIVATE" not in repr(after)


@pytest.mark.parametrize(
    ("role", "name", "told"),
    [
        (Role.PARTY, "south", "is for the party south, not for the party north"),
        (Role.OPERATOR, "north", "is for the operator north, not for the party north"),
    ],
)
def test_a_changed_certificate_of_somebody_else_is_not(
    files: TlsFiles, folder: Path, role: Role, name: str, told: str
) -> None:
    before = read_tls(files)
    files.certificate.unlink()
    files.key.unlink()
    other = issue_certificate(folder, Holder(role, name), [], now=NOW)
    with pytest.raises(SynodError, match=told):
        read_changed_tls(files.model_copy(update={"certificate": other.certificate, "key": other.key}), before)


def test_a_certificate_without_its_key_is_not(files: TlsFiles, folder: Path) -> None:
    before, old_key = read_tls(files), files.key.read_bytes()
    files.certificate.unlink()
    files.key.unlink()
    issue_certificate(folder, Holder(Role.PARTY, "north"), [], now=NOW)
    files.key.write_bytes(old_key)
    with pytest.raises(SynodError, match="does not belong to the certificate"):
        read_changed_tls(files, before)


# Expiry


def test_what_expires_within_a_month_is_said(files: TlsFiles) -> None:
    end = NOW + timedelta(days=CERTIFICATE_DAYS)
    assert describe_expiry(files, now=end - timedelta(days=30, seconds=1)) == []
    (told,) = describe_expiry(files, now=end - timedelta(days=30))
    assert "north.pem expires on 2027-04-02 12:00 UTC, in 30 days." in told
    (told,) = describe_expiry(files, now=end + timedelta(seconds=1))
    assert "north.pem expired on 2027-04-02 12:00 UTC." in told
    both = describe_expiry(files, now=NOW + timedelta(days=AUTHORITY_DAYS - 1))
    assert ["ca.pem expires on" in told for told in both] == [False, True]


def test_the_reminder_comes_once_a_day(files: TlsFiles) -> None:
    reminder, start = ExpiryReminder(files), NOW + timedelta(days=CERTIFICATE_DAYS - 20)
    assert reminder.due(now=start - timedelta(days=100)) == []
    said = [hour for hour in range(72) if reminder.due(now=start + timedelta(hours=hour))]
    assert said == [0, 24, 48]


def test_the_reminder_is_silent_while_files_are_replaced(files: TlsFiles) -> None:
    reminder, now = ExpiryReminder(files), NOW + timedelta(days=CERTIFICATE_DAYS - 20)
    content = files.certificate.read_bytes()
    files.certificate.write_bytes(content[:100])
    assert reminder.due(now=now) == []
    files.certificate.write_bytes(content)
    assert len(reminder.due(now=now)) == 1
