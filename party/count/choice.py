"""A private choice among scored candidates: permute-and-flip, exactly, on integer scores.

McKenna and Sheldon (2020): walk the candidates in random order and stop at the first whose coin shows heads, with
probability exp(epsilon (q - q_max) / (2 sensitivity)). It is epsilon-DP and never worse than the exponential
mechanism in expectation. Here all coins are thrown, and one of the candidates with heads is drawn uniformly: the
first of them in a random order is just that. No float decides a coin, and no softmax can underflow.
"""

from fractions import Fraction
from functools import partial

import gmpy2
import numpy as np
from numpy.typing import NDArray

from synod.common.privacy.coins import Coins
from synod.common.privacy.exact import is_below
from synod.common.runtime.errors import invalid

MIN_SCALE = Fraction(1, 2**20)
MAX_SCALE = Fraction(2**60)
SCORE_LIMIT = 2**62
WORD_BITS = 64

# Which coin decides what depends on it: with another value the same question would get another answer.
_BATCH = 2**16

# Covers what float64 does to p = exp(-t): t is off by a few parts in 2^53 and p by at most t exp(-t) <= 1 times
# that, even if exp is 8 units in the last place off. The uniform word adds 2^-53.
_MARGIN = 1e-12


def permute_and_flip(scores: NDArray[np.int64], *, epsilon: Fraction, sensitivity: int, coins: Coins) -> int:
    """The index of one candidate, drawn in favour of high scores.

    Guarantee: epsilon-DP for tables that differ in one replaced row, if no candidate's score differs by more than
    `sensitivity` between them and the candidates themselves do not depend on the rows. The law is exact if the coins
    are independent uniform bytes, and as computational as the coins are; the same arguments and coins give the same
    index on every machine. Public: the number of candidates, epsilon, sensitivity. Time is not: it depends on scores.
    """
    assert len(scores)
    assert epsilon > 0
    assert sensitivity > 0
    if not MIN_SCALE <= sensitivity / epsilon <= MAX_SCALE:
        raise invalid("The scale of a choice, sensitivity / epsilon, is not between 2^-20 and 2^60.")
    assert max(abs(int(scores.max())), abs(int(scores.min()))) < SCORE_LIMIT
    heads = _flip_all(scores.max() - scores, epsilon / (2 * sensitivity), coins=coins)
    return int(heads[_draw_below(len(heads), coins=coins)])


def _flip_all(gaps: NDArray[np.int64], rate: Fraction, *, coins: Coins) -> NDArray[np.intp]:
    """The candidates whose coin shows heads: each with probability exp(-rate gap), so where the gap is 0 surely.

    Coins are read batch by batch: a word for each candidate, then what open tests need.
    """
    parts = []
    for start in range(0, len(gaps), _BATCH):
        batch = gaps[start : start + _BATCH]
        parts.append(start + _flip_batch(batch, rate, coins.draw_words(len(batch)), coins=coins))
    return np.concatenate(parts)


def _flip_batch(
    gaps: NDArray[np.int64], rate: Fraction, words: NDArray[np.uint64], *, coins: Coins
) -> NDArray[np.intp]:
    """Heads by float64 bounds where they decide, by `shows_heads` where they do not."""
    chances = np.exp(-float(rate) * gaps)
    uniforms = words * 2.0**-WORD_BITS
    heads = uniforms < chances - _MARGIN
    for i in np.flatnonzero(~heads & (uniforms <= chances + _MARGIN)):
        heads[i] = shows_heads(rate * int(gaps[i]), int(words[i]), coins=coins)
    return np.flatnonzero(heads)


def shows_heads(exponent: Fraction, word: int, *, coins: Coins) -> bool:
    """Whether the uniform real in [0, 1) whose first 64 bits are `word` is below p = exp(-exponent).

    Guarantee: exact. `lower` and `upper` enclose floor(2^bits p) and converge to it. Further coins are drawn only if
    the bits so far are those of p itself, a fact that no rounding can change, so every machine reads the same coins.
    It ends, for p is irrational (Lindemann) unless the exponent is 0, where p = 1 is above every word.
    """
    return is_below(partial(enclose, exponent), word, coins=coins)


def enclose(exponent: Fraction, *, bits: int, precision: int) -> tuple[int, int]:
    """Integers not above and not below floor(2^bits exp(-exponent)): every operation is rounded to one side."""
    power = -gmpy2.mpq(exponent.numerator, exponent.denominator)
    with gmpy2.context(precision=precision, round=gmpy2.RoundDown):
        lower = int(gmpy2.floor(gmpy2.exp(gmpy2.mpfr(power)) * gmpy2.exp2(bits)))
    with gmpy2.context(precision=precision, round=gmpy2.RoundUp):
        upper = int(gmpy2.floor(gmpy2.exp(gmpy2.mpfr(power)) * gmpy2.exp2(bits)))
    return lower, upper


def _draw_below(limit: int, *, coins: Coins) -> int:
    """A uniform integer below `limit`: drawn again where it is not."""
    bits = (limit - 1).bit_length()
    while True:
        drawn = coins.draw_bits(bits)
        if drawn < limit:
            return drawn
