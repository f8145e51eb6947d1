"""The list of certificates that a transport authority has revoked: a file that it signs and the curator reads."""

from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec

from synod.common.runtime.errors import check_failed, invalid


@dataclass(frozen=True, slots=True)
class Revocations:
    """The serial numbers that an authority has revoked, and the number of the list, which grows with every change."""

    number: int
    serials: frozenset[int]


def read_revocations(path: Path, ca: Path, before: Revocations | None) -> Revocations:
    """Reads a list of revoked certificates.

    Guarantee: the list is signed by the authority in `ca`, and no older than the one read before.
    """
    try:
        authority = x509.load_pem_x509_certificate(ca.read_bytes())
    except (OSError, ValueError):
        raise invalid(f"the certificate {ca} cannot be read.", "Check `tls` in the configuration.") from None
    entries = read_list(path, authority)
    found = Revocations(list_number(entries), frozenset(entry.serial_number for entry in entries))
    if before is not None and found.number < before.number:
        raise check_failed(f"the list {path} is older than the one read before.", "Put the newest one there.")
    return found


def read_list(path: Path, authority: x509.Certificate) -> x509.CertificateRevocationList:
    """The list itself, if the authority has signed it."""
    try:
        listed = x509.load_pem_x509_crl(path.read_bytes())
        key = authority.public_key()
        assert isinstance(key, ec.EllipticCurvePublicKey)
        is_signed = listed.is_signature_valid(key)
    except (OSError, ValueError, TypeError, InvalidSignature):
        raise invalid(
            f"{path} cannot be read as a list of revoked certificates.",
            "Copy revoked.pem from the transport authority's folder.",
        ) from None
    if not is_signed:
        raise check_failed(f"the list {path} is from another authority.", "Compare ca.pem with the authority's.")
    return listed


def list_number(listed: x509.CertificateRevocationList) -> int:
    """The number of a list."""
    try:
        return int(listed.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number)
    except x509.ExtensionNotFound:
        return 0
