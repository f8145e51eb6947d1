"""The bound on the noise against the exact tail, summed by scipy."""

from fractions import Fraction
from math import exp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from synod.common.privacy.bounds import noise_bound

CASES = [
    (Fraction(1, 1), 3, 1, 1),
    (Fraction(1, 10), 2, 0, 1000),
    (Fraction(3, 100), 2, 1, 1000),
    (Fraction(50, 7), 3, 1, 120_000),
    (Fraction(570), 3, 1, 120_000),
    (Fraction(570), 5, 4, 120_000),
    (Fraction(2000), 2, 0, 10),
    (Fraction(40), 20, 19, 1000),
]


def exact_tail(bound: int, scale: Fraction, parties: int, threshold: int) -> float:
    """P(|X - Y| > bound) for X, Y ~ NB(K/(K-t), a)."""
    law = stats.nbinom(parties / (parties - threshold), -np.expm1(-1 / float(scale)))
    other = np.arange(int(law.isf(1e-15)) + 200 * (int(scale) + 1))
    return float(2 * np.sum(law.pmf(other) * law.sf(bound + other)))


@pytest.mark.parametrize(("scale", "parties", "threshold", "length"), CASES)
def test_bound_holds_and_is_not_wasteful(scale: Fraction, parties: int, threshold: int, length: int) -> None:
    bound = noise_bound(scale, parties, threshold, length)
    allowed = 2.0**-64 / length
    assert exact_tail(bound, scale, parties, threshold) <= allowed
    assert exact_tail(int(bound / 1.15) - 1, scale, parties, threshold) > allowed


@settings(max_examples=40, deadline=None)
@given(st.fractions(Fraction(1, 1000), 10**9), st.integers(1, 20), st.integers(1, 10**7))
def test_bound_moves_the_right_way(scale: Fraction, parties: int, length: int) -> None:
    bound = noise_bound(scale, parties, 0, length)
    assert bound >= 0
    assert noise_bound(scale * 2, parties, 0, length) >= bound
    assert noise_bound(scale, parties, 0, length * 2) >= bound
    assert noise_bound(scale, parties, parties - 1, length) >= bound
    assert noise_bound(scale, 2 * parties, 0, length) == bound


def test_values_every_machine_must_agree_on() -> None:
    assert [noise_bound(*case) for case in CASES] == [50, 5, 1, 449, 35851, 40921, 103275, 3620]


def test_least_noise_gives_the_least_bound() -> None:
    """At scale 1/100, P(|Z| > 0) is about 2 exp(-100), below 2^-64 on its own."""
    assert 2 * exp(-100) < 2.0**-64
    assert noise_bound(Fraction(1, 100), 1, 0, 1) == 0
