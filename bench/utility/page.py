"""Measures the tables of docs/utility.md and writes them into the page.

Usage: python -m bench.utility.page --data DIR [--again METHOD ...]

DIR holds adult/ and nltcs/, each with study.yaml and one CSV file of its name. Finished runs are kept in bench/results,
so that an ended command goes on where it was; `--again adaptive` forgets those of methods that begin so, because their
code has changed.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from bench.utility.markdown import write_table
from bench.utility.measure import Source, measure_references
from bench.utility.runs import forget_runs, make_rows, run_settings
from bench.utility.settings import COLUMNS, PURE, Setting, make_central, make_grid, with_baselines

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "utility.md"
RESULTS = ROOT / "bench" / "results" / "utility.jsonl"
EPSILONS, DELTA, USUAL = ("0.2", "0.8", "1.6"), "1e-9", "0.8"
SYNOD = ("adaptive", "adaptive, 3 rounds", "privbayes", "dp-subn, joint", "hpdp-dp", "independent")
OWN = SYNOD[:1]
SORTED = {"adult": ("marital-status", "age"), "nltcs": ("managing money",)}
TARGETS = {"adult": "income", "nltcs": None}
OFTEN, SELDOM = 5, 3
SLOW = ("dp-subn", "independent")
SECTION = re.compile(r"(<!-- figures: ([\w -]+) -->\n)(.*?)(<!-- end of figures -->)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Section:
    """One table of the page."""

    name: str
    settings: Sequence[Setting]


def sections_of(table: str) -> list[Section]:
    """The tables of the page about one table of rows: with delta, pure, and other parties."""
    deltas, pure = list[Setting](), list[Setting]()
    for epsilon in EPSILONS:
        deltas += [*make_grid(SYNOD, [3], [1], [epsilon], [DELTA]), *make_central([epsilon], [DELTA])]
        pure += make_grid(SYNOD, [3], [1], [epsilon], [PURE])
    others = [
        *make_grid(OWN, [10], [1, 3], [USUAL], [DELTA, PURE]),
        *make_grid(OWN, [3], [1], [USUAL], [DELTA, PURE], SORTED[table]),
    ]
    return [Section(f"{table} delta", deltas), Section(f"{table} pure", pure), Section(f"{table} parties", others)]


def count_runs(setting: Setting) -> int:
    """More runs where they are quick."""
    return OFTEN if setting.method == COLUMNS or setting.method.startswith("adaptive") else SELDOM


def measure_table(data: Path, table: str, results: Path, *, workers: int) -> dict[str, list[str]]:
    """The lines of each section about one table."""
    source = Source(data / table / "study.yaml", data / table / f"{table}.csv", TARGETS[table])
    sections = sections_of(table)
    settings = with_baselines(setting for section in sections for setting in section.settings)
    settings.sort(key=lambda setting: setting.method.startswith(SLOW))
    wanted = {setting: count_runs(setting) for setting in settings}
    found = run_settings(source, wanted, results, workers=workers, tell=click.echo)
    references = measure_references(source)
    return {section.name: write_table(make_rows(section.settings, found), references) for section in sections}


def fill_page(text: str, sections: Mapping[str, Sequence[str]]) -> str:
    """The page with the tables of these sections in place of what stood there; others stay."""

    def fill(found: re.Match[str]) -> str:
        if found[2] not in sections:
            return found[0]
        lines = "\n".join(sections[found[2]])
        return f"{found[1]}\n{lines}\n\n{found[4]}"

    return SECTION.sub(fill, text)


@click.command()
@click.option("--data", required=True, type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--table", "tables", multiple=True, type=click.Choice(sorted(TARGETS)), default=sorted(TARGETS))
@click.option("--again", multiple=True, help="Forget the finished runs of methods that begin so.")
@click.option("--page", default=PAGE, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--results", default=RESULTS, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--workers", default=1)
def main(data: Path, tables: Sequence[str], again: Sequence[str], page: Path, results: Path, workers: int) -> None:
    """Measures what is missing and writes it into the page."""
    click.echo("Reads real rows: these figures are not private.")
    if again:
        forget_runs(results, again)
    for table in tables:
        sections = measure_table(data, table, results, workers=workers)
        page.write_text(fill_page(page.read_text(encoding="utf-8"), sections), encoding="utf-8")


if __name__ == "__main__":
    main()
