"""The rivals of the papers' figures, measured; not private across parties, in memory.

Usage: python -m bench.rivals [--data DIR] [--table nltcs] [--rival NAME ...] [--order 3 ...] [--epsilon 0.2 ...]
       [--bits] [--runs 5]

Every finished point is a line of the results file, the same as that of `bench.reproduction`, so that a run that was
ended goes on where it was. The last line that is printed is one JSON object.
"""

import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import click

from bench.reproduction.__main__ import RESULTS, read_commit
from bench.reproduction.experiments.plans import CONSISTENT_COVERS, PRIVIEW
from bench.reproduction.points import Point
from bench.reproduction.runner import run_points
from bench.reproduction.store import Result, read_results
from bench.reproduction.summary import Estimate, estimate
from bench.reproduction.tables import MADE_SIZES, source_of
from bench.rivals import LABEL
from bench.rivals.catalog import CLASSIFIERS, RIVALS
from synod.common.runtime.errors import invalid
from synod.deploy.cli.terminal import command, say

BASES = ("Uniform", "Majority")
"""What ratios are over: what knows nothing of the rows, or next to nothing."""
Found = dict[tuple[str, str, str], Estimate]
"""Rival, metric and epsilon."""


def list_points(
    table: str,
    source: str,
    rivals: Sequence[str],
    orders: Sequence[int],
    epsilons: Sequence[str],
    runs: int,
    *,
    bits: bool,
) -> list[Point]:
    """Every rival at every epsilon: for each order, or, of bits and of classifiers, all at once."""
    points = []
    for seed, epsilon, rival in product(range(runs), epsilons, rivals):
        kind = "rival-trained" if rival in CLASSIFIERS else "rival-bits" if bits else "rival"
        settings = [str(order) for order in orders] if kind == "rival" else [""]
        points += [Point(kind, rival, table, source, 1, epsilon, setting=own, seed=seed) for own in settings]
    return points


def choose_rivals(named: Sequence[str], *, bits: bool) -> list[str]:
    """Those that are named, or all that answer marginals; on bits, those that need bits."""
    known = [*PRIVIEW, *CONSISTENT_COVERS] if bits else [*RIVALS]
    if unknown := [name for name in named if name not in {*known, *CLASSIFIERS}]:
        raise invalid(f"there is no rival {unknown[0]!r} here.", f"Name any of: {'; '.join([*known, *CLASSIFIERS])}.")
    return list(named) or known


def summarize(results: Sequence[Result]) -> Found:
    """Mean and standard error over the runs of each rival, metric and epsilon."""
    values: dict[tuple[str, str, str], list[float]] = {}
    for result in results:
        for metric, value in result.figures.items():
            values.setdefault((result.point.method, metric, result.point.epsilon), []).append(value)
    return {key: estimate(found) for key, found in values.items()}


def find_ratio(found: Found, rival: str, metric: str, epsilon: str) -> float | None:
    """A rival's number over that of the base at the same epsilon, where the base was measured."""
    bases = [found[base, metric, epsilon] for base in BASES if (base, metric, epsilon) in found]
    return found[rival, metric, epsilon].mean / bases[0].mean if bases and bases[0].mean else None


def describe(found: Found) -> list[str]:
    """A line for each number, with its ratio."""
    lines = []
    for (rival, metric, epsilon), own in found.items():
        ratio = find_ratio(found, rival, metric, epsilon)
        beside = "" if ratio is None else f", {ratio:.3f} of {' or '.join(BASES)}"
        lines.append(
            f"{metric} at epsilon {epsilon}, {rival}: {own.mean:.4f} ± {own.error:.4f} ({own.runs} runs){beside}"
        )
    return sorted(lines)


def to_json(table: str, found: Found) -> dict[str, object]:
    """All numbers in one object."""
    rows = [
        {
            "rival": rival,
            "metric": metric,
            "epsilon": epsilon,
            "mean": own.mean,
            "error": own.error,
            "runs": own.runs,
            "ratio": find_ratio(found, rival, metric, epsilon),
        }
        for (rival, metric, epsilon), own in found.items()
    ]
    return {"private": False, "note": LABEL, "table": table, "figures": rows}


@click.command()
@click.option("--data", type=click.Path(path_type=Path, file_okay=False, exists=True), help="The papers' tables.")
@click.option("--table", default="nltcs", type=click.Choice(sorted(MADE_SIZES)), show_default=True)
@click.option("--rival", "rivals", multiple=True, help="All that answer marginals, unless named.")
@click.option("--order", "orders", multiple=True, default=[3], type=click.IntRange(1, 6), show_default=True)
@click.option("--epsilon", "epsilons", multiple=True, default=["0.2", "0.8"], show_default=True)
@click.option("--bits", is_flag=True, help="Bits of codes, 2- and 3-way: for PriView on tables that are not binary.")
@click.option("--runs", default=5, show_default=True, type=click.IntRange(1))
@click.option("--results", default=RESULTS / "points.jsonl", type=click.Path(path_type=Path), help="Finished points.")
@click.option("--workers", default=2, show_default=True)
@command
def main(
    data: Path | None,
    table: str,
    rivals: tuple[str, ...],
    orders: tuple[int, ...],
    epsilons: tuple[str, ...],
    bits: bool,
    runs: int,
    results: Path,
    workers: int,
) -> None:
    """Measures rivals on one table."""
    say(f"Reads rows: {LABEL}.")
    if data is None:
        say("No --data was given: the table is made here in the paper's shape and is not the paper's data.")
    named = choose_rivals(rivals, bits=bits)
    points = list_points(table, source_of(table, data), named, orders, epsilons, runs, bits=bits)
    run_points(points, results, data, commit=read_commit(), workers=workers)
    done = read_results(results)
    found = summarize([done[point.key] for point in points])
    for line in describe(found):
        say(line)
    click.echo(json.dumps(to_json(table, found)))


if __name__ == "__main__":
    main()
