"""A private choice among scored candidates: permute-and-flip, exactly, on integer scores.

McKenna and Sheldon (2020): walk the candidates in random order and stop at the first whose coin shows heads, with
probability exp(epsilon (q - q_max) / (2 sensitivity)). It is epsilon-DP and never worse than the exponential
mechanism in expectation. Here all coins are thrown, and one of the candidates with heads is drawn uniformly: the
first of them in a random order is just that. No float decides a coin, and no softmax can underflow.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from synod.common.privacy.coins import Coins
from synod.common.privacy.exact import shows_heads
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

    Guarantee: epsilon-DP for neighbouring tables, if no candidate's score differs by more than
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


def _draw_below(limit: int, *, coins: Coins) -> int:
    """A uniform integer below `limit`: drawn again where it is not."""
    bits = (limit - 1).bit_length()
    while True:
        drawn = coins.draw_bits(bits)
        if drawn < limit:
            return drawn
