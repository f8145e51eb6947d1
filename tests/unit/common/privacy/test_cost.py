"""Costs are exact fractions that add up."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synod.common.privacy.cost import FREE, Cost

COSTS = st.fractions(min_value=0, max_value=1000).map(Cost)


@given(st.lists(COSTS, max_size=6), COSTS)
def test_costs_add_up_exactly(costs: list[Cost], other: Cost) -> None:
    total = Cost.total(costs)
    assert total.epsilon == sum((cost.epsilon for cost in costs), Fraction(0))
    assert (total + other) - other == total
    assert total.fits_within(total + other)
    assert (total + other).fits_within(total) == (other == FREE)


@given(COSTS)
def test_text_reads_back(cost: Cost) -> None:
    assert Cost.parse(str(cost)) == cost


def test_ten_tenths_are_one() -> None:
    assert Cost.total([Cost.of_decimal(Decimal("0.1"))] * 10) == Cost.of_decimal(Decimal(1))
    assert not (Cost.of_decimal(Decimal(1)) + Cost(Fraction(1, 10**40))).fits_within(Cost(Fraction(1)))


def test_nothing_costs_less_than_nothing() -> None:
    with pytest.raises(AssertionError):
        Cost(Fraction(-1, 10**9))
    with pytest.raises(AssertionError):
        FREE - Cost(Fraction(1))
    assert Cost.total([]) == FREE


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (Fraction(4, 5), "0.8"),
        (Fraction(2), "2"),
        (Fraction(1, 3), "1/3 (about 0.333333)"),
        (Fraction(1, 10**7), "1e-07"),
        (Fraction(10**9 + 1, 10**9), "1000000001/1000000000 (about 1)"),
    ],
)
def test_describe_says_when_it_rounds(fraction: Fraction, text: str) -> None:
    assert Cost(fraction).describe() == text
