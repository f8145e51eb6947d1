"""What a supervisor and a monitoring system see of real daemons: when they are ready, what they show, and that one
which is refused ends with a code of its own, or stays without being ready.
"""

import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from synod.common.runtime.health import PARTY_SERVICE, is_well
from synod.common.runtime.locks import exclusive_lock
from synod.deploy.launch.processes import PROGRAM
from tests.support.daemons import Site, make_site, run_synod, until
from tests.support.keys import pinned


@pytest.fixture
def sockets() -> Iterator[Path]:
    """A folder whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="synod-") as folder:
        yield Path(folder)


@pytest.fixture
def site(tmp_path: Path, sockets: Path) -> Iterator[Site]:
    site = make_site(tmp_path)
    for name, config in (("curator", site.paths.curator_config), ("north", site.config("north"))):
        site.change(config, health=str(sockets / f"{name}.sock"), metrics=f"unix:{sockets / name}.metrics")
    try:
        yield site
    finally:
        site.stop_all()


def read_metrics(path: Path) -> dict[str, str]:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(30)
        client.connect(str(path))
        client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        reply = b"".join(iter(lambda: client.recv(4096), b"")).decode()
    assert reply.startswith("HTTP/1.0 200 OK\r\n"), reply
    body = reply.partition("\r\n\r\n")[2]
    return dict(line.rsplit(" ", 1) for line in body.splitlines() if not line.startswith("#"))


def test_systemd_hears_when_each_is_ready_and_when_it_stops(
    site: Site, sockets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind(str(sockets / "notify"))
        supervisor.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", str(sockets / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "1000000")

        def await_line(text: bytes) -> list[bytes]:
            heard = []
            for _ in range(10_000):
                heard.append(supervisor.recv(1000))
                if text in heard[-1].splitlines():
                    return heard
            raise AssertionError(heard)

        site.start_curator()
        assert await_line(b"READY=1")[-1] == b"READY=1\nSTATUS=serving"
        await_line(b"WATCHDOG=1")
        assert site.stop("curator") == 0
        await_line(b"STOPPING=1")

        site.start_party("north")
        heard = await_line(b"STATUS=waiting for the curator")
        assert not any(b"READY=1" in line for line in heard), "not before the first contact"
        await_line(b"WATCHDOG=1")
        monkeypatch.delenv("NOTIFY_SOCKET")
        site.start_curator()
        assert await_line(b"READY=1")[-1] == b"READY=1\nSTATUS=in touch with the curator"
        assert site.stop("north") == 0
        await_line(b"STOPPING=1")


def test_metrics_follow_a_study(site: Site, sockets: Path) -> None:
    party, curator = sockets / "north.metrics", sockets / "curator.metrics"
    site.change(site.config("north"), approve="ask")
    site.start_curator()
    site.submit()
    site.start_party("north")
    site.await_event("north", "connected")
    waiting = until("the study waits", lambda: (m := read_metrics(party))["synod_party_studies_waiting"] == "1" and m)
    assert int(waiting["synod_party_studies_waiting_since_timestamp_seconds"]) % 60 == 0
    assert waiting["synod_party_in_touch"] == "1"
    assert int(waiting['synod_certificate_days_left{which="own"}']) > 300
    assert waiting['synod_party_epsilon_held{dataset="north"}'] == "0.0"
    seen = read_metrics(curator)
    assert seen['synod_curator_studies{state="enrolling"}'] == "1"
    assert seen['synod_curator_party_last_seen_timestamp_seconds{party="north"}'] != "0"
    assert seen['synod_curator_party_last_seen_timestamp_seconds{party="valley"}'] == "0"

    ran = run_synod("party", "approve", site.write_study(site.study), "--config", site.config("north"), "--yes")
    assert ran.returncode == 0, ran.stderr
    held = until("nothing waits", lambda: (m := read_metrics(party))["synod_party_studies_waiting"] == "0" and m)
    assert held['synod_party_epsilon_held{dataset="north"}'] == "0.8"
    assert held['synod_party_studies{state="open"}'] == "1"
    assert not [name for name in (*held, *seen) if not re.match(r"synod_[a-z_]+(\{|$)", name)]


@contextmanager
def staying(config: Path, log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A party's daemon as containers run it."""
    command = [sys.executable, *PROGRAM, "party", "serve", "--config", str(config), "--stay"]
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
    try:
        yield process
    finally:
        process.kill()
        process.wait(30)


def test_a_refused_daemon_ends_with_3_or_stays_unready_with_its_state_free(
    site: Site, sockets: Path, tmp_path: Path
) -> None:
    site.start_curator()
    config = site.config("north")
    site.change(config, curator=pinned(7))
    assert run_synod("party", "serve", "--config", config).returncode == 3

    log, health = tmp_path / "stay.log", sockets / "north.sock"
    with staying(config, log) as process:
        until("it stays", lambda: "refused, and staying" in log.read_text())
        until("its process is well", lambda: is_well(health, ""))
        assert not is_well(health, PARTY_SERVICE)
        assert process.poll() is None
        with exclusive_lock(site.settings("north").state):
            pass
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 3
    assert log.read_text().count("the curator's key is not the one that `curator` pins") == 2
