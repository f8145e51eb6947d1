"""Metrics: the text format, and an endpoint that only this machine can reach and that tells nothing of a failure."""

import http.client
import socket
import stat
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.metrics import Metric, Sample, render, serve_metrics, whole_minutes

ODD = 'a "quoted" \\ name\nover two lines'
METRICS = [
    Metric("synod_a", "A number.", (Sample(3),)),
    Metric("synod_b", "Two.", (Sample(Fraction(4, 5), {"dataset": "x", "odd": ODD}), Sample(-1, {"dataset": "y"}))),
    Metric("synod_c", "None.", ()),
]
TEXT = (
    "# HELP synod_a A number.\n# TYPE synod_a gauge\nsynod_a 3\n"
    "# HELP synod_b Two.\n# TYPE synod_b gauge\n"
    'synod_b{dataset="x",odd="a \\"quoted\\" \\\\ name\\nover two lines"} 0.8\nsynod_b{dataset="y"} -1\n'
    "# HELP synod_c None.\n# TYPE synod_c gauge\n"
)


@pytest.fixture
def sockets() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="synod-") as folder:
        yield Path(folder)


def get(address: str, path: str = "/metrics", **headers: str) -> tuple[int, str]:
    host, _, port = address.rpartition(":")
    connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=10)
    try:
        connection.request("GET", path, headers=headers)
        reply = connection.getresponse()
        return reply.status, reply.read().decode()
    finally:
        connection.close()


def test_the_text_is_what_prometheus_reads() -> None:
    assert render(METRICS) == TEXT


def test_times_have_no_seconds() -> None:
    assert [whole_minutes(time) for time in (0, 59.9, 60, 1_700_000_039.5)] == [0, 0, 60, 1_699_999_980]


@pytest.mark.parametrize("address", ["127.0.0.1:0", "[::1]:0"])
def test_it_answers_on_loopback(address: str) -> None:
    try:
        with serve_metrics(address, lambda: METRICS) as bound:
            assert bound is not None
            assert get(bound) == (200, TEXT)
            assert get(bound, "/") == (404, "Only /metrics is here.\n")
            assert get(bound, Host="localhost:9464") == (200, TEXT)
            assert get(bound, Host="attacker.example")[0] == 403
    except SynodError:
        if address.startswith("["):
            pytest.skip("this machine has no IPv6")
        raise
    with pytest.raises(ConnectionRefusedError):
        get(bound)


def test_it_answers_on_a_socket_that_only_its_owner_opens(sockets: Path) -> None:
    path = sockets / "metrics.sock"
    for _ in range(2):  # the second time over what a killed daemon left behind
        with serve_metrics(f"unix:{path}", lambda: METRICS):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(10)
                client.connect(str(path))
                client.sendall(b"GET /metrics HTTP/1.0\r\nHost: anything\r\n\r\n")
                reply = b"".join(iter(lambda: client.recv(4096), b"")).decode()
        assert reply.startswith("HTTP/1.0 200 OK\r\n")
        assert reply.endswith(TEXT)


def test_a_failure_is_told_without_its_text() -> None:
    def fail() -> list[Metric]:
        raise ZeroDivisionError("row 4711")

    with serve_metrics("127.0.0.1:0", fail) as bound:
        assert bound is not None
        assert get(bound) == (500, "The metrics cannot be read now.\n")


def test_without_an_address_there_is_none_and_one_in_use_is_said(sockets: Path) -> None:
    with serve_metrics(None, lambda: METRICS) as bound:
        assert bound is None
    (sockets / "file").write_text("not a socket")
    for address in (f"unix:{sockets / 'file'}", f"unix:{sockets / 'missing' / 'x'}"):
        with pytest.raises(SynodError, match="the address of the metrics") as caught, serve_metrics(address, list):
            pass
        assert caught.value.code is Code.STORAGE
    assert (sockets / "file").read_text() == "not a socket"
