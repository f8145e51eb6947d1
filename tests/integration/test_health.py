"""The health socket of both daemons, asked as a container engine asks: by the program `synod-health`."""

import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from synod.common.runtime.health import PARTY_SERVICE
from tests.support.daemons import Site, make_site, until


@pytest.fixture
def sockets() -> Iterator[Path]:
    """A folder whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="synod-") as folder:
        yield Path(folder)


@pytest.fixture
def site(tmp_path: Path, sockets: Path) -> Iterator[Site]:
    site = make_site(tmp_path)
    site.change(site.paths.curator_config, health=str(sockets / "curator.sock"))
    site.change(site.config("north"), health=str(sockets / "north.sock"))
    try:
        yield site
    finally:
        site.stop_all()


def ask(socket: Path, service: str) -> int:
    program = [
        sys.executable,
        "-c",
        "from synod.common.runtime.health import main; main()",
        "--service",
        service,
        str(socket),
    ]
    return subprocess.run(program, timeout=60, check=False, stdout=subprocess.DEVNULL).returncode


def test_a_party_is_alive_at_once_and_well_while_it_talks_with_the_curator(site: Site, sockets: Path) -> None:
    curator, north = sockets / "curator.sock", sockets / "north.sock"
    assert (ask(curator, ""), ask(north, "")) == (1, 1)
    site.start_curator()
    site.start_party("north")
    until("the party is well", lambda: ask(north, PARTY_SERVICE) == 0)
    assert (ask(curator, ""), ask(curator, PARTY_SERVICE), ask(north, "")) == (0, 0, 0)
    assert stat.S_IMODE(north.stat().st_mode) == 0o600

    assert site.stop("curator") == 0
    assert ask(curator, "") == 1
    until("the party has missed the curator", lambda: ask(north, PARTY_SERVICE) == 1)
    assert ask(north, "") == 0


def test_the_socket_of_a_killed_daemon_is_taken_over(site: Site, sockets: Path) -> None:
    site.start_curator()
    site.kill("curator")
    assert (sockets / "curator.sock").exists()
    assert ask(sockets / "curator.sock", "") == 1
    site.start_curator()
    assert ask(sockets / "curator.sock", PARTY_SERVICE) == 0


def test_a_socket_that_cannot_be_made_is_said(site: Site, sockets: Path) -> None:
    site.change(site.paths.curator_config, health=str(sockets / "missing" / "curator.sock"))
    started = site.start_curator(wait=False)
    assert started.process.wait(60) == 1
    assert "the health socket" in started.log.read_text()
    assert '"event": "ended"' in started.log.read_text()
