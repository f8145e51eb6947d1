"""What the figure shows, read back from its parts."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from synod.common.study.study import Study, parse_study
from synod.deploy.evaluate.measure import Cells, Evaluation, Request, evaluate
from synod.deploy.evaluate.plot import draw_figure, make_figure, mean_by_attribute

SCHEMA = [
    {"name": "kept", "type": "categorical", "categories": ["no", "yes"]},
    {"name": "lost", "type": "categorical", "categories": ["a", "b", "c"], "nullable": True},
    {"name": "cost in $ or $$", "type": "integer", "min": 0, "max": 39, "bins": 40},
]


@pytest.fixture
def study() -> Study:
    return parse_study({"name": "s", "method": {"name": "hpdp-dp"}, "epsilon": "1", "schema": SCHEMA}, "test")


def compare(study: Study, cells: Cells = "bins") -> Evaluation:
    """`kept` is the same in both tables, `lost` shares no cell, and `cost` is in between."""
    real = [np.arange(40, dtype=np.uint8) % 2, np.zeros(40, dtype=np.uint8), np.arange(40, dtype=np.uint8)]
    synthetic = [real[0], np.full(40, 3, dtype=np.uint8), np.arange(40, dtype=np.uint8) // 2]
    return evaluate(study, real, synthetic, Request(cells, 0, (), (), 0), progress=lambda _: None)


def labels_of(axes: Axes, which: str) -> list[str]:
    return [label.get_text() for label in (axes.get_xticklabels() if which == "x" else axes.get_yticklabels())]


def heights_of(axes: Axes) -> list[float]:
    return [bar.get_height() for bar in axes.patches if isinstance(bar, Rectangle)]


def test_the_worst_and_the_best_are_where_they_belong(study: Study) -> None:
    evaluation = compare(study)
    figure = make_figure(study, evaluation)
    spread, bars, pairs, worst, best, extremes = figure.axes[:6]
    assert labels_of(bars, "y") == ["kept", r"cost in \$ or \$\$", "lost"]
    assert worst.get_title() == "Worst: lost (1.0000)"
    assert labels_of(worst, "x") == ["a", "b", "c", "(missing)"]
    assert heights_of(worst) == [1, 0, 0, 0, 0, 0, 0, 1]
    assert best.get_title() == "Best: kept (0.0000)"
    assert heights_of(best) == [0.5] * 4
    assert extremes.get_title() == "The worst and the best 3-way marginals"
    assert labels_of(pairs, "x")[0] == "kept"
    labels = [line.get_label() for line in spread.lines]
    assert labels[::2] == ["1-way, mean 0.5000", "2-way, mean 0.8333", "3-way, mean 1.0000"]
    assert labels[1::2] == [f"columns alone, mean {d.total_variation.mean():.4f}" for d in evaluation.alone.distances]
    assert "NOT private" in figure.get_suptitle()


def test_the_mean_of_an_attributes_pairs(study: Study) -> None:
    evaluation = compare(study)
    distances = dict(zip(evaluation.distances[1].sets, evaluation.distances[1].total_variation, strict=True))
    expected = [np.mean([d for pair, d in distances.items() if attribute in pair]) for attribute in range(3)]
    found = mean_by_attribute(evaluation)
    assert found is not None
    assert found.tolist() == pytest.approx(expected)


@pytest.mark.parametrize("cells", ["bins", "bits"])
def test_any_cells_can_be_drawn(study: Study, tmp_path: Path, cells: Cells) -> None:
    draw_figure(study, compare(study, cells), tmp_path / "f.png")
    assert (tmp_path / "f.png").stat().st_size > 20_000
