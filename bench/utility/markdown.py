"""Rows as text: a table for a page, and one JSON value for a machine."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from bench.utility.measure import ORDERS, Figures
from bench.utility.runs import Row
from bench.utility.settings import ALIKE, PURE, Setting

HEADINGS = ("method", "parties", "epsilon", *(f"{order}-way" for order in ORDERS), "columns alone", "CPU s")


def write_table(rows: Sequence[Row], references: Figures) -> list[str]:
    """A Markdown table in which every row has its baseline; a 2-way distance below the baseline's is bold."""
    headings = [*HEADINGS, "classifier's error"] if references else list(HEADINGS)
    lines = [_join(headings), _join(["---"] * len(headings))]
    lines += [_join([*_cells(row), *([_wrong(row)] if references else [])]) for row in rows]
    return [*lines, *_write_references(references)]


def _write_references(references: Figures) -> Iterator[str]:
    if references:
        yield ""
        yield (
            f"A classifier that has learned from real rows is wrong in {references['real']:.3f} of all cases, one that "
            f"always says the most frequent class in {references['majority']:.3f}."
        )


def _join(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(row: Row) -> list[str]:
    setting = row.setting
    distances = [write_distance(row.figures.get(f"tvd{order}")) for order in ORDERS]
    if row.figures and row.figures["tvd2"] < row.columns["tvd2"]:
        distances[1] = f"**{distances[1]}**"
    alone = " / ".join(write_distance(row.columns.get(f"tvd{order}")) for order in ORDERS)
    seconds = f"{row.figures['seconds']:.1f}" if row.figures else ""
    return [setting.method, describe_parties(setting), describe_cost(setting), *distances, alone, seconds]


def _wrong(row: Row) -> str:
    own, alone = row.figures.get("wrong"), row.columns.get("wrong")
    return f"{own:.3f} ({alone:.3f})" if own is not None and alone is not None else ""


def write_distance(distance: float | None) -> str:
    """Four digits without a leading zero; a refused setting has none."""
    return "refused" if distance is None else f"{distance:.4f}".removeprefix("0")


def describe_parties(setting: Setting) -> str:
    """How many there are, and how rows lie among them."""
    who = "one place" if setting.parties == 1 else f"K {setting.parties}, t {setting.collusion}"
    return who if setting.order == ALIKE else f"{who}, sorted by {setting.order}"


def describe_cost(setting: Setting) -> str:
    """Epsilon, and delta where it is not the pure kind."""
    return f"{setting.epsilon}, pure" if setting.delta == PURE else setting.epsilon


def to_json(rows: Iterable[Row], references: Figures, runs: int) -> dict[str, Any]:
    """All means and standard errors."""
    results = [
        {
            **asdict(row.setting),
            "runs": row.runs,
            **row.figures,
            "standard_errors": row.errors,
            "columns": row.columns,
        }
        for row in rows
    ]
    return {"private": False, "runs": runs, "references": references, "results": results}
