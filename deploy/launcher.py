"""The launcher: a curator and one party daemon per table, as processes of their own on this machine.

For demos and tests: whoever runs it holds everybody's keys and tables, and it says so. Everything that it starts
talks mutual TLS over loopback, and is stopped when it ends, however it ends.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from typing import NoReturn

import yaml
from synod.v1 import study_pb2 as pb

from common.canonical import Json
from common.certificates import issue_certificate, make_authority
from common.errors import Code, SynodError, invalid
from common.identity import Identity
from common.settings import OperatorSettings, PartySettings, load_settings
from common.study import RosterEntry, Study
from deploy.operator import OperatorClient
from party.dataset import count_rows
from party.operations import initialize

WARNING = "One operator holds all keys and all tables here: for demos and tests, not for real organizations."
START_SECONDS = 60.0
STOP_SECONDS = 10.0
POLL_SECONDS = 0.2
OWN_NAMES = ("certs", "curator", "operator")
PROGRAM = ("-m", "deploy.cli")


@dataclass(frozen=True, slots=True)
class Member:
    """One organization: its name, its table and its configuration file."""

    name: str
    table: Path
    config: Path


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of a launch, below one folder."""

    folder: Path
    members: tuple[Member, ...]

    @property
    def certs(self) -> Path:
        """The transport authority and all certificates."""
        return self.folder / "certs"

    @property
    def curator_config(self) -> Path:
        """The curator's configuration."""
        return self.folder / "curator.yaml"

    @property
    def operator_config(self) -> Path:
        """The operator's configuration, written once the curator's port is known."""
        return self.folder / "operator.yaml"

    @property
    def study_file(self) -> Path:
        """The resolved study."""
        return self.folder / "study.yaml"


def plan_layout(folder: Path, tables: Sequence[Path]) -> Layout:
    """Names one organization for each table, after its file."""
    names: list[str] = []
    for table in tables:
        name = re.sub(r"[^a-z0-9]+", "-", table.stem.lower())[:50].strip("-") or "party"
        candidates = chain([name], (f"{name}-{number}" for number in count(2)))
        names.append(next(candidate for candidate in candidates if candidate not in (*OWN_NAMES, *names)))
    members = tuple(
        Member(name, table.resolve(), folder / name / "party.yaml") for name, table in zip(names, tables, strict=True)
    )
    return Layout(folder, members)


def prepare(layout: Layout, study: Study) -> Study:
    """Makes keys, certificates, configurations and ledgers; returns the study with its roster."""
    now = datetime.now(UTC)
    make_authority(layout.certs, now=now)
    for name in ("curator", "operator", *(member.name for member in layout.members)):
        issue_certificate(layout.certs, name, ["127.0.0.1", "localhost"] if name == "curator" else [], now=now)
    curator_key = _prepare_curator(layout)
    roster = [_prepare_party(layout, member, study, curator_key) for member in layout.members]
    _check_roster(study, roster)
    resolved = Study.model_validate({**study.to_json(), "roster": study.roster or tuple(roster)}).resolve()
    layout.study_file.write_text(yaml.safe_dump(resolved.to_json(), sort_keys=False, allow_unicode=True))
    return resolved


def _check_roster(study: Study, roster: Sequence[RosterEntry]) -> None:
    if study.roster:
        raise invalid(
            "the study has a roster, whose keys are with its organizations.",
            "`synod launch` makes all keys itself: leave the roster out.",
        )
    if study.collusion >= len(roster):
        raise invalid(
            f"collusion {study.collusion} needs more than {len(roster)} tables.",
            "Give more --data, or lower it.",
        )


def _prepare_curator(layout: Layout) -> str:
    _write_yaml(
        layout.curator_config,
        {
            "listen": "127.0.0.1:0",
            "state": "curator",
            "operators": ["operator"],
            "tls": _tls(layout, "curator", "."),
        },
    )
    (layout.folder / "curator").mkdir(mode=0o700)
    identity = Identity.generate()
    identity.save(layout.folder / "curator" / "identity.pem")
    return identity.fingerprint


def _prepare_party(layout: Layout, member: Member, study: Study, curator_key: str) -> RosterEntry:
    member.config.parent.mkdir()
    _write_yaml(
        member.config,
        {
            "name": member.name,
            "address": "127.0.0.1:0",
            "state": "state",
            "curator": curator_key,
            "tls": _tls(layout, member.name, ".."),
            "dataset": member.name,
            "source": str(member.table),
            "max_epsilon_total": str(study.epsilon),
            "min_collusion": min(1, study.collusion),
            "min_parties": 1,
            "min_key_bits": 2048,
            "allow_local_queries": True,
            "approve": "auto",
        },
    )
    settings = load_settings(PartySettings, member.config)
    identity = initialize(settings, spent=None, now=int(time.time()))
    return RosterEntry(name=member.name, key=identity.fingerprint, rows=_positive(count_rows(member.table), member))


def _positive(rows: int, member: Member) -> int:
    if rows < 1:
        raise invalid(f"{member.table.name} has no rows.", "Every organization needs at least one.")
    return rows


def _tls(layout: Layout, name: str, up: str) -> dict[str, Json]:
    folder = f"{up}/{layout.certs.name}"
    return {"ca": f"{folder}/ca.pem", "certificate": f"{folder}/{name}.pem", "key": f"{folder}/{name}.key"}


def _write_yaml(path: Path, value: dict[str, Json]) -> None:
    path.write_text(yaml.safe_dump(value, sort_keys=False, allow_unicode=True))


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
        lines = self.log.read_text(errors="replace").strip().splitlines()
        last = lines[-1] if lines else "it said nothing"
        raise SynodError(Code.INTERNAL, f"{self.name} ended by itself: {last}", f"Its log is {self.log}.")


def start_curator(layout: Layout, *, program: Sequence[str] = PROGRAM) -> Started:
    """Starts the curator; `await_curator` says when it serves, and where."""
    _port_file(layout).unlink(missing_ok=True)
    return _start("curator", [*program, "curator", "serve", "--config", str(layout.curator_config)], layout.folder)


def await_curator(layout: Layout, started: Started) -> None:
    """Waits until the curator serves; writes its address into every configuration."""
    port_file = _port_file(layout)
    until = time.monotonic() + START_SECONDS
    while not port_file.exists() or not port_file.read_text():
        started.check()
        if time.monotonic() > until:
            raise SynodError(Code.UNREACHABLE, "the curator did not start in time.", f"Its log is {started.log}.")
        time.sleep(POLL_SECONDS / 4)
    address = f"127.0.0.1:{port_file.read_text()}"
    _write_yaml(layout.operator_config, {"address": address, "tls": _tls(layout, "operator", ".")})
    _set_address(layout.curator_config, "listen", address)
    for member in layout.members:
        _set_address(member.config, "address", address)


def _port_file(layout: Layout) -> Path:
    return layout.folder / "curator" / "port"


def _set_address(config: Path, key: str, address: str) -> None:
    _write_yaml(config, {**yaml.safe_load(config.read_text()), key: address})


def start_party(layout: Layout, member: Member, *, program: Sequence[str] = PROGRAM) -> Started:
    """Starts one party's daemon."""
    return _start(member.name, [*program, "party", "serve", "--config", str(member.config)], layout.folder)


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


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


@contextmanager
def stopping(processes: list[Started]) -> Iterator[None]:
    """Stops every process in the list at the end, gently and then not; SIGTERM is an end like Ctrl-C."""
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
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


def launch(
    study: Study,
    tables: Sequence[Path],
    out: Path,
    folder: Path,
    *,
    progress: Callable[[pb.StudyStatus], None],
) -> Study:
    """Runs a study over tables to its release; returns the study as it was run."""
    layout = plan_layout(folder, tables)
    resolved = prepare(layout, study)
    processes: list[Started] = []
    with stopping(processes):
        processes.append(start_curator(layout))
        await_curator(layout, processes[0])
        client = OperatorClient(load_settings(OperatorSettings, layout.operator_config))
        client.submit(resolved)
        processes.extend(start_party(layout, member) for member in layout.members)
        _follow(client, resolved.name, processes, progress)
        client.fetch(resolved.name, out)
        client.close()
    return resolved


def _follow(
    client: OperatorClient, name: str, processes: list[Started], progress: Callable[[pb.StudyStatus], None]
) -> None:
    while True:
        (status,) = client.status(name)
        progress(status)
        if status.state == pb.STUDY_STATE_PUBLISHED:
            return
        if status.state == pb.STUDY_STATE_ABORTED:
            raise SynodError(Code.ABORTED, f"{name} was aborted: {status.reason}", "See the logs.")
        refusing = [party.name for party in status.parties if party.not_approved]
        if refusing:
            raise SynodError(
                Code.REFUSED,
                f"{refusing[0]} does not approve {name}.",
                f"To see why, launch with --state DIR, then run `synod party approve DIR/study.yaml "
                f"--config DIR/{refusing[0]}/party.yaml --dry-run`.",
            )
        for started in processes:
            started.check()
        time.sleep(POLL_SECONDS)
