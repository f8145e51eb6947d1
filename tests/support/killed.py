"""A run to be killed: its third point takes for ever. Run as a program by the test of it."""

import os
import sys
import time
from pathlib import Path

from bench.reproduction.points import Point
from bench.reproduction.runner import run_points

POINTS = [Point("cover", "NOCD", features=count) for count in range(10, 15)]
ENDLESS = 12


def measure_or_hang(point: Point, folder: Path | None) -> dict[str, float]:
    """Figures of the first points; at the endless one the worker leaves its process id and stays."""
    assert folder is not None
    if point.features == ENDLESS:
        (folder / "worker.new").write_text(str(os.getpid()), encoding="utf-8")
        (folder / "worker.new").rename(folder / "worker")
        time.sleep(600)
    return {"views": float(point.features)}


if __name__ == "__main__":
    here = Path(sys.argv[1])
    run_points(POINTS, here / "points.jsonl", here, commit="abc", workers=1, measure=measure_or_hang)
