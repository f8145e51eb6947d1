"""Units: inputs that reach lines of the program which no other input does, kept from one run for the next ones.

They need no atheris: lines are traced, which makes a run some ten times slower, so that only runs that keep units do.
"""

import hashlib
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any

from tests.support.fuzz.runs import run_once
from tests.support.fuzz.targets import TARGETS, seeds

LARGEST_UNIT_BYTES = 8 << 10
MOST_BYTES_OF_A_TARGET = 128 << 10
PROGRAM = "/synod/"
Lines = frozenset[tuple[str, int]]


def lines_of(read: Callable[[bytes], None], data: bytes) -> Lines:
    """The lines of the program that reading the data reaches; raises what `run_once` raises."""
    reached: set[tuple[str, int]] = set()

    def trace_lines(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            reached.add((frame.f_code.co_filename, frame.f_lineno))
        return trace_lines

    def trace_calls(frame: FrameType, event: str, _: Any) -> Any:
        return trace_lines if PROGRAM in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(trace_calls)
    try:
        run_once(read, data)
    finally:
        sys.settrace(before)
    return frozenset(reached)


def read_units(folder: Path) -> list[bytes]:
    """The units in a folder, the smallest first; what is too large for one is not read."""
    paths = [path for path in folder.glob("*") if path.stat().st_size <= LARGEST_UNIT_BYTES]
    return sorted((path.read_bytes() for path in paths), key=lambda data: (len(data), data))


class Units:
    """The units of one target, in a folder that is theirs alone."""

    def __init__(self, name: str, folder: Path) -> None:
        self._read = TARGETS[name]
        self._folder = folder / name
        self._folder.mkdir(parents=True, exist_ok=True)
        self._known = self._reach(seeds(name))
        self.kept: list[bytes] = []
        for data in read_units(self._folder):
            self.offer(data)
        for path in self._folder.iterdir():  # those that reached nothing that is not reached by smaller ones
            if path.name not in {_name(data) for data in self.kept}:
                path.unlink()

    def _reach(self, inputs: Iterable[bytes]) -> set[tuple[str, int]]:
        return {line for data in inputs for line in lines_of(self._read, data)}

    def offer(self, data: bytes) -> None:
        """Reads the data, and keeps it if it reaches a new line and there is room; raises what `run_once` raises."""
        new = lines_of(self._read, data) - self._known
        size = sum(map(len, self.kept)) + len(data)
        if not new or len(data) > LARGEST_UNIT_BYTES or size > MOST_BYTES_OF_A_TARGET:
            return
        self._known |= new
        self.kept.append(data)
        (self._folder / _name(data)).write_bytes(data)


def _name(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
