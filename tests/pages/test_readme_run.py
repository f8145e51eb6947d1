"""The README and the walk, followed to the letter in a fresh copy of the repository; in containers, too."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from synod.common.protocol.manifest import verify_release
from synod.common.protocol.trust import parse_trust
from synod.deploy.demo import write_tables
from tests.support.pages import Blocks, runs
from tests.support.shell import run, run_until

pytestmark = pytest.mark.timeout(900)

LAUNCHED = """name: care-survey
method: {name: hpdp-dp}
epsilon: 1
key_bits: 2048
schema:
  - {name: sex, type: categorical, categories: [F, M]}
  - {name: age, type: integer, min: 18, max: 97}
"""


@pytest.mark.slow
@runs(
    "docs/walk.md",
    "1. Tables to play with",
    "2. Transport certificates",
    "3. The curator",
    "4. The parties",
    "5. The study",
    "6. Approval",
    "7. The run",
    "8. Afterwards",
)
def test_three_organizations_by_hand(blocks: Blocks, clone: Path, port: int) -> None:
    walk = "".join(blocks.scripts())
    told = run(walk.replace("127.0.0.1:7443", f"127.0.0.1:{port}"), clone, seconds=300)
    assert "north-stays: spent rho " in told
    assert "Spent as (epsilon, delta): epsilon 1 at delta 1e-9" in told
    trust = parse_trust((clone / "walk" / "trusted.txt").read_text(), "trusted.txt")
    assert set(trust) == {"curator", "north", "harbour", "valley"}
    verify_release(clone / "walk" / "release", trust)
    exported = json.loads((clone / "walk" / "north" / "ledger.json").read_text())
    assert {"approved", "charged"} <= {entry["kind"] for entry in exported["entries"]}


@pytest.mark.slow
@runs("README.md", "Two commands")
def test_two_commands(blocks: Blocks, clone: Path) -> None:
    run(blocks.script("Two commands"), clone, seconds=300)
    verify_release(clone / "demo-release", None)
    assert len((clone / "demo-release" / "synthetic.csv").read_text().splitlines()) == 24_001


@pytest.mark.slow
@runs("README.md", "Your own CSV files")
def test_tables_of_ones_own(blocks: Blocks, clone: Path, tmp_path: Path) -> None:
    write_tables(tmp_path, 1)
    lines = (tmp_path / "north.csv").read_text().splitlines(keepends=True)
    (clone / "patients.csv").write_text("".join(lines))
    (clone / "others.csv").write_text("".join([lines[0], *lines[1::3]]))
    told = run(blocks.script("Your own CSV files"), clone, seconds=300)
    assert "One operator holds all keys and all tables here" in told
    assert verify_release(clone / "release", None).study.method.name == "adaptive"


@pytest.mark.slow
@runs("README.md", "Installing without make")
def test_installing_without_make(blocks: Blocks, clone: Path) -> None:
    told = run(blocks.script("Installing without make"), clone, seconds=600)
    assert "Usage: synod" in told
    assert "curator" in run("cd / && $HERE/venv/bin/synod certs --help", clone, {"HERE": str(clone)})


@pytest.fixture
def composed(image: None, clone: Path, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a composed demo with a name and a folder of its own; all of it is removed at the end."""
    if shutil.which("docker-compose") is None:
        pytest.skip("there is no `docker-compose` command here")
    releases = tmp_path / "releases"
    releases.mkdir()
    releases.chmod(0o1777)
    environment = {
        "COMPOSE_PROJECT_NAME": f"synod-test-{os.urandom(4).hex()}",
        "SYNOD_RELEASES": str(releases),
        "COMPOSE_HTTP_TIMEOUT": "300",
    }
    try:
        yield environment
    finally:
        run("docker-compose down --volumes", clone, environment)


@pytest.mark.docker
@runs("README.md", "In containers (1)")
def test_in_containers(blocks: Blocks, clone: Path, composed: dict[str, str]) -> None:
    before, up, after = blocks.script("In containers (1)").partition("\ndocker-compose up\n")
    assert up
    run(before, clone, composed, seconds=600)
    verify_release(clone / "demo-docker-release", None)

    up, _, after = (up + after).strip().partition("\n")
    manifest = Path(composed["SYNOD_RELEASES"], "synod-demo-release", "manifest.json")
    run_until(up, clone, lambda told: manifest.exists() and "exited with code 0" in told, composed, seconds=300)
    verify_release(manifest.parent, None)

    assert '"event"' in run(after, clone, composed)
    assert composed["COMPOSE_PROJECT_NAME"] not in run("docker ps -a; docker volume ls; docker network ls", clone)


@pytest.mark.docker
@pytest.mark.usefixtures("image")
@runs("README.md", "In containers (2)")
def test_any_study_in_containers(blocks: Blocks, clone: Path) -> None:
    write_tables(clone, 1)
    (clone / "study.yaml").write_text(LAUNCHED)
    run(blocks.script("In containers (2)"), clone, seconds=600)
    verify_release(clone / "release", None)
