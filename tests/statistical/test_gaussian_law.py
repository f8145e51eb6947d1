"""What K parties' discrete Gaussian shares add up to: the right s^2 is accepted, one 30 % off is rejected.

One function, `accepts_gaussian`, gives every verdict here, so each acceptance is by a test seen to reject.
"""

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from synod.common.privacy.coins import Coins
from synod.common.privacy.cost import Cost
from synod.common.privacy.gaussian import sample_discrete_gaussian
from synod.common.privacy.laws import GaussianLaw, Sensitivity, noise_for
from tests.support.laws import OFF_BY, accepts_gaussian

pytestmark = pytest.mark.slow

DRAWS = 400_000
SINGLE_DRAWS = 4_000_000

ROSTERS = [(2, 0), (5, 0), (49, 0), (3, 1), (5, 1), (5, 3), (10, 4)]
SQUARES = [Fraction(8), 8 + Fraction(1, 1024), Fraction(100), Fraction(10**6)]
RHOS = [Fraction(1, 4), Fraction(1, 500), Fraction(1, 10**6)]
SENSITIVITY = Sensitivity(10**9, 2)


def make_law(rho: Fraction, parties: int, collusion: int) -> GaussianLaw:
    law = noise_for(Cost.concentrated(rho), SENSITIVITY, parties=parties, threshold=collusion, rows_per_unit=1)
    assert isinstance(law, GaussianLaw)
    return law


def draw_party_shares(law: GaussianLaw) -> NDArray[np.int64]:
    """One row for each party, with coins of its own."""
    keys = (bytes([law.parties, law.threshold, party]).ljust(32, b"\0") for party in range(law.parties))
    return np.stack([law.sample(DRAWS, coins=Coins(key)) for key in keys])


def promised_share(rho: Fraction, parties: int, collusion: int) -> Fraction:
    """The s^2 of one share, from the study alone: sigma^2 = 1 / rho among those who are honest, and at least 8."""
    return max(Fraction(8), 1 / rho / (parties - collusion))


@pytest.mark.parametrize("square", SQUARES)
def test_one_share(square: Fraction) -> None:
    sample = sample_discrete_gaussian(SINGLE_DRAWS, square=square, coins=Coins(bytes(32)))
    assert accepts_gaussian(sample, square)
    for factor in [*OFF_BY, Fraction(99, 100), Fraction(101, 100)]:
        assert not accepts_gaussian(sample, square * factor)


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize(("parties", "collusion"), ROSTERS)
def test_the_sum_of_all_shares(parties: int, collusion: int, rho: Fraction) -> None:
    total = draw_party_shares(make_law(rho, parties, collusion)).sum(axis=0)
    square = promised_share(rho, parties, collusion)
    assert accepts_gaussian(total, square, parties)
    for factor in OFF_BY:
        assert not accepts_gaussian(total, square * factor, parties)


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize(("parties", "collusion"), ROSTERS)
def test_what_is_left_to_who_knows_the_colluders_shares(parties: int, collusion: int, rho: Fraction) -> None:
    shares = draw_party_shares(make_law(rho, parties, collusion))
    left = shares.sum(axis=0) - shares[:collusion].sum(axis=0)
    square = promised_share(rho, parties, collusion)
    assert accepts_gaussian(left, square, parties - collusion)
    assert left.var() > 0.99 / rho
    for factor in OFF_BY:
        assert not accepts_gaussian(left, square * factor, parties - collusion)


@pytest.mark.parametrize(("parties", "collusion"), [(3, 1), (5, 1), (10, 4)])
def test_shares_that_forget_the_colluders_are_rejected(parties: int, collusion: int) -> None:
    rho = Fraction(1, 500)
    left = draw_party_shares(make_law(rho, parties, 0))[collusion:].sum(axis=0)
    assert not accepts_gaussian(left, promised_share(rho, parties, collusion), parties - collusion)
