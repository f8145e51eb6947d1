"""`synod launch --backend docker` from outside: what it leaves behind after success, failure and Ctrl-C."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from synod.common.protocol.manifest import verify_release
from synod.deploy.launch.docker import docker
from synod.deploy.launch.processes import PROGRAM
from tests.support.containers import SURVEY, left_over, write_tables
from tests.support.daemons import run_synod, until

pytestmark = [pytest.mark.docker, pytest.mark.timeout(600), pytest.mark.usefixtures("image")]


@pytest.fixture
def arguments(tmp_path: Path) -> list[str | Path]:
    """A study over two tables."""
    study = tmp_path / "study.yaml"
    study.write_text(yaml.safe_dump({**SURVEY, "method": {"name": "hpdp-dp"}}))
    tables = [part for table in write_tables(tmp_path / "tables", 2) for part in ("--data", table)]
    return ["launch", study, *tables, "--backend", "docker", "--out", tmp_path / "release"]


def label_in(told: str) -> str:
    (label,) = set(re.findall(r"synod\.launch=synod-[0-9a-f]{8}", told))
    return str(label)


def test_published_and_gone(arguments: list[str | Path], tmp_path: Path) -> None:
    ran = run_synod(*arguments, "--state", tmp_path / "state", seconds=300)
    assert ran.returncode == 0, ran.stderr
    assert "One operator holds all keys" in ran.stdout
    verify_release(tmp_path / "release", None)
    assert left_over(label_in(ran.stdout)) == []
    for name in ("curator", "clinic0", "clinic1"):
        assert '"event"' in (tmp_path / "state" / f"{name}.log").read_text()


def test_refused_and_gone(arguments: list[str | Path], tmp_path: Path) -> None:
    table = tmp_path / "tables" / "clinic1.csv"
    table.write_text(table.read_text().replace("yes", "maybe", 1))
    ran = run_synod(*arguments, seconds=300)
    assert ran.returncode == 3
    assert "clinic1 does not approve survey, because its table does not fit the study's schema: column" in ran.stderr
    assert "maybe" not in ran.stdout + ran.stderr
    assert left_over(label_in(ran.stdout)) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_and_gone(arguments: list[str | Path], tmp_path: Path, number: signal.Signals) -> None:
    log = tmp_path / "told"
    with log.open("wb") as told:
        launch = subprocess.Popen(
            [sys.executable, *PROGRAM, *map(str, arguments)], stdout=told, stderr=told, start_new_session=True
        )
    try:
        until("a container runs", lambda: "enrolling" in log.read_text() or launch.poll() is not None)
        label = label_in(log.read_text())
        assert left_over(label, ["container"]) != []
        os.killpg(launch.pid, number)  # as a terminal does: to everything that was started, too
        assert launch.wait(120) not in (0, None)
    finally:
        launch.kill()
    assert left_over(label) == []
    assert not (tmp_path / "release").exists()


def test_kept_and_removed_by_the_line_that_it_prints(arguments: list[str | Path], tmp_path: Path) -> None:
    refused = run_synod(*arguments, "--keep")
    assert refused.returncode == 2
    assert "--state" in refused.stderr
    ran = run_synod(*arguments, "--state", tmp_path / "state", "--keep", seconds=300)
    assert ran.returncode == 0, ran.stderr
    (line,) = [line for line in ran.stdout.splitlines() if line.startswith("Remove all of it: ")]
    label = label_in(ran.stdout)
    try:
        assert read_status(tmp_path).stdout.startswith("survey: published")
        assert len(left_over(label, ["container"])) == 3
        (curator,) = docker("ps", "--quiet", "--filter", f"label={label}", "--filter", "name=-curator").split()
        docker("restart", curator)
        again = until("the curator is back at its port", lambda: (s := read_status(tmp_path)).returncode == 0 and s)
        assert again.stdout.startswith("survey: published")
    finally:
        subprocess.run(["sh", "-c", line.removeprefix("Remove all of it: ")], check=True, stdout=subprocess.DEVNULL)
    assert left_over(label) == []


def read_status(folder: Path) -> subprocess.CompletedProcess[str]:
    return run_synod("study", "status", "--config", folder / "state" / "operator.yaml")


def test_an_image_that_is_not_there(arguments: list[str | Path]) -> None:
    ran = run_synod(*arguments, "--image", "synod:no-such-version")
    assert ran.returncode == 2
    assert "the engine has no image synod:no-such-version." in ran.stderr
    assert "make image" in ran.stderr
    assert "synod.launch" not in ran.stdout
