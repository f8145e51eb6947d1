"""`make bench` and `make bench-quick`: measures what is missing, then writes figures and page.

Usage: python -m bench.reproduction [--data DIR] [--quick] [--page-only] [--out DIR]
"""

import os
import subprocess
from pathlib import Path

import click

from bench.reproduction.points import full_grid, quick_grid
from bench.reproduction.runner import run_points
from bench.reproduction.tables import source_of
from deploy.terminal import command, say

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"


def read_commit() -> str:
    """The commit of the code that measures, with a mark where the code is not what was committed."""
    commit, changes = ask_git("rev-parse", "--short=10", "HEAD"), ask_git("status", "--porcelain", "--", "*.py")
    return (commit or "unknown") + ("+changes" if changes else "")


def ask_git(*arguments: str) -> str:
    """What git says about this folder; nothing where there is no git."""
    git = ("git", "-C", str(ROOT), *arguments)
    ran = subprocess.run(git, capture_output=True, text=True, check=False)  # noqa: S603  (our own arguments)
    return ran.stdout.strip()


@click.command()
@click.option("--data", type=click.Path(path_type=Path, file_okay=False, exists=True), help="The papers' tables.")
@click.option("--quick", is_flag=True, help="A few points, on a made table.")
@click.option("--workers", default=min(2, os.cpu_count() or 1), show_default=True)
@click.option("--nltcs-runs", default=5, show_default=True)
@click.option("--adult-runs", default=2, show_default=True)
@command
def main(data: Path | None, quick: bool, workers: int, nltcs_runs: int, adult_runs: int) -> None:
    """Measures the papers' claims again."""
    say("Reads rows: these figures are not private.")
    grid = quick_grid() if quick else full_grid(nltcs_runs, adult_runs)
    points = grid.points({table: source_of(table, data) for table in grid.runs})
    run_points(points, RESULTS / "points.jsonl", data, commit=read_commit(), workers=workers)


if __name__ == "__main__":
    main()
