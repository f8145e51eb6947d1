"""Agreements of all pairs, smoothed: nearer to the truth than what was released, by as much as is said."""

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from synod.curator.inference.measurements import SignedSums
from synod.curator.structure.smoothing import count_parameters, fit_factors, smooth_by, smooth_pairs, smooth_sums

Floats = NDArray[np.float64]
SIZE = 14
ABOVE = np.triu_indices(SIZE, 1)


def planted(factors: int, spread: float, *, rng: np.random.Generator) -> Floats:
    """Numbers of so many factors, and a little of each pair's own."""
    loadings = rng.normal(0, 0.5, (SIZE, factors))
    return loadings @ loadings.T + symmetric(spread, rng=rng)


def symmetric(deviation: float, *, rng: np.random.Generator) -> Floats:
    upper = np.triu(rng.normal(0, deviation, (SIZE, SIZE)), 1)
    return upper + upper.T


def test_parameters_are_loadings_less_rotations() -> None:
    assert [count_parameters(5, factors) for factors in range(4)] == [0, 5, 9, 12]


@pytest.mark.parametrize("factors", [1, 2, 3])
def test_numbers_of_few_factors_are_found_again(factors: int) -> None:
    truth = planted(factors, 0.0, rng=np.random.default_rng(factors))
    assert np.allclose(fit_factors(truth, factors)[ABOVE], truth[ABOVE], atol=0.01)


@pytest.mark.parametrize("spread", [0.0, 0.05, 0.3])
def test_the_error_is_what_it_is_said_to_be(spread: float) -> None:
    rng, variance = np.random.default_rng(7), 0.04
    said, true = [], []
    for _ in range(60):
        truth = planted(2, spread, rng=rng)
        smoothed = smooth_by(truth + symmetric(variance**0.5, rng=rng), variance, 2)
        said.append(smoothed.error)
        true.append(((smoothed.values - truth)[ABOVE] ** 2).mean())
    assert np.mean(true) == pytest.approx(np.mean(said), rel=0.15)
    assert np.mean(true) < variance


def test_as_many_factors_are_taken_as_there_are() -> None:
    rng = np.random.default_rng(3)
    chosen = [smooth_pairs(planted(2, 0.0, rng=rng) + symmetric(0.05, rng=rng), 0.0025).factors for _ in range(20)]
    assert np.median(chosen) == 2


def test_without_noise_nothing_changes() -> None:
    truth = planted(6, 0.4, rng=np.random.default_rng(1))
    assert np.allclose(smooth_pairs(truth, 1e-12).values[ABOVE], truth[ABOVE], atol=1e-6)


def test_of_mere_noise_little_is_left() -> None:
    rng = np.random.default_rng(5)
    left = [smooth_pairs(symmetric(1.0, rng=rng), 1.0).values[ABOVE] for _ in range(20)]
    assert np.mean(np.square(left)) < 0.25


def test_smoothed_sums_are_nearer_to_the_rows() -> None:
    rng, rows, deviation = np.random.default_rng(2), 10_000, 400.0
    latent = rng.normal(size=(rows, 1)) + rng.normal(size=(rows, SIZE))
    signs = np.where(latent > rng.normal(0, 0.7, SIZE), 1.0, -1.0)
    shares = [np.array([(column < 0).mean(), (column > 0).mean()]) for column in signs.T]
    truth = np.array([signs[:, a] @ signs[:, b] for a, b in combinations(range(SIZE), 2)])
    noisy = truth + rng.normal(0, deviation, len(truth))
    sums = [sum_of(pair, value, deviation) for pair, value in zip(combinations(range(SIZE), 2), noisy, strict=True)]
    smooth = smooth_sums(sums, shares, rows)
    assert [one.attributes for one in smooth] == [one.attributes for one in sums]
    assert all(one.variance == deviation**2 for one in smooth)
    errors = np.array([one.values[0] for one in smooth]) - truth
    assert np.mean(errors**2) < 0.5 * np.mean((noisy - truth) ** 2)


def test_two_attributes_are_left_as_they_are() -> None:
    alone = (sum_of((0, 1), 12.0, 5.0),)
    assert smooth_sums(alone, [np.array([0.5, 0.5])] * 2, 100) == alone


def sum_of(pair: tuple[int, int], value: float, deviation: float) -> SignedSums:
    signs = np.array([[-1.0, 1.0]])
    return SignedSums(pair, signs, signs, np.array([value]), deviation**2)
