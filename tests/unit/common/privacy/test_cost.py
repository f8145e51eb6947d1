"""Costs are exact, add up, and have one written form that says of which kind they are."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synod.common.privacy.cost import FREE, Cost

NUMBERS = st.one_of(st.just(Fraction(0)), st.fractions(min_value=0, max_value=1000))
COSTS = st.builds(Cost, NUMBERS, NUMBERS)
ONE_KIND = st.one_of(NUMBERS.map(Cost.pure), NUMBERS.map(Cost.concentrated))


@given(st.lists(COSTS, max_size=6), COSTS)
def test_costs_add_up_exactly(costs: list[Cost], other: Cost) -> None:
    total = Cost.total(costs)
    assert total.epsilon == sum((cost.epsilon for cost in costs), Fraction(0))
    assert total.rho == sum((cost.rho for cost in costs), Fraction(0))
    assert (total + other) - other == total
    assert total.fits_within(total + other)
    assert (total + other).fits_within(total) == (other == FREE)


@given(COSTS)
def test_text_reads_back(cost: Cost) -> None:
    assert Cost.parse(str(cost)) == cost


@given(COSTS, COSTS)
def test_text_tells_costs_apart(one: Cost, other: Cost) -> None:
    assert (str(one) == str(other)) == (one == other)


@given(COSTS, st.fractions(min_value=Fraction(1, 10**9), max_value=1))
def test_neither_kind_makes_up_for_the_other(cap: Cost, more: Fraction) -> None:
    """However little of the one kind was spent, nothing of it can pay for the other."""
    assert Cost(cap.epsilon, cap.rho).fits_within(cap)
    assert not Cost(cap.epsilon + more, Fraction(0)).fits_within(cap)
    assert not Cost(Fraction(0), cap.rho + more).fits_within(cap)
    assert not Cost.pure(more).fits_within(Cost.concentrated(Fraction(1000)))
    assert not Cost.concentrated(more).fits_within(Cost.pure(Fraction(1000)))


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        (Cost.pure(Decimal("0.2")), "epsilon:1/5"),
        (Cost.pure(Fraction(2, 6)), "epsilon:1/3"),
        (Cost.pure(Decimal(7)), "epsilon:7"),
        (FREE, "epsilon:0"),
        (Cost.concentrated(Decimal(0)), "epsilon:0"),
        (Cost.concentrated(Decimal("0.01")), "rho:1/100"),
        (Cost.concentrated(Fraction(3)), "rho:3"),
        (Cost(Fraction(1, 5), Fraction(1, 100)), "epsilon:1/5+rho:1/100"),
        (Cost(Fraction(2), Fraction(3)), "epsilon:2+rho:3"),
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
        "rho", "rho:", "rho:0", "rho:0/1", "rho:2/4", "rho:1/0", "rho:01", "rho:-1", "rho:+1", "rho:0.2", "Rho:1",
        "rho:1 ", " rho:1", f"rho:{'9' * 1001}", f"rho:1/{'9' * 1001}",
        "+", "epsilon:1+", "+rho:1", "+epsilon:1", "rho:1+", "epsilon:1++rho:1", "epsilon:1rho:1", "epsilon:1 + rho:1",
        "epsilon:0+rho:1", "epsilon:1+rho:0", "epsilon:0+rho:0", "epsilon:2/4+rho:1", "epsilon:1+rho:2/4",
        "rho:1+epsilon:1", "rho:1+rho:1", "epsilon:1+epsilon:1", "epsilon:1,rho:1", "epsilon:1+rho:1+rho:1",
        "epsilon:1+delta:1", "epsilon:1-rho:1", "epsilon:1/0+rho:1", "epsilon:1+rho:1/0", "epsilon:1+rho:1\n",
        "delta:1/5", "Epsilon:1/5", "EPSILON:1/5", "epsilon:epsilon:1/5",
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
    assert cost.share(Decimal("0.25")) == cost.share(Fraction(1, 4))


@given(ONE_KIND, st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_a_share_knows_which_part_it_is(cost: Cost, weights: list[int]) -> None:
    parts = [Fraction(weight, sum(weights)) for weight in weights]
    if cost != FREE:
        assert [cost.share(part).part_of(cost) for part in parts] == parts


def test_parts_are_of_one_kind() -> None:
    pure, concentrated = Cost.pure(Fraction(1)), Cost.concentrated(Fraction(1))
    for part, whole in [(pure, concentrated), (concentrated, pure), (pure, pure + concentrated), (pure, FREE)]:
        with pytest.raises(AssertionError):
            part.part_of(whole)


def test_nothing_costs_less_than_nothing() -> None:
    with pytest.raises(AssertionError):
        Cost(Fraction(-1, 10**9))
    with pytest.raises(AssertionError):
        Cost(Fraction(1), Fraction(-1, 10**9))
    with pytest.raises(AssertionError):
        FREE - Cost(Fraction(1))
    with pytest.raises(AssertionError):
        Cost.pure(Fraction(5)) - Cost.concentrated(Fraction(1))
    assert Cost.total([]) == FREE


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (Fraction(4, 5), "epsilon 0.8"),
        (Fraction(2), "epsilon 2"),
        (Fraction(0), "epsilon 0"),
        (Fraction(1, 3), "epsilon 1/3 (about 0.333333)"),
        (Fraction(1, 10**7), "epsilon 1e-07"),
        (Fraction(10**9 + 1, 10**9), "epsilon 1.000000001"),
    ],
)
def test_describe_says_when_it_rounds(fraction: Fraction, text: str) -> None:
    assert Cost(fraction).describe() == text


def test_describe_names_both_kinds() -> None:
    assert Cost.concentrated(Fraction(1, 100)).describe() == "rho 0.01"
    assert Cost(Fraction(1, 5), Fraction(1, 3)).describe() == "epsilon 0.2 and rho 1/3 (about 0.333333)"
