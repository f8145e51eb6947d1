"""Results on disk: one line a finished point, so that a run that was killed goes on where it was.

A line is written whole and flushed before the next; what a kill left of a line is skipped when reading.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.reproduction.points import Point


@dataclass(frozen=True, slots=True)
class Result:
    """A point with its figures (none where it was refused), and the commit of the code that measured it."""

    point: Point
    figures: dict[str, float]
    commit: str
    date: str


def read_results(path: Path) -> dict[str, Result]:
    """All whole results by their point's key; of several for one key, the last."""
    if not path.exists():
        return {}
    found: dict[str, Result] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            data = json.loads(line)
            result = Result(Point(**data["point"]), data["figures"], data["commit"], data["date"])
        except (ValueError, KeyError, TypeError):
            continue
        found[result.point.key] = result
    return found


def append_result(path: Path, result: Result) -> None:
    """Adds one line; a torn line before it is closed first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    is_torn = path.exists() and path.stat().st_size > 0 and not path.read_bytes().endswith(b"\n")
    line = json.dumps(asdict(result), sort_keys=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(f"\n{line}\n" if is_torn else f"{line}\n")
        file.flush()
        os.fsync(file.fileno())


def missing_points(points: Iterable[Point], done: dict[str, Result]) -> list[Point]:
    """The points that have no result yet, in order."""
    return [point for point in points if point.key not in done]
