"""The transport authority: it signs requests for certificates, and a list of the certificates that it has revoked.

`issue_certificate` makes a key here instead of at its holder's, for demos and tests. In the authority's folder,
`ca.key` is secret, `ca.pem` and `revoked.pem` are for others, and `issued.txt` notes every certificate, so that it can
be revoked by its holder's name, and its key with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from synod.common.crypto.certificates import Holder, key_fingerprint, read_holder
from synod.common.crypto.issued import ISSUED, Issued, note_issued, read_issued
from synod.common.crypto.keyfiles import read_key, write_key
from synod.common.crypto.requests import Request, subject_of
from synod.common.crypto.revocations import list_number, read_list
from synod.common.runtime.errors import Code, SynodError, check_failed, invalid, refused
from synod.common.runtime.files import write_public_file
from synod.common.runtime.locks import one_at_a_time
from synod.common.runtime.settings import TlsFiles

AUTHORITY_DAYS = 3650
CERTIFICATE_DAYS = 397
BACKDATE = timedelta(minutes=5)  # clocks of honest machines differ a little
REVOKED = "revoked.pem"


def make_authority(folder: Path, *, now: datetime) -> None:
    """Writes ca.pem, ca.key and an empty list of revoked certificates; refuses to replace any."""
    _refuse_to_replace(folder / "ca.pem", folder / "ca.key", folder / REVOKED)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Synod transport authority")])
    builder = (
        _builder(name, name, key.public_key(), now, AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    write_key(folder / "ca.key", key, None)
    write_public_file(folder / "ca.pem", builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    _write_revoked(_open_authority(folder), [], number=1, now=now)


@dataclass(frozen=True, slots=True)
class _Authority:
    folder: Path
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def _open_authority(folder: Path) -> _Authority:
    try:
        certificates = x509.load_pem_x509_certificates((folder / "ca.pem").read_bytes())
        key = read_key(folder / "ca.key", None)
    except (OSError, ValueError):
        raise invalid(f"there is no transport authority in {folder}.", f"Run `synod certs init {folder}`.") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise invalid(
            f"the key of the transport authority in {folder} is not of an elliptic curve.",
            "Make another authority with `synod certs init`.",
        )
    own = [certificate for certificate in certificates if certificate.public_key() == key.public_key()]
    if not own:
        raise invalid(
            f"the key {folder / 'ca.key'} belongs to no certificate in {folder / 'ca.pem'}.",
            "Put the authority's own certificate back there.",
        )
    return _Authority(folder, own[0], key)


def known_key(folder: Path, holder: Holder) -> str:
    """The fingerprint of the key that the authority signed last for a holder; nothing if it signed none."""
    path = folder / f"{holder.name}.pem"
    if not path.exists():
        return ""
    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    if read_holder(certificate) != holder:
        raise invalid(
            f"{path} is there already, and is for {read_holder(certificate)}.",
            "Move it away first, or take another name.",
        )
    return key_fingerprint(certificate.public_key())


def refuse_revoked_key(folder: Path, request: Request) -> None:
    """Refuses a key that was revoked with a certificate, whoever asks for it now.

    Guarantee: a key that a thief may have gets no new certificate. Where the notes of a revoked certificate are gone,
    so that its key is unknown, no request is signed.
    """
    revoked = {entry.serial_number for entry in read_list(folder / REVOKED, _open_authority(folder).certificate)}
    noted = {issued.serial: issued.key for issued in read_issued(folder).issued}
    if revoked - noted.keys():
        raise check_failed(
            f"{folder / ISSUED} does not say whose certificates all of the revoked ones were, so that a revoked key "
            "might be signed again.",
            f"Restore {ISSUED} from a backup, or make a new authority.",
        )
    if request.fingerprint in {noted[serial] for serial in revoked}:
        raise refused(
            f"the key of this request by {request.holder} was revoked.",
            "Its holder moves the old key away and makes a new request, which makes a new key.",
        )


def sign_request(folder: Path, request: Request, *, now: datetime, days: float = CERTIFICATE_DAYS) -> Path:
    """Writes NAME.pem in place of an earlier one of the same holder, signed by the authority in `folder`."""
    authority = _open_authority(folder)
    known_key(folder, request.holder)
    path = folder / f"{request.holder.name}.pem"
    with one_at_a_time(folder / "ca.key"):
        refuse_revoked_key(folder, request)
        _sign(authority, request, path, now=now, days=days)
    return path


def issue_certificate(
    folder: Path, holder: Holder, hosts: Sequence[str], *, now: datetime, days: float = CERTIFICATE_DAYS
) -> TlsFiles:
    """Makes a key here, which then has to travel: for demos and tests. Writes NAME.pem and NAME.key."""
    authority = _open_authority(folder)
    path, key_path = folder / f"{holder.name}.pem", folder / f"{holder.name}.key"
    _refuse_to_replace(path, key_path)
    key = ec.generate_private_key(ec.SECP256R1())
    request = Request(holder, tuple(hosts), key.public_key())
    write_key(key_path, key, None)
    with one_at_a_time(folder / "ca.key"):
        _sign(authority, request, path, now=now, days=days)
    return TlsFiles(ca=folder / "ca.pem", certificate=path, key=key_path)


def _sign(authority: _Authority, request: Request, path: Path, *, now: datetime, days: float) -> None:
    """Notes the certificate before it is written: one that is not noted could not be revoked."""
    issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    subject = subject_of(request.holder)
    builder = (
        _builder(subject, authority.certificate.subject, request.public_key, now, days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([request.holder.role.usage]), critical=True)
        .add_extension(request.alternatives, critical=False)
        .add_extension(issuer_key, critical=False)
    )
    certificate = builder.sign(authority.key, hashes.SHA256())
    until = f"{certificate.not_valid_after_utc:%Y-%m-%dT%H:%M:%SZ}"
    issued = Issued(certificate.serial_number, request.holder.uri, until, request.fingerprint)
    note_issued(authority.folder, issued)
    write_public_file(path, certificate.public_bytes(serialization.Encoding.PEM))


def revoke_certificates(folder: Path, holder: Holder, *, now: datetime) -> int:
    """Puts every certificate that a holder ever got from this authority on the list; returns how many are new there.

    Lines of `issued.txt` that cannot be read do not keep the others off the list, and are named in an error.
    """
    authority = _open_authority(folder)
    with one_at_a_time(folder / "ca.key"):
        listed, notes = read_list(folder / REVOKED, authority.certificate), read_issued(folder)
        issued = {noted.serial for noted in notes.issued if noted.uri == holder.uri}
        known = {entry.serial_number for entry in listed}
        new = [
            x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now).build()
            for serial in sorted(issued - known)
        ]
        if new:
            _write_revoked(authority, [*listed, *new], number=list_number(listed) + 1, now=now)
    if notes.unreadable:
        raise check_failed(
            f"{len(new)} more certificates of {holder} are on the list now, but {folder / ISSUED} has lines that "
            f"cannot be read ({', '.join(map(str, notes.unreadable[:10]))}), and one of them may be of {holder}, too.",
            f"Restore {ISSUED} from a backup and revoke again.",
        )
    if not issued:
        raise SynodError(
            Code.NOT_FOUND, f"this authority has issued no certificate for {holder}.", f"See {folder / ISSUED}."
        )
    return len(new)


def _write_revoked(
    authority: _Authority, entries: Sequence[x509.RevokedCertificate], *, number: int, now: datetime
) -> None:
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(authority.certificate.subject)
        .last_update(now)
        .next_update(now + timedelta(days=AUTHORITY_DAYS))
        .add_extension(x509.CRLNumber(number), critical=False)
    )
    for entry in entries:
        builder = builder.add_revoked_certificate(entry)
    signed = builder.sign(authority.key, hashes.SHA256())
    write_public_file(authority.folder / REVOKED, signed.public_bytes(serialization.Encoding.PEM))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, days: float
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATE if days > 0 else now + timedelta(days=2 * days))
        .not_valid_after(now + timedelta(days=days))
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _refuse_to_replace(*paths: Path) -> None:
    for path in paths:
        if path.exists():
            raise invalid(f"{path} is there already.", "Move it away first if it is no longer needed.")
