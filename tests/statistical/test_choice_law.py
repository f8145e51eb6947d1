"""Draws of permute-and-flip against its law by enumeration: the right epsilon is accepted, one 30 % off rejected."""

from fractions import Fraction
from itertools import permutations
from math import exp

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from synod.common.privacy.coins import Coins
from synod.party.count.choice import permute_and_flip

pytestmark = pytest.mark.slow

DRAWS = 40_000
LEAST_P = 1e-3
OFF_BY = [Fraction(7, 10), Fraction(13, 10)]
CASES = [
    ([0, 1, 2, 3], Fraction(2), 1),
    ([10, 10, 7, 4, 0], Fraction(1, 2), 2),
    ([-300, -100, 0, -50], Fraction(1, 5), 12),
    ([5, 1, 1, 1, 1, 1], Fraction(3), 3),
]


def law_by_enumeration(scores: list[int], epsilon: Fraction, sensitivity: int) -> NDArray[np.float64]:
    """Over all orders, the first candidate that shows heads."""
    heads = [exp(float(epsilon * (score - max(scores)) / (2 * sensitivity))) for score in scores]
    law = np.zeros(len(scores))
    orders = list(permutations(range(len(scores))))
    for order in orders:
        reached = 1.0
        for candidate in order:
            law[candidate] += reached * heads[candidate]
            reached *= 1 - heads[candidate]
    return law / len(orders)


def exponential_law(scores: list[int], epsilon: Fraction, sensitivity: int) -> NDArray[np.float64]:
    weights = np.exp([float(epsilon * (score - max(scores)) / (2 * sensitivity)) for score in scores])
    return np.asarray(weights / weights.sum())


def accepts(counts: NDArray[np.intp], law: NDArray[np.float64]) -> bool:
    return bool(stats.chisquare(counts, law * counts.sum()).pvalue > LEAST_P)


@pytest.mark.parametrize(("scores", "epsilon", "sensitivity"), CASES)
def test_draws_follow_the_law(scores: list[int], epsilon: Fraction, sensitivity: int) -> None:
    coins, array = Coins(bytes(range(32))), np.array(scores)
    drawn = [permute_and_flip(array, epsilon=epsilon, sensitivity=sensitivity, coins=coins) for _ in range(DRAWS)]
    counts = np.bincount(drawn, minlength=len(scores))
    assert accepts(counts, law_by_enumeration(scores, epsilon, sensitivity))
    assert not accepts(counts, exponential_law(scores, epsilon, sensitivity))
    for factor in OFF_BY:
        assert not accepts(counts, law_by_enumeration(scores, epsilon * factor, sensitivity))
