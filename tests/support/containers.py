"""A fleet: a curator and K parties in containers, any of which can be killed, paused, cut off and started again.

It uses the launcher's own daemons, so that what is tested is what `synod launch --backend docker` runs. Every wait is
bounded, and only containers with the fleet's own label are touched.
"""

import csv
import json
import os
import random
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synod.common.protocol.manifest import verify_release
from synod.common.protocol.plan import plan_study
from synod.common.runtime.errors import SynodError
from synod.common.runtime.settings import OperatorSettings, load_settings
from synod.common.study.study import Study, parse_study
from synod.deploy.launch.bundles import GIVEN, KEPT
from synod.deploy.launch.containers import IMAGE, ContainerDaemons, container_daemons
from synod.deploy.launch.docker import docker
from synod.deploy.launch.operator import OperatorClient
from synod.deploy.launch.site import Member, plan_paths, prepare
from synod.v1 import study_pb2 as pb
from tests.support.daemons import until
from tests.support.studies import binary, integer, study_document

DYING = """
import functools, importlib, os, sys
from synod.deploy.cli.main import main
module, name, when = sys.argv.pop(1).split(":")
*owners, name = name.split(".")
owner = functools.reduce(getattr, owners, importlib.import_module(module))
original = getattr(owner, name)
def wrapped(*args, **kwargs):
    if when == "after":
        original(*args, **kwargs)
    os._exit(137)  # as by `kill -9`, which a container's first process cannot do to itself
setattr(owner, name, wrapped)
main()
"""
QUESTIONS = 20
RUN_SECONDS = 240.0
SURVEY = study_document(
    name="survey",
    method={"name": "dp-subn"},
    epsilon="0.8",
    seed=20_260_101,
    roster=None,
    schema=[integer("age", 0, 99, bins=16), *(binary(f"q{number}") for number in range(QUESTIONS))],
)


def write_tables(folder: Path, parties: int) -> list[Path]:
    """One table for each party: answers that depend on age."""
    folder.mkdir(parents=True)
    return [_write_table(folder / f"clinic{place}.csv", random.Random(place)) for place in range(parties)]


def _write_table(path: Path, rng: random.Random) -> Path:
    rows = []
    for _ in range(300 + rng.randrange(100)):
        age = rng.randrange(100)
        rows.append(
            [str(age), *("yes" if rng.random() < age / (100 + number) else "no" for number in range(QUESTIONS))]
        )
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([[attribute["name"] for attribute in SURVEY["schema"]], *rows])
    return path


@dataclass(frozen=True)
class Fleet:
    """The containers of one study."""

    daemons: ContainerDaemons
    study: Study

    @property
    def parties(self) -> list[str]:
        """Who takes part, in the roster's order."""
        return [member.name for member in self.daemons.paths.members]

    def member(self, name: str) -> Member:
        """One party of the layout."""
        return next(member for member in self.daemons.paths.members if member.name == name)

    # What can happen to a container

    def start(self) -> None:
        """Starts everything and submits the study."""
        self.submit()
        self.daemons.start_parties()

    def submit(self) -> None:
        """Starts the curator and hands it the study."""
        self.daemons.start_curator()
        with self.operator() as client:
            client.submit(self.study)

    def start_held_at(self, party: str) -> None:
        """Starts everything so that the study is running and waits for one party, which is paused.

        The party is paused when it has enrolled and somebody else has not, so no round can be open yet.
        """
        late = next(name for name in self.parties if name != party)
        self.submit()
        for name in self.parties:
            if name != late:
                self.daemons.start_party(self.member(name))
        until(f"{party} enrols", lambda: "enrolled" in self.events(party), seconds=RUN_SECONDS)
        self.pause(party)
        self.daemons.start_party(self.member(late))
        until(f"the study waits for {party}", lambda: self.awaited() == [party], seconds=RUN_SECONDS)
        assert self.status().state == pb.STUDY_STATE_RUNNING

    def start_dying(self, party: str, point: str) -> None:
        """Starts a party's daemon so that it ends, as by `kill -9`, at `module:function:before`, or `after`."""
        container = self.daemons.container(party)
        self.daemons.create_party(self.member(party))
        docker("rm", container)
        docker(
            "run", "--detach", "--name", container, "--label", self.daemons.label, "--network", container,
            "--tmpfs", "/run/synod:uid=10001,gid=10001,mode=0700", "--entrypoint", "python", *self._volumes(party),
            self.daemons.image, "-c", DYING, point, "party", "serve", "--config", f"{GIVEN}/party.yaml",
        )  # fmt: skip

    def _volumes(self, party: str) -> list[str]:
        container = self.daemons.container(party)
        return ["--volume", f"{container}-kept:{KEPT}", "--volume", f"{container}-given:{GIVEN}:ro"]

    def kill(self, *names: str) -> None:
        """SIGKILL."""
        docker("kill", *map(self.daemons.container, names))

    def stop(self, name: str) -> None:
        """SIGTERM; it must end by itself, and well."""
        docker("stop", "--time", "60", self.daemons.container(name))
        assert self.exit_code(name) == 0

    def start_again(self, *names: str) -> None:
        """Starts containers that have ended, with the volumes that they had."""
        docker("start", *map(self.daemons.container, names))
        if "curator" in names:
            self.daemons.await_curator()

    def pause(self, name: str) -> None:
        """Freezes a container's processes; the engine may need several tries while they are busy."""
        until(f"{name} is paused", lambda: self._try_to_pause(self.daemons.container(name)))

    def _try_to_pause(self, container: str) -> bool:
        with suppress(SynodError):
            docker("pause", container)
        return docker("inspect", "--format", "{{.State.Paused}}", container) == "true"

    def unpause(self, name: str) -> None:
        """Lets them go on."""
        docker("unpause", self.daemons.container(name))

    def cut_off(self, party: str) -> None:
        """Takes the wire between a party and the curator away."""
        docker("network", "disconnect", self.daemons.container(party), self.daemons.container(party))

    def heal(self, party: str) -> None:
        """Gives it back."""
        docker("network", "connect", self.daemons.container(party), self.daemons.container(party))

    def exit_code(self, name: str) -> int:
        """With what a container ended; -1 while it runs."""
        running, code = docker(
            "inspect", "--format", "{{.State.Running}} {{.State.ExitCode}}", self.daemons.container(name)
        ).split()
        return -1 if running == "true" else int(code)

    # What can be seen

    @contextmanager
    def operator(self) -> Iterator[OperatorClient]:
        """A connection of the curator's operator."""
        settings = load_settings(OperatorSettings, self.daemons.paths.operator_config)
        with closing(OperatorClient(settings)) as client:
            yield client

    def status(self) -> pb.StudyStatus:
        """How the study stands."""
        with self.operator() as client:
            (status,) = client.status(self.study.name)
            return status

    def awaited(self) -> list[str]:
        """Whom the study waits for."""
        return [party.name for party in self.status().parties if party.awaited]

    def await_published(self) -> None:
        """Waits for the release; any other end is a failure."""
        ends = (pb.STUDY_STATE_PUBLISHED, pb.STUDY_STATE_ABORTED)
        status = until("the study ends", lambda: (s := self.status()).state in ends and s, seconds=RUN_SECONDS)
        assert status.state == pb.STUDY_STATE_PUBLISHED, status

    def log(self, name: str) -> list[dict[str, Any]]:
        """A container's log: every line is one JSON object."""
        return [json.loads(line) for line in docker("logs", self.daemons.container(name), both=True).splitlines()]

    def events(self, name: str) -> list[str]:
        """What a container says happened."""
        return [line["event"] for line in self.log(name)]

    def run_inside(self, name: str, *command: str) -> str:
        """Runs a program in a running container."""
        return docker("exec", self.daemons.container(name), *command)

    def ledger(self, party: str) -> dict[str, Any]:
        """A party's ledger, as its operator sees it."""
        told = self.run_inside(party, "synod", "party", "ledger", "--json", "--config", "/etc/synod/party.yaml")
        return dict(json.loads(told))

    def check_end(self, folder: Path) -> None:
        """The release is whole, and each party was charged for each of its steps once."""
        self.await_published()
        with self.operator() as client:
            client.fetch(self.study.name, folder)
        verify_release(folder, None)
        plan = plan_study(self.study)
        for party in self.parties:
            ledger = self.closed_ledger(party)
            (entry,) = ledger["studies"]
            charged = [(charge["label"], charge["cost"]) for charge in entry["charges"]]
            assert charged == [(step.label, str(step.cost)) for step in plan.steps_of(party)]
            assert ledger["spent"] == str(plan.cost_of(party))

    def closed_ledger(self, party: str) -> dict[str, Any]:
        """A party's ledger when it knows that the study is published."""

        def closed() -> dict[str, Any] | None:
            ledger = self.ledger(party)
            return ledger if ledger["studies"][0]["state"] == "published" else None

        return dict(until(f"{party} closes the study", closed))

    def kept_ledger(self, party: str) -> dict[str, Any]:
        """The ledger on the volume of a party whose container has ended."""
        config = f"{GIVEN}/party.yaml"
        told = docker(
            "run", "--rm", "--network", "none", *self._volumes(party), self.daemons.image,
            "party", "ledger", "--json", "--config", config,
        )  # fmt: skip
        return dict(json.loads(told))


@contextmanager
def open_fleet(folder: Path, parties: int, **changes: Any) -> Iterator[Fleet]:
    """A prepared fleet; nothing runs yet, and nothing of it is left at the end."""
    layout = plan_paths(folder / "site", write_tables(folder / "tables", parties))
    layout.folder.mkdir()
    study = prepare(layout, parse_study({**SURVEY, **changes}, "the test's study"))
    with container_daemons(layout, name=f"synod-test-{os.urandom(4).hex()}", image=IMAGE, keep=False) as daemons:
        yield Fleet(daemons, study)


def left_over(label: str, kinds: Sequence[str] = ("container", "network", "volume")) -> list[str]:
    """What the engine still has with a label."""
    found = (docker(kind, "ls", *(["--all"] if kind == "container" else []), "--quiet", "--filter", f"label={label}")
             for kind in kinds)  # fmt: skip
    return [line for lines in found for line in lines.splitlines()]
