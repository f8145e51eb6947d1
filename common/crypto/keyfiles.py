"""Private keys as PEM files: for their owner alone, on request encrypted with a passphrase that is in another file.

A passphrase protects copies of a key, in a backup or on a lost disk. It does not protect a machine on which both files
are read.
"""

from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

from synod.common.runtime.errors import invalid
from synod.common.runtime.files import write_private_file


def read_passphrase(path: Path | None) -> bytes | None:
    """The first line of a passphrase file; None where none is named."""
    if path is None:
        return None
    try:
        passphrase = path.read_bytes().split(b"\n")[0].rstrip(b"\r")
    except OSError:
        raise invalid(f"the passphrase file {path} cannot be read.", "Check `passphrase_file`.") from None
    if not passphrase:
        raise invalid(f"the passphrase file {path} has an empty first line.", "Write the passphrase there.")
    return passphrase


def write_key(path: Path, key: ec.EllipticCurvePrivateKey | Ed25519PrivateKey, passphrase: bytes | None) -> None:
    """Writes a key for its owner alone; refuses to replace a file.

    Guarantee: with a passphrase, the file holds nothing of the key in the clear.
    """
    locked = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)
    write_private_file(path, pem)


def read_key(path: Path, passphrase: bytes | None) -> PrivateKeyTypes:
    """Reads a key; says why it cannot be read if it is encrypted and there is no passphrase, or the other way round.

    Raises OSError or ValueError where the file is none of a key.
    """
    pem = path.read_bytes()
    is_locked = b"ENCRYPTED" in pem
    if is_locked and passphrase is None:
        raise invalid(f"the key {path} is encrypted.", "Name the file of its passphrase as `passphrase_file`.")
    if passphrase is not None and not is_locked:
        raise invalid(
            f"the key {path} is not encrypted, although `passphrase_file` is set.",
            "Encrypt it, such as with `openssl pkcs8 -topk8`, or leave `passphrase_file` out.",
        )
    try:
        return serialization.load_pem_private_key(pem, passphrase)
    except (TypeError, ValueError):
        if is_locked:
            raise invalid(
                f"the key {path} does not open with the passphrase of `passphrase_file`, or is damaged.",
                "Check that it is the right file.",
            ) from None
        raise ValueError("not a private key") from None
