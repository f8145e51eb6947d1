"""The process backend: a curator and one party daemon per table, each a process of its own on this machine.

All that is started here talks mutual TLS over loopback, and is stopped when the block ends, however it ends.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from synod.common.runtime.errors import Code, SynodError
from synod.deploy.launch.interrupts import uninterrupted
from synod.deploy.launch.site import Member, SitePaths, ended_early, tls_files, write_yaml

START_SECONDS = 60.0
STOP_SECONDS = 10.0
POLL_SECONDS = 0.05
PROGRAM = ("-P", "-m", "synod.deploy.cli")


@dataclass(frozen=True, slots=True)
class Started:
    """A process that the launcher started."""

    name: str
    process: "subprocess.Popen[bytes]"
    log: Path

    def check(self) -> None:
        """Raises if it has ended, with the last line of its log."""
        if self.process.poll() is None:
            return
        raise ended_early(self.name, self.log.read_text(errors="replace"), f"Its log is {self.log}.")


def start_curator(paths: SitePaths, *, program: Sequence[str] = PROGRAM) -> Started:
    """Starts the curator; `await_curator` says when it serves, and where."""
    _port_file(paths).unlink(missing_ok=True)
    return _start("curator", [*program, "curator", "serve", "--config", str(paths.curator_config)], paths.folder)


def await_curator(paths: SitePaths, started: Started) -> None:
    """Waits until the curator serves; writes its address into every configuration."""
    port_file = _port_file(paths)
    until = time.monotonic() + START_SECONDS
    while not port_file.exists() or not port_file.read_text():
        started.check()
        if time.monotonic() > until:
            raise SynodError(Code.UNREACHABLE, "the curator did not start in time.", f"Its log is {started.log}.")
        time.sleep(POLL_SECONDS)
    address = f"127.0.0.1:{port_file.read_text()}"
    write_yaml(paths.operator_config, {"address": address, "tls": tls_files(paths, "operator", ".")})
    _set_address(paths.curator_config, "listen", address)
    for member in paths.members:
        _set_address(member.config, "address", address)


def _port_file(paths: SitePaths) -> Path:
    return paths.folder / "curator" / "port"


def _set_address(config: Path, key: str, address: str) -> None:
    write_yaml(config, {**yaml.safe_load(config.read_text()), key: address})


def start_party(paths: SitePaths, member: Member, *, program: Sequence[str] = PROGRAM) -> Started:
    """Starts one party's daemon."""
    return _start(member.name, [*program, "party", "serve", "--config", str(member.config)], paths.folder)


def _start(name: str, arguments: list[str], folder: Path) -> Started:
    log = folder / f"{name}.log"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with log.open("ab") as file:
        process = subprocess.Popen(  # noqa: S603  (our own program)
            [sys.executable, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env=environment,
            start_new_session=True,
        )
    return Started(name, process, log)


@contextmanager
def stopping(processes: list[Started]) -> Iterator[None]:
    """Stops every process in the list at the end, gently and then not."""
    try:
        yield
    finally:
        with uninterrupted():
            _stop(processes)


def _stop(processes: list[Started]) -> None:
    for started in processes:
        if started.process.poll() is None:
            started.process.send_signal(signal.SIGTERM)
    until = time.monotonic() + STOP_SECONDS
    for started in processes:
        try:
            started.process.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            started.process.kill()
            started.process.wait()


@dataclass(frozen=True, slots=True)
class ProcessDaemons:
    """The daemons of a launch as processes."""

    paths: SitePaths
    started: list[Started] = field(default_factory=list)

    def start_curator(self) -> None:
        """Starts the curator, and waits until it serves."""
        self.started.append(start_curator(self.paths))
        await_curator(self.paths, self.started[0])

    def start_parties(self) -> None:
        """Starts every party's daemon."""
        self.started.extend(start_party(self.paths, member) for member in self.paths.members)

    def check(self) -> None:
        """Raises if one has ended."""
        for started in self.started:
            started.check()


@contextmanager
def process_daemons(paths: SitePaths) -> Iterator[ProcessDaemons]:
    """A daemons of processes, all stopped at the end."""
    daemons = ProcessDaemons(paths)
    with stopping(daemons.started):
        yield daemons
