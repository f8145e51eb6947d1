"""Between rho and the pair of epsilon and delta that people are told (Canonne, Kamath and Steinke 2020, corollary 13).

What is rho-zCDP is (epsilon, delta)-DP if, for some order a > 1,

    (a-1)(a rho - epsilon) + a ln(1 - 1/a) - ln(a-1) <= ln delta.

Rounding never helps: the inequality is said to hold only where it holds whichever way the last digits were rounded.
"""

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal, Inexact
from fractions import Fraction

import gmpy2

from synod.common.privacy.cost import Cost

RHO_DIGITS = 12
ORDER_DIGITS = 6
SHOWN_DIGITS = 6
_PRECISION = 256
_SLACK = Fraction(1, 2**128)
_MOST_ORDER = 2**60
_LOG_ORDERS = (-12, 40)  # where ln(a-1) is searched; the best order lies inside for every epsilon a study may have
_ROUNDS = 100
# Their own contexts, for that of the caller's thread must not decide a digit.
_RHO = Context(prec=RHO_DIGITS, rounding=ROUND_FLOOR)
_ORDER = Context(prec=ORDER_DIGITS, rounding=ROUND_HALF_EVEN)
_SHOWN = Context(prec=SHOWN_DIGITS, rounding=ROUND_CEILING)
_EXACT = Context(prec=64, traps=[Inexact])


def is_within(*, rho: Fraction, order: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether the inequality above is certain to hold at this order.

    Guarantee: if True, whatever is rho-zCDP is (epsilon, delta)-DP: the linear part is exact, and `_log_terms` is from
    above.
    """
    assert 0 < delta < 1
    if not 1 < order < _MOST_ORDER:
        return False
    return (order - 1) * (order * rho - epsilon) + _log_terms(order, delta) <= 0


def largest_rho(epsilon: Fraction, delta: Fraction) -> tuple[Decimal, Decimal]:
    """The most rho within (epsilon, delta), and the order that shows it, as short decimals for a resolved study.

    The same decimals on every machine: MPFR rounds each operation correctly, and the rest is exact. Rho is 0 where
    epsilon and delta are so small that no order leaves room for any.
    """
    order = _search_order(lambda a: _rho_at(a, epsilon, delta))
    return _decimal(max(Fraction(0), _rho_at(Fraction(order), epsilon, delta)), _RHO), order


def epsilon_for(rho: Fraction, delta: Fraction) -> Decimal:
    """The least epsilon that rho is known to keep within at this delta, rounded up to six digits, for people."""
    if rho == 0:
        return Decimal(0)
    order = Fraction(_search_order(lambda a: -_epsilon_at(a, rho, delta)))
    return _decimal(max(Fraction(0), _epsilon_at(order, rho, delta)), _SHOWN)


def spent_epsilon(cost: Cost, delta: Fraction) -> Decimal:
    """The least epsilon known for a cost of both kinds at this delta.

    Guarantee: the cost is (this, delta)-DP: the pure part adds its epsilon to that of the rest, or counts as
    epsilon^2/2 of rho (Bun and Steinke 2016, proposition 1.4), whichever is less.
    """
    beside = Fraction(epsilon_for(cost.rho, delta)) + cost.epsilon
    together = Fraction(epsilon_for(cost.rho + cost.epsilon**2 / 2, delta))
    return _decimal(min(beside, together), _SHOWN)


def _rho_at(order: Fraction, epsilon: Fraction, delta: Fraction) -> Fraction:
    """The most rho for which `is_within` is True at this order; below 0 where there is none."""
    return (epsilon - _log_terms(order, delta) / (order - 1)) / order


def _epsilon_at(order: Fraction, rho: Fraction, delta: Fraction) -> Fraction:
    """The least epsilon for which `is_within` is True at this order; below 0 where each is."""
    return order * rho + _log_terms(order, delta) / (order - 1)


def _log_terms(order: Fraction, delta: Fraction) -> Fraction:
    """The logarithms, a ln(1 - 1/a) - ln(a-1) - ln delta, from above, as (a-1) ln(a-1) - a ln a - ln delta.

    Why from above: for a < 2^60 both products are below 2^66, their arguments and all results are off by less than a
    part in 2^255, and an argument's error counts 1 + ln a times. So 256 bits leave less than 2^-180 open, for any
    delta above exp(-2^60), and 2^-128 is added.
    """
    with gmpy2.context(precision=_PRECISION):
        a, less, least = (gmpy2.mpfr(gmpy2.mpq(number)) for number in (order, order - 1, delta))
        total = less * gmpy2.log(less) - a * gmpy2.log(a) - gmpy2.log(least)
    return _fraction(total) + _SLACK


def _search_order(value: Callable[[Fraction], Fraction]) -> Decimal:
    """The order with the largest value, to six digits of a-1: a ternary search over ln(a-1).

    Any order is sound; a better one only wastes less.
    """
    low, high = (Fraction(end) for end in _LOG_ORDERS)
    for _ in range(_ROUNDS):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        left, right = (Fraction(round(x * 2**64), 2**64) for x in (left, right))
        low, high = (left, high) if value(_order_at(left)) < value(_order_at(right)) else (low, right)
    return _EXACT.add(Decimal(1), _decimal(_order_at(low) - 1, _ORDER))


def _order_at(log_less: Fraction) -> Fraction:
    with gmpy2.context(precision=_PRECISION):
        return 1 + _fraction(gmpy2.exp(gmpy2.mpfr(gmpy2.mpq(log_less))))


def _fraction(number: gmpy2.mpfr) -> Fraction:
    numerator, denominator = number.as_integer_ratio()
    return Fraction(int(numerator), int(denominator))


def _decimal(number: Fraction, context: Context) -> Decimal:
    return context.divide(Decimal(number.numerator), Decimal(number.denominator))
