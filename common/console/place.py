"""Where a console listens: loopback by default, a Unix socket on request, else only by a flag and under TLS."""

import os
import socket
import ssl
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509

from synod.common.console.checks import LOOPBACK_NAMES, Address
from synod.common.runtime.errors import Code, SynodError, invalid, refused

USUAL = "127.0.0.1:0"
ANSWER_SECONDS = 2


@dataclass(frozen=True, slots=True)
class Wanted:
    """Where the operator wants it: `listen` is HOST:PORT, and a free port of loopback if it is None; `path` is a Unix
    socket in its place; a certificate and its key for TLS, and whether other machines may connect.
    """

    listen: str | None = None
    path: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    beyond: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A socket that listens, the address that browsers use, TLS if it is there, and the whole path of a Unix socket."""

    socket: socket.socket
    address: Address
    tls: ssl.SSLContext | None = None
    path: Path | None = None

    def close(self) -> None:
        """Listens no longer, and leaves no Unix socket behind."""
        self.socket.close()
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def take_place(wanted: Wanted) -> Place:
    """Opens the socket.

    Guarantee: another address than loopback is refused without the flag and without TLS; a Unix socket is its owner's
    alone, and none at which somebody answers is taken away.
    """
    _check_together(wanted)
    if (wanted.certificate is None) != (wanted.key is None):
        raise invalid("TLS needs a certificate and its key.", "Give both `--certificate` and `--key`.")
    if wanted.path is not None:
        path = wanted.path.resolve()
        return Place(_open_path(path), Address("http", tuple(reversed(LOOPBACK_NAMES[:2])), None), path=path)
    host, port = _read_listen(USUAL if wanted.listen is None else wanted.listen)
    is_local = _is_loopback(host)
    if is_local and wanted.beyond:
        raise invalid(
            f"no other machine reaches {host}.", "Leave out `--beyond-loopback`, or give another `--listen` with it."
        )
    if not is_local and not wanted.beyond:
        raise refused(
            f"{host} can be reached from other machines.",
            "Leave out `--listen`, or give `--beyond-loopback`, `--certificate` and `--key`.",
        )
    if not is_local and wanted.certificate is None:
        raise refused(
            "a console that other machines reach needs TLS.", "Give `--certificate` and `--key`, both PEM files."
        )
    tls = _load_tls(wanted.certificate, wanted.key)
    names = _names_of(wanted.certificate) if wanted.certificate and not is_local else _local_names(host)
    listening = _open_port(host, port)
    return Place(listening, Address("https" if tls else "http", names, listening.getsockname()[1]), tls)


def _check_together(wanted: Wanted) -> None:
    """Refuses what contradicts a Unix socket: whoever gives both expects something that would not be there."""
    given = {
        "--listen": wanted.listen is not None,
        "--certificate": wanted.certificate is not None,
        "--key": wanted.key is not None,
        "--beyond-loopback": wanted.beyond,
    }
    beside = [name for name, is_given in given.items() if is_given]
    if wanted.path is not None and beside:
        raise invalid(
            f"`--socket` listens on no port and without TLS, so `{beside[0]}` does not go with it.",
            f"Leave out `--socket` or `{beside[0]}`.",
        )


def _read_listen(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdigit()) or int(port) > 65_535:
        raise invalid(f"{text!r} is not HOST:PORT.", "Write such as 127.0.0.1:8080; the port 0 takes a free one.")
    return host.strip("[]"), int(port)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _local_names(host: str) -> tuple[str, ...]:
    own = f"[{host}]" if ":" in host else host
    return (own, *(name for name in LOOPBACK_NAMES if name != own))


def _open_port(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise SynodError(
            Code.STORAGE, f"{host}:{port} cannot be listened on: {error.strerror}.", "Choose another `--listen`."
        ) from None


def _open_path(path: Path) -> socket.socket:
    """The socket is made under a mask that keeps everybody else out from its first moment."""
    if _is_answered(path):
        raise SynodError(
            Code.CONFLICT, f"somebody listens on {path} already.", "Stop that console, or choose another `--socket`."
        )
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        if path.is_socket():  # a killed console left it behind
            path.unlink()
        listening.bind(str(path))
        listening.listen()
    except OSError as error:
        listening.close()
        raise SynodError(
            Code.STORAGE, f"{path} cannot be made: {error.strerror or error}.", "Choose another `--socket`."
        ) from None
    finally:
        os.umask(before)
    return listening


def _is_answered(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.settimeout(ANSWER_SECONDS)
        try:
            caller.connect(str(path))
        except TimeoutError:
            return True  # its queue is full, so somebody has it
        except OSError:
            return False
    return True


def _load_tls(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    if certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key, password=lambda: "")
    except (OSError, ValueError):
        raise invalid(
            f"{certificate} and its key cannot be used for TLS.", "Both are PEM files, the key without a passphrase."
        ) from None
    return context


def _names_of(certificate: Path) -> tuple[str, ...]:
    """The host names that the certificate is for: under no other is the console served."""
    try:
        found = x509.load_pem_x509_certificate(certificate.read_bytes())
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, x509.ExtensionNotFound):
        raise invalid(
            f"{certificate} names no host.", "Take one with a subject alternative name that browsers will use."
        ) from None
    addresses = [f"[{one}]" if ":" in str(one) else str(one) for one in names.get_values_for_type(x509.IPAddress)]
    hosts = (*names.get_values_for_type(x509.DNSName), *addresses)
    if not hosts:
        raise invalid(f"{certificate} names no host.", "Take one with a host name or an address in it.")
    return hosts
