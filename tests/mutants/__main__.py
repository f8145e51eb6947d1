"""`make mutants`: breaks the program in each of the listed ways, and sees that a test fails each time.

Every worker has a copy of the tree in a temporary folder, in which it makes one edit at a time and takes it back; the
clone itself is never touched. All named tests must pass in an unaltered copy, or they would find anything.
"""

import argparse
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tests.mutants.edit import Edit, apply
from tests.mutants.edits import EDITS

ROOT = Path(__file__).resolve().parents[2]
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv", ".hypothesis", ".*_cache", "__pycache__", "build", "dist", "results"
)
MOST_SECONDS = 300
MOST_SECONDS_UNALTERED = 2400
PASSED, FAILED = 0, 1  # exit codes of pytest; with others no test has said anything


class Verdict(Enum):
    """What became of an edit. All but `KILLED` fail the run."""

    KILLED = "killed"
    SURVIVED = "SURVIVED"
    BROKEN = "BROKEN: no test ran"
    LATE = "LATE: the tests did not end in time"


@dataclass(frozen=True, slots=True)
class Result:
    """An edit, what became of it, and how long that took."""

    edit: Edit
    verdict: Verdict
    seconds: float


class Copy:
    """A copy of the tree, in which one file at a time is another."""

    def __init__(self, folder: Path) -> None:
        shutil.copytree(ROOT, folder, symlinks=True, ignore=NOT_COPIED)
        self._folder = folder
        self._stamp = int(time.time())

    def try_out(self, edit: Edit) -> Result:
        """Makes the edit, runs its tests, and takes it back."""
        path = self._folder / edit.file
        text = path.read_text()
        started = time.monotonic()
        try:
            self._write(path, apply(edit, text))
            verdict = _judge(self.run(edit.tests, MOST_SECONDS))
        finally:
            self._write(path, text)
        return Result(edit, verdict, time.monotonic() - started)

    def run(self, tests: Sequence[str], seconds: float) -> int | None:
        """The exit code of pytest over these tests, in the copy; None if it had to be stopped."""
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-n0", "-m", "not slow and not docker", *tests]
        process = subprocess.Popen(
            [*command, "-p", "no:cacheprovider"],
            cwd=self._folder,
            env={**os.environ, "PYTHONPATH": str(self._folder)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _write(self, path: Path, text: str) -> None:
        """Python takes compiled code for current if size and whole second agree, so each writing has its own second."""
        self._stamp += 1
        path.write_text(text)
        os.utime(path, (self._stamp, self._stamp))


def _judge(exit_code: int | None) -> Verdict:
    if exit_code is None:
        return Verdict.LATE
    return {PASSED: Verdict.SURVIVED, FAILED: Verdict.KILLED}.get(exit_code, Verdict.BROKEN)


def main(arguments: Sequence[str]) -> int:
    """Tries all edits, or those whose file or description has one of the words."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=main.__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(arguments)
    edits = [
        one for one in EDITS if not options.words or any(word in f"{one.file} {one.breaks}" for word in options.words)
    ]
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        return _try_all(edits, Path(folder), options.workers)


def _try_all(edits: Sequence[Edit], folder: Path, workers: int) -> int:
    started = time.monotonic()
    copies: queue.Queue[Copy] = queue.Queue()
    for number in range(workers):
        copies.put(Copy(folder / str(number)))

    def pass_unaltered() -> bool:
        with _taken(copies) as copy:
            return copy.run(sorted({test for edit in edits for test in edit.tests}), MOST_SECONDS_UNALTERED) == PASSED

    def try_out(edit: Edit) -> Result:
        with _taken(copies) as copy:
            result = copy.try_out(edit)
        _say(f"{result.seconds:6.1f} s  {result.verdict.value}: {edit.file}: {edit.breaks}")
        return result

    with ThreadPoolExecutor(workers) as pool:
        unaltered = pool.submit(pass_unaltered)
        results = list(pool.map(try_out, edits))
    left = [result for result in results if result.verdict is not Verdict.KILLED]
    _say(f"{len(results) - len(left)} of {len(results)} edits were found, in {time.monotonic() - started:.0f} s.")
    for result in left:
        _say(f"{result.verdict.value}: {result.edit.file}: {result.edit.breaks}")
    if not unaltered.result():
        _say("The tests do not pass in an unaltered copy of the tree, so this says nothing.")
    return 1 if left or not unaltered.result() else 0


@contextmanager
def _taken(copies: "queue.Queue[Copy]") -> Iterator[Copy]:
    """A copy that nobody else has meanwhile."""
    copy = copies.get()
    try:
        yield copy
    finally:
        copies.put(copy)


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
