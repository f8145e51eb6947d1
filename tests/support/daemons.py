"""A site: a curator and its parties as real processes over mutual TLS on loopback, below one folder.

It uses the launcher, so that what is tested is what `synod launch` runs. Every wait is bounded, and only
processes that the site itself started are ended.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from synod.common.protocol.plan import plan_study
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.settings import OperatorSettings, PartySettings, load_settings
from synod.common.study.study import Study, parse_study
from synod.deploy.launch.operator import OperatorClient
from synod.deploy.launch.processes import PROGRAM, Started, await_curator, start_curator, start_party, stopping
from synod.deploy.launch.site import Member, SitePaths, plan_paths, prepare
from synod.party.account import Account, ApprovalState
from synod.party.ledger import Ledger
from synod.v1 import study_pb2 as pb
from tests.support.surveys import draft_survey, write_tables

CRASH_ENTRY = str(Path(__file__).with_name("crash_entry.py"))
WAIT_SECONDS = 90.0
POLL_SECONDS = 0.1
MakeSite = Callable[..., "Site"]


def until(what: str, check: Callable[[], Any], *, seconds: float = WAIT_SECONDS) -> Any:
    """Waits for a true value, and returns it; nobody answering is not one yet."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if value := check():
                return value
        except SynodError as error:
            if error.code is not Code.UNREACHABLE:
                raise
        time.sleep(POLL_SECONDS)
    raise AssertionError(f"waited {seconds:.0f} s in vain for: {what}")


def run_synod(*arguments: str | Path, seconds: float = 120.0, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the program `synod` to its end."""
    return subprocess.run(
        [sys.executable, *PROGRAM, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        env={**os.environ, "COLUMNS": "200", **environment},
        stdin=subprocess.DEVNULL,
    )


def read_release(folder: Path) -> dict[str, bytes]:
    """All files of a release."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@dataclass
class Site:
    """A curator, its parties, and one prepared study."""

    paths: SitePaths
    study: Study
    processes: dict[str, Started] = field(default_factory=dict)
    ended: list[Started] = field(default_factory=list)
    party_program: Sequence[str] = PROGRAM

    # Files

    def config(self, party: str) -> Path:
        """A party's configuration file."""
        return next(member.config for member in self.paths.members if member.name == party)

    def settings(self, party: str) -> PartySettings:
        """A party's settings."""
        return load_settings(PartySettings, self.config(party))

    def change(self, config: Path, **values: Any) -> None:
        """Changes keys of a configuration file."""
        config.write_text(yaml.safe_dump({**yaml.safe_load(config.read_text()), **values}))

    def log(self, name: str) -> list[dict[str, Any]]:
        """The log of a process, one object for each line."""
        path = self.paths.folder / f"{name}.log"
        text = path.read_text() if path.exists() else ""
        assert all(line.startswith("{") for line in text.splitlines()), text
        return [json.loads(line) for line in text.splitlines()]

    def events(self, name: str) -> list[str]:
        """What a process says happened."""
        return [str(line["event"]) for line in self.log(name)]

    def ledger_entries(self, party: str) -> list[dict[str, Any]]:
        """All entries of a party's ledger."""
        ledger = Ledger.open(self.settings(party).state)
        try:
            return [dict(entry) for entry in ledger.entries()]
        finally:
            ledger.close()

    def account(self, party: str) -> Account:
        """What a party's ledger adds up to."""
        ledger = Ledger.open(self.settings(party).state)
        try:
            return ledger.account()
        finally:
            ledger.close()

    def release_folder(self, study: Study | None = None) -> Path:
        """Where the curator keeps a release."""
        return self.paths.folder / "curator" / "releases" / (study or self.study).digest().hex()

    def write_study(self, study: Study) -> Path:
        """Writes a resolved study beside the prepared one, for `synod party approve`."""
        path = self.paths.folder / f"{study.name}.study.yaml"
        path.write_text(yaml.safe_dump(study.to_json(), sort_keys=False))
        return path

    def another_study(self, name: str, **changes: Any) -> Study:
        """A further study over the same roster."""
        content = {**self.study.to_json(), "name": name, **changes}
        return parse_study(content, "the test's study").resolve()

    # Processes

    def start_curator(self, *, program: Sequence[str] = PROGRAM, wait: bool = True) -> Started:
        """Starts the curator; by default waits until it serves."""
        started = self._keep(start_curator(self.paths, program=program))
        if wait:
            await_curator(self.paths, started)
        return started

    def start_party(self, name: str, *, program: Sequence[str] = ()) -> Started:
        """Starts one party's daemon."""
        member = next(member for member in self.paths.members if member.name == name)
        return self._keep(start_party(self.paths, member, program=program or self.party_program))

    def start_clone(self, clone: str, config: Path) -> Started:
        """Starts a daemon over another configuration than the party's own; `clone` names its log."""
        return self._keep(start_party(self.paths, Member(clone, config, config), program=self.party_program))

    def start_parties(self, *names: str) -> None:
        """Starts daemons; all of them if none is named."""
        for name in names or [member.name for member in self.paths.members]:
            self.start_party(name)

    def kill(self, name: str) -> None:
        """SIGKILL, and waits for the end."""
        started = self.processes.pop(name)
        started.process.kill()
        started.process.wait(30)
        self.ended.append(started)

    def stop(self, name: str) -> int:
        """SIGTERM, and the exit code."""
        started = self.processes.pop(name)
        started.process.send_signal(signal.SIGTERM)
        self.ended.append(started)
        return started.process.wait(30)

    def _keep(self, started: Started) -> Started:
        if started.name in self.processes:
            self.ended.append(self.processes[started.name])
        self.processes[started.name] = started
        return started

    # The operator's verbs

    @contextmanager
    def operator(self) -> Iterator[OperatorClient]:
        """A connection of the curator's operator."""
        client = OperatorClient(load_settings(OperatorSettings, self.paths.operator_config))
        try:
            yield client
        finally:
            client.close()

    def submit(self, study: Study | None = None) -> bytes:
        """Hands a study to the curator."""
        with self.operator() as client:
            return client.submit(study or self.study)

    def status(self, name: str = "") -> pb.StudyStatus:
        """How a study stands."""
        with self.operator() as client:
            (status,) = client.status(name or self.study.name)
            return status

    def await_state(
        self, state: "pb.StudyState.ValueType", name: str = "", *, seconds: float = WAIT_SECONDS
    ) -> pb.StudyStatus:
        """Waits until a study is in a state, and returns its status; any other end of the study is a failure. A busy
        machine's curator may take longer over a call than an operator waits: it is asked again.
        """
        end = time.monotonic() + seconds
        last: pb.StudyStatus | SynodError | None = None
        with self.operator() as client:
            while time.monotonic() < end:
                try:
                    (last,) = client.status(name or self.study.name)
                except SynodError as error:
                    if error.code is not Code.UNREACHABLE:
                        raise
                    last = error
                else:
                    if last.state == state:
                        return last
                    assert last.state not in (pb.STUDY_STATE_ABORTED, pb.STUDY_STATE_PUBLISHED), last
                time.sleep(POLL_SECONDS)
        raise AssertionError(f"the study did not become {pb.StudyState.Name(state)}: {last}")

    def await_closed(self, study: Study | None = None, parties: Sequence[str] = ()) -> None:
        """Waits until the ledgers know of a study's end."""
        study = study or self.study
        for name in parties or [entry.name for entry in study.roster]:
            until(f"{name} closes {study.name}", partial(self._is_closed, name, study))

    def _is_closed(self, party: str, study: Study) -> bool:
        approval = self.account(party).approvals.get(study.digest().hex())
        return approval is None or approval.state is not ApprovalState.OPEN

    def await_event(self, name: str, event: str, times: int = 1) -> None:
        """Waits until a process has logged an event."""
        end = time.monotonic() + WAIT_SECONDS
        while self.events(name).count(event) < times:
            assert time.monotonic() < end, f"{name} did not log {event!r} {times} times: {self.log(name)[-5:]}"
            time.sleep(POLL_SECONDS)

    def stop_all(self) -> None:
        """Ends every process that was started here."""
        with stopping([*self.processes.values(), *self.ended]):
            pass


def check_charges(site: Site, study: Study | None = None) -> None:
    """Each ledger shows each charge once, and together they are the plan's."""
    study = study or site.study
    plan = plan_study(study)
    for entry in study.roster:
        entries = [line for line in site.ledger_entries(entry.name) if line.get("study") == study.digest().hex()]
        kinds = [line["kind"] for line in entries]
        steps = plan.steps_of(entry.name)
        assert kinds.count("approved") == 1, kinds
        assert kinds.count("closed") == 1, kinds
        charged = [(line["label"], line["cost"]) for line in entries if line["kind"] == "charged"]
        assert charged == [(step.label, str(step.cost)) for step in steps]
        approval = site.account(entry.name).approvals[study.digest().hex()]
        assert approval.spent == plan.cost_of(entry.name)
        assert approval.state is ApprovalState.PUBLISHED


def make_site(folder: Path, study: Study | None = None, tables: Sequence[Path] | None = None) -> Site:
    """Keys, certificates, configurations and ledgers of a new site; nothing runs yet."""
    tables = tables or write_tables(folder / "tables")
    paths = plan_paths(folder / "site", tables)
    paths.folder.mkdir(parents=True)
    return Site(paths, prepare(paths, study or draft_survey()))


def copy_site(site: Site, folder: Path) -> Site:
    """A copy of a site at rest; its curator will take a port of its own, and its parties' ledgers have no salts and do
    not draw studies' secrets, so that all copies give the same release.
    """
    shutil.copytree(site.paths.folder, folder)
    members = tuple(
        replace(member, config=folder / member.config.relative_to(site.paths.folder)) for member in site.paths.members
    )
    copy = Site(SitePaths(folder, members), site.study, party_program=(CRASH_ENTRY, "run"))
    copy.change(copy.paths.curator_config, listen="127.0.0.1:0")
    return copy
