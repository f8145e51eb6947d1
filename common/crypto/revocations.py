"""The lists of certificates that transport authorities have revoked: a file that they sign and the curator reads.

Serial numbers and the numbers of lists mean something only beside who issued them, and an authority is known by its
key: two may have the same name. While an authority is replaced, the file holds the lists of both, one after another.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from synod.common.crypto.certificates import key_fingerprint, read_authorities
from synod.common.runtime.errors import SynodError, check_failed, invalid

_LIST = re.compile(rb"-----BEGIN X509 CRL-----.*?-----END X509 CRL-----", re.DOTALL)


@dataclass(frozen=True, slots=True)
class RevokedList:
    """The serial numbers that one authority has revoked, and the number of its list, which grows with every change."""

    number: int
    serials: frozenset[int]


@dataclass(frozen=True, slots=True)
class Revocations:
    """The newest list of every authority that was seen, by the fingerprint of the authority's key."""

    lists: Mapping[str, RevokedList] = field(default_factory=dict)

    def has(self, issuer: x509.Certificate, serial: int) -> bool:
        """Whether an authority has revoked a certificate."""
        listed = self.lists.get(key_fingerprint(issuer.public_key()))
        return listed is not None and serial in listed.serials


def read_revocations(path: Path, ca: Path, before: Revocations | None) -> Revocations:
    """Reads the lists of revoked certificates.

    Guarantee: each list is signed by an authority in `ca`, every authority there has one, and none is older than the
    one that was read before of the same authority. What an authority that is no longer in `ca` had revoked stays so.
    """
    authorities = read_authorities(ca)
    found: dict[str, RevokedList] = {}
    for entries in _load_lists(path):
        signer = next((authority for authority in authorities if _is_signed(entries, authority)), None)
        if signer is None:
            raise _foreign(path)
        issuer = key_fingerprint(signer.public_key())
        listed = RevokedList(list_number(entries), frozenset(entry.serial_number for entry in entries))
        if issuer not in found or found[issuer].number < listed.number:
            found[issuer] = listed
    if any(key_fingerprint(authority.public_key()) not in found for authority in authorities):
        raise check_failed(
            f"{path} has no list of one of the authorities in {ca}.",
            "Put the revoked.pem of every authority there into it, one after another.",
        )
    earlier = before.lists if before else {}
    for issuer, listed in found.items():
        if issuer in earlier and listed.number < earlier[issuer].number:
            raise check_failed(f"the list {path} is older than the one read before.", "Put the newest one there.")
    return Revocations({**earlier, **found})


def read_list(path: Path, authority: x509.Certificate) -> x509.CertificateRevocationList:
    """The newest list of one authority."""
    own = [entries for entries in _load_lists(path) if _is_signed(entries, authority)]
    if not own:
        raise _foreign(path)
    return max(own, key=list_number)


def _load_lists(path: Path) -> Sequence[x509.CertificateRevocationList]:
    try:
        found = [x509.load_pem_x509_crl(pem) for pem in _LIST.findall(path.read_bytes())]
    except (OSError, ValueError):
        found = []
    if not found:
        raise invalid(
            f"{path} cannot be read as a list of revoked certificates.",
            "Copy revoked.pem from the transport authority's folder.",
        )
    return found


def _is_signed(listed: x509.CertificateRevocationList, authority: x509.Certificate) -> bool:
    key: Any = authority.public_key()  # of a kind that cannot sign: TypeError
    try:
        return listed.issuer == authority.subject and listed.is_signature_valid(key)
    except (ValueError, TypeError, InvalidSignature):
        return False


def _foreign(path: Path) -> SynodError:
    return check_failed(f"the list {path} is from another authority.", "Compare ca.pem with the authority's.")


def list_number(listed: x509.CertificateRevocationList) -> int:
    """The number of a list."""
    try:
        return int(listed.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number)
    except x509.ExtensionNotFound:
        return 0
