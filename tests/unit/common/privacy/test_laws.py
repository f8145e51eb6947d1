"""The noise that a cost calls for: its scale, shape, variance and bound, and the costs that are too small for it."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synod.common.privacy.bounds import noise_bound
from synod.common.privacy.cost import Cost
from synod.common.privacy.laws import NoiseLaw, epsilon_of_each_draw, noise_for
from synod.common.privacy.noise import MAX_SCALE, sample_shares, share_variance
from synod.common.runtime.errors import Code, SynodError
from tests.support.keys import seeded
from tests.support.laws import OFF_BY, accepts

COST = Cost.pure(Decimal("0.4"))


@given(st.fractions(Fraction(1, 1000), 1000), st.integers(1, 10**6), st.integers(1, 30), st.data())
def test_scale_and_shape_are_those_of_the_protocol(
    epsilon: Fraction, sensitivity: int, parties: int, data: st.DataObject
) -> None:
    threshold = data.draw(st.integers(0, parties - 1))
    law = noise_for(Cost.pure(epsilon), sensitivity, parties=parties, threshold=threshold)
    assert law.sensitivity == sensitivity
    assert law.scale == sensitivity / epsilon
    assert law.shape == Fraction(1, parties - threshold)


def test_a_party_on_its_own_draws_all_of_the_noise() -> None:
    law = noise_for(COST, 2)
    assert (law.parties, law.threshold, law.shape, law.scale) == (1, 0, Fraction(1), Fraction(5))


@pytest.mark.parametrize(("parties", "threshold"), [(1, 0), (3, 0), (3, 2), (7, 3)])
def test_the_variance_is_that_of_all_shares_together(parties: int, threshold: int) -> None:
    law = noise_for(COST, 6, parties=parties, threshold=threshold)
    full = share_variance(shape=Fraction(1), scale=law.scale)
    assert law.variance == pytest.approx(full * parties / (parties - threshold))
    total = sum(law.sample(40_000, coins=seeded(party)) for party in range(parties))
    assert accepts(np.asarray(total), law.scale, Fraction(parties, parties - threshold))
    for factor in OFF_BY:
        assert not accepts(np.asarray(total), law.scale * factor, Fraction(parties, parties - threshold))


def test_a_share_is_the_samplers_with_the_laws_shape_and_scale() -> None:
    law = noise_for(COST, 6, parties=5, threshold=2)
    drawn = law.sample(100, coins=seeded(4))
    assert np.array_equal(drawn, sample_shares(100, shape=Fraction(1, 3), scale=Fraction(15), coins=seeded(4)))


@pytest.mark.parametrize("length", [1, 1000, 10**7])
def test_the_bound_is_over_all_numbers_and_all_parties(length: int) -> None:
    law = noise_for(COST, 6, parties=5, threshold=2)
    assert law.bound(length) == noise_bound(Fraction(15), 5, 2, length)
    assert law.bound(length) < law.bound(1000 * length)


def test_too_little_epsilon_is_refused_and_no_more_than_that() -> None:
    enough = Fraction(7) / MAX_SCALE
    assert noise_for(Cost.pure(enough), 7).scale == MAX_SCALE
    with pytest.raises(SynodError, match="too little epsilon for its sensitivity") as caught:
        noise_for(Cost.pure(enough * Fraction(10**9 - 1, 10**9)), 7)
    assert caught.value.code is Code.INVALID
    with pytest.raises(SynodError, match="too little epsilon"):
        noise_for(Cost.pure(enough), 8, parties=3, threshold=1)


@pytest.mark.parametrize(
    ("law", "stated"),
    [
        (noise_for(COST, 2), {"law": "discrete Laplace", "scale": "5", "sensitivity": "2"}),
        (
            noise_for(Cost.pure(Decimal("0.3")), 2, parties=3, threshold=1),
            {
                "law": "sum over parties of NB(r, a) - NB(r, a), a = exp(-1/scale)",
                "r": "1/2",
                "scale": "20/3",
                "sensitivity": "2",
            },
        ),
    ],
)
def test_the_law_is_stated_in_exact_numbers(law: NoiseLaw, stated: dict[str, Any]) -> None:
    assert law.to_json() == stated


@given(st.fractions(Fraction(1, 100), 100), st.integers(1, 50))
def test_draws_share_their_cost_evenly(epsilon: Fraction, draws: int) -> None:
    assert epsilon_of_each_draw(Cost.pure(epsilon), draws) * draws == epsilon
