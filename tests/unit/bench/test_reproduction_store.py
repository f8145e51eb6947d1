"""Results on disk: a run that was stopped goes on where it was, and loses no finished point."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.reproduction.points import Point
from bench.reproduction.runner import run_points
from bench.reproduction.store import Result, append_result, missing_points, read_results
from tests.support import killed

ROOT = Path(__file__).resolve().parents[3]
POINTS = [Point("cover", "NOCD", features=count) for count in range(10, 16)]


def result(point: Point, value: float = 1.0) -> Result:
    return Result(point, {"views": value}, "abc", "2026-01-01")


def measure_and_note(point: Point, folder: Path | None) -> dict[str, float]:
    """Leaves a trace of each call; stops at a point that a file names."""
    assert folder is not None
    if (folder / f"stop-{point.features}").exists():
        raise RuntimeError
    with (folder / "calls").open("a", encoding="utf-8") as file:
        file.write(f"{point.features}\n")
    return {"views": float(point.features)}


def calls(folder: Path) -> list[int]:
    path = folder / "calls"
    return sorted(map(int, path.read_text(encoding="utf-8").split())) if path.exists() else []


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "new" / "points.jsonl"
    for point in POINTS[:2]:
        append_result(path, result(point))
    assert list(read_results(path).values()) == [result(point) for point in POINTS[:2]]
    assert missing_points(POINTS, read_results(path)) == POINTS[2:]


def test_the_last_result_of_a_point_counts(tmp_path: Path) -> None:
    path = tmp_path / "points.jsonl"
    append_result(path, result(POINTS[0], 1))
    append_result(path, result(POINTS[0], 2))
    assert read_results(path)[POINTS[0].key].figures == {"views": 2}


@pytest.mark.parametrize("kept", [1, 20, 60])
def test_a_torn_line_costs_only_its_own_point(kept: int, tmp_path: Path) -> None:
    path = tmp_path / "points.jsonl"
    append_result(path, result(POINTS[0]))
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:kept])
    append_result(path, result(POINTS[1]))
    assert list(read_results(path)) == [POINTS[0].key, POINTS[1].key]


def test_a_run_measures_only_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "points.jsonl"
    for point in POINTS[:4]:
        append_result(path, result(point))
    ran = run_points(POINTS, path, tmp_path, commit="abc", workers=1, measure=measure_and_note)
    assert (ran, calls(tmp_path)) == (2, [14, 15])
    assert run_points(POINTS, path, tmp_path, commit="abc", workers=1, measure=measure_and_note) == 0
    assert calls(tmp_path) == [14, 15]


def test_a_run_that_ends_in_the_middle_keeps_what_was_done(tmp_path: Path) -> None:
    path = tmp_path / "points.jsonl"
    (tmp_path / "stop-13").touch()
    with pytest.raises(RuntimeError):
        run_points(POINTS, path, tmp_path, commit="abc", workers=1, measure=measure_and_note)
    kept = {result.point.features for result in read_results(path).values()}
    assert {10, 11, 12} <= kept
    before = calls(tmp_path)
    (tmp_path / "stop-13").unlink()
    run_points(POINTS, path, tmp_path, commit="abc", workers=1, measure=measure_and_note)
    assert {result.point.features for result in read_results(path).values()} == set(range(10, 16))
    again = [count for count in calls(tmp_path) if calls(tmp_path).count(count) > 1]
    assert not set(again) & kept, before
    assert all(found.figures == {"views": found.point.features} for found in read_results(path).values())


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.05)


def is_gone(worker: int) -> bool:
    try:
        os.kill(worker, 0)
    except ProcessLookupError:
        return True
    state = Path(f"/proc/{worker}/stat")
    return state.exists() and state.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"


def test_a_killed_run_loses_only_its_running_point_and_leaves_no_worker(tmp_path: Path) -> None:
    run = subprocess.Popen([sys.executable, "-m", "tests.support.killed", str(tmp_path)], cwd=ROOT)
    try:
        wait_until((tmp_path / "worker").exists)
        wait_until(lambda: len(read_results(tmp_path / "points.jsonl")) == 2)
    finally:
        run.send_signal(signal.SIGKILL)
        run.wait()
    worker = int((tmp_path / "worker").read_text(encoding="utf-8"))
    wait_until(lambda: is_gone(worker))
    done = read_results(tmp_path / "points.jsonl")
    assert [point.features for point in missing_points(killed.POINTS, done)] == [12, 13, 14]


def test_progress_is_plain_lines_where_there_is_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_points(POINTS[:2], tmp_path / "p.jsonl", tmp_path, commit="abc", workers=1, measure=measure_and_note)
    assert capsys.readouterr().out.splitlines() == [
        "1 of 2: cover NOCD 10 features seed 0",
        "2 of 2: cover NOCD 11 features seed 0",
    ]
