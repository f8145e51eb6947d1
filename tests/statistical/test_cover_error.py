"""Covers of all pairs: the measured error of 2-way counts is the predicted one, within 10 %."""

import itertools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from synod.common.privacy.coins import Coins
from synod.common.privacy.noise import sample_discrete_laplace
from synod.curator.covers.nocd import nocd_views
from synod.curator.covers.views import design_views, expected_variance
from synod.curator.network.tables import marginalize

FEATURES = 52
EPSILON = Fraction(1)
LEAST_CELLS = 5_000


def mean_square_error(views: Sequence[tuple[int, ...]], *, key: int) -> tuple[float, int]:
    """The mean squared error of all 2-way cells of an empty table, and how many cells there were."""
    sizes = [2] * FEATURES
    coins = Coins(key.to_bytes(32, "big"))
    scale = Fraction(2 * len(views)) / EPSILON
    squares: list[float] = []
    for view in views:
        table = sample_discrete_laplace(2 ** len(view), scale=scale, coins=coins)
        for pair in itertools.combinations(view, 2):
            squares.extend(float(error) ** 2 for error in marginalize(table, view, sizes, pair))
    return float(np.mean(squares)), len(squares)


@pytest.mark.slow
def test_measured_error_ratios_are_the_predicted_ones() -> None:
    """NOCD against the chosen plane, and both against asking all pairs directly; cells of one view are not
    independent, so each design is drawn a few times.
    """
    sizes = [2] * FEATURES
    designs = {
        "nocd": nocd_views(FEATURES),
        "chosen": design_views(sizes),
        "direct": tuple(itertools.combinations(range(FEATURES), 2)),
    }
    measured, predicted = {}, {}
    for number, (name, views) in enumerate(designs.items()):
        draws = [mean_square_error(views, key=100 * number + i + 1) for i in range(8)]
        assert sum(cells for _, cells in draws) >= LEAST_CELLS
        measured[name] = float(np.mean([error for error, _ in draws]))
        predicted[name] = expected_variance(views, sizes)
    for one, other in itertools.permutations(designs, 2):
        ratio = (measured[one] / measured[other]) / (predicted[one] / predicted[other])
        assert 0.9 < ratio < 1.1, (one, other, ratio)
    assert measured["chosen"] < measured["nocd"] < measured["direct"]
