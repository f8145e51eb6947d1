"""Transport certificates: a small authority, the certificates that it issues, and checks made before dialing.

They carry transport only. Who is on a roster is decided by identity keys, never by this authority.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from synod.common.runtime.errors import Code, SynodError, invalid
from synod.common.runtime.files import write_private_file
from synod.common.runtime.settings import TlsFiles
from synod.common.study.study import SLUG

AUTHORITY_DAYS = 3650
CERTIFICATE_DAYS = 397
BACKDATE = timedelta(minutes=5)  # clocks of honest machines differ a little


def make_authority(folder: Path, *, now: datetime) -> None:
    """Writes ca.pem and ca.key; refuses to replace either."""
    _refuse_to_replace(folder / "ca.pem", folder / "ca.key")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Synod transport authority")])
    builder = (
        _builder(name, name, key.public_key(), now, AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    write_private_file(folder / "ca.key", _key_pem(key))
    _write_public_file(folder / "ca.pem", builder.sign(key, hashes.SHA256()))


def issue_certificate(
    folder: Path, name: str, hosts: Sequence[str], *, now: datetime, days: float = CERTIFICATE_DAYS
) -> TlsFiles:
    """Writes NAME.pem and NAME.key, signed by the authority in `folder`, for client and server use."""
    if not SLUG.fullmatch(name):
        raise invalid(f"{name!r} is not a name.", "A name is 1 to 63 small letters, digits and inner hyphens.")
    try:
        authority = x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes())
        authority_key = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), password=None)
    except (OSError, TypeError, ValueError):
        raise invalid(f"there is no transport authority in {folder}.", f"Run `synod certs init {folder}`.") from None
    if not isinstance(authority_key, ec.EllipticCurvePrivateKey):
        raise invalid(
            f"the key of the transport authority in {folder} is not of an elliptic curve.",
            "Make another authority with `synod certs init`.",
        )
    _refuse_to_replace(folder / f"{name}.pem", folder / f"{name}.key")
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    usages = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    builder = (
        _builder(subject, authority.subject, key.public_key(), now, days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(usages, critical=False)
        .add_extension(x509.SubjectAlternativeName([_alternative(host) for host in [name, *hosts]]), critical=False)
        .add_extension(issuer_key, critical=False)
    )
    write_private_file(folder / f"{name}.key", _key_pem(key))
    _write_public_file(folder / f"{name}.pem", builder.sign(authority_key, hashes.SHA256()))
    return TlsFiles(ca=folder / "ca.pem", certificate=folder / f"{name}.pem", key=folder / f"{name}.key")


def check_own_certificate(files: TlsFiles, name: str | None, *, now: datetime) -> None:
    """Finds out before dialing what a peer could only answer with a closed socket.

    1. the files can be read; 2. the key is the certificate's; 3. the certificate is for this name; 4. it is from the
    authority in `ca`; 5. both are valid now.
    """
    # 1
    certificate, authority = _load(files.certificate), _load(files.ca)
    key = _load_key(files.key)
    # 2
    if key.public_key() != certificate.public_key():
        raise _rejected(f"the key {files.key} does not belong to the certificate {files.certificate}.")
    # 3
    own_name = certificate_name(certificate)
    if name is not None and own_name != name:
        raise _rejected(f"the certificate is for {own_name}, not for {name}.", "`name` must be the certificate's.")
    # 4
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        raise _rejected(
            f"the certificate {files.certificate} is from another authority than {files.ca}.",
            "Ask whoever runs the transport authority for a new one.",
        ) from None
    # 5
    _check_validity(files.certificate, certificate, now)
    _check_validity(files.ca, authority, now)


def _check_validity(path: Path, certificate: x509.Certificate, now: datetime) -> None:
    if now > certificate.not_valid_after_utc:
        raise _rejected(
            f"the certificate {path} expired on {certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC.",
            "Ask for a new one.",
        )
    if now < certificate.not_valid_before_utc:
        raise _rejected(
            f"the certificate {path} is valid only from {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC, "
            f"and this machine's clock says {now:%Y-%m-%d %H:%M} UTC.",
            "Check the clock.",
        )


def certificate_name(certificate: x509.Certificate) -> str:
    """The common name, by which a certificate's holder is known."""
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if names else ""


def _rejected(sentence: str, hint: str = "") -> SynodError:
    return SynodError(Code.UNAUTHENTICATED, sentence, hint)


def _load(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError):
        raise _rejected(f"the certificate {path} cannot be read.", "Check `tls` in the configuration.") from None


def _load_key(path: Path) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError):
        raise _rejected(f"the TLS key {path} cannot be read.", "Check `tls` in the configuration.") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise _rejected(f"the TLS key {path} is not an elliptic-curve key.")
    return key


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


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError:
        raise invalid(f"{host!r} is not a host name.", "Write it in ASCII, as DNS has it.") from None


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write_public_file(path: Path, certificate: x509.Certificate) -> None:
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def _refuse_to_replace(*paths: Path) -> None:
    for path in paths:
        if path.exists():
            raise invalid(f"{path} is there already.", "Move it away first if it is no longer needed.")
