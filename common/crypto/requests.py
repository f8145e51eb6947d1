"""Requests for certificates: whoever needs one makes the key where it will be used, and no private key travels."""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from synod.common.crypto.certificates import Holder, Role, key_fingerprint, read_holder
from synod.common.crypto.keyfiles import read_key, write_key
from synod.common.runtime.errors import check_failed, invalid
from synod.common.runtime.files import write_public_file

LARGEST_REQUEST_BYTES = 1 << 16


def subject_of(holder: Holder) -> x509.Name:
    """The subject of a holder's certificate, for people who look at it; the role is not read from it."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, holder.name)])


@dataclass(frozen=True, slots=True)
class Request:
    """A request for a certificate: whom it is for, where a curator is dialed, and the key that it proves to have."""

    holder: Holder
    hosts: tuple[str, ...]
    public_key: ec.EllipticCurvePublicKey

    def __post_init__(self) -> None:
        if bool(self.hosts) != (self.holder.role is Role.CURATOR):
            raise invalid(
                f"a certificate for {self.holder} "
                + ("names no host, because only a curator is dialed." if self.hosts else "must name a host."),
                "Give `--host` for a curator, and for nobody else.",
            )
        for host in self.hosts:
            _alternative(host)

    @property
    def fingerprint(self) -> str:
        """The fingerprint of its key."""
        return key_fingerprint(self.public_key)

    @property
    def alternatives(self) -> x509.SubjectAlternativeName:
        """The names that the certificate is to have."""
        uri = x509.UniformResourceIdentifier(self.holder.uri)
        return x509.SubjectAlternativeName([uri, *(_alternative(host) for host in self.hosts)])


def make_request(
    path: Path, holder: Holder, hosts: Sequence[str], *, key_path: Path, passphrase: bytes | None
) -> Request:
    """Writes a request for a certificate, signed by the key in `key_path`, which is made if it is not there.

    Guarantee: the key stays where it is; the request holds its public part, and proves that its writer has the key.
    """
    is_new = not key_path.exists()
    key = ec.generate_private_key(ec.SECP256R1()) if is_new else _read_own_key(key_path, passphrase)
    request = Request(holder, tuple(hosts), key.public_key())
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject_of(holder))
    signed = builder.add_extension(request.alternatives, critical=False).sign(key, hashes.SHA256())
    if is_new:
        write_key(key_path, key, passphrase)
    write_public_file(path, signed.public_bytes(serialization.Encoding.PEM))
    return request


def _read_own_key(path: Path, passphrase: bytes | None) -> ec.EllipticCurvePrivateKey:
    try:
        key = read_key(path, passphrase)
    except (OSError, ValueError):
        raise invalid(f"the TLS key {path} cannot be read.", "Move it away to make a new one.") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise invalid(f"the TLS key {path} is not of the curve P-256.", "Move it away to make a new one.")
    return key


def read_request(path: Path) -> Request:
    """Reads a request. 1. it is one; 2. its signature is that of its own key; 3. the key is of the curve P-256;
    4. it names one holder, and hosts only for a curator; 5. it asks for nothing else.
    """
    # 1
    try:
        with path.open("rb") as file:
            signed = x509.load_pem_x509_csr(file.read(LARGEST_REQUEST_BYTES))
        extensions = list(signed.extensions)
    except (OSError, ValueError, x509.DuplicateExtension):
        raise invalid(
            f"{path} is not a request for a certificate.", "Make one with `synod party request-certificate`."
        ) from None
    # 2
    if not signed.is_signature_valid:
        raise check_failed(f"the request {path} is not signed by its own key.", "Ask for a new one.")
    # 3
    key = signed.public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise invalid(f"the key of the request {path} is not of the curve P-256.")
    # 4
    holder = read_holder(signed)
    names = signed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    hosts = [name.value for name in names if isinstance(name, x509.DNSName | x509.IPAddress)]
    request = Request(holder, tuple(map(str, hosts)), key)
    # 5
    if len(extensions) != 1 or set(names) != set(request.alternatives):
        raise invalid(f"the request {path} asks for more than a name, a role and hosts.", "Ask for a new one.")
    return request


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError:
        raise invalid(f"{host!r} is not a host name.", "Write it in ASCII, as DNS has it.") from None
