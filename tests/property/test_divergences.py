"""Renyi divergences of the noise itself, computed from its probabilities, against what a cost promises of them.

The shares' sums are convolved in 256-bit floats of GMP, about 77 digits; every number is positive, so none is lost.
Each bound must hold, and must fail for a claim of 30 % more noise than there is.
"""

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import cache
from itertools import product
from typing import TypeVar

import gmpy2
import pytest
from gmpy2 import mpfr

from synod.common.privacy.cost import Cost
from synod.common.privacy.laws import GaussianLaw, LaplaceLaw, Sensitivity, noise_for

PRECISION = 256
ROUNDING = mpfr("1e-60")
REACH = 180  # the largest order times the largest shift, and a dozen deviations
SQUARES = [1, 2, 8]
SHARES = [1, 2, 3, 4, 5]
ORDERS = [Fraction(3, 2), Fraction(2), Fraction(8), Fraction(42)]
SHIFTS = [1, 2, 3]
OVERCLAIM = Fraction(13, 10)

Law = dict[int, mpfr]
T = TypeVar("T")
Logs = Callable[[T], mpfr]


@pytest.fixture(autouse=True)
def _precise() -> Iterator[None]:
    with gmpy2.context(precision=PRECISION):
        yield


def normalize(weights: Law) -> Law:
    total = gmpy2.fsum(list(weights.values()))
    return {value: weight / total for value, weight in weights.items()}


@cache
def convolve_gaussians(square: int, shares: int) -> Law:
    """The law of a sum of discrete Gaussians on [-REACH, REACH], from the definition."""
    places = range(-REACH, REACH + 1)
    one = normalize({z: gmpy2.exp(mpfr(-z * z) / (2 * square)) for z in places})
    if shares == 1:
        return one
    rest = convolve_gaussians(square, shares - 1)
    half = {
        z: gmpy2.fsum([rest[y] * one[z - y] for y in range(max(-REACH, z - REACH), min(REACH, z + REACH) + 1)])
        for z in range(REACH + 1)
    }
    return {z: half[abs(z)] for z in places}


@cache
def take_logs(square: int, shares: int) -> Law:
    return {z: gmpy2.log(mass) for z, mass in convolve_gaussians(square, shares).items()}


def diverge(logs: Logs[T], moved: Logs[T], order: Fraction, places: Iterable[T]) -> mpfr:
    """D_a(P || Q) = ln(sum of P^a Q^(1-a)) / (a-1), of logarithms of probabilities."""
    a = mpfr(gmpy2.mpq(order))
    return gmpy2.log(gmpy2.fsum([gmpy2.exp(a * logs(z) + (1 - a) * moved(z)) for z in places])) / (a - 1)


@cache
def divergence_of_sum(square: int, shares: int, order: Fraction, shift: int) -> mpfr:
    """D_a(Z || Z + x)."""
    logs = take_logs(square, shares)
    return diverge(logs.__getitem__, lambda z: logs[z - shift], order, range(-REACH + shift, REACH + 1))


def tau(square: int, shares: int) -> mpfr:
    """What Kairouz, Liu and Steinke (2021), proposition 14, add for each coordinate."""
    exponents = [-2 * gmpy2.const_pi() ** 2 * square * k / (k + 1) for k in range(1, shares)]
    return 10 * sum((gmpy2.exp(exponent) for exponent in exponents), mpfr(0))


def rho_term(square: int | Fraction, shares: int, order: Fraction, shift: int) -> mpfr:
    return mpfr(gmpy2.mpq(order * shift**2 / (2 * shares * Fraction(square))))


@pytest.mark.parametrize("shares", SHARES)
@pytest.mark.parametrize("square", SQUARES)
def test_sums_of_shares_keep_to_the_theorem(square: int, shares: int) -> None:
    for order, shift in product(ORDERS, SHIFTS):
        divergence, slack = divergence_of_sum(square, shares, order, shift), tau(square, shares)
        assert divergence <= rho_term(square, shares, order, shift) + slack + ROUNDING
        assert divergence > rho_term(square * OVERCLAIM, shares, order, shift) + slack


def test_the_reach_is_far_enough() -> None:
    """At the largest order and shift, what lies at the ends of the sum adds nothing to it."""
    logs = take_logs(8, 5)
    terms = [42 * logs[z] - 41 * logs[z - 3] for z in range(-REACH + 3, REACH + 1)]
    assert max(terms[:5] + terms[-5:]) - max(terms) < -30


@pytest.mark.parametrize(("order", "excess"), [(2, 0), (8, 1.47e-7), (16, 3.2e-7), (42, 8.77e-7)])
def test_a_sum_of_small_shares_is_no_gaussian(order: int, excess: float) -> None:
    """The design's figures, s^2 = 1 and two shares: an excess of 3.2e-7 at order 16, where the theorem has 5.2e-4."""
    found = max(divergence_of_sum(1, 2, Fraction(order), x) - rho_term(1, 2, Fraction(order), x) for x in SHIFTS)
    assert float(found) == pytest.approx(excess, rel=0.01, abs=1e-60)
    assert float(tau(1, 2)) == pytest.approx(5.2e-4, rel=0.01)


def test_at_the_least_square_the_excess_is_far_below_what_is_held_back() -> None:
    for shares, order, shift in product(SHARES, ORDERS, SHIFTS):
        excess = divergence_of_sum(8, shares, order, shift) - rho_term(8, shares, order, shift)
        assert excess < tau(8, 5) < mpfr(2) ** -110


# Two kinds in one account: a pure answer, and a Gaussian one that is asked depending on it.

EPSILON, RHO = Fraction(1, 2), Fraction(1, 8)
ABSOLUTE, SHIFT = 2, 2
LAPLACE_REACH, GAUSSIAN_REACH = 80, 130


def compose() -> tuple[Logs[tuple[int, int]], Logs[tuple[int, int]]]:
    """Logarithms of the joint probabilities of both answers, on one table and on its neighbour.

    The second question is another one where the first answer is odd, and there the row moves it the other way.
    """
    pure = noise_for(Cost.pure(EPSILON), Sensitivity(ABSOLUTE, 10**9), rows_per_unit=1)
    concentrated = noise_for(Cost.concentrated(RHO), Sensitivity(10**9, SHIFT**2), rows_per_unit=1)
    assert isinstance(pure, LaplaceLaw)
    assert isinstance(concentrated, GaussianLaw)
    scale, square = (mpfr(gmpy2.mpq(number)) for number in (pure.scale, concentrated.square))
    tail = gmpy2.exp(-1 / scale)
    log_laplace = gmpy2.log((1 - tail) / (1 + tail))
    sizes = [gmpy2.exp(-mpfr(z * z) / (2 * square)) for z in range(-4 * GAUSSIAN_REACH, 4 * GAUSSIAN_REACH + 1)]
    log_gaussian = -gmpy2.log(gmpy2.fsum(sizes))

    def joint(moved: int, first: int, second: int) -> mpfr:
        step = moved * (-SHIFT if first % 2 else SHIFT)
        laplace = log_laplace - abs(first - moved * ABSOLUTE) / scale
        return laplace + log_gaussian - mpfr((second - step) ** 2) / (2 * square)

    return (lambda answers: joint(0, *answers)), (lambda answers: joint(1, *answers))


@pytest.mark.parametrize("order", ORDERS)
def test_a_pure_and_a_gaussian_answer_together_cost_epsilon_and_rho(order: Fraction) -> None:
    """Neither kind is free; and at large orders, where discrete Laplace noise costs its epsilon, all of it is spent."""
    here, there = compose()
    answers = product(range(-LAPLACE_REACH, LAPLACE_REACH + 1), range(-GAUSSIAN_REACH, GAUSSIAN_REACH + 1))
    divergence = diverge(here, there, order, answers)
    promised, rho_alone = (mpfr(gmpy2.mpq(number)) for number in (EPSILON + order * RHO, order * RHO))
    assert rho_alone < divergence <= promised
    if order >= 8:
        assert divergence > promised / mpfr(OVERCLAIM)
