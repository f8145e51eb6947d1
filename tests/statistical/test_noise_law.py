"""What K parties' noise shares add up to: the right scale is accepted, one 30 % off is rejected.

One function, `accepts`, gives every verdict here, so each acceptance is by a test seen to reject.
"""

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from synod.common.privacy.coins import Coins
from synod.common.privacy.noise import sample_shares, share_variance
from tests.support.laws import OFF_BY, accepts

pytestmark = pytest.mark.slow

DRAWS = 400_000

ROSTERS = [(2, 0), (5, 0), (49, 0), (3, 1), (5, 1), (5, 3), (10, 4)]
SCALES = [Fraction(3, 2), Fraction(30), Fraction(400)]


def draw_party_shares(parties: int, collusion: int, scale: Fraction) -> NDArray[np.int64]:
    """One row for each party, with coins of its own."""
    shape = Fraction(1, parties - collusion)
    keys = (bytes([parties, collusion, party]).ljust(32, b"\0") for party in range(parties))
    return np.stack([sample_shares(DRAWS, shape=shape, scale=scale, coins=Coins(key)) for key in keys])


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("parties", "collusion"), ROSTERS)
def test_the_sum_of_all_shares(parties: int, collusion: int, scale: Fraction) -> None:
    total = draw_party_shares(parties, collusion, scale).sum(axis=0)
    total_shape = Fraction(parties, parties - collusion)
    assert accepts(total, scale, total_shape)
    for factor in OFF_BY:
        assert not accepts(total, scale * factor, total_shape)
        assert not accepts(total, scale, total_shape * factor)


@pytest.mark.parametrize("scale", [*SCALES, Fraction(50_000_000)])
@pytest.mark.parametrize(("parties", "collusion"), ROSTERS)
def test_what_is_left_to_who_knows_the_colluders_shares(parties: int, collusion: int, scale: Fraction) -> None:
    shares = draw_party_shares(parties, collusion, scale)
    left = shares.sum(axis=0) - shares[:collusion].sum(axis=0)
    assert accepts(left, scale)
    for factor in OFF_BY:
        assert not accepts(left, scale * factor)


@pytest.mark.parametrize(("parties", "collusion"), [(3, 1), (5, 1), (10, 4)])
def test_shares_that_forget_the_colluders_are_rejected(parties: int, collusion: int) -> None:
    scale = Fraction(30)
    left = draw_party_shares(parties, 0, scale)[collusion:].sum(axis=0)
    assert not accepts(left, scale)


@pytest.mark.parametrize(("parties", "collusion"), [(3, 1), (5, 3), (10, 4)])
def test_the_variance_is_that_of_the_central_model_times_what_collusion_costs(parties: int, collusion: int) -> None:
    scale = Fraction(30)
    total = draw_party_shares(parties, collusion, scale).sum(axis=0)
    central = share_variance(shape=Fraction(1), scale=scale)
    assert total.var() / central == pytest.approx(parties / (parties - collusion), rel=0.02)
