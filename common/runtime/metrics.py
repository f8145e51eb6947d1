"""Metrics in Prometheus' text format, over HTTP on loopback or on a Unix socket: for the operator's own monitoring.

Nobody is asked who they are, so nothing that depends on a row may be a metric, and no duration of private work. Times
are whole minutes: finer ones would tell how long a daemon was busy between two calls.
"""

import socket
import socketserver
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Thread

from synod.common.runtime.errors import Code, SynodError

PATH = "/metrics"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
REQUEST_SECONDS = 5.0
LOCAL_HOSTS = ("127.", "[::1]", "localhost")
MINUTE_SECONDS = 60
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


@dataclass(frozen=True, slots=True)
class Sample:
    """One number, and the labels that tell it from others of its metric."""

    value: int | Fraction
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Metric:
    """A gauge: a name with its unit, what it means, and its numbers."""

    name: str
    meaning: str
    samples: tuple[Sample, ...]


Collect = Callable[[], Iterable[Metric]]


def whole_minutes(seconds: float) -> int:
    """A time without its seconds."""
    return int(seconds) // MINUTE_SECONDS * MINUTE_SECONDS


def render(metrics: Iterable[Metric]) -> str:
    """The text that Prometheus reads."""
    lines: list[str] = []
    for metric in metrics:
        lines += [f"# HELP {metric.name} {metric.meaning}", f"# TYPE {metric.name} gauge"]
        lines += [f"{metric.name}{_labels(sample.labels)} {_number(sample.value)}" for sample in metric.samples]
    return "".join(f"{line}\n" for line in lines)


def _labels(labels: Mapping[str, str]) -> str:
    inner = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels.items())
    return f"{{{inner}}}" if inner else ""


def _number(value: int | Fraction) -> str:
    return str(value) if isinstance(value, int) else repr(float(value))


def certificate_metric(days: Mapping[str, int]) -> Metric:
    """How long certificates are still valid; both daemons have it."""
    return Metric(
        "synod_certificate_days_left",
        "Whole days until the certificate expires; negative afterwards.",
        tuple(Sample(left, {"which": which}) for which, left in days.items()),
    )


@contextmanager
def serve_metrics(address: str | None, collect: Collect) -> Iterator[str | None]:
    """Answers `GET /metrics` while the block runs; yields where. `address` is as `metrics` in a configuration."""
    if address is None:
        yield None
        return
    server = _bind(address, collect)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield address if address.startswith("unix:") else f"{address.rpartition(':')[0]}:{server.server_address[1]!r}"
    finally:
        server.shutdown()
        server.server_close()


def _bind(address: str, collect: Collect) -> socketserver.TCPServer:
    handler = type("Handler", (_Handler,), {"collect": staticmethod(collect)})
    try:
        if address.startswith("unix:"):
            path = Path(address.removeprefix("unix:"))
            if path.exists() and stat.S_ISSOCK(path.stat().st_mode):
                path.unlink()  # of a daemon that was killed: one process at a time holds the state folder
            server: socketserver.TCPServer = socketserver.UnixStreamServer(str(path), handler)
            path.chmod(0o600)
            return server
        host, _, port = address.rpartition(":")
        kind = _Server6 if host.startswith("[") else _Server
        return kind((host.strip("[]"), int(port)), handler)
    except OSError:
        raise SynodError(
            Code.STORAGE,
            f"the address of the metrics, {address}, cannot be used.",
            "Another program may be listening there, or the socket's folder is not there or not writable.",
        ) from None


class _Server(socketserver.TCPServer):
    allow_reuse_address = True


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Handler(BaseHTTPRequestHandler):
    """One request at a time, each with a time limit, and no word of a failure but that there was one."""

    collect: Collect
    timeout = REQUEST_SECONDS
    server_version, sys_version = "synod", ""

    def do_GET(self) -> None:
        if not self._is_local():
            self._reply(403, "Ask for this machine by an address of loopback.\n")
        elif self.path != PATH:
            self._reply(404, f"Only {PATH} is here.\n")
        else:
            try:
                text = render(self.collect())
            except Exception:  # noqa: BLE001  (its text may hold a value)
                self._reply(500, "The metrics cannot be read now.\n")
            else:
                self._reply(200, text)

    def _is_local(self) -> bool:
        """A web page under a name that points here has that name as its host."""
        host = self.headers.get("Host", "localhost")
        return isinstance(self.server, socketserver.UnixStreamServer) or host.startswith(LOCAL_HOSTS)

    def _reply(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing: what is asked here is no event."""
