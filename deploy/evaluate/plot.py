"""The figure of an evaluation: how distances are spread, and where they come from. Needs no display."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from synod.common.runtime.errors import invalid
from synod.common.study.study import Study
from synod.deploy.evaluate.marginals import Distances
from synod.deploy.evaluate.measure import NOTE, Evaluation
from synod.deploy.evaluate.tables import Table, cell_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

REAL, SYNTHETIC, ALONE = "#1b4f72", "#e08e0b", "#999999"
STYLES = ("-", "--", ":")
MOST_ATTRIBUTES = 20
MOST_CELLS = 20
MOST_LABELS = 60
LONGEST_LABEL = 26
SHOWN_SETS = 4


def require_plot(path: Path) -> None:
    """Refuses a figure that could not be drawn or kept, before any row is read."""
    try:
        import matplotlib.figure  # noqa: F401, PLC0415  (an optional package)
    except ImportError:
        raise invalid(
            "--plot needs matplotlib, which is not installed.", "Install Synod's extra `evaluate`, or matplotlib."
        ) from None
    if path.suffix != ".png" or path.is_dir():
        raise invalid(f"{path} is not the name of a .png file.", "Figures are drawn as PNG.")
    if not path.absolute().parent.is_dir():
        raise invalid(f"there is no folder {path.parent} for the figure.", "Make it first.")


def draw_figure(study: Study, evaluation: Evaluation, path: Path) -> None:
    """Writes the figure as PNG."""
    make_figure(study, evaluation).savefig(path, format="png", dpi=130)


def make_figure(study: Study, evaluation: Evaluation) -> "Figure":
    """Six panels: spread, attributes and pairs on top; the best and the worst below."""
    from matplotlib.figure import Figure  # noqa: PLC0415  (an optional package)

    figure = Figure(figsize=(17, 10.5), layout="constrained")
    top, bottom = figure.subplots(2, 3)
    _draw_spread(top[0], evaluation)
    _draw_attributes(top[1], evaluation)
    _draw_pairs(top[2], evaluation)
    ranked = evaluation.distances[0].worst(len(evaluation.real.names))
    _draw_marginal(bottom[0], study, evaluation, ranked[0], "Worst")
    _draw_marginal(bottom[1], study, evaluation, ranked[-1], "Best")
    _draw_extremes(bottom[2], evaluation)
    figure.suptitle(f"{study.name}: synthetic against real rows. {NOTE}", fontsize=11)
    return figure


def _draw_spread(axes: "Axes", evaluation: Evaluation) -> None:
    """For each order the share of marginals whose distance is at most so large, and the mean of columns alone."""
    for distances, style, alone in zip(evaluation.distances, STYLES, evaluation.alone.distances, strict=True):
        if distances.sets:
            ordered = np.concatenate([[0.0], np.sort(distances.total_variation)])
            shares = np.arange(len(ordered)) / (len(ordered) - 1)
            label = f"{distances.order}-way, mean {distances.total_variation.mean():.4f}"
            axes.step(ordered, shares, style, where="post", color="black", label=label)
            baseline = float(alone.total_variation.mean())
            axes.axvline(baseline, linestyle=style, color=ALONE, label=f"columns alone, mean {baseline:.4f}")
    axes.set(title="How many marginals are how far off", xlabel="total variation distance, at most")
    axes.set(ylabel="share of marginals", xlim=(0, None), ylim=(0, 1.02))
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")


def _draw_attributes(axes: "Axes", evaluation: Evaluation) -> None:
    """The distance of each attribute, and the mean of all pairs that it is in; the worst on top."""
    alone, pairs = evaluation.distances[0].total_variation, mean_by_attribute(evaluation)
    shown = evaluation.distances[0].worst(MOST_ATTRIBUTES)[::-1]
    places = np.arange(len(shown))
    axes.barh(places + 0.2, alone[shown], 0.4, color=REAL, label="alone")
    if pairs is not None:
        label = "mean of its pairs"
        axes.barh(places - 0.2, pairs[shown], 0.4, color=SYNTHETIC, hatch="//", edgecolor="white", label=label)
    axes.set_yticks(places, [_shorten(evaluation.real.names[place]) for place in shown], fontsize=8)
    more, what = len(alone) - len(shown), "bits" if evaluation.cells == "bits" else "attributes"
    title = f"The {len(shown)} worst {what} ({more} are better)" if more else f"All {what}, the worst on top"
    axes.set(title=title, xlabel="total variation distance")
    axes.grid(axis="x", alpha=0.3)
    axes.legend(loc="lower right", fontsize=8)


def mean_by_attribute(evaluation: Evaluation) -> "np.ndarray[tuple[int], np.dtype[np.float64]] | None":
    """The mean distance of the measured pairs of each attribute; None where there are no pairs."""
    distances = evaluation.distances[1]
    if not distances.sets:
        return None
    members = np.array(distances.sets).T.ravel()
    sums = np.bincount(members, np.tile(distances.total_variation, 2), len(evaluation.real.names))
    return sums / np.maximum(1, np.bincount(members, minlength=len(sums)))


def _draw_pairs(axes: "Axes", evaluation: Evaluation) -> None:
    """The distance of every pair of attributes as a map."""
    distances, names = evaluation.distances[1], evaluation.real.names
    axes.set_title("All pairs: darker is worse")
    if not distances.sets:
        axes.text(0.5, 0.5, "There is only one, hence no pair.", ha="center")
        axes.axis("off")
        return
    cells = np.full((len(names), len(names)), np.nan)
    left, right = np.array(distances.sets).T
    cells[left, right] = cells[right, left] = distances.total_variation
    image = axes.imshow(cells, cmap="YlOrBr", vmin=0)
    axes.figure.colorbar(image, ax=axes, label="total variation distance", shrink=0.8)
    axes.set(xticks=[], yticks=[])
    if len(names) <= MOST_LABELS:
        labels, size = [_shorten(name) for name in names], min(8.0, 250 / len(names))
        axes.set_xticks(range(len(names)), labels, rotation=90, fontsize=size)
        axes.set_yticks(range(len(names)), labels, fontsize=size)


def _draw_marginal(axes: "Axes", study: Study, evaluation: Evaluation, place: int, title: str) -> None:
    """The shares of one attribute's cells in both tables, beside each other."""
    name, size = evaluation.real.names[place], evaluation.real.sizes[place]
    shown = np.arange(size)
    sides = [_shares(table, place) for table in (evaluation.real, evaluation.synthetic)]
    labels = ["0", "1"] if evaluation.cells == "bits" else cell_labels(study, name)
    if size > MOST_CELLS:
        shown = np.sort(np.argsort(-(sides[0] + sides[1]), kind="stable")[:MOST_CELLS])
    places = np.arange(len(shown))
    axes.bar(places - 0.2, sides[0][shown], 0.4, color=REAL, label="real")
    axes.bar(places + 0.2, sides[1][shown], 0.4, color=SYNTHETIC, hatch="//", edgecolor="white", label="synthetic")
    axes.set_xticks(
        places, [_shorten(labels[cell]) for cell in shown], rotation=90 if len(shown) > 4 else 0, fontsize=8
    )
    distance = evaluation.distances[0].total_variation[place]
    cut = f", its {MOST_CELLS} largest cells" if size > MOST_CELLS else ""
    axes.set(title=f"{title}: {_shorten(name)} ({distance:.4f}){cut}", ylabel="share of rows")
    axes.legend()


def _shares(table: Table, place: int) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    return np.bincount(table.columns[place], minlength=table.sizes[place]) / table.rows


def _draw_extremes(axes: "Axes", evaluation: Evaluation) -> None:
    """The best and worst sets of the highest order that there is."""
    distances = next(d for d in reversed(evaluation.distances) if d.sets)
    ranked = distances.worst(len(distances.sets))
    worst = ranked[:SHOWN_SETS]
    best = [place for place in ranked[-SHOWN_SETS:] if place not in worst]
    shown = [*worst, *best][::-1]
    colors = [REAL] * len(best) + [SYNTHETIC] * len(worst)
    bars = axes.barh(range(len(shown)), distances.total_variation[shown], color=colors)
    axes.bar_label(bars, [f"{distances.total_variation[place]:.4f}" for place in shown], padding=3, fontsize=8)
    axes.set_yticks(range(len(shown)), [_describe(evaluation, distances, place) for place in shown], fontsize=7.5)
    axes.set(title=f"The worst and the best {distances.order}-way marginals")
    axes.set(xlabel="total variation distance", xlim=(0, max(1e-9, 1.2 * float(distances.total_variation.max()))))


def _describe(evaluation: Evaluation, distances: Distances, place: int) -> str:
    return "\n".join(_shorten(evaluation.real.names[attribute]) for attribute in distances.sets[place])


def _shorten(text: str) -> str:
    """A text that fits beside an axis, its dollars not read as formulas."""
    short = text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1] + "…"
    return short.replace("$", r"\$")
