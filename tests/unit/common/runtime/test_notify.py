"""What systemd is told, and that nothing is where nobody listens."""

import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from synod.common.runtime.notify import notify, ping_seconds, pinging


@pytest.fixture
def supervisor(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    with tempfile.TemporaryDirectory(prefix="synod-") as folder:
        path = Path(folder) / "notify"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
            listener.bind(str(path))
            listener.settimeout(10)
            monkeypatch.setenv("NOTIFY_SOCKET", str(path))
            yield listener


def test_lines_go_in_one_datagram(supervisor: socket.socket) -> None:
    notify("READY=1", "STATUS=serving")
    assert supervisor.recv(1000) == b"READY=1\nSTATUS=serving"


def test_an_abstract_socket_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"synod-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(f"\0{name}")
        listener.settimeout(10)
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}")
        notify("READY=1")
        assert listener.recv(1000) == b"READY=1"


def test_nobody_who_listens_is_no_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for value in ("", "relative", str(tmp_path / "gone")):
        monkeypatch.setenv("NOTIFY_SOCKET", value)
        notify("READY=1")
    monkeypatch.delenv("NOTIFY_SOCKET")
    notify("READY=1")


def test_the_watchdog_is_pinged_twice_in_its_time() -> None:
    own = str(os.getpid())
    assert ping_seconds({"WATCHDOG_USEC": "30000000"}) == 15
    assert ping_seconds({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": own}) == 15
    for other in ({}, {"WATCHDOG_USEC": "0"}, {"WATCHDOG_USEC": "x"}, {"WATCHDOG_USEC": "5", "WATCHDOG_PID": "1"}):
        assert ping_seconds(other) is None


def test_pings_come_while_the_daemon_serves_and_then_its_end(
    supervisor: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("synod.common.runtime.notify.ping_seconds", lambda: 0.01)
    with pinging():
        assert supervisor.recv(1000) == b"WATCHDOG=1"
        assert supervisor.recv(1000) == b"WATCHDOG=1"
    last = b""
    for _ in range(1000):
        if (last := supervisor.recv(1000)) != b"WATCHDOG=1":
            break
    assert last == b"STOPPING=1"
