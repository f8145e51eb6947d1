"""Results as figures: mean and standard error over the runs of each setting, in one CSV file a figure.

Everything after this reads the CSV files and `run.json`, so that page and plots cannot differ from what is committed.
"""

import csv
import json
import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bench.reproduction.experiments.plans import ENCODINGS, EXACT_NETWORK, EXACT_TABLES, PRIVBAYES
from bench.reproduction.points import USUAL_EPSILON, USUAL_PARTIES, Point
from bench.reproduction.store import Result
from synod.common.runtime.errors import invalid

RUN_FILE = "run.json"
BASELINES = {"real": "no privacy", "majority": "majority"}


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over runs with its standard error, which is 0 where there was one run."""

    mean: float
    error: float
    runs: int


@dataclass(frozen=True, slots=True)
class Row:
    """One number of a figure; `x` is where it stands on the figure's axis."""

    table: str
    method: str
    x: float
    metric: str
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class Figure:
    """What a figure shows: which results it takes, what its axis is, which of their numbers it keeps, and whose line
    a result belongs to.
    """

    axis: str
    takes: Callable[[Result], bool]
    keeps: Callable[[str], bool]
    name: Callable[[Point], str] = lambda point: point.method


def _is_quality(metric: str) -> bool:
    return metric.startswith(("tvd", "wrong ", "real ", "majority "))


def _is_size(metric: str) -> bool:
    return metric in {"bytes", "paper_bytes"}


def _has_components(metric: str) -> bool:
    return metric in {"tvd2", "components", "first"} or metric.startswith(("wrong ", "real "))


def _is_release(result: Result) -> bool:
    return result.point.kind == "release" and not result.point.contribution


def _is_message(result: Result) -> bool:
    """DP-CCBN's messages come from its candidates, also where it was not run."""
    kind, method = result.point.kind, result.point.method
    return kind == "candidates" or (_is_release(result) and method != "dp-ccbn")


def _at_usual_parties(result: Result) -> bool:
    return result.point.parties == USUAL_PARTIES


def _at_usual_epsilon(result: Result) -> bool:
    return result.point.epsilon == USUAL_EPSILON


def _is_of(kind: str, *methods: str) -> Callable[[Result], bool]:
    """Results of an experiment; of these methods alone, where any are named."""
    return lambda result: result.point.kind == kind and (not methods or result.point.method in methods)


def _is_distance(metric: str) -> bool:
    return metric.startswith("tvd")


def _is_tuned(metric: str) -> bool:
    """The distances, and the one classification task that the PrivBayes paper tunes by on each table."""
    return _is_distance(metric) or metric in {"wrong outside", "wrong gender"}


def _is_any(metric: str) -> bool:
    return bool(metric)


def _with_epsilon(point: Point) -> str:
    return f"{point.method}, ε = {point.epsilon}"


def _is_rival(result: Result) -> bool:
    return _is_of("rival")(result) or _is_of("place", PRIVBAYES)(result)


def _is_trained(result: Result) -> bool:
    return _is_of("rival-trained")(result) or _is_of("place-trained")(result)


_ENCODED = tuple(f"privbayes, {encoding}" for encoding in ENCODINGS)

FIGURES = {
    "epsilon": Figure("epsilon", lambda r: _is_release(r) and _at_usual_parties(r), _is_quality),
    "parties": Figure("parties", lambda r: _is_release(r) and _at_usual_epsilon(r), _is_quality),
    "components": Figure("contribution", lambda r: bool(r.point.contribution), _has_components),
    "covers": Figure("features", lambda r: r.point.kind == "cover", lambda _: True),
    "views": Figure("epsilon", lambda r: r.point.kind == "views", lambda metric: metric == "tvd2"),
    "messages": Figure("parties", lambda r: _is_message(r) and _at_usual_epsilon(r), _is_size),
    "messages-epsilon": Figure("epsilon", lambda r: _is_message(r) and _at_usual_parties(r), _is_size),
    "priview": Figure("epsilon", _is_of("rival-bits"), _is_distance),
    "two-parties": Figure("epsilon", _is_of("two"), lambda metric: _is_quality(metric) or _is_size(metric)),
    "rounds": Figure("parties", lambda r: r.point.kind in {"rounds", "formula"}, _is_any, _with_epsilon),
    "rivals": Figure("epsilon", _is_rival, _is_distance),
    "trained": Figure("epsilon", _is_trained, _is_quality),
    "scores": Figure("epsilon", _is_of("place"), lambda metric: metric == "information"),
    "encodings": Figure("epsilon", _is_of("place", *_ENCODED), _is_distance),
    "sources": Figure("epsilon", _is_of("place", PRIVBAYES, EXACT_NETWORK, EXACT_TABLES), _is_distance),
    "beta": Figure("setting", _is_of("beta"), _is_tuned, _with_epsilon),
    "theta": Figure("setting", _is_of("theta"), _is_tuned, _with_epsilon),
    "degree": Figure("setting", _is_of("degree"), lambda metric: metric == "information", _with_epsilon),
    "personal": Figure("epsilon", lambda r: r.point.kind in {"personal", "ratio"}, _is_quality),
    "joint": Figure("epsilon", _is_of("joint"), _is_any),
    "kept": Figure("setting", _is_of("kept"), _is_quality),
    "covariance": Figure("parties", _is_of("covariance"), _is_any),
    "growth": Figure("setting", _is_of("growth"), _is_any),
    "seconds": Figure("epsilon", _is_of("seconds"), _is_any),
}


@dataclass(frozen=True, slots=True)
class Run:
    """What made the figures."""

    source: str
    command: str
    commits: tuple[str, ...]
    dates: tuple[str, ...]
    runs: dict[str, int]
    cores: int


@dataclass(frozen=True, slots=True)
class Figures:
    """All rows by figure, and the run that they are from."""

    rows: dict[str, tuple[Row, ...]]
    run: Run

    def series(self, figure: str, table: str, method: str, metric: str) -> dict[float, Estimate]:
        """One line of a figure: estimates by their place on the axis, ascending."""
        found = [r for r in self.rows[figure] if (r.table, r.method, r.metric) == (table, method, metric)]
        return {row.x: row.estimate for row in sorted(found, key=lambda row: row.x)}

    def metrics(self, figure: str, table: str, prefix: str) -> list[str]:
        """The names of a figure's numbers that begin so, sorted."""
        return sorted({r.metric for r in self.rows[figure] if r.table == table and r.metric.startswith(prefix)})

    def methods(self, figure: str, table: str) -> list[str]:
        """The methods of a figure, sorted."""
        return sorted({row.method for row in self.rows[figure] if row.table == table})


def summarize(results: Iterable[Result]) -> dict[str, tuple[Row, ...]]:
    """The rows of every figure."""
    kept = list(results)
    return {name: tuple(_rows(figure, kept)) for name, figure in FIGURES.items()}


def _rows(figure: Figure, results: Iterable[Result]) -> Iterator[Row]:
    found: dict[tuple[str, str, float, str], dict[int, float]] = {}
    for result in results:
        if figure.takes(result):
            x = float(getattr(result.point, figure.axis))
            for name, value in result.figures.items():
                if figure.keeps(name):
                    method, metric = _attribute(figure.name(result.point), name)
                    found.setdefault((result.point.table, method, x, metric), {})[result.point.seed] = value
    for (table, method, x, metric), values in sorted(found.items()):
        yield Row(table, method, x, metric, estimate(list(values.values())))


def _attribute(method: str, name: str) -> tuple[str, str]:
    """Whose number it is: what was learned from real rows is the same for all methods of a run."""
    first, _, target = name.partition(" ")
    if first not in BASELINES:
        return method, name
    return BASELINES[first], target if target.startswith("area ") else f"wrong {target}"


def estimate(values: list[float]) -> Estimate:
    """Mean and standard error."""
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return Estimate(statistics.fmean(values), error, len(values))


def add_runs(first: Estimate, second: Estimate) -> Estimate:
    """What `estimate` says of the runs of both together; single runs have no error to know them by."""
    runs = first.runs + second.runs
    mean = (first.mean * first.runs + second.mean * second.runs) / runs
    squares = sum(
        own.error**2 * own.runs * (own.runs - 1) + own.runs * (own.mean - mean) ** 2 for own in (first, second)
    )
    return Estimate(mean, (squares / (runs - 1) / runs) ** 0.5 if runs > 1 else 0.0, runs)


def merge_figures(old: Figures, new: Figures, *, first_seed: int = 0) -> Figures:
    """The old figures with the new numbers in the places that both have, and the new ones beside. With a `first_seed`
    the new runs are added to as many old ones.
    """
    rows = {}
    for name in FIGURES:
        found = {(row.table, row.method, row.x, row.metric): row for row in old.rows[name]}
        for row in new.rows[name]:
            key = (row.table, row.method, row.x, row.metric)
            before = found[key].estimate if key in found else Estimate(0.0, 0.0, 0)
            found[key] = replace(row, estimate=add_runs(before, row.estimate)) if first_seed else row
            if first_seed and before.runs != first_seed:
                raise invalid(
                    f"{name} has {before.runs} runs of {row.method}, {row.metric}, where seeds go on at {first_seed}.",
                    "Begin at the number of runs that the CSV files have, or at 0.",
                )
        rows[name] = tuple(found[key] for key in sorted(found))
    commits, dates = (
        tuple(sorted({*ours, *theirs}))
        for ours, theirs in ((old.run.commits, new.run.commits), (old.run.dates, new.run.dates))
    )
    return Figures(rows, replace(old.run, commits=commits, dates=dates))


def write_figures(figures: Figures, folder: Path) -> None:
    """The CSV files and `run.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in figures.rows.items():
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["table", "method", FIGURES[name].axis, "metric", "mean", "error", "runs"])
            for row in rows:
                numbers = [f"{row.estimate.mean:.6g}", f"{row.estimate.error:.2g}", row.estimate.runs]
                writer.writerow([row.table, row.method, f"{row.x:g}", row.metric, *numbers])
    (folder / RUN_FILE).write_text(json.dumps(asdict(figures.run), indent=2) + "\n", encoding="utf-8")


def read_figures(folder: Path) -> Figures:
    """Reads what `write_figures` wrote."""
    data = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
    run = Run(**{**data, "commits": tuple(data["commits"]), "dates": tuple(data["dates"])})
    return Figures({name: tuple(_read_rows(folder / f"{name}.csv")) for name in FIGURES}, run)


def _read_rows(path: Path) -> Iterator[Row]:
    """The rows of a file; a figure that is newer than the folder has none."""
    if not path.exists():
        return
    with path.open(encoding="utf-8", newline="") as file:
        for table, method, x, metric, mean, error, runs in list(csv.reader(file))[1:]:
            yield Row(table, method, float(x), metric, Estimate(float(mean), float(error), int(runs)))
