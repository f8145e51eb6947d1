"""A clone to follow the pages in, and a check that a test runs all that it has taken."""

import shutil
import socket
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.support.pages import ROOT, Blocks
from tests.support.shell import BIN


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A copy of all files that git tracks, with this installation as its `.venv`."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is no git checkout, so it cannot be told what a clone would hold")
    clone = tmp_path / "clone"
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).exists():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, clone / name, follow_symlinks=False)
    (clone / ".venv").mkdir()
    (clone / ".venv" / "bin").symlink_to(BIN)
    (clone / ".venv" / ".installed").touch()
    return clone


@pytest.fixture
def port() -> int:
    """A port that nobody had a moment ago, for where a page says 7443."""
    with socket.socket() as taken:
        taken.bind(("", 0))
        return int(taken.getsockname()[1])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Function) -> Generator[None, None, None]:
    """A test that has come to a good end must have run every block that it took."""
    yield
    taken = item.callspec.params.values() if hasattr(item, "callspec") else ()
    assert [blocks.left for blocks in taken if isinstance(blocks, Blocks) and blocks.left] == []
