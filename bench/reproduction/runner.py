"""Runs the missing points of a grid in a few processes; each result is on disk before the next line is printed."""

import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from bench.reproduction.measure import Figures, measure_point
from bench.reproduction.points import Point
from bench.reproduction.store import Result, append_result, missing_points, read_results
from synod.deploy.cli.terminal import screen

Measure = Callable[[Point, Path | None], Figures]
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def run_points(
    points: list[Point],
    results: Path,
    folder: Path | None,
    *,
    commit: str,
    workers: int,
    measure: Measure = measure_point,
) -> int:
    """Measures what has no result yet, and returns how many points that were."""
    missing = missing_points(points, read_results(results))
    if not missing:
        return 0
    for name in THREADS:  # each worker is one core's work; read when a spawned worker loads numpy
        os.environ.setdefault(name, "1")
    context = multiprocessing.get_context("spawn")
    with show_progress(len(points), len(points) - len(missing)) as report:
        pool = ProcessPoolExecutor(workers, mp_context=context, initializer=end_with_parent)
        try:
            futures = {pool.submit(measure, point, folder): point for point in missing}
            for future in as_completed(futures):
                _keep(results, futures[future], future, commit)
                report(futures[future])
        finally:
            pool.shutdown(cancel_futures=True)
    return len(missing)


def end_with_parent() -> None:
    """A worker whose parent was killed would wait for work for ever; this ends it."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def _keep(results: Path, point: Point, future: "Future[Figures]", commit: str) -> None:
    now = datetime.now(UTC).strftime("%Y-%m-%d")
    append_result(results, Result(point, future.result(), commit, now))


@contextmanager
def show_progress(total: int, done: int) -> Iterator[Callable[[Point], None]]:
    """A bar on a terminal, plain lines elsewhere."""
    if screen.is_terminal:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=screen) as bar:
            task = bar.add_task("measuring", total=total, completed=done)
            yield lambda point: bar.update(task, advance=1, description=describe(point))
        return
    count = done

    def report(point: Point) -> None:
        nonlocal count
        count += 1
        print(f"{count} of {total}: {describe(point)}", flush=True)

    yield report


def describe(point: Point) -> str:
    """A point in a few words."""
    parts = [point.kind, point.table, point.method]
    parts += [f"K {point.parties}"] if point.parties else []
    parts += [f"epsilon {point.epsilon}"] if point.epsilon else []
    parts += [f"c {point.contribution}"] if point.contribution else []
    parts += [f"{point.features} features"] if point.features else []
    return " ".join([*filter(None, parts), f"seed {point.seed}"])
