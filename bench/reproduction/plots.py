"""The figures as small PNG files, readable without colour: every line has a mark of its own."""

from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from bench.reproduction.lines import TITLES, name_metric
from bench.reproduction.summary import FIGURES, Figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

MARKS = ("o-", "s--", "^:", "d-.", "v-", "x--", "P:", "*-.", "<-", "h--", ">:", "X-.", "p-")
LABELS = {"tvd2": "2-way distance", "tvd3": "3-way distance", "tvd4": "4-way distance"}
DPI = 72
COLOURS = 64


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot: a metric of a table; both axes may be logarithmic."""

    figure: str
    table: str
    metric: str
    log_y: bool = False

    @property
    def title(self) -> str:
        """What it shows."""
        named = LABELS.get(self.metric) or self.metric.replace("_", " ")
        wrong = f"misclassification, {name_metric(self.metric)}" if self.metric.startswith("wrong ") else named
        return f"{TITLES[self.table]}: {wrong}" if self.table else wrong


def list_panels(figures: Figures, name: str) -> list[Panel]:
    """The panels of a figure, one for each table and metric that it has and that depends on its axis."""
    found = sorted({(row.table, row.metric) for row in figures.rows[name] if row.metric != "first"})
    is_log = name in {"covers", "messages", "messages-epsilon"}
    return [Panel(name, table, metric, is_log) for table, metric in found]


def draw_figures(figures: Figures, folder: Path) -> list[Path]:
    """Writes one PNG for each figure that has rows."""
    return [draw_figure(figures, name, folder / f"{name}.png") for name in FIGURES if figures.rows[name]]


def draw_figure(figures: Figures, name: str, path: Path) -> Path:
    """All panels of a figure in rows of four, with one legend."""
    from matplotlib.figure import Figure as Canvas  # noqa: PLC0415  (an optional package)

    panels = list_panels(figures, name)
    columns = min(4, len(panels))
    height = -(-len(panels) // columns)
    canvas = Canvas(figsize=(3.2 * columns + 0.4, 2.5 * height + 0.7), layout="constrained")
    places = canvas.subplots(height, columns, squeeze=False).ravel()
    methods = sorted({row.method for row in figures.rows[name]})
    for place, panel in zip(places, panels, strict=False):
        _draw_panel(place, figures, panel, methods)
    for place in places[len(panels) :]:
        place.axis("off")
    handles = {
        label: handle for place in places for handle, label in zip(*place.get_legend_handles_labels(), strict=True)
    }
    canvas.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=min(4, len(handles)), fontsize=8)
    return _save_small(canvas, path)


def _save_small(canvas: "Canvas", path: Path) -> Path:
    """With a palette of few colours, a third of the size."""
    from PIL import Image  # noqa: PLC0415  (comes with matplotlib)

    drawn = BytesIO()
    canvas.savefig(drawn, format="png", dpi=DPI)
    Image.open(drawn).convert("RGB").quantize(COLOURS).save(path, optimize=True)
    return path


def _draw_panel(axes: "Axes", figures: Figures, panel: Panel, methods: Iterable[str]) -> None:
    for method, mark in zip(methods, MARKS, strict=False):
        line = figures.series(panel.figure, panel.table, method, panel.metric)
        if line:
            errors = [estimate.error for estimate in line.values()]
            means = [estimate.mean for estimate in line.values()]
            axes.errorbar(list(line), means, yerr=errors, fmt=mark, markersize=4, linewidth=1, label=method)
    axis = FIGURES[panel.figure].axis
    axes.set_title(panel.title, fontsize=9)
    axes.set_xlabel(axis, fontsize=8)
    axes.tick_params(labelsize=7)
    axes.grid(alpha=0.3)
    if axis == "epsilon":
        places = sorted({row.x for row in figures.rows[panel.figure]})
        axes.set_xscale("log", base=2)
        axes.set_xticks(places, [f"{x:g}" for x in places])
    if panel.log_y:
        axes.set_yscale("log")
