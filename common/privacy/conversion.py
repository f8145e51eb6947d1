"""Between rho and the pair of epsilon and delta that people are told (Canonne, Kamath and Steinke 2020, corollary 13).

What is rho-zCDP is (epsilon, delta)-DP if, for some order a > 1,

    (a-1)(a rho - epsilon) + a ln(1 - 1/a) - ln(a-1) <= ln delta.

Rounding never helps: the inequality is said to hold only where it holds whichever way the last digits were rounded.
"""

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

import gmpy2

from synod.common.privacy.cost import Cost

RHO_DIGITS = 12
ORDER_DIGITS = 6
SHOWN_DIGITS = 6
_PRECISION = 256
_SLACK = Fraction(1, 2**128)
_LOG_ORDERS = (-12, 40)  # where ln(a-1) is searched; the best order lies inside for every epsilon a study may have
_ROUNDS = 100
_UP = Context(prec=SHOWN_DIGITS, rounding=ROUND_CEILING)


def is_within(*, rho: Fraction, order: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether the inequality above is certain to hold at this order.

    Guarantee: if True, whatever is rho-zCDP is (epsilon, delta)-DP. The linear part is exact, and 2^-128 covers what
    256 bits leave open in the logarithms, for orders below 2^60.
    """
    assert 0 < delta < 1
    if not 1 < order < 2**60:
        return False
    return (order - 1) * (order * rho - epsilon) + _log_terms(order, delta) + _SLACK <= 0


def largest_rho(epsilon: Fraction, delta: Fraction) -> tuple[Decimal, Decimal]:
    """The most rho within (epsilon, delta), and the order that shows it, as short decimals for a resolved study.

    The same decimals on every machine: MPFR rounds each operation correctly, and the rest is exact.
    """
    order = _search_order(lambda a: _rho_at(a, epsilon, delta))
    down = Context(prec=RHO_DIGITS, rounding=ROUND_FLOOR)
    rho = _decimal(_rho_at(Fraction(order), epsilon, delta), down)
    while not is_within(rho=Fraction(rho), order=Fraction(order), epsilon=epsilon, delta=delta):
        rho = rho.next_minus(down)
    return rho, order


def epsilon_for(rho: Fraction, delta: Fraction) -> Decimal:
    """The least epsilon that rho is known to keep within at this delta, rounded up to six digits, for people."""
    if rho == 0:
        return Decimal(0)
    order = Fraction(_search_order(lambda a: -_epsilon_at(a, rho, delta)))
    return _decimal(
        max(Fraction(0), _epsilon_at(order, rho, delta)), Context(prec=SHOWN_DIGITS, rounding=ROUND_CEILING)
    )


def spent_epsilon(cost: Cost, delta: Fraction) -> Decimal:
    """The least epsilon known for a cost of both kinds at this delta.

    Guarantee: the cost is (this, delta)-DP: the pure part adds its epsilon to that of the rest, or counts as
    epsilon^2/2 of rho (Bun and Steinke 2016, proposition 1.4), whichever is less.
    """
    beside = Fraction(epsilon_for(cost.rho, delta)) + cost.epsilon
    together = Fraction(epsilon_for(cost.rho + cost.epsilon**2 / 2, delta))
    return _decimal(min(beside, together), _UP)


def _rho_at(order: Fraction, epsilon: Fraction, delta: Fraction) -> Fraction:
    return (epsilon - _log_terms(order, delta) / (order - 1)) / order


def _epsilon_at(order: Fraction, rho: Fraction, delta: Fraction) -> Fraction:
    return order * rho + _log_terms(order, delta) / (order - 1)


def _log_terms(order: Fraction, delta: Fraction) -> Fraction:
    """The logarithms: a ln(1 - 1/a) - ln(a-1) - ln delta, which is (a-1) ln(a-1) - a ln a - ln delta."""
    with gmpy2.context(precision=_PRECISION):
        a, less, least = (gmpy2.mpfr(gmpy2.mpq(number)) for number in (order, order - 1, delta))
        total = less * gmpy2.log(less) - a * gmpy2.log(a) - gmpy2.log(least)
    return _fraction(total)


def _search_order(value: Callable[[Fraction], Fraction]) -> Decimal:
    """The order with the largest value, to six digits of a-1: a ternary search over ln(a-1).

    Any order is sound; a better one only wastes less.
    """
    low, high = (Fraction(end) for end in _LOG_ORDERS)
    for _ in range(_ROUNDS):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        left, right = (Fraction(round(x * 2**64), 2**64) for x in (left, right))
        low, high = (left, high) if value(_order_at(left)) < value(_order_at(right)) else (low, right)
    return 1 + _decimal(_order_at(low) - 1, Context(prec=ORDER_DIGITS))


def _order_at(log_less: Fraction) -> Fraction:
    with gmpy2.context(precision=_PRECISION):
        return 1 + _fraction(gmpy2.exp(gmpy2.mpfr(gmpy2.mpq(log_less))))


def _fraction(number: gmpy2.mpfr) -> Fraction:
    numerator, denominator = number.as_integer_ratio()
    return Fraction(int(numerator), int(denominator))


def _decimal(number: Fraction, context: Context) -> Decimal:
    return context.divide(Decimal(number.numerator), Decimal(number.denominator))
