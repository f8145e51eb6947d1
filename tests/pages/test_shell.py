"""The shell that the pages are run in: it stops at a failure, it is bounded, and nothing outlives it."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.shell import run, run_until, started


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


@pytest.fixture
def nap() -> str:
    """A command that goes on for hours, and is like no other that runs here."""
    return f"sleep 43210.{int.from_bytes(os.urandom(6))}"


def napping(nap: str) -> list[str]:
    listed = subprocess.run(["ps", "-A", "-o", "stat=,args="], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if nap in line and not line.startswith("Z")]


def test_a_failure_in_the_middle_is_a_failure(here: Path) -> None:
    assert run("echo one\necho two > file", here) == "one\n"
    with pytest.raises(AssertionError, match="ended with 1"):
        run("echo one\nfalse\necho two > late", here)
    assert not (here / "late").exists()


@pytest.mark.parametrize("end", ["false", "NAP"])
def test_what_runs_in_the_background_is_ended_with_it(
    here: Path, nap: str, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience = {signal.SIGINT: 0.3, signal.SIGTERM: 0.3, signal.SIGKILL: 10.0}
    monkeypatch.setattr("tests.support.shell.PATIENCE", patience)
    script = f"NAP &\n(trap '' INT TERM; exec NAP) &\nsleep 0.5\n{end}".replace("NAP", nap)
    with pytest.raises(AssertionError, match="ended with"):
        run(script, here, seconds=1.5)
    assert napping(nap) == []


def test_what_goes_on_for_ever_is_interrupted_once_it_has_said_enough(here: Path, nap: str) -> None:
    assert run_until(f"echo begun\n{nap}", here, lambda told: "begun" in told) == "begun\n"
    assert napping(nap) == []


def test_it_hears_ctrl_c_where_whoever_runs_the_tests_does_not(here: Path, nap: str) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with started(f"exec {nap}", here) as bash:
            pass
    finally:
        signal.signal(signal.SIGINT, before)
    assert bash.process.wait(10) == -signal.SIGINT


@pytest.mark.parametrize(("script", "why"), [("echo no", "ended by itself"), ("NAP", "waited in vain")])
def test_what_never_says_it_is_not_waited_for(here: Path, nap: str, script: str, why: str) -> None:
    with pytest.raises(AssertionError, match=why):
        run_until(script.replace("NAP", nap), here, lambda told: "yes" in told, seconds=1.0)
    assert napping(nap) == []
