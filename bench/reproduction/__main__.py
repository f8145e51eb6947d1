"""`make bench` and `make bench-quick`: measures what is missing, then writes figures and page.

Usage: python -m bench.reproduction [--data DIR] [--quick] [--page-only] [--out DIR] [--only KIND ...] [--first-seed N]
"""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import click

from bench.reproduction.grid import KINDS, Grid, full_grid, quick_grid
from bench.reproduction.page import FOLDER, write_page
from bench.reproduction.plots import draw_figures
from bench.reproduction.runner import run_points
from bench.reproduction.store import Result, read_results
from bench.reproduction.summary import (
    RUN_FILE,
    Figures,
    Run,
    merge_figures,
    read_figures,
    summarize,
    write_figures,
)
from bench.reproduction.tables import MADE, source_of
from synod.deploy.cli.terminal import command, say
from synod.deploy.evaluate.classifiers import require_classifier
from synod.deploy.evaluate.plot import require_plot

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
RESULTS = ROOT / "bench" / "results"


def read_commit() -> str:
    """The commit of the code that measures, with a mark where the code is not what was committed."""
    commit, changes = ask_git("rev-parse", "--short=10", "HEAD"), ask_git("status", "--porcelain", "--", "*.py")
    return (commit or "unknown") + ("+changes" if changes else "")


def ask_git(*arguments: str) -> str:
    """What git says about this folder; nothing where there is no git."""
    git = ("git", "-C", str(ROOT), *arguments)
    try:
        ran = subprocess.run(git, capture_output=True, text=True, check=False)  # noqa: S603  (our own arguments)
    except OSError:
        return ""
    return ran.stdout.strip()


def describe_run(grid: Grid, results: list[Result], source: str, command_line: str) -> Run:
    """What made the results, for the page."""
    return Run(
        source,
        command_line,
        tuple(sorted({result.commit for result in results})),
        tuple(sorted({result.date for result in results})),
        dict(grid.runs),
        os.cpu_count() or 1,
    )


def choose_out(out: Path | None, data: Path | None, *, quick: bool) -> Path:
    """Only the papers' own tables may change the committed page."""
    if out is not None:
        return out
    if data is not None:
        return DOCS
    return RESULTS / ("quick" if quick else MADE)


@click.command()
@click.option("--data", type=click.Path(path_type=Path, file_okay=False, exists=True), help="The papers' tables.")
@click.option("--quick", is_flag=True, help="A few points, on a made table.")
@click.option("--page-only", is_flag=True, help="Rewrite the page from the CSV files; measure nothing.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Where page and figures go.")
@click.option("--results", default=RESULTS / "points.jsonl", type=click.Path(path_type=Path), help="Finished points.")
@click.option("--only", multiple=True, type=click.Choice(KINDS), help="Measure these; other numbers stay.")
@click.option("--workers", default=min(2, os.cpu_count() or 1), show_default=True)
@click.option("--nltcs-runs", default=5, show_default=True)
@click.option("--adult-runs", default=5, show_default=True)
@click.option("--first-seed", default=0, show_default=True, help="Add to as many runs that the CSV files have.")
@command
def main(
    data: Path | None,
    quick: bool,
    page_only: bool,
    out: Path | None,
    results: Path,
    only: tuple[str, ...],
    workers: int,
    nltcs_runs: int,
    adult_runs: int,
    first_seed: int,
) -> None:
    """Measures the papers' claims again."""
    folder = choose_out(out, None if quick else data or (DOCS if page_only else None), quick=quick)
    if not page_only:
        require_classifier()
        require_plot(RESULTS.parent / "any.png")
        grid = quick_grid() if quick else full_grid(nltcs_runs, adult_runs)
        grid = replace(grid, kinds=only, first_seed=first_seed)
        measure_grid(grid, None if quick else data, folder, results, workers=workers)
    say(f"Wrote {write_page(read_figures(folder / FOLDER), folder)}")


def measure_grid(grid: Grid, data: Path | None, folder: Path, results: Path, *, workers: int) -> None:
    """Measures what is missing, and writes CSV files and plots of the whole grid."""
    say("Reads rows: these figures are not private.")
    if data is None:
        say("No DATA was given: the tables are made here in the papers' shapes and are not the papers' data.")
    points = grid.points({table: source_of(table, data) for table in grid.runs})
    run_points(points, results, data, commit=read_commit(), workers=workers)
    done = read_results(results)
    found = [done[point.key] for point in points]
    source, line = (MADE, "make bench") if data is None else ("given", "make bench DATA=DIR")
    figures = Figures(summarize(found), describe_run(grid, found, source, line))
    if (grid.kinds or grid.first_seed) and (folder / FOLDER / RUN_FILE).exists():
        figures = merge_figures(read_figures(folder / FOLDER), figures, first_seed=grid.first_seed)
    write_figures(figures, folder / FOLDER)
    for path in draw_figures(read_figures(folder / FOLDER), folder / FOLDER):
        say(f"Wrote {path}")


if __name__ == "__main__":
    main()
