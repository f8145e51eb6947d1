"""The shell envelope of a negative binomial law, and exact decisions whether a proposal is kept or a coin shows heads.

The law is NB(r, a): P(x) proportional to w_x = a^x c_x, c_x = Gamma(x+r) / (Gamma(r) x!), a = exp(-1/scale),
0 < r <= 1. Since w decreases, a shell of integers weighs at most (its size) * (w at its left end). Shell 0 is
{0}, shell k is [2^(k-1), 2^k), and the last one is the tail [T, infinity), so no value is out of reach.
Nothing here is decided by a float: a comparison that 64 bits leave open is settled with more bits.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Protocol

import gmpy2

from synod.common.privacy.coins import Coins

WORD_BITS = 64
VALUE_LIMIT = 2**53
TAIL_SCALES = 64
_PRECISION = 256
_SLACK_EXPONENT = 65


class Enclosure(Protocol):
    """Integers not above and not below floor(2^bits p), closer with more precision."""

    def __call__(self, *, bits: int, precision: int) -> tuple[int, int]:
        """Both integers."""
        ...


@dataclass(frozen=True, slots=True)
class Envelope:
    """Integer weights W_k of the shells of NB(shape, exp(-1/scale)), which add up to 2^64, and a constant C.

    Guarantee: propose shell k with probability W_k / 2^64, then x in it uniformly (in the tail: x - T
    geometric with ratio a), and keep x with probability p = C w_x size_k / W_k (in the tail:
    C c_x a^T / ((1-a) W_k)). Then x is proposed and kept with probability C w_x / 2^64 in every shell:
    exactly the law. The weights are such that p <= 1 everywhere, and p = 1 at x = 0.
    """

    shape: Fraction
    scale: Fraction
    tail_start: int
    constant: int
    weights: tuple[int, ...]

    @property
    def tail(self) -> int:
        """The number of the last shell."""
        return len(self.weights) - 1

    def keeps(self, value: int, shell: int, word: int, *, coins: Coins) -> bool:
        """Whether the uniform real in [0, 1) whose first 64 bits are `word` is below the p of this value.

        Guarantee: exact. `lower` and `upper` enclose floor(2^bits p) and converge to it. Further coins are
        drawn only if the bits so far are those of p itself, a fact that no rounding can change, so every
        machine reads the same coins. It ends, for p is irrational unless x = 0: c_x is rational, while a,
        and hence a^x and a^T / (1-a), are transcendental (Lindemann).
        """
        assert value < VALUE_LIMIT
        if value == 0:
            return True
        return is_below(partial(self.enclose, value, shell), word, coins=coins)

    def enclose(self, value: int, shell: int, *, bits: int, precision: int) -> tuple[int, int]:
        """Integers not above and not below floor(2^bits p), closer with more precision."""
        with gmpy2.context(precision=precision):
            log_factor = gmpy2.log(gmpy2.mpfr(gmpy2.mpq(self.constant, self.weights[shell])))
            log_chance = log_factor + _log_mass(self, value, shell, precision)
            slack = gmpy2.exp2(_SLACK_EXPONENT - precision)
            lower = gmpy2.exp(log_chance - slack) * gmpy2.exp2(bits)
            upper = gmpy2.exp(log_chance + slack) * gmpy2.exp2(bits)
            return int(gmpy2.floor(lower)), int(gmpy2.floor(upper))


def is_below(enclose: Enclosure, word: int, *, coins: Coins) -> bool:
    """Whether the uniform real in [0, 1) whose first 64 bits are `word` is below a p that `enclose` closes in on.

    Guarantee: exact. Precision grows until the bounds agree, and bits are drawn only while those so far are p's own.
    """
    bits, precision = WORD_BITS, _PRECISION
    while True:
        lower, upper = enclose(bits=bits, precision=precision)
        if word < lower or word > upper:
            return word < lower
        if lower < upper:
            precision *= 2
        else:
            word, bits = word << WORD_BITS | coins.draw_bits(WORD_BITS), bits + WORD_BITS


def shows_heads(exponent: Fraction, word: int, *, coins: Coins) -> bool:
    """Whether the uniform real in [0, 1) whose first 64 bits are `word` is below p = exp(-exponent).

    Guarantee: exact. `lower` and `upper` enclose floor(2^bits p) and converge to it. Further coins are drawn only if
    the bits so far are those of p itself, a fact that no rounding can change, so every machine reads the same coins.
    It ends, for p is irrational (Lindemann) unless the exponent is 0, where p = 1 is above every word.
    """
    return is_below(partial(enclose_power, exponent), word, coins=coins)


def enclose_power(exponent: Fraction, *, bits: int, precision: int) -> tuple[int, int]:
    """Integers not above and not below floor(2^bits exp(-exponent)): every operation is rounded to one side."""
    power = -gmpy2.mpq(exponent.numerator, exponent.denominator)
    with gmpy2.context(precision=precision, round=gmpy2.RoundDown):
        lower = int(gmpy2.floor(gmpy2.exp(gmpy2.mpfr(power)) * gmpy2.exp2(bits)))
    with gmpy2.context(precision=precision, round=gmpy2.RoundUp):
        upper = int(gmpy2.floor(gmpy2.exp(gmpy2.mpfr(power)) * gmpy2.exp2(bits)))
    return lower, upper


@lru_cache(maxsize=64)
def build_envelope(shape: Fraction, scale: Fraction, *, tail_scales: int = TAIL_SCALES) -> Envelope:
    """The envelope of NB(shape, exp(-1/scale)), T being the least power of two >= tail_scales * scale.

    All of it follows from correctly rounded MPFR operations of a fixed precision: it is the same everywhere.
    """
    octaves = max(0, (-(-tail_scales * scale.numerator // scale.denominator) - 1).bit_length())
    bare = Envelope(shape, scale, 2**octaves, 1, (1,) * (octaves + 2))
    with gmpy2.context(precision=_PRECISION, round=gmpy2.RoundUp):
        slack = gmpy2.exp2(_SLACK_EXPONENT - _PRECISION)
        logs = [_log_mass(bare, left_end(shell), shell, _PRECISION) for shell in range(1, octaves + 2)]
        masses = [gmpy2.exp(log + slack) for log in logs]
        constant = int((2**WORD_BITS - len(bare.weights)) / (1 + sum(masses))) - 1
        weights = [constant, *(int(gmpy2.ceil(constant * mass)) for mass in masses)]
    # What rounding leaves over goes to shell 1: a larger weight only means that fewer of its values are kept.
    left_over = 2**WORD_BITS - sum(weights)
    assert left_over >= 0
    weights[1] += left_over
    return Envelope(shape, scale, 2**octaves, constant, tuple(weights))


def left_end(shell: int) -> int:
    """The least value of a shell; but for shell 0 and the tail it is also the size."""
    return 1 << (shell - 1) if shell else 0


def log_coefficient(value: int, shape: Fraction) -> gmpy2.mpfr:
    """The logarithm of c_x, in the precision of the current context."""
    exact_shape = gmpy2.mpq(shape.numerator, shape.denominator)
    rising = gmpy2.lngamma(gmpy2.mpfr(value + exact_shape)) - gmpy2.lngamma(gmpy2.mpfr(exact_shape))
    return rising - gmpy2.lngamma(gmpy2.mpfr(value + 1))


def _log_mass(envelope: Envelope, value: int, shell: int, precision: int) -> gmpy2.mpfr:
    """The logarithm of w_x size_k, or in the tail of c_x a^T / (1-a), within 2^(64 - precision).

    Why within: x < 2^53 and T/scale <= 2^20, so each of the terms, partial sums and argument errors (those of
    lngamma count x digamma(x) times) contributes less than 2^(59 - precision), and there are less than 16.
    """
    with gmpy2.context(precision=precision):
        scale = gmpy2.mpq(envelope.scale.numerator, envelope.scale.denominator)
        decay = gmpy2.mpfr(min(value, envelope.tail_start) / scale)
        if shell < envelope.tail:
            log_size = gmpy2.log(gmpy2.mpfr(max(1, left_end(shell))))
        else:
            log_size = -gmpy2.log(-gmpy2.expm1(gmpy2.mpfr(-1 / scale)))
        return log_coefficient(value, envelope.shape) - decay + log_size
