"""Transport certificates: whom one is for, what may be wrong with it, and when it expires.

A certificate names its holder once, as the URI `synod:ROLE:NAME` among its alternative names: `Holder` alone reads and
writes that. A curator's certificate is a server's, all others are a client's. They carry transport only. Who is on a
roster is decided by identity keys, never by the authority that signs certificates.

The file `ca` may hold several authorities, one after another: while an authority is replaced, the old and the new one.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID

from synod.common.crypto.keyfiles import read_key, read_passphrase
from synod.common.runtime.errors import Code, SynodError, invalid
from synod.common.runtime.settings import TlsFiles
from synod.common.study.study import SLUG

SCHEME = "synod:"
WARNING_DAYS = 30
MOST_AUTHORITIES = 8


class Role(Enum):
    """What the holder of a certificate may be on the wire."""

    PARTY = "party"
    OPERATOR = "operator"
    CURATOR = "curator"

    @property
    def usage(self) -> x509.ObjectIdentifier:
        """The one extended key usage of its certificates: TLS itself refuses a client's at a server, and vice versa."""
        return ExtendedKeyUsageOID.SERVER_AUTH if self is Role.CURATOR else ExtendedKeyUsageOID.CLIENT_AUTH


@dataclass(frozen=True, slots=True)
class Holder:
    """Whom a certificate is for."""

    role: Role
    name: str

    def __post_init__(self) -> None:
        if not SLUG.fullmatch(self.name):
            raise invalid(f"{self.name!r} is not a name.", "A name is 1 to 63 small letters, digits and inner hyphens.")

    def __str__(self) -> str:
        return f"the {self.role.value} {self.name}"

    @property
    def uri(self) -> str:
        """How a certificate names it."""
        return f"{SCHEME}{self.role.value}:{self.name}"

    @staticmethod
    def of_uris(uris: Iterable[str]) -> "Holder":
        """The holder that a certificate's URIs name; refused if they do not name exactly one.

        Guarantee: no certificate has two roles or two names.
        """
        ours = [uri.removeprefix(SCHEME) for uri in uris if uri.startswith(SCHEME)]
        role, _, name = ours[0].partition(":") if len(ours) == 1 else ("", "", "")
        if role not in {known.value for known in Role} or not SLUG.fullmatch(name):
            raise rejected(
                "the certificate does not say whether it is a party's, an operator's or a curator's.",
                "Ask whoever runs the transport authority for a new one.",
            )
        return Holder(Role(role), name)


def read_holder(certificate: x509.Certificate | x509.CertificateSigningRequest) -> Holder:
    """Whom a certificate, or a request for one, is for."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return Holder.of_uris([])
    return Holder.of_uris(names.get_values_for_type(x509.UniformResourceIdentifier))


def key_fingerprint(key: CertificatePublicKeyTypes) -> str:
    """How people compare a TLS key by phone: `sha256:` and 64 hexadecimal digits, over its DER form."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return "sha256:" + hashlib.sha256(key.public_bytes(serialization.Encoding.DER, form)).hexdigest()


def find_issuer(certificate: x509.Certificate, authorities: Iterable[x509.Certificate]) -> x509.Certificate | None:
    """The authority that signed a certificate; None if none of these has."""
    for authority in authorities:
        try:
            certificate.verify_directly_issued_by(authority)
        except (ValueError, TypeError, InvalidSignature):
            continue
        return authority
    return None


@dataclass(frozen=True, slots=True)
class TlsPair:
    """What a channel or a port is opened with, all PEM; the key is in the clear, and never printed."""

    ca: bytes
    certificate: bytes
    key: bytes = field(repr=False)


def read_tls(files: TlsFiles) -> TlsPair:
    """Reads the files, and opens an encrypted key. Whether they are any good is for `check_own_certificate` to say."""
    certificate, authorities, key = _load(files.certificate), read_authorities(files.ca), _load_key(files)
    pem = serialization.Encoding.PEM
    clear = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    ca = b"".join(authority.public_bytes(pem) for authority in authorities)
    return TlsPair(ca, certificate.public_bytes(pem), clear)


def read_changed_tls(files: TlsFiles, before: TlsPair) -> TlsPair:
    """Reads files that were changed under a running daemon: they must belong together and be for the same holder."""
    holder = read_holder(x509.load_pem_x509_certificate(before.certificate))
    _check_files(files, holder.role, holder.name)
    return read_tls(files)


def check_own_certificate(files: TlsFiles, role: Role, name: str | None, *, now: datetime) -> None:
    """Finds out before dialing what a peer could only answer with a closed socket.

    1. the files can be read; 2. the key is the certificate's; 3. the certificate is for this role, and this name if one
    is given; 4. it is from an authority in `ca`; 5. both are valid now.
    """
    certificate, authority = _check_files(files, role, name)
    # 5
    _check_validity(files.certificate, certificate, now)
    _check_validity(files.ca, authority, now)


def _check_files(files: TlsFiles, role: Role, name: str | None) -> tuple[x509.Certificate, x509.Certificate]:
    # 1
    certificate, authorities = _load(files.certificate), read_authorities(files.ca)
    key = _load_key(files)
    # 2
    if key.public_key() != certificate.public_key():
        raise rejected(f"the key {files.key} does not belong to the certificate {files.certificate}.")
    # 3
    holder = read_holder(certificate)
    wanted = Holder(role, name or holder.name)
    if holder != wanted:
        raise rejected(
            f"the certificate {files.certificate} is for {holder}, not for {wanted if name else f'a {role.value}'}.",
            "Ask for one under the name and the role of this configuration.",
        )
    # 4
    authority = find_issuer(certificate, authorities)
    if authority is None:
        raise rejected(
            f"the certificate {files.certificate} is from another authority than {files.ca}.",
            "Ask whoever runs the transport authority for a new one.",
        )
    return certificate, authority


def _check_validity(path: Path, certificate: x509.Certificate, now: datetime) -> None:
    if now > certificate.not_valid_after_utc:
        raise rejected(
            f"the certificate {path} expired on {certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC.",
            "Ask for a new one.",
        )
    if now < certificate.not_valid_before_utc:
        raise rejected(
            f"the certificate {path} is valid only from {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC, "
            f"and this machine's clock says {now:%Y-%m-%d %H:%M} UTC.",
            "Check the clock.",
        )


def describe_expiry(files: TlsFiles, *, now: datetime) -> list[str]:
    """A sentence for each certificate, one's own and its authority's, that expires within `WARNING_DAYS`.

    An authority that has signed others' certificates, and not one's own, is on its way out or in, and is not told of.
    """
    told: list[str] = []
    own, issuer = _own_and_issuer(files)
    for path, certificate in ((files.certificate, own), (files.ca, issuer)):
        until = certificate.not_valid_after_utc
        if now > until:
            told.append(f"the certificate {path} expired on {until:%Y-%m-%d %H:%M} UTC. Ask for a new one.")
        elif until - now <= timedelta(days=WARNING_DAYS):
            days = (until - now).days
            told.append(f"the certificate {path} expires on {until:%Y-%m-%d %H:%M} UTC, in {days} days. Renew it.")
    return told


def days_left(files: TlsFiles, *, now: datetime) -> dict[str, int]:
    """The whole days that one's own certificate and that of the authority that signed it are still valid; negative
    after their end.
    """
    own, issuer = _own_and_issuer(files)
    return {which: (one.not_valid_after_utc - now).days for which, one in (("own", own), ("authority", issuer))}


def _own_and_issuer(files: TlsFiles) -> tuple[x509.Certificate, x509.Certificate]:
    own, authorities = _load(files.certificate), read_authorities(files.ca)
    return own, find_issuer(own, authorities) or authorities[0]


class ExpiryReminder:
    """Says what expires soon, once a day."""

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self._told_at: datetime | None = None

    def due(self, *, now: datetime) -> list[str]:
        """The sentences that are to be logged now; none until a day after the last ones."""
        if self._told_at is not None and now - self._told_at < timedelta(days=1):
            return []
        try:
            told = describe_expiry(self._files, now=now)
        except SynodError:  # files in the middle of being replaced; whoever uses them says so
            return []
        if told:
            self._told_at = now
        return told


def rejected(sentence: str, hint: str = "") -> SynodError:
    """A certificate that cannot be used."""
    return SynodError(Code.UNAUTHENTICATED, sentence, hint)


def read_authorities(path: Path) -> list[x509.Certificate]:
    """All authorities in a file, in its order."""
    found = _load_all(path)
    if len(found) > MOST_AUTHORITIES:
        raise rejected(
            f"{path} holds {len(found)} certificates, and may hold those of {MOST_AUTHORITIES} authorities.",
            "Leave only the transport authorities of this installation in it.",
        )
    return found


def _load(path: Path) -> x509.Certificate:
    found = _load_all(path)
    if len(found) > 1:
        raise rejected(
            f"{path} holds {len(found)} certificates, and must hold one's own alone.",
            "Put those of authorities into the file that `ca` names.",
        )
    return found[0]


def _load_all(path: Path) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(path.read_bytes())
    except (OSError, ValueError):
        raise rejected(f"the certificate {path} cannot be read.", "Check `tls` in the configuration.") from None


def _load_key(files: TlsFiles) -> ec.EllipticCurvePrivateKey:
    try:
        key = read_key(files.key, read_passphrase(files.passphrase_file))
    except (OSError, ValueError):
        raise rejected(f"the TLS key {files.key} cannot be read.", "Check `tls` in the configuration.") from None
    except SynodError as error:
        raise rejected(error.sentence, error.hint) from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise rejected(f"the TLS key {files.key} is not an elliptic-curve key.")
    return key
