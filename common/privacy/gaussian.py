"""Noise: the discrete Gaussian, sampled exactly (Canonne, Kamath and Steinke 2020, algorithm 3), in O(1) per draw.

P(z) is proportional to exp(-z^2 / (2 s^2)) over all integers z. Proposals y are discrete Laplace of scale t =
floor(s) + 1, a geometric magnitude with a sign, and are kept with probability exp(-(|y| - s^2/t)^2 / (2 s^2)); about
three in four are. Nothing truncates, clamps or rounds the law, and no float decides a draw; see exact.py beside this.
"""

from fractions import Fraction
from math import isqrt, sqrt

import numpy as np
from numpy.typing import NDArray

from synod.common.privacy.coins import Coins
from synod.common.privacy.exact import WORD_BITS, shows_heads
from synod.common.privacy.noise import MAX_SCALE, draw_kept, sample_negative_binomial
from synod.common.runtime.errors import invalid

MIN_SQUARE = Fraction(1)
MAX_SQUARE = (MAX_SCALE - 1) ** 2

# Covers what float64 does to p = exp(-u^2 / 2), u = (|y| - c) / s, c = s^2/t. With e = 2^-53: |y| < 2^53 is exact; c is
# off by c e, and c < s, so u by e for it, however large s is; the difference, s and the quotient are off by e, 2 e and
# e of their size, so u by 4 |u| e for them. That moves p by |u| (4 |u| + 1) e exp(-u^2 / 2) < 4 e. The square adds e at
# most, exp 16 e even if it is 8 units in the last place off, and rounding the uniform word e: together less than 1e-14.
# Where u is so large that this first-order argument fails, beyond 2^20, p and what is computed are both below 2^-999.
_MARGIN = 1e-12


def sample_discrete_gaussian(count: int, *, square: Fraction, coins: Coins) -> NDArray[np.int64]:
    """`count` independent integers z with probability proportional to exp(-z^2 / (2 square)).

    Guarantee: exactly this law on all integers, if the coins are independent uniform bytes; the same arguments and
    coins give the same integers on every machine. Public: count and square. The one exception is that of
    `sample_negative_binomial`, an AssertionError at magnitudes of 2^53.
    """
    assert count >= 0
    if not MIN_SQUARE <= square <= MAX_SQUARE:
        raise invalid("The square of the noise's deviation is not between 1 and 2^80.")
    return draw_kept(count, lambda proposals: _sift(proposals, square, coins=coins))


def _sift(proposals: int, square: Fraction, *, coins: Coins) -> NDArray[np.int64]:
    """Make a batch of proposals and return the kept ones in their order.

    Coins are read in this order: magnitudes, signs, tests; what open tests need. Zero with a minus sign is no proposal,
    or zero would be proposed twice as often as it should.
    """
    scale = isqrt(square.numerator // square.denominator) + 1
    values = sample_negative_binomial(proposals, shape=Fraction(1), scale=Fraction(scale), coins=coins)
    signs = np.unpackbits(np.frombuffer(coins.draw_bytes(-(-proposals // 8)), dtype=np.uint8), count=proposals)
    keep = _test(values, coins.draw_words(proposals), scale, square, coins=coins)
    keep &= (values > 0) | (signs == 0)
    return np.where(signs, -values, values)[keep]


def _test(
    values: NDArray[np.int64], tests: NDArray[np.uint64], scale: int, square: Fraction, *, coins: Coins
) -> NDArray[np.bool_]:
    """Which magnitudes are kept: by float64 bounds where they decide, by `shows_heads` where they do not."""
    distances = (values - float(square / scale)) / sqrt(square)
    chances = np.exp(-0.5 * distances * distances)
    uniforms = tests * 2.0**-WORD_BITS
    keep: NDArray[np.bool_] = uniforms < chances - _MARGIN
    for i in np.flatnonzero(~keep & (uniforms <= chances + _MARGIN)):
        exponent = (int(values[i]) - square / scale) ** 2 / (2 * square)
        keep[i] = shows_heads(exponent, int(tests[i]), coins=coins)
    return keep
