"""Between rho and (epsilon, delta): the design's figures, and twins in decimals of 80 digits and by scipy."""

import decimal
from decimal import ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from synod.common.privacy.conversion import (
    RHO_DIGITS,
    SHOWN_DIGITS,
    epsilon_for,
    is_within,
    largest_rho,
    spent_epsilon,
)
from synod.common.privacy.cost import FREE, Cost

DIGITS = 80
DELTA = Fraction(1, 10**9)
DELTAS = [Fraction(1, 10**5), DELTA, Fraction(1, 10**30)]
EPSILONS = [Fraction(text) for text in ("1e-6", "0.001", "0.2", "0.8", "1.6", "10", "1000")]
CLOSELY = Decimal(10) ** -36  # what 2^-128 is in decimals


def to_decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / number.denominator


def log_delta(rho: Decimal, order: Decimal, epsilon: Decimal) -> Decimal:
    """The left side of the inequality, as the paper writes it, in the digits of the current context."""
    less = order - 1
    return less * (order * rho - epsilon) + order * (1 - 1 / order).ln() - less.ln()


def rho_at(order: Decimal, epsilon: Fraction, delta: Fraction) -> Decimal:
    """The rho at which the inequality is an equality."""
    with localcontext(prec=DIGITS):
        gap = to_decimal(delta).ln() - log_delta(Decimal(0), order, to_decimal(epsilon))
        return gap / (order * (order - 1))


def best_by_scipy(epsilon: Fraction, delta: Fraction) -> float:
    """The most rho over all orders, in floats, on a fine grid and then by scipy."""

    def negative_rho(log_less: float) -> float:
        less = np.exp(log_less)
        logs = less * np.log(less) - (1 + less) * np.log1p(less) - np.log(float(delta))
        return float(-(float(epsilon) - logs / less) / (1 + less))

    grid = np.linspace(-12, 30, 4201)
    start = float(grid[np.argmin([negative_rho(x) for x in grid])])
    found = optimize.minimize_scalar(negative_rho, bounds=(start - 0.02, start + 0.02), method="bounded")
    return float(-found.fun)


@pytest.mark.parametrize(
    ("epsilon", "rho", "order"),
    [
        ("0.2", "0.000675267735731", "153.431"),
        ("0.8", "0.00976032164611", "42.6963"),
        ("1.6", "0.0367404910698", "22.8825"),
    ],
)
def test_the_figures_of_the_design(epsilon: str, rho: str, order: str) -> None:
    """0.000675, 0.00976 and 0.03674 at the orders 153.4, 42.7 and 22.9; and every machine must agree on all digits."""
    assert largest_rho(Fraction(epsilon), DELTA) == (Decimal(rho), Decimal(order))


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_largest_rho_is_within_and_one_more_in_its_last_digit_is_not(epsilon: Fraction, delta: Fraction) -> None:
    rho, order = largest_rho(epsilon, delta)
    more = rho.next_plus(Context(prec=RHO_DIGITS))
    assert is_within(rho=Fraction(rho), order=Fraction(order), epsilon=epsilon, delta=delta)
    assert not is_within(rho=Fraction(more), order=Fraction(order), epsilon=epsilon, delta=delta)
    assert rho <= rho_at(order, epsilon, delta) < more


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_other_order_gives_more(epsilon: Fraction, delta: Fraction) -> None:
    assert float(largest_rho(epsilon, delta)[0]) == pytest.approx(best_by_scipy(epsilon, delta), rel=1e-9)


@settings(deadline=None)
@given(
    st.fractions(Fraction(1, 10**6), 1000),
    st.fractions(Fraction(10**6 + 1, 10**6), 10**9),
    st.fractions(Fraction(1, 10**30), Fraction(99, 100)),
)
def test_the_inequality_is_that_of_the_paper(epsilon: Fraction, order: Fraction, delta: Fraction) -> None:
    with localcontext(prec=DIGITS):
        a = to_decimal(order)
        edge = rho_at(a, epsilon, delta)
        step = CLOSELY / (a * (a - 1)) + abs(edge) * CLOSELY
    below, above = Fraction(edge) - Fraction(step), Fraction(edge) + Fraction(step)
    assert is_within(rho=below, order=order, epsilon=epsilon, delta=delta)
    assert not is_within(rho=above, order=order, epsilon=epsilon, delta=delta)


def test_what_rounding_leaves_open_is_not_within() -> None:
    """Half of the slack below the edge the inequality holds, but not certainly."""
    order = Decimal("42.6963")
    with localcontext(prec=DIGITS, rounding=ROUND_FLOOR):
        edge = rho_at(order, Fraction(4, 5), DELTA) - Decimal(2) ** -129 / (order * (order - 1))
    assert not is_within(rho=Fraction(edge), order=Fraction(order), epsilon=Fraction(4, 5), delta=DELTA)


@pytest.mark.parametrize("order", [Fraction(1), Fraction(0), Fraction(-3), Fraction(2**60), Fraction(2**61)])
def test_an_order_that_proves_nothing_is_not_within(order: Fraction) -> None:
    assert not is_within(rho=Fraction(1, 10**9), order=order, epsilon=Fraction(100), delta=DELTA)


def test_more_of_one_is_more_of_the_other() -> None:
    grid = [Fraction(2) ** power for power in range(-20, 11)]
    most = [largest_rho(epsilon, DELTA)[0] for epsilon in grid]
    assert all(one < other for one, other in pairwise(most))
    least = [epsilon_for(rho, DELTA) for rho in grid]
    assert all(one < other for one, other in pairwise(least))
    assert all(epsilon_for(rho, DELTAS[0]) < epsilon_for(rho, DELTA) < epsilon_for(rho, DELTAS[2]) for rho in grid)
    assert all(largest_rho(e, DELTAS[0]) > largest_rho(e, DELTA) > largest_rho(e, DELTAS[2]) for e in grid)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_there_and_back(epsilon: Fraction, delta: Fraction) -> None:
    """Shown is the least number of six digits that some order proves."""
    rho = Fraction(largest_rho(epsilon, delta)[0])
    shown = epsilon_for(rho, delta)
    less = Context(prec=SHOWN_DIGITS).next_minus(shown)
    assert less < to_decimal(epsilon) <= shown
    assert float(largest_rho(Fraction(shown), delta)[0]) >= float(rho)
    assert float(largest_rho(Fraction(less), delta)[0]) < float(rho)


def test_a_shown_epsilon_is_rounded_up_even_by_the_last_bit() -> None:
    """At a rho that is above what epsilon 0.8 allows by less than 256 bits can tell, 0.8 is not shown."""
    order = largest_rho(Fraction(4, 5), DELTA)[1]
    with localcontext(prec=DIGITS):
        rho = Fraction(rho_at(order, Fraction(4, 5), DELTA) * (1 + Decimal(10) ** (5 - DIGITS)))
    assert epsilon_for(rho, DELTA) == Decimal("0.800001")


@pytest.mark.parametrize(("precision", "rounding"), [(3, decimal.ROUND_UP), (9, decimal.ROUND_DOWN)])
def test_the_callers_decimal_context_decides_no_digit(precision: int, rounding: str) -> None:
    cost = Cost(Fraction(1, 7), Fraction(1, 70))
    expected = largest_rho(Fraction("1e-6"), DELTA), epsilon_for(Fraction(1, 3), DELTA), spent_epsilon(cost, DELTA)
    with localcontext(prec=precision, rounding=rounding):
        found = largest_rho(Fraction("1e-6"), DELTA), epsilon_for(Fraction(1, 3), DELTA), spent_epsilon(cost, DELTA)
    assert found == expected


def test_where_delta_alone_covers_it_epsilon_is_nothing() -> None:
    assert epsilon_for(Fraction(0), DELTA) == 0
    assert epsilon_for(Fraction(1, 2**90), DELTA) == 0
    assert largest_rho(Fraction(0), DELTA)[0] > 0
    assert largest_rho(Fraction(0), DELTAS[2])[0] == 0


COSTS = [
    (Cost.pure(Fraction(1, 10)), "beside"),
    (Cost.concentrated(Fraction(1, 100)), "beside"),
    (Cost(Fraction(1, 1000), Fraction(1, 100)), "together"),
    (Cost(Fraction(1, 100), Fraction(1, 100)), "together"),
    (Cost(Fraction(2), Fraction(1, 100)), "beside"),
]


@pytest.mark.parametrize(("cost", "better"), COSTS)
def test_spent_is_the_smaller_of_both_bounds(cost: Cost, better: str) -> None:
    bounds = {
        "beside": to_decimal(cost.epsilon) + epsilon_for(cost.rho, DELTA),
        "together": epsilon_for(cost.rho + cost.epsilon**2 / 2, DELTA),
    }
    spent = spent_epsilon(cost, DELTA)
    assert min(bounds, key=bounds.__getitem__) == better
    assert 0 <= spent - bounds[better] <= bounds[better] * Decimal(10) ** (1 - SHOWN_DIGITS)


def test_nothing_spent_is_nothing() -> None:
    assert spent_epsilon(FREE, DELTA) == 0
