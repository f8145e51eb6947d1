"""The noise that a cost calls for: its scale, shape, variance and bound, and the costs that are too small for it."""

from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synod.common.privacy.bounds import gaussian_bound, noise_bound
from synod.common.privacy.cost import Cost
from synod.common.privacy.gaussian import MAX_SQUARE, sample_discrete_gaussian
from synod.common.privacy.laws import (
    LEAST_RHO,
    LEAST_SQUARE,
    SHARE_SLACK,
    GaussianLaw,
    LaplaceLaw,
    NoiseLaw,
    Sensitivity,
    epsilon_of_each_draw,
    noise_for,
)
from synod.common.privacy.noise import MAX_SCALE, sample_shares, share_variance
from synod.common.runtime.errors import Code, SynodError
from tests.support.keys import seeded
from tests.support.laws import OFF_BY, accepts, accepts_gaussian

COST = Cost.pure(Decimal("0.4"))
RHO = Cost.concentrated(Decimal("0.01"))
WEIGHTS = st.lists(st.integers(1, 50), min_size=1, max_size=8)
TABLE = Sensitivity(2, 2)


def laplace_for(
    cost: Cost, absolute: int, *, part: Fraction = Fraction(1), parties: int = 1, threshold: int = 0
) -> LaplaceLaw:
    """The noise of a pure cost, for which the squared sensitivity must not matter."""
    law = noise_for(
        cost, Sensitivity(absolute, 10**9), part=part, parties=parties, threshold=threshold, rows_per_unit=1
    )
    assert isinstance(law, LaplaceLaw)
    return law


def gaussian_for(
    cost: Cost, squared: int, *, part: Fraction = Fraction(1), parties: int = 1, threshold: int = 0
) -> GaussianLaw:
    """The noise of a rho, for which the absolute sensitivity must not matter."""
    law = noise_for(cost, Sensitivity(10**9, squared), part=part, parties=parties, threshold=threshold, rows_per_unit=1)
    assert isinstance(law, GaussianLaw)
    return law


def rosters() -> st.SearchStrategy[tuple[int, int]]:
    """K and t."""
    return st.integers(1, 30).flatmap(lambda parties: st.tuples(st.just(parties), st.integers(0, parties - 1)))


@given(st.fractions(Fraction(1, 1000), 1000), st.integers(1, 10**6), rosters())
def test_scale_and_shape_are_those_of_the_protocol(
    epsilon: Fraction, sensitivity: int, roster: tuple[int, int]
) -> None:
    parties, threshold = roster
    law = laplace_for(Cost.pure(epsilon), sensitivity, parties=parties, threshold=threshold)
    assert law.sensitivity == sensitivity
    assert law.scale == sensitivity / epsilon
    assert law.shape == Fraction(1, parties - threshold)


def test_a_party_on_its_own_draws_all_of_the_noise() -> None:
    law = laplace_for(COST, 2)
    assert (law.parties, law.threshold, law.shape, law.scale) == (1, 0, Fraction(1), Fraction(5))


@pytest.mark.parametrize(("parties", "threshold"), [(1, 0), (3, 0), (3, 2), (7, 3)])
def test_the_variance_is_that_of_all_shares_together(parties: int, threshold: int) -> None:
    law = laplace_for(COST, 6, parties=parties, threshold=threshold)
    full = share_variance(shape=Fraction(1), scale=law.scale)
    assert law.variance == pytest.approx(full * parties / (parties - threshold))
    total = sum(law.sample(40_000, coins=seeded(party)) for party in range(parties))
    assert accepts(np.asarray(total), law.scale, Fraction(parties, parties - threshold))
    for factor in OFF_BY:
        assert not accepts(np.asarray(total), law.scale * factor, Fraction(parties, parties - threshold))


def test_a_share_is_the_samplers_with_the_laws_shape_and_scale() -> None:
    law = laplace_for(COST, 6, parties=5, threshold=2)
    drawn = law.sample(100, coins=seeded(4))
    assert np.array_equal(drawn, sample_shares(100, shape=Fraction(1, 3), scale=Fraction(15), coins=seeded(4)))


@pytest.mark.parametrize("length", [1, 1000, 10**7])
def test_the_bound_is_over_all_numbers_and_all_parties(length: int) -> None:
    law = laplace_for(COST, 6, parties=5, threshold=2)
    assert law.bound(length) == noise_bound(Fraction(15), 5, 2, length)
    assert law.bound(length) < law.bound(1000 * length)


def test_too_little_epsilon_is_refused_and_no_more_than_that() -> None:
    enough = Fraction(7) / MAX_SCALE
    assert laplace_for(Cost.pure(enough), 7).scale == MAX_SCALE
    with pytest.raises(SynodError, match="too little of the study's epsilon for its sensitivity") as caught:
        laplace_for(Cost.pure(enough * Fraction(10**9 - 1, 10**9)), 7)
    assert caught.value.code is Code.INVALID
    with pytest.raises(SynodError, match="too little"):
        laplace_for(Cost.pure(enough), 8, parties=3, threshold=1)
    with pytest.raises(SynodError, match="too little"):
        laplace_for(Cost.pure(enough), 7, part=Fraction(1, 2))


@pytest.mark.parametrize(
    ("law", "stated"),
    [
        (laplace_for(COST, 2), {"law": "discrete Laplace", "scale": "5", "sensitivity": "2"}),
        (
            laplace_for(Cost.pure(Decimal("0.3")), 2, parties=3, threshold=1),
            {
                "law": "sum over parties of NB(r, a) - NB(r, a), a = exp(-1/scale)",
                "r": "1/2",
                "scale": "20/3",
                "sensitivity": "2",
            },
        ),
        (
            GaussianLaw(2, Fraction(201, 2), 1, 0),
            {
                "law": "discrete Gaussian, P(z) ~ exp(-z^2 / (2 square))",
                "square": "201/2",
                "squared_sensitivity": "2",
            },
        ),
        (
            GaussianLaw(2, Fraction(8), 3, 1),
            {
                "law": "sum over parties of discrete Gaussians, P(z) ~ exp(-z^2 / (2 square))",
                "square": "8",
                "squared_sensitivity": "2",
            },
        ),
    ],
)
def test_the_law_is_stated_in_exact_numbers(law: NoiseLaw, stated: dict[str, Any]) -> None:
    assert law.to_json() == stated


@given(st.fractions(Fraction(1, 100), 100), st.integers(1, 50))
def test_draws_share_their_cost_evenly(epsilon: Fraction, draws: int) -> None:
    assert epsilon_of_each_draw(Cost.pure(epsilon), draws) * draws == epsilon


def test_the_kind_of_the_cost_decides_the_law() -> None:
    assert isinstance(noise_for(COST, TABLE, rows_per_unit=1), LaplaceLaw)
    assert isinstance(noise_for(RHO, TABLE, rows_per_unit=1), GaussianLaw)
    for cost in (COST + RHO, Cost()):
        with pytest.raises(AssertionError):
            noise_for(cost, TABLE, rows_per_unit=1)


@pytest.mark.parametrize("cost", [COST, RHO])
@pytest.mark.parametrize(("parties", "threshold"), [(3, 3), (3, 4), (1, 1), (3, -1)])
def test_there_is_an_honest_party(cost: Cost, parties: int, threshold: int) -> None:
    with pytest.raises(AssertionError):
        noise_for(cost, TABLE, parties=parties, threshold=threshold, rows_per_unit=1)


@pytest.mark.parametrize("cost", [COST, RHO])
@pytest.mark.parametrize("part", [Fraction(0), Fraction(-1, 2), Fraction(11, 10)])
def test_a_part_is_not_more_than_the_whole(cost: Cost, part: Fraction) -> None:
    with pytest.raises(AssertionError):
        noise_for(cost, TABLE, part=part, rows_per_unit=1)


def test_sensitivities_of_several_vectors_add_up() -> None:
    assert Sensitivity(2, 3).times(5) == Sensitivity(10, 15)


@given(st.fractions(LEAST_RHO, 10), st.integers(1, 10**6), rosters(), st.fractions(Fraction(1, 1000), 1))
def test_the_share_is_the_least_that_is_enough(
    rho: Fraction, squared: int, roster: tuple[int, int], part: Fraction
) -> None:
    """sigma^2 = Delta^2 / (2 part (rho - 2^-60)) in K-t shares, rounded up to 1/1024, and at least 8."""
    parties, threshold = roster
    law = gaussian_for(Cost.concentrated(rho), squared, part=part, parties=parties, threshold=threshold)
    honest = parties - threshold
    needed = Fraction(squared) / (2 * part * (rho - Fraction(1, 2**60)))
    assert (law.sensitivity, law.parties, law.threshold) == (squared, parties, threshold)
    assert law.square >= 8
    assert (law.square * 1024).denominator == 1
    assert law.square * honest >= needed
    assert law.square == 8 or (law.square - Fraction(1, 1024)) * honest < needed
    assert law.variance == pytest.approx(float(parties * law.square))


def test_shares_in_numbers() -> None:
    assert gaussian_for(RHO, 2, parties=3, threshold=1).square == 50 + Fraction(1, 1024)
    assert gaussian_for(RHO, 2).square == 100 + Fraction(1, 1024)
    assert gaussian_for(RHO, 2, part=Fraction(1, 4)).square == 400 + Fraction(1, 1024)
    assert gaussian_for(RHO, 2, parties=30, threshold=1).square == LEAST_SQUARE == 8


@given(st.fractions(LEAST_RHO, 10), WEIGHTS, st.integers(1, 10**4), rosters())
def test_parts_of_rho_that_add_up_to_one_cost_at_most_rho(
    rho: Fraction, weights: list[int], squared: int, roster: tuple[int, int]
) -> None:
    """To whoever knows t shares: the sum of Delta^2 / (2 (K-t) s^2), and what it leaves for the theorem's tau."""
    parties, threshold = roster
    parts = [Fraction(weight, sum(weights)) for weight in weights]
    laws = [
        gaussian_for(Cost.concentrated(rho), squared, part=part, parties=parties, threshold=threshold) for part in parts
    ]
    assert sum(Fraction(squared) / (2 * (parties - threshold) * law.square) for law in laws) <= rho - SHARE_SLACK


@given(st.fractions(Fraction(1, 1000), 10), WEIGHTS, st.integers(1, 10**4))
def test_parts_of_epsilon_that_add_up_to_one_cost_epsilon(epsilon: Fraction, weights: list[int], absolute: int) -> None:
    parts = [Fraction(weight, sum(weights)) for weight in weights]
    laws = [laplace_for(Cost.pure(epsilon), absolute, part=part) for part in parts]
    assert sum(absolute / law.scale for law in laws) == epsilon


def test_what_is_held_back_pays_for_what_a_sum_of_shares_lacks() -> None:
    """10 sum over k < m of exp(-2 pi^2 s^2 k/(k+1)) at the least s^2, for rosters of up to 1000 and 2^30 integers."""
    with localcontext(prec=50):
        pi = Decimal("3.14159265358979323846264338327950288419716939937510")
        square = Decimal(LEAST_SQUARE.numerator)
        taus = [(-2 * pi * pi * square * k / (k + 1)).exp() for k in range(1, 1000)]
        tau = 10 * sum(taus)
        assert tau < Decimal(2) ** -110
        assert tau * 2**30 < Decimal(2) ** -80 < Decimal(SHARE_SLACK.numerator) / SHARE_SLACK.denominator


@pytest.mark.parametrize(("parties", "threshold"), [(1, 0), (3, 1)])
def test_too_little_rho_is_refused_and_no_more_than_that(parties: int, threshold: int) -> None:
    assert gaussian_for(Cost.concentrated(LEAST_RHO), 2, parties=parties, threshold=threshold).square > 2**38
    with pytest.raises(SynodError, match="too little") as caught:
        gaussian_for(Cost.concentrated(LEAST_RHO - Fraction(1, 2**80)), 2, parties=parties, threshold=threshold)
    assert caught.value.code is Code.INVALID


def test_a_sensitivity_beyond_the_sampler_is_refused() -> None:
    most = int(2 * MAX_SQUARE * (LEAST_RHO - SHARE_SLACK))
    assert gaussian_for(Cost.concentrated(LEAST_RHO), most).square <= MAX_SQUARE
    with pytest.raises(SynodError, match="too little"):
        gaussian_for(Cost.concentrated(LEAST_RHO), most + 1)
    with pytest.raises(SynodError, match="too little"):
        gaussian_for(Cost.concentrated(LEAST_RHO), most, part=Fraction(1, 2))


def test_a_gaussian_share_is_the_samplers_with_the_laws_square() -> None:
    law = gaussian_for(RHO, 6, parties=5, threshold=2)
    drawn = law.sample(100, coins=seeded(4))
    assert np.array_equal(drawn, sample_discrete_gaussian(100, square=law.square, coins=seeded(4)))


@pytest.mark.parametrize(("parties", "threshold"), [(1, 0), (3, 0), (3, 2), (7, 3)])
def test_the_gaussian_variance_is_that_of_all_shares_together(parties: int, threshold: int) -> None:
    law = gaussian_for(RHO, 2, parties=parties, threshold=threshold)
    assert law.variance == pytest.approx(100 * parties / (parties - threshold), rel=1e-3)
    total = np.sum([law.sample(40_000, coins=seeded(party)) for party in range(parties)], axis=0)
    assert accepts_gaussian(total, Fraction(law.variance) / parties, parties)
    for factor in OFF_BY:
        assert not accepts_gaussian(total, law.square * factor, parties)


@pytest.mark.parametrize("length", [1, 1000, 10**7])
def test_the_gaussian_bound_is_over_all_numbers_and_all_parties(length: int) -> None:
    law = gaussian_for(RHO, 6, parties=5, threshold=2)
    assert law.bound(length) == gaussian_bound(law.square, 5, length)
    assert law.bound(length) < law.bound(1000 * length)


@given(st.fractions(LEAST_RHO, 100), st.integers(1, 1000))
def test_draws_under_rho_cost_at_most_rho_and_waste_next_to_nothing(rho: Fraction, draws: int) -> None:
    """What is epsilon-DP is epsilon^2/2-zCDP; never epsilon^2/8, which permute-and-flip is not known to keep."""
    epsilon = epsilon_of_each_draw(Cost.concentrated(rho), draws)
    assert epsilon > 0
    assert (epsilon * 2**64).denominator == 1
    assert draws * epsilon**2 / 2 <= rho < draws * (epsilon + Fraction(1, 2**64)) ** 2 / 2


def test_draws_refuse_what_noise_refuses() -> None:
    with pytest.raises(SynodError, match="too little"):
        epsilon_of_each_draw(Cost.concentrated(LEAST_RHO - Fraction(1, 2**80)), 1)
    for cost in (COST + RHO, Cost()):
        with pytest.raises(AssertionError):
            epsilon_of_each_draw(cost, 1)
