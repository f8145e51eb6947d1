"""Costs are exact, add up, and have one written form that says of which kind they are."""

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
    assert str(cost).startswith("epsilon:")
    assert Cost.parse(str(cost)) == cost


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        (Cost.pure(Decimal("0.2")), "epsilon:1/5"),
        (Cost.pure(Fraction(2, 6)), "epsilon:1/3"),
        (Cost.pure(Decimal(7)), "epsilon:7"),
        (FREE, "epsilon:0"),
        (Cost(Fraction(1, 10**70)), f"epsilon:1/1{'0' * 70}"),
    ],
)
def test_a_cost_says_of_which_kind_it_is(cost: Cost, text: str) -> None:
    assert str(cost) == text
    assert Cost.parse(text) == cost


@pytest.mark.parametrize(
    "text",
    [
        "1/5", "0.2", "2", "", "epsilon", "epsilon:", "epsilon=1/5", "epsilon1/5",  # untagged, or nothing behind it
        "epsilon:2/4", "epsilon:5/5", "epsilon:3/1", "epsilon:0/5", "epsilon:01", "epsilon:1/05",  # unreduced
        "epsilon:-1/5", "epsilon:1/-5", "epsilon:-0", "epsilon:+1/5",
        "epsilon:1/0", "epsilon:0/0", "epsilon:1/", "epsilon:/5", "epsilon:1/2/3",
        "rho:1/5", "delta:1/5", "Epsilon:1/5", "EPSILON:1/5", "epsilon:epsilon:1/5",
        " epsilon:1/5", "epsilon:1/5 ", "epsilon: 1/5", "epsilon :1/5", "epsilon:1 /5", "epsilon:1/5\n",
        "epsilon:1/5\0", "epsilon:0.2", "epsilon:2e-1", "epsilon:1_0", "epsilon:inf", "epsilon:nan", "epsilon:0x1",
        "epsilon:\u0661", "epsilon:\u00b9", f"epsilon:{'9' * 1001}", f"epsilon:1/{'9' * 1001}",
    ],
)  # fmt: skip
def test_any_other_text_is_no_cost(text: str) -> None:
    with pytest.raises(ValueError, match="not a cost"):
        Cost.parse(text)


def test_ten_tenths_are_one() -> None:
    assert Cost.total([Cost.pure(Decimal("0.1"))] * 10) == Cost.pure(Decimal(1))
    assert not (Cost.pure(Decimal(1)) + Cost(Fraction(1, 10**40))).fits_within(Cost(Fraction(1)))


@given(COSTS, st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_shares_that_add_up_to_one_add_up_to_the_whole(cost: Cost, weights: list[int]) -> None:
    parts = [Fraction(weight, sum(weights)) for weight in weights]
    shares = [cost.share(part) for part in parts]
    assert Cost.total(shares) == cost
    if cost != FREE:
        assert [share.part_of(cost) for share in shares] == parts
    assert cost.share(Decimal("0.25")) == cost.share(Fraction(1, 4))


def test_nothing_costs_less_than_nothing() -> None:
    with pytest.raises(AssertionError):
        Cost(Fraction(-1, 10**9))
    with pytest.raises(AssertionError):
        FREE - Cost(Fraction(1))
    assert Cost.total([]) == FREE


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (Fraction(4, 5), "epsilon 0.8"),
        (Fraction(2), "epsilon 2"),
        (Fraction(0), "epsilon 0"),
        (Fraction(1, 3), "epsilon 1/3 (about 0.333333)"),
        (Fraction(1, 10**7), "epsilon 1e-07"),
        (Fraction(10**9 + 1, 10**9), "epsilon 1000000001/1000000000 (about 1)"),
    ],
)
def test_describe_says_when_it_rounds(fraction: Fraction, text: str) -> None:
    assert Cost(fraction).describe() == text
