"""Whether a daemon on this machine is well: gRPC's health service on a Unix socket, and the program that asks it.

For container engines and supervisors. A party opens no port, and a probe should need no certificate: the socket is a
file that only the daemon's user can open, and it tells nothing but `SERVING` or not. The empty service name stands for
the process; `PARTY_SERVICE` for its work: the curator serves, or the party's last talk with the curator went well.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from synod.common.runtime.errors import Code, SynodError

PARTY_SERVICE = "synod.v1.PartyService"
ASK_SECONDS = 5.0
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@contextmanager
def tell_health(socket: Path | None) -> Iterator[Callable[[bool], None]]:
    """Answers on the socket while the block runs; what it yields says whether the work goes well, at first not."""
    if socket is None:
        yield lambda _: None
        return
    servicer = health.HealthServicer()
    servicer.set("", SERVING)
    servicer.set(PARTY_SERVICE, NOT_SERVING)
    server = grpc.server(ThreadPoolExecutor(1))
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    _bind(server, socket)
    server.start()
    try:
        yield lambda well: servicer.set(PARTY_SERVICE, SERVING if well else NOT_SERVING)
    finally:
        server.stop(None)


def _bind(server: grpc.Server, socket: Path) -> None:
    try:
        server.add_insecure_port(f"unix:{socket}")
        socket.chmod(0o600)
    except (RuntimeError, OSError):
        raise SynodError(
            Code.STORAGE,
            f"the health socket {socket} cannot be made.",
            "Its folder must be there and writable, and its path at most 100 characters long.",
        ) from None


def is_well(socket: Path, service: str) -> bool:
    """Whether a daemon answers on the socket, and says that the service is served."""
    with grpc.insecure_channel(f"unix:{socket}") as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)  # its type stubs know no methods
        try:
            reply = stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=ASK_SECONDS)
        except grpc.RpcError:
            return False
    return bool(reply.status == SERVING)


def main() -> None:
    """The program `synod-health`: exit code 0 if all is well, 1 if not."""
    parser = argparse.ArgumentParser(
        prog="synod-health",
        description="Ask a daemon on this machine whether it is well. Exit code 0 if it is, 1 if not.",
        epilog=f"Example: synod-health --service {PARTY_SERVICE} /run/synod/health.sock",
    )
    parser.add_argument("--service", default="", help="A service; left out: whether the process answers at all.")
    parser.add_argument("socket", type=Path, help="The path that `health` names in the daemon's configuration.")
    options = parser.parse_args()
    well = is_well(options.socket, options.service)
    sys.stdout.write("well\n" if well else "not well\n")
    sys.exit(0 if well else 1)
