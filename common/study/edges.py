"""Edges: where the bins of a number begin and end, if they are not all of one width.

A study has them written out, as `edges`, or asks for `transform: log`, which is short for edges that grow by one
factor. They decide codes, so every machine must find the same: they are computed in decimal arithmetic alone, whose
logarithm and exponential are correctly rounded by its specification, with 100 digits, and then rounded to few.
"""

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from itertools import pairwise

WORKING = Context(prec=100, rounding=ROUND_HALF_EVEN)
DIGITS = 6


def log_edges(low: Decimal, high: Decimal, bins: int) -> list[Decimal]:
    """`bins + 1` edges from `low` to `high`, each further than the one before by one factor, to six digits.

    Above 0 the factor is of the number itself; from 0 or below on it is of 1 plus the distance from `low`. Edge i of
    the first kind is low * (high / low)^(i / bins). Rounding is of what is added to `low`, so that edges close to it
    stay apart.
    """
    origin = low if low > 0 else Decimal(1)
    growth = WORKING.ln(WORKING.divide(WORKING.add(origin, WORKING.subtract(high, low)), origin))
    steps = [WORKING.divide(WORKING.multiply(growth, Decimal(place)), Decimal(bins)) for place in range(1, bins)]
    inner = [WORKING.multiply(origin, WORKING.exp(step)) for step in steps]
    short = Context(prec=DIGITS, rounding=ROUND_HALF_EVEN)
    return [low, *(WORKING.add(low, short.plus(WORKING.subtract(edge, origin))) for edge in inner), high]


def whole_log_edges(low: int, high: int, bins: int) -> list[int]:
    """The same in whole numbers, each bin with one at least; a last bin of one number repeats it."""
    rough = log_edges(Decimal(low), Decimal(high + 1), bins)
    edges = [low]
    for place, edge in enumerate(rough[1:-1], 1):
        nearest = int(edge.to_integral_value(ROUND_HALF_EVEN))
        edges.append(min(max(nearest, edges[-1] + 1), high + 1 - (bins - place)))
    return [*edges, high]


def check_edges(edges: Sequence[int] | Sequence[Decimal], low: Decimal | int, high: Decimal | int, bins: int) -> None:
    """Refuses edges that do not divide the range from `low` to `high` into `bins`.

    Whole numbers have their last bin up to and with the last edge, so that a bin of that one number repeats it.
    """
    if len(edges) != bins + 1:
        raise ValueError("has not one edge more than bins")
    if edges[0] != low or edges[-1] != high:
        raise ValueError("its edges must begin at min and end at max")
    ascending = [float(edge) for edge in edges]
    if isinstance(low, int) and bins > 1 and edges[-1] == edges[-2]:
        ascending.pop()
    if any(a >= b for a, b in pairwise(ascending)):
        raise ValueError("its edges must ascend, by more than a double can resolve")
