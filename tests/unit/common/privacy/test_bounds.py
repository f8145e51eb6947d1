"""The bounds on the noise against the exact tail, summed by scipy or by convolution."""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import ceil, exp, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from synod.common.privacy.bounds import gaussian_bound, noise_bound
from tests.support.laws import OFF_BY

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


GAUSSIAN_CASES = [
    (Fraction(8), 1, 1),
    (Fraction(8), 2, 1000),
    (8 + Fraction(1, 1024), 5, 120_000),
    (Fraction(100), 3, 10**7),
    (Fraction(1), 4, 10),
    (Fraction(10**5, 7), 3, 1000),
]


def exact_gaussian_tail(bound: int, square: Fraction, parties: int) -> float:
    """P(|Z| > bound) for the sum of discrete Gaussians: sums of positive numbers only, so that no tail is lost."""
    reach = ceil(14 * sqrt(parties * square)) + 2
    law = np.exp(-np.square(np.arange(-reach, reach + 1.0)) / (2 * float(square)))
    total = law = law / law.sum()
    for _ in range(parties - 1):
        total = np.convolve(total, law, mode="same")
    return float(2 * total[reach + bound + 1 :].sum())


@pytest.mark.parametrize(("square", "parties", "length"), GAUSSIAN_CASES)
def test_the_gaussian_bound_holds_and_is_not_wasteful(square: Fraction, parties: int, length: int) -> None:
    bound = gaussian_bound(square, parties, length)
    allowed = 2.0**-64 / length
    assert exact_gaussian_tail(bound, square, parties) <= allowed
    assert exact_gaussian_tail(int(bound / 1.07) - 2, square, parties) > allowed


@settings(max_examples=60, deadline=None)
@given(st.fractions(Fraction(1, 1000), 2**80), st.integers(1, 50), st.integers(1, 10**9))
def test_the_gaussian_bound_is_the_formula_within_a_unit(square: Fraction, parties: int, length: int) -> None:
    """B^2 >= 2 K s^2 (65 ln 2 + ln length), and B - 1 is too little for it."""
    bound = gaussian_bound(square, parties, length)
    with localcontext(prec=80):
        logarithm = 65 * Decimal(2).ln() + Decimal(length).ln()
        formula = logarithm * 2 * parties * square.numerator / square.denominator
        assert (bound - 1) ** 2 <= formula + 1
        assert formula <= bound**2


@pytest.mark.parametrize(("square", "parties", "length"), GAUSSIAN_CASES)
def test_the_gaussian_bound_depends_on_the_square(square: Fraction, parties: int, length: int) -> None:
    less, more = (gaussian_bound(square * factor, parties, length) for factor in OFF_BY)
    assert less < gaussian_bound(square, parties, length) < more
    assert gaussian_bound(square, 4 * parties, length) == gaussian_bound(4 * square, parties, length)


def test_gaussian_bounds_every_machine_must_agree_on() -> None:
    assert [gaussian_bound(*case) for case in GAUSSIAN_CASES] == [27, 41, 68, 192, 20, 2111]
