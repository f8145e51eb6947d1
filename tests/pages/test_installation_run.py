"""deploy/curator and deploy/party, followed in containers: a curator and three parties are installed and publish.

The engine's gateway stands for the network between the machines; the parties' containers know it as
`curator.example.org`. The tests put files in place where the pages tell a person to.
"""

import json
import os
import re
import shutil
import tarfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from synod.common.protocol.manifest import verify_release
from synod.common.runtime.settings import PartySettings, load_settings
from synod.party.approval import initialize
from tests.support.daemons import until
from tests.support.pages import Blocks, runs
from tests.support.shell import BIN, run, run_until
from tests.support.surveys import draft_survey, make_rows, write_table

pytestmark = [pytest.mark.docker, pytest.mark.timeout(1200), pytest.mark.usefixtures("image")]

ROWS = {"north": 211, "harbour": 157, "valley": 131}
CURATOR = (
    "Certificates (1)",
    "Certificates (2)",
    "1. The image, and a folder outside of the clone (1)",
    "1. The image, and a folder outside of the clone (2)",
    "2. Identity, and its fingerprint by phone",
    "3. Serve",
    "4. A study (1)",
    "4. A study (2)",
    "Back up and restore (1)",
    "Back up and restore (2)",
)
PARTY = (
    "1. The image",
    "2. A folder outside of the clone (1)",
    "2. A folder outside of the clone (2)",
    "3. Identity and ledger, once",
    "5. The way to the curator",
    "6. Serve",
    "7. Approve a study",
    "Back up and restore (1)",
    "Back up and restore (2)",
)


@dataclass(frozen=True)
class Machine:
    """One organization's machine: a home, Synod's folder in it, and the blocks of its page."""

    name: str
    home: Path
    blocks: Blocks
    environment: dict[str, str]

    @property
    def folder(self) -> Path:
        return self.home / f"synod-{self.name}"

    def script(self, heading: str) -> str:
        """A block; on a party's page `north` stands for the party's name."""
        script = self.blocks.script(heading)
        return script.replace("north", self.name) if self.name in ROWS else script

    def follow(self, heading: str, folder: Path | None = None, *, typed: str = "") -> str:
        """Runs a block of the page, by default in Synod's folder."""
        return run(self.script(heading), folder or self.folder, self.environment, seconds=600, typed=typed)

    def run_until(self, script: str, event: str) -> None:
        """Runs a script that ends with a log, until the log tells of an event."""
        run_until(script, self.folder, lambda told: f'"event": "{event}"' in told, self.environment)

    def run(self, script: str) -> str:
        return run(script, self.folder, self.environment)

    def lose_the_volume(self) -> None:
        """As with a machine that burns: nothing is asked to stop."""
        self.run("docker-compose kill && docker-compose down --volumes")


@contextmanager
def open_machine(name: str, folder: Path, blocks: Blocks) -> Iterator[Machine]:
    """A machine without Synod; its containers, networks and volumes are removed at the end."""
    home = folder / f"{name}-home"
    (home / "bin").mkdir(parents=True)
    if shutil.which("sudo") is None:
        (home / "bin" / "sudo").write_text('#!/bin/sh\nexec "$@"\n')
        (home / "bin" / "sudo").chmod(0o755)
    environment = {
        "HOME": str(home),
        "PATH": f"{home / 'bin'}:{BIN}:{os.environ['PATH']}",
        "DOCKER_CONFIG": os.environ.get("DOCKER_CONFIG", str(Path.home() / ".docker")),
        "COMPOSE_PROJECT_NAME": f"synod-test-{name}-{os.urandom(4).hex()}",
    }
    machine = Machine(name, home, blocks, environment)
    try:
        yield machine
    finally:
        if machine.folder.exists():
            machine.lose_the_volume()


@runs("deploy/curator/README.md", *CURATOR, argument="curator_page")
@runs("deploy/party/README.md", *PARTY, argument="party_page")
def test_a_curator_and_three_parties_are_installed_and_publish(
    curator_page: Blocks, party_page: Blocks, clone: Path, tmp_path: Path, port: int
) -> None:
    if os.geteuid() != 0 or shutil.which("docker-compose") is None:
        pytest.skip("needs `docker-compose`, and the right to give files to another user")
    with ExitStack() as stack:
        curator = stack.enter_context(open_machine("curator", tmp_path, curator_page))
        north, *others = (stack.enter_context(open_machine(name, tmp_path, party_page)) for name in ROWS)
        authority = make_certificates(curator, tmp_path)
        pin = install_curator(curator, clone, authority, port)
        changes = {"curator": pin, "address": f"curator.example.org:{port}"}

        north.follow("1. The image", clone)
        install_party(north, clone, authority, changes)
        keys = {"north": fingerprint_in(north.follow("3. Identity and ledger, once"))}
        assert "FAIL" not in north.follow("5. The way to the curator")
        north.run_until(north.script("6. Serve"), "connected")
        for party in others:
            install_party(party, clone, authority, {**changes, "approve": "auto"})
            keys[party.name] = join(party)

        publish(curator, north, keys)
        for machine in (curator, north):
            until("it is healthy", partial(is_healthy, machine))
        restore_party(north)
        restore_curator(curator)


def make_certificates(curator: Machine, folder: Path) -> Path:
    """The transport authority's machine, and one that has the image alone."""
    for name in ("trusted", "bare"):
        (folder / name).mkdir()
    curator.follow("Certificates (1)", folder / "trusted")
    curator.follow("Certificates (2)", folder / "bare")
    assert (folder / "bare" / "authority" / "ca.key").exists()
    return folder / "trusted" / "authority"


def install_curator(curator: Machine, clone: Path, authority: Path, port: int) -> str:
    """Brings the service up, and returns its fingerprint."""
    curator.follow("1. The image, and a folder outside of the clone (1)", clone)
    for name, target in (("curator", "etc"), ("operator", "operator")):
        copy_certificate(authority, name, curator.folder / target)
    shutil.copy(authority / "revoked.pem", curator.folder / "etc")
    change(curator.folder / "operator" / "operator.yaml", address="curator:7443")
    composed = curator.folder / "docker-compose.yml"
    composed.write_text(composed.read_text().replace('"7443:7443"', f'"{port}:7443"'))
    curator.follow("1. The image, and a folder outside of the clone (2)")
    pin = fingerprint_in(curator.follow("2. Identity, and its fingerprint by phone"))
    curator.run_until(curator.script("3. Serve"), "serving")
    return pin


def install_party(party: Machine, clone: Path, authority: Path, changes: dict[str, str]) -> None:
    """A party's folder, with everything in it that a person has to bring."""
    party.follow("2. A folder outside of the clone (1)", clone)
    copy_certificate(authority, party.name, party.folder / "etc")
    write_table(party.folder / "data" / "stays.csv", make_rows(ROWS[party.name], ROWS[party.name]))
    tls = {"ca": "ca.pem", "certificate": f"{party.name}.pem", "key": f"{party.name}.key"}
    change(party.folder / "etc" / "party.yaml", name=party.name, tls=tls, dataset=f"{party.name}-stays", **changes)
    extend(party, {"extra_hosts": ["curator.example.org:host-gateway"]})
    party.follow("2. A folder outside of the clone (2)")


def join(party: Machine) -> str:
    """A party of which the page is not tried once more: it is only there, approves all, and has this fingerprint."""
    settings = load_settings(PartySettings, party.folder / "etc" / "party.yaml")
    state = party.folder / "state"
    identity = initialize(settings.model_copy(update={"state": state}), spent=None, now=int(time.time()))
    extend(party, {"volumes": ["./state:/var/lib/synod"]})
    party.run("chown -R 10001:10001 state && docker-compose up -d")
    return identity.fingerprint


def extend(party: Machine, changes: dict[str, Any]) -> None:
    """Changes the party's service for this machine, without touching the file that the page has copied."""
    path = party.folder / "docker-compose.override.yml"
    service = yaml.safe_load(path.read_text())["services"]["party"] if path.exists() else {}
    path.write_text(yaml.safe_dump({"services": {"party": {**service, **changes}}}))


def is_healthy(machine: Machine) -> bool:
    return "(healthy)" in machine.run("docker-compose ps")


def copy_certificate(authority: Path, name: str, folder: Path) -> None:
    for file in ("ca.pem", f"{name}.pem", f"{name}.key"):
        shutil.copy(authority / file, folder)


def change(path: Path, **values: Any) -> None:
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **values}))


def fingerprint_in(told: str) -> str:
    (found,) = set(re.findall(r"sha256:[0-9a-f]{64}", told))
    return str(found)


def publish(curator: Machine, north: Machine, keys: dict[str, str]) -> None:
    """From a written study to its release."""
    roster = [{"name": name, "key": keys[name], "rows": rows} for name, rows in ROWS.items()]
    study = draft_survey("care-survey", key_bits=3072, roster=roster).resolve()
    for machine in (curator, north):
        (machine.folder / "study.yaml").write_text(yaml.safe_dump(study.to_json(), sort_keys=False))
    assert study.digest().hex() in curator.follow("4. A study (1)")
    assert "Approved: epsilon 0.8 is reserved for care-survey." in north.follow("7. Approve a study", typed="y\n")
    ask = "docker-compose run --rm operator study status"
    until("the study is published", lambda: "care-survey: published" in curator.run(ask), seconds=180)
    curator.follow("4. A study (2)")
    verify_release(curator.folder / "releases" / "care-survey", {**keys, "curator": curator_key(curator)})


def curator_key(curator: Machine) -> str:
    return fingerprint_in(curator.run("docker-compose run --rm curator curator fingerprint"))


def restore_party(party: Machine) -> None:
    party.follow("Back up and restore (1)")
    with tarfile.open(party.home / f"{party.name}.backup") as archive:
        assert {"identity.pem", "ledger.sqlite", "contents.json"} <= set(archive.getnames())
    exported = json.loads((party.home / f"{party.name}-ledger.json").read_text())
    assert exported["entries"][-1]["kind"] == "closed"

    party.lose_the_volume()
    assert "FAIL" not in party.follow("Back up and restore (2)")
    assert "spent epsilon 0.8, held epsilon 0," in party.run("docker-compose run --rm party party ledger")


def restore_curator(curator: Machine) -> None:
    pin = curator_key(curator)
    curator.follow("Back up and restore (1)")
    curator.lose_the_volume()
    curator.follow("Back up and restore (2)")
    assert curator_key(curator) == pin
    curator.run_until("docker-compose logs -f", "serving")
    assert "care-survey: published" in curator.run("docker-compose run --rm operator study status")
