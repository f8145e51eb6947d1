"""Shares inside a part: those of the counts where they stand out, equal ones where they do not."""

import numpy as np
import pytest

from synod.curator.coclustering.shares import share_values


def test_exact_counts_give_their_shares() -> None:
    counts = np.array([10.0, 30.0, 7.0, 60.0])
    assert share_values(counts, (0, 0, 1, 0), 0.0) == pytest.approx([0.1, 0.3, 1.0, 0.6])


def test_what_noise_explains_is_equal() -> None:
    assert share_values(np.array([10.0, 30.0, 7.0, 20.0]), (0, 0, 1, 0), 50.0) == pytest.approx(
        [1 / 3, 1 / 3, 1, 1 / 3]
    )
    assert share_values(np.array([-5.0, -1.0]), (0, 0), 0.1) == pytest.approx([0.5, 0.5])
    assert share_values(np.array([4.0, 4.0]), (0, 0), 0.0) == pytest.approx([0.5, 0.5])


def test_half_of_the_spread_is_kept_where_noise_explains_a_quarter() -> None:
    """The spread of 10 and 30 is 200; noise of 50 explains a quarter of it, and counts twice."""
    assert share_values(np.array([10.0, 30.0]), (0, 0), 50.0) == pytest.approx([15 / 40, 25 / 40])


def test_no_value_is_lost() -> None:
    shares = share_values(np.array([-20.0, 100.0, 100.0]), (0, 0, 0), 1.0)
    assert 0 < shares[0] < 0.03
    assert shares.sum() == pytest.approx(1)


def test_noise_is_forgotten_and_structure_kept_on_average() -> None:
    """Of twelve values with noise of 30: equal ones come back nearly equal, different ones nearly as they are."""
    rng, same, other = np.random.default_rng(1), np.full(12, 100.0), np.linspace(10, 400, 12)
    errors = []
    for true in (same, other):
        drawn = [share_values(true + rng.normal(0, 30, 12), (0,) * 12, 900.0) for _ in range(200)]
        errors.append(np.mean([np.abs(shares - true / true.sum()).sum() / 2 for shares in drawn]))
    assert errors[0] < 0.04
    assert errors[1] < 0.08
    equal = np.abs(np.full(12, 1 / 12) - other / other.sum()).sum() / 2
    assert equal > 0.2
