"""The judge of an audit: its intervals, what it makes of rates, and that it finds out a mechanism that lies."""

from fractions import Fraction
from math import exp, log, sqrt

import numpy as np
import pytest
from scipy import stats

from bench.audit.bounds import ERROR, MOST_INTERVALS, choose_event, least_loss, most_loss, rate_interval
from bench.audit.noise import scaled_noise
from bench.audit.seen import Seen, tell_apart
from synod.common.privacy.coins import Coins
from synod.common.privacy.cost import FREE, Cost
from synod.common.privacy.laws import GaussianLaw, LaplaceLaw
from synod.party.count import parents

ONE = Cost.pure(Fraction(1))
HALF_RHO = Cost.concentrated(Fraction(1, 2))


def test_a_sound_program_fails_one_audit_in_ten_thousand() -> None:
    assert pytest.approx(1e-4) == ERROR * MOST_INTERVALS


@pytest.mark.parametrize(("hits", "runs"), [(0, 50), (1, 50), (20, 50), (50, 50), (150, 1500)])
def test_the_ends_of_an_interval_explain_what_was_seen_just_so(hits: int, runs: int) -> None:
    low, high = rate_interval(hits, runs)
    assert (low == 0) == (hits == 0)
    assert (high == 1) == (hits == runs)
    if hits:
        assert stats.binom.sf(hits - 1, runs, low) == pytest.approx(ERROR)
    if hits < runs:
        assert stats.binom.cdf(hits, runs, high) == pytest.approx(ERROR)


def test_a_pure_loss_is_the_log_of_the_ratio() -> None:
    assert least_loss(ONE, 0.5, 0.1) == pytest.approx(log(5))
    assert least_loss(ONE, 0.1, 0.5) == 0
    assert least_loss(FREE, 0.2, 0.2) == 0


@pytest.mark.parametrize("threshold", [-1.0, 0.0, 0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("shift", [0.5, 1.0, 3.0])
def test_no_event_of_a_gaussian_shows_more_rho_than_it_has(shift: float, threshold: float) -> None:
    more, less = stats.norm.sf(threshold - shift), stats.norm.sf(threshold)
    shown = least_loss(HALF_RHO, more, less)
    assert 0 < shown <= shift**2 / 2
    assert shown > 0.9 * (more * log(more / less) + (1 - more) * log((1 - more) / (1 - less)))


def draw_laplace(rng: np.random.Generator, runs: int, shift: float, scale: float) -> list[Seen]:
    return [Seen(numbers=np.array([number])) for number in shift + rng.laplace(0, scale, runs)]


def draw_gaussian(rng: np.random.Generator, runs: int, shift: float, scale: float) -> list[Seen]:
    return [Seen(numbers=np.array([number])) for number in shift + rng.normal(0, scale, runs)]


@pytest.mark.parametrize(("claim", "draw"), [(ONE, draw_laplace), (HALF_RHO, draw_gaussian)])
def test_the_claimed_noise_passes_and_half_of_it_does_not(claim: Cost, draw: object) -> None:
    """Both claims are of noise of scale 1 on a number that moves by 1."""
    assert callable(draw)
    rng = np.random.default_rng(3)
    for scale in (1.0, 0.5):
        found = tell_apart(claim, draw(rng, 2000, 0.0, scale), draw(rng, 2000, 1.0, scale), 500)
        assert found.holds == (scale == 1.0)
        assert found.runs == 1500
        assert found.bound <= most_loss(claim) / scale ** (2 if claim.rho else 1)
        assert found.bound > 0.2 * most_loss(claim)


def test_events_are_chosen_by_runs_that_are_not_counted() -> None:
    """A score that tells apart by chance in training shows nothing afterwards."""
    rng = np.random.default_rng(1)
    sides = [[Seen(scores={"chance": score}) for score in rng.normal(size=400)] for _ in range(2)]
    for place in range(100):
        sides[1][place] = Seen(scores={"chance": 10.0})
    assert tell_apart(FREE, sides[0], sides[1], 100).bound == 0


def test_choices_are_weighed_by_how_often_they_were_drawn() -> None:
    rng = np.random.default_rng(2)
    sides = [[Seen(choices=(("a", int(drawn)),)) for drawn in rng.random(3000) < chance] for chance in (0.1, 0.6)]
    found = tell_apart(ONE, sides[0], sides[1], 300)
    assert found.way == "choices with the ratio"
    assert 1.2 < found.bound < log(6)


def test_an_event_may_be_what_the_canary_makes_rare() -> None:
    without, canary = np.r_[np.ones(500), np.zeros(500)], np.zeros(1000)
    event = choose_event(ONE, without, canary)
    assert not event.with_canary
    assert event.loss(ONE, without, canary) > 2


def test_scaled_noise_is_scaled_and_nothing_else_is() -> None:
    laplace, gaussian = LaplaceLaw(1, Fraction(20), 1, 0), GaussianLaw(1, Fraction(400), 1, 0)
    coins = Coins(bytes(32))
    with scaled_noise(Fraction(1, 2)):
        assert np.std(laplace.sample(20_000, coins=coins)) == pytest.approx(10 * sqrt(2), rel=0.05)
        assert np.std(gaussian.sample(20_000, coins=coins)) == pytest.approx(10, rel=0.05)
        scores = np.array([0, 4])
        drawn = [
            vars(parents)["permute_and_flip"](scores, epsilon=Fraction(1), sensitivity=2, coins=coins)
            for _ in range(4000)
        ]
        assert drawn.count(0) / 4000 == pytest.approx(exp(-2) / 2, rel=0.15)
        assert laplace.variance == pytest.approx(800, rel=0.01)
    assert np.std(laplace.sample(20_000, coins=coins)) == pytest.approx(20 * sqrt(2), rel=0.05)
    assert np.std(gaussian.sample(20_000, coins=coins)) == pytest.approx(20, rel=0.05)
