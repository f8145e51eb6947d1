"""The figure of a forecast: what noise leaves of each column, of each pair, and by each method. Needs no display."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from synod.common.study.promise import name_budget
from synod.common.study.study import Study
from synod.deploy.study.advice import COLUMN_COARSE, COLUMN_USABLE, PAIR_COARSE, PAIR_USABLE, Advice, Way
from synod.deploy.study.rehearsal import Rehearsal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DARK, LIGHT = "#1b4f72", "#e08e0b"
MOST_LABELS = 40
LONGEST_LABEL = 26


def draw_forecast(study: Study, advice: Advice, path: Path) -> None:
    """Writes the figure as PNG: columns, pairs, and the study beside other methods and changes."""
    from matplotlib.figure import Figure  # noqa: PLC0415  (an optional package)

    figure = Figure(figsize=(17, 6.5), layout="constrained")
    columns, pairs, ways = figure.subplots(1, 3)
    own = advice.own.rehearsal
    if own is not None:
        _draw_columns(columns, own)
        _draw_pairs(pairs, own)
    _draw_ways(ways, advice)
    figure.suptitle(f"{study.name}, {name_budget(study)}: rehearsed on invented rows; nobody's rows were read")
    figure.savefig(path, format="png", dpi=130)


def _draw_columns(axes: "Axes", own: Rehearsal) -> None:
    order = np.argsort(own.columns, kind="stable")[-MOST_LABELS:]
    places = np.arange(len(order))
    axes.barh(places + 0.2, own.columns[order], 0.4, color=DARK, label="the schema's bins")
    axes.barh(places - 0.2, own.coarse_columns[order], 0.4, color=LIGHT, hatch="//", label="at most eight bins")
    axes.axvline(COLUMN_USABLE, color="black", linestyle="--", label="usable up to here")
    axes.axvline(COLUMN_COARSE, color="black", linestyle=":", label="drowned beyond, in eight bins")
    axes.set_yticks(places, [_shorten(own.names[place]) for place in order], fontsize=8)
    axes.set(title="Single columns: rows that noise misplaces", xlabel="part of the rows")
    axes.legend(loc="lower right", fontsize=8)


def _draw_pairs(axes: "Axes", own: Rehearsal) -> None:
    axes.set_title("Pairs of columns: what is kept of a relation")
    cells = np.full((len(own.names), len(own.names)), np.nan)
    for (first, second), kept in own.pairs.items():
        cells[first, second] = cells[second, first] = max(0.0, kept)
    image = axes.imshow(cells, cmap="YlGnBu", vmin=0, vmax=1)
    label = f"part kept: usable from {PAIR_USABLE}, drowned below {PAIR_COARSE}"
    axes.figure.colorbar(image, ax=axes, label=label, shrink=0.8)
    axes.set(xticks=[], yticks=[])
    if len(own.names) <= MOST_LABELS:
        names = [_shorten(name) for name in own.names]
        axes.set_xticks(range(len(names)), names, rotation=90, fontsize=8)
        axes.set_yticks(range(len(names)), names, fontsize=8)


def _draw_ways(axes: "Axes", advice: Advice) -> None:
    ways = [advice.own, *advice.changes, *advice.methods]
    shown = [(way.name, _kept(way)) for way in ways if way.rehearsal is not None][::-1]
    colors = [LIGHT if name == advice.own.name else DARK for name, _ in shown]
    axes.barh(range(len(shown)), [kept for _, kept in shown], color=colors)
    axes.set_yticks(range(len(shown)), [_shorten(name) for name, _ in shown], fontsize=8)
    axes.axvline(PAIR_USABLE, color="black", linestyle="--")
    axes.axvline(PAIR_COARSE, color="black", linestyle=":")
    axes.set(title="The study, changes, and other methods", xlabel="part of all relations kept", xlim=(0, 1))


def _kept(way: Way) -> float:
    kept = way.rehearsal.kept if way.rehearsal is not None else None
    return max(0.0, kept or 0.0)


def _shorten(text: str) -> str:
    short = text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1] + "…"
    return short.replace("$", r"\$")
