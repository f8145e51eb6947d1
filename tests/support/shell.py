"""Runs what a page prints in bash: in a folder, bounded in time, and with nothing left running, however it ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from types import MappingProxyType

from synod.deploy.launch.interrupts import terminated_as_interrupted
from synod.deploy.launch.processes import Started

BIN = Path(sys.executable).parent
POLL_SECONDS = 0.2
PATIENCE = {signal.SIGINT: 40.0, signal.SIGTERM: 5.0, signal.SIGKILL: 5.0}
TOLD = 4000
NOTHING: Mapping[str, str] = MappingProxyType({})


@contextmanager
def started(
    script: str, folder: Path, environment: Mapping[str, str] = NOTHING, *, typed: str = ""
) -> Iterator[Started]:
    """Bash at work on a script, in a process group of its own that is ended at the end; stops at the first failure.

    What is `typed` comes in through a terminal, one line for each question as it is asked: a command before it would
    take what is typed too early. Where nothing is, there is no terminal.
    """
    keyboard, stdin = os.openpty() if typed else (None, subprocess.DEVNULL)
    log = folder.parent / f"{folder.name}-{time.monotonic_ns()}.told"
    with log.open("wb") as told, terminated_as_interrupted():  # it hears Ctrl-C, as in a terminal
        process = subprocess.Popen(
            ["bash", "-e", "-c", script],
            cwd=folder,
            env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "COLUMNS": "200", **environment},
            stdin=stdin,
            stdout=told,
            stderr=told,
            start_new_session=True,
        )
    try:
        if keyboard is not None:
            os.close(stdin)
            Thread(target=_answer, args=(process, log, keyboard, typed), daemon=True).start()
        yield Started("bash", process, log)
    finally:
        end_group(process)
        if keyboard is not None:
            os.close(keyboard)


def _answer(process: "subprocess.Popen[bytes]", log: Path, keyboard: int, typed: str) -> None:
    """Types the next line at every question, which is a last line that ends with a colon, until the process ends."""
    answered = 0
    lines = typed.splitlines(keepends=True)
    seen = 0
    while process.poll() is None and answered < len(lines):
        told = log.read_bytes()
        if len(told) > seen and told.rstrip(b" ").endswith(b":"):
            os.write(keyboard, lines[answered].encode())
            answered, seen = answered + 1, len(told) + 1  # the space after the colon may still come
        time.sleep(POLL_SECONDS)


def end_group(process: "subprocess.Popen[bytes]") -> None:
    """Ends all processes of a group as Ctrl-C and a lost patience would."""
    for number, seconds in PATIENCE.items():
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        if _is_gone(process, seconds):
            return
    raise AssertionError("a process of the page cannot be ended")


def _is_gone(process: "subprocess.Popen[bytes]", seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        process.poll()
        if not _is_alive(process.pid):
            return True
        time.sleep(POLL_SECONDS)
    return False


def _is_alive(group: int) -> bool:
    """Whether a process of the group still runs; one that has ended and that nobody waited for does not."""
    told = subprocess.run(["ps", "-A", "-o", "pgid=,stat="], capture_output=True, text=True, check=True).stdout
    return any(
        number == str(group) and not state.startswith("Z") for number, state in map(str.split, told.splitlines())
    )


def run(
    script: str,
    folder: Path,
    environment: Mapping[str, str] = NOTHING,
    *,
    seconds: float = 120.0,
    typed: str = "",
) -> str:
    """Runs a script to its end, which must be a good one, and returns what it said."""
    with started(script, folder, environment, typed=typed) as bash:
        try:
            code = bash.process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = -1
        told = bash.log.read_text(errors="replace")
    assert code == 0, f"{script}\nended with {code}:\n{told[-TOLD:]}"
    return told


def run_until(
    script: str,
    folder: Path,
    done: Callable[[str], bool],
    environment: Mapping[str, str] = NOTHING,
    *,
    seconds: float = 120.0,
) -> str:
    """Runs a script whose last command goes on until it is interrupted: as soon as what it said is what was awaited."""
    end = time.monotonic() + seconds
    with started(script, folder, environment) as bash:
        while not done(told := bash.log.read_text(errors="replace")):
            assert bash.process.poll() is None, f"{script}\nended by itself:\n{told[-TOLD:]}"
            assert time.monotonic() < end, f"{script}\nwaited in vain:\n{told[-TOLD:]}"
            time.sleep(POLL_SECONDS)
    return bash.log.read_text(errors="replace")
