"""Runs and their means: finished runs lie in a file of JSON lines, so that a command that was ended goes on there."""

import json
import statistics
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.utility.measure import Figures, Source, measure_run
from bench.utility.settings import Setting

Key = tuple[str, Setting, int]


@dataclass(frozen=True, slots=True)
class Row:
    """The means over the runs of one setting, and of its baseline; no figures where the method refused."""

    setting: Setting
    runs: int
    figures: Figures
    errors: Figures
    columns: Figures


def run_settings(
    source: Source, settings: Mapping[Setting, int], results: Path | None, *, workers: int, tell: Callable[[str], None]
) -> dict[Setting, list[Figures]]:
    """The figures of as many runs of each setting as are wanted; those in `results` are not run again."""
    table = source.table.stem
    done = read_runs(results) if results else {}
    keys = [(table, setting, seed) for setting, runs in settings.items() for seed in range(runs)]
    missing = [key for key in keys if key not in done]
    for key, figures in measure_keys(source, missing, workers):
        done[key] = figures
        if results:
            append_run(results, key, figures)
        tell(f"{key[1].describe()}, run {key[2] + 1}: {write_short(figures)}")
    return {setting: [done[table, setting, seed] for seed in range(runs)] for setting, runs in settings.items()}


def measure_keys(source: Source, keys: list[Key], workers: int) -> Iterable[tuple[Key, Figures]]:
    """Measures one after the other, or side by side; in order either way."""
    if workers == 1:
        yield from ((key, measure_run(source, *key[1:])) for key in keys)
        return
    with ProcessPoolExecutor(workers) as pool:
        futures = [pool.submit(measure_run, source, *key[1:]) for key in keys]
        yield from zip(keys, (future.result() for future in futures), strict=True)


def write_short(figures: Figures) -> str:
    """The 2-way distance and the time, for whoever waits."""
    return f"{figures.get('tvd2', float('nan')):.4f}, {figures['seconds']:.1f} s" if figures else "refused"


def read_runs(path: Path) -> dict[Key, Figures]:
    """All whole runs of a file."""
    found: dict[Key, Figures] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            data = json.loads(line)
            found[data["table"], Setting(**data["setting"]), data["seed"]] = data["figures"]
        except (ValueError, KeyError, TypeError):
            continue
    return found


def append_run(path: Path, key: Key, figures: Figures) -> None:
    """Adds one line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps({"table": key[0], "setting": asdict(key[1]), "seed": key[2], "figures": figures})
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


def forget_runs(path: Path, methods: Iterable[str]) -> None:
    """Takes the runs of methods whose code has changed out of a file; a name stands for all that begin with it."""
    kept = {key: figures for key, figures in read_runs(path).items() if not key[1].method.startswith(tuple(methods))}
    path.unlink(missing_ok=True)
    for key, figures in kept.items():
        append_run(path, key, figures)


def make_rows(settings: Iterable[Setting], found: Mapping[Setting, list[Figures]]) -> list[Row]:
    """One row for each setting, with the figures of its baseline beside it."""
    rows = []
    for setting in settings:
        runs, columns = found[setting], found[setting.baseline]
        rows.append(Row(setting, len(runs), average(runs), standard_errors(runs), average(columns)))
    return rows


def average(runs: list[Figures]) -> Figures:
    """The mean of each figure; none where a run was refused."""
    return {name: statistics.fmean(run[name] for run in runs) for name in runs[0]} if all(runs) else {}


def standard_errors(runs: list[Figures]) -> Figures:
    """The standard error of each mean."""
    if not all(runs) or len(runs) < 2:
        return {}
    return {name: statistics.stdev(run[name] for run in runs) / len(runs) ** 0.5 for name in runs[0]}
