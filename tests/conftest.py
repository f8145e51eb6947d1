"""What some tests need, and skip without, saying why: the image in a Docker engine, and a PostgreSQL server."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.databases import Server, running_server

ROOT = Path(__file__).resolve().parents[1]
BUILD_SECONDS = 1200


@pytest.fixture(scope="session")
def engine() -> None:
    """Skips without a Docker engine."""
    if shutil.which("docker") is None:
        pytest.skip("there is no `docker` command here")
    if subprocess.run(["docker", "version"], capture_output=True, timeout=60, check=False).returncode:
        pytest.skip("the Docker engine cannot be reached")


@pytest.fixture(scope="session")
def image(engine: None) -> None:
    """Builds the image as `make image` does; the engine's cache makes the second time quick."""
    subprocess.run([ROOT / "deploy" / "base-image"], check=True, timeout=BUILD_SECONDS)
    built = subprocess.run(["make", "image"], cwd=ROOT, capture_output=True, timeout=BUILD_SECONDS, check=False)
    assert built.returncode == 0, built.stderr.decode()[-4000:]


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """A PostgreSQL server; skips where none is installed."""
    with running_server() as server:
        yield server
