"""Noise: one party's share of a discrete Laplace variable, sampled exactly in O(1) per draw at any scale.

With a = exp(-1/scale), the generating function of NB(r, a) is ((1-a) / (1-az))^r. So m independent NB(1/m, a)
add up to NB(1, a), the geometric law, and m shares NB(1/m, a) - NB(1/m, a) to a difference of two geometrics:
P(z) = (1-a)/(1+a) a^|z|, the discrete Laplace law, whose ratio between points Delta apart is at most
exp(Delta/scale). With m = K - t, any K - t honest shares make a query of sensitivity Delta private with
epsilon = Delta/scale; the other t do not depend on the honest data, so adding them is post-processing.
Nothing here truncates, clamps or rounds the law, and no float decides a draw; see common/privacy/exact.py.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import gmpy2
import numpy as np
from numpy.typing import NDArray

from synod.common.privacy.coins import Coins
from synod.common.privacy.exact import VALUE_LIMIT, Envelope, build_envelope, left_end, log_coefficient
from synod.common.runtime.errors import invalid

MIN_SCALE = Fraction(1, 2**20)
MAX_SCALE = Fraction(2**40)

# Which coin decides what depends on it: with another value the same question would get other bytes.
_BATCH = 2**15

_TABLE = 1024

# Covers what float64 does to a probability p <= 1. Its logarithm is a sum of terms below 200 (log C/W, log x,
# x/scale), or else p < 2^-200; a few roundings of each are below 1e-12, even if exp and log are 8 units in
# the last place off. The uniform word adds 2^-52.
_MARGIN = 1e-10


def sample_shares(count: int, *, shape: Fraction, scale: Fraction, coins: Coins) -> NDArray[np.int64]:
    """`count` independent noise shares, each NB(shape, a) - NB(shape, a) with a = exp(-1/scale).

    Guarantee: with shape = 1/(K-t) and scale = Delta/epsilon, integers of L1 sensitivity Delta to one row
    that get K independent such shares each are epsilon-DP for whoever knows up to t of the K parties' shares.
    The law is exact if the coins are independent uniform bytes, and as computational as the coins are. The
    same arguments and coins give the same integers on every machine. Public: count, shape and scale.
    """
    pair = sample_negative_binomial(2 * count, shape=shape, scale=scale, coins=coins)
    return pair[:count] - pair[count:]


def sample_discrete_laplace(count: int, *, scale: Fraction, coins: Coins) -> NDArray[np.int64]:
    """`count` independent integers z with probability (1-a)/(1+a) a^|z|, a = exp(-1/scale).

    Guarantee: added to integers of L1 sensitivity Delta, epsilon-DP with epsilon = Delta/scale; exact as
    `sample_shares` is, of which this is the case K - t = 1.
    """
    return sample_shares(count, shape=Fraction(1), scale=scale, coins=coins)


def sample_negative_binomial(count: int, *, shape: Fraction, scale: Fraction, coins: Coins) -> NDArray[np.int64]:
    """`count` independent integers x >= 0 with probability (1-a)^r Gamma(x+r)/(Gamma(r) x!) a^x, r = shape.

    Guarantee: exactly this law on its whole infinite support, if the coins are independent uniform bytes: it
    is rejection sampling from integer weights, each proposal kept or not by an exact comparison. How many it
    takes is independent of the values returned. The one exception is an AssertionError at a value of 2^53 or
    more, of probability below exp(-2^12) at the largest scale.
    """
    assert count >= 0
    assert 0 < shape <= 1
    if not MIN_SCALE <= scale <= MAX_SCALE:
        raise invalid("The noise scale, sensitivity / epsilon, is not between 2^-20 and 2^40.")
    return _draw(count, _build_sieve(build_envelope(shape, scale)), coins=coins)


def share_variance(*, shape: Fraction, scale: Fraction) -> float:
    """The variance of one share, 2 r a / (1-a)^2; that of a sum of K shares is K times this."""
    decay = float(1 / scale)
    return 2 * float(shape) * math.exp(-decay) / math.expm1(-decay) ** 2


@dataclass(frozen=True, slots=True, eq=False)
class _Sieve:
    """An envelope in arrays, to settle all but a few proposals by float64 bounds on their probability p.

    From x = 1024 on the bounds are Kershaw's (1983), for 0 < r < 1 and x > 0:
    (x + r/2)^(1-r) < Gamma(x+1)/Gamma(x+r) < (x + r/2 + gap)^(1-r), gap = sqrt(r + 1/4) - 1/2 - r/2,
    the second used as (1 + gap/y)^(r-1) >= 1 - (1-r) gap/y, y = x + r/2. At r = 1 all of them are 1.
    """

    envelope: Envelope
    edges: NDArray[np.uint64]
    left_ends: NDArray[np.uint64]
    masks: NDArray[np.uint64]
    log_factors: NDArray[np.float64]
    log_table: NDArray[np.float64]

    def bound(
        self, values: NDArray[np.int64], shells: NDArray[np.intp]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Numbers not above and not below p, but for rounding."""
        shape = float(self.envelope.shape)
        gap = math.sqrt(shape + 0.25) - 0.5 - shape / 2
        shifted = values + shape / 2
        log_chances = (shape - 1) * np.log(shifted) - math.lgamma(shape)
        slack = (1 - shape) * gap / shifted
        small = np.flatnonzero(values < _TABLE)
        log_chances[small], slack[small] = self.log_table[values[small]], 0.0
        log_chances += self.log_factors[shells]
        log_chances -= np.minimum(values, self.envelope.tail_start) * float(1 / self.envelope.scale)
        upper = np.exp(log_chances)
        return upper * (1 - slack), upper


@lru_cache(maxsize=64)
def _build_sieve(envelope: Envelope) -> _Sieve:
    lefts = [left_end(shell) for shell in range(envelope.tail + 1)]
    return _Sieve(
        envelope,
        edges=np.cumsum(np.array(envelope.weights[:-1], dtype=np.uint64), dtype=np.uint64),
        left_ends=np.array(lefts, dtype=np.uint64),
        masks=np.array([*(max(1, left) - 1 for left in lefts[:-1]), 0], dtype=np.uint64),
        log_factors=_log_factors(envelope),
        log_table=_log_table(envelope.shape),
    )


def _log_factors(envelope: Envelope) -> NDArray[np.float64]:
    """The logarithms of p / (c_x a^min(x, T)), which depends on the shell only."""
    sizes = [max(1, left_end(shell)) for shell in range(envelope.tail)]
    with gmpy2.context(precision=128):
        ratios = [gmpy2.mpfr(envelope.constant) / weight for weight in envelope.weights]
        reach = -1 / gmpy2.expm1(-gmpy2.mpfr(envelope.scale.denominator) / envelope.scale.numerator)
        factors = [ratio * size for ratio, size in zip(ratios, [*sizes, reach], strict=True)]
        return np.array([float(gmpy2.log(factor)) for factor in factors])


@lru_cache(maxsize=64)
def _log_table(shape: Fraction) -> NDArray[np.float64]:
    """The logarithms of c_x for x < 1024."""
    with gmpy2.context(precision=128):
        return np.array([float(log_coefficient(value, shape)) for value in range(_TABLE)])


def _draw(count: int, sieve: _Sieve, *, coins: Coins) -> NDArray[np.int64]:
    return draw_kept(count, lambda proposals: _sift(proposals, sieve, coins=coins))


def draw_kept(count: int, sift: Callable[[int], NDArray[np.int64]]) -> NDArray[np.int64]:
    """The first `count` kept values of as many batches as it takes; `sift` makes so many proposals and keeps some."""
    values = np.empty(count, dtype=np.int64)
    drawn = 0
    while drawn < count:
        missing = count - drawn
        kept = sift(min(_BATCH, 16 + missing * 3 // 2))[:missing]
        values[drawn : drawn + len(kept)] = kept
        drawn += len(kept)
    return values


def _sift(proposals: int, sieve: _Sieve, *, coins: Coins) -> NDArray[np.int64]:
    """Make a batch of proposals and return the kept ones in their order.

    Coins are read in this order: shells, places, tests; the tail's geometrics; what open tests need.
    """
    choices, places, tests = coins.draw_words(3 * proposals).reshape(3, proposals)
    shells = np.searchsorted(sieve.edges, choices, side="right")
    values = (sieve.left_ends[shells] + (places & sieve.masks[shells])).astype(np.int64)
    far = np.flatnonzero(shells == sieve.envelope.tail)
    if len(far):
        # The geometric's own tail is a geometric again, having no memory: the recursion is exact, and rare.
        geometric = _build_sieve(build_envelope(Fraction(1), sieve.envelope.scale))
        values[far] += _draw(len(far), geometric, coins=coins)
        assert values.max() < VALUE_LIMIT
    return values[_test(values, shells, tests, sieve, coins=coins)]


def _test(
    values: NDArray[np.int64],
    shells: NDArray[np.intp],
    tests: NDArray[np.uint64],
    sieve: _Sieve,
    *,
    coins: Coins,
) -> NDArray[np.bool_]:
    """Which proposals are kept: by the bounds where they decide, by `Envelope.keeps` where they do not."""
    lower, upper = sieve.bound(values, shells)
    uniforms = tests * 2.0**-64
    keep = uniforms < lower - _MARGIN
    for i in np.flatnonzero(~keep & (uniforms <= upper + _MARGIN)):
        keep[i] = sieve.envelope.keeps(int(values[i]), int(shells[i]), int(tests[i]), coins=coins)
    return keep
