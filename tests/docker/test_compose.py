"""docker-compose.yml at the top level: from a fresh clone to a release on the host, with nobody as root."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from synod.common.protocol.manifest import verify_release
from tests.support.daemons import until

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]
PARTIES = ("north", "harbour", "valley")
STORY = ("connected", "approved by `approve: auto`", "enrolled", "answered", "study ended")


class Project:
    """The composed demo under a name of its own."""

    def __init__(self, releases: Path) -> None:
        self._name = f"synod-test-{os.urandom(4).hex()}"
        self._environment = {**os.environ, "SYNOD_RELEASES": str(releases)}

    def run(self, *arguments: str) -> str:
        """Runs a command of docker-compose."""
        ran = subprocess.run(
            ["docker-compose", "--project-name", self._name, *arguments],
            cwd=ROOT, env=self._environment, capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr[-2000:]
        return ran.stdout

    def inspect(self, service: str) -> dict[str, object]:
        """What the engine knows of a service's container."""
        container = self.run("ps", "--quiet", "--all", service).strip()
        told = subprocess.run(["docker", "inspect", container], capture_output=True, timeout=60, check=True).stdout
        return dict(json.loads(told)[0])


@pytest.fixture
def project(image: None, tmp_path: Path) -> Iterator[Project]:
    if shutil.which("docker-compose") is None:
        pytest.skip("there is no `docker-compose` command here")
    releases = tmp_path / "releases"
    releases.mkdir()
    releases.chmod(0o1777)
    project = Project(releases)
    try:
        yield project
    finally:
        project.run("down", "--volumes")


def exit_code(project: Project, service: str) -> int | None:
    state = project.inspect(service)["State"]
    assert isinstance(state, dict)
    return int(state["ExitCode"]) if state["Status"] == "exited" else None


def test_up_leaves_a_release_and_up_again_changes_nothing(project: Project, tmp_path: Path) -> None:
    project.run("build", "--quiet", "init")
    project.run("up", "--detach")
    assert until("the operator is done", lambda: exit_code(project, "operator") is not None, seconds=180)
    assert exit_code(project, "operator") == 0, project.run("logs", "operator")
    folder = tmp_path / "releases" / "synod-demo-release"
    verify_release(folder, None)
    manifest = (folder / "manifest.json").read_bytes()

    for service in ("init", "operator", "curator", *PARTIES):
        user = project.inspect(service)["Config"]
        assert isinstance(user, dict)
        assert user["User"] == "10001:10001", service
    told = project.run("logs", "--no-color", "--no-log-prefix", *PARTIES)
    events = [json.loads(line)["event"] for line in told.splitlines() if line.startswith("{")]
    assert [event for event in STORY if events.count(event) < len(PARTIES)] == []
    assert "One operator holds all keys" in project.run("logs", "init")

    project.run("up", "--detach")
    until("the operator is done again", lambda: exit_code(project, "operator") is not None, seconds=180)
    assert exit_code(project, "operator") == 0
    assert "in /releases/synod-demo-release already" in project.run("logs", "operator")
    assert (folder / "manifest.json").read_bytes() == manifest

    project.run("down", "--volumes")
    project.run("up", "--detach")
    until("a new study is done", lambda: exit_code(project, "operator") is not None, seconds=180)
    assert exit_code(project, "operator") == 0, project.run("logs", "operator")
    verify_release(folder, None)
    assert (folder / "manifest.json").read_bytes() != manifest


def test_each_organization_has_its_own_network_volumes_and_no_port() -> None:
    composed = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    services = composed["services"]
    for party in PARTIES:
        assert services[party]["networks"] == [party]
        assert {volume.split(":")[0] for volume in services[party]["volumes"]} == {f"{party}-given", f"{party}-kept"}
    assert all(network == {"internal": True} for network in composed["networks"].values())
    assert not [name for name, service in services.items() if "ports" in service or service.get("privileged")]
    shared = [set(services[party]["networks"]) & set(services["curator"]["networks"]) for party in PARTIES]
    assert shared == [{party} for party in PARTIES]
