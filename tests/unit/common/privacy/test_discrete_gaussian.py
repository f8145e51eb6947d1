"""The discrete Gaussian sampler against its law, two slow twins, its own exact path, and decimals at the borders."""

import hashlib
import math
import random
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from synod.common.privacy import gaussian
from synod.common.privacy.coins import Coins
from synod.common.privacy.exact import shows_heads
from synod.common.privacy.gaussian import MAX_SQUARE, sample_discrete_gaussian
from synod.common.privacy.noise import sample_negative_binomial
from synod.common.runtime.errors import Code, SynodError
from tests.support.keys import seeded
from tests.support.laws import LEAST_P, OFF_BY, accepts_gaussian

STATED = [Fraction(8), 8 + Fraction(1, 1024), Fraction(100), Fraction(10**6)]
SQUARES = [Fraction(1), Fraction(7, 3), *STATED, Fraction(10**15 + 1, 7), MAX_SQUARE]
DIGITS = 100


def draw(square: Fraction, count: int, seed: int = 7) -> NDArray[np.int64]:
    return sample_discrete_gaussian(count, square=square, coins=seeded(seed))


@pytest.mark.parametrize("square", [Fraction(1), Fraction(5, 2), *STATED])
def test_the_law_is_the_discrete_gaussian_and_no_other_scale(square: Fraction) -> None:
    sample = draw(square, 100_000)
    assert accepts_gaussian(sample, square)
    for factor in OFF_BY:
        assert not accepts_gaussian(sample, square * factor)


@pytest.mark.parametrize("square", [Fraction(10**15 + 1, 7), MAX_SQUARE])
def test_where_integers_are_dense_the_law_is_the_normal_one(square: Fraction) -> None:
    sample = draw(square, 20_000)
    assert stats.kstest(sample / math.sqrt(square), "norm").pvalue > LEAST_P
    for factor in OFF_BY:
        assert stats.kstest(sample / math.sqrt(square * factor), "norm").pvalue < LEAST_P


# A slow twin with the same coins: one proposal after the other, in decimals.


def chance_by_decimals(magnitude: int, square: Fraction) -> Decimal:
    """The probability that a magnitude is kept, in the digits of the current context."""
    exponent = (magnitude - square / (math.isqrt(math.floor(square)) + 1)) ** 2 / (2 * square)
    return (Decimal(-exponent.numerator) / exponent.denominator).exp()


def draw_slowly(square: Fraction, proposals: int, coins: Coins) -> list[int]:
    """What one batch of proposals gives; no word comes so close to its chance that it needs further coins."""
    scale = Fraction(math.isqrt(math.floor(square)) + 1)
    magnitudes = sample_negative_binomial(proposals, shape=Fraction(1), scale=scale, coins=coins).tolist()
    signs = [byte >> (7 - bit) & 1 for byte in coins.draw_bytes(-(-proposals // 8)) for bit in range(8)]
    kept = []
    with localcontext(prec=DIGITS):
        for magnitude, sign in zip(magnitudes, signs, strict=False):
            chance = chance_by_decimals(magnitude, square) * 2**64
            if int.from_bytes(coins.draw_bytes(8), "little") < chance and (magnitude or not sign):
                kept.append(-magnitude if sign else magnitude)
    return kept


@pytest.mark.parametrize("square", SQUARES)
def test_draws_are_those_of_the_slow_twin(square: Fraction) -> None:
    count = 300
    expected = draw_slowly(square, 16 + count * 3 // 2, seeded(7))
    drawn = draw(square, count).tolist()
    assert drawn[: len(expected)] == expected[:count]
    assert len(expected) > 0.6 * count


# A slow twin of integers only: Canonne, Kamath and Steinke (2020), algorithms 1, 2 and 3.


def bernoulli_exp(exponent: Fraction, rng: random.Random) -> bool:
    """True with probability exp(-exponent)."""
    while exponent > 1:
        if not bernoulli_exp(Fraction(1), rng):
            return False
        exponent -= 1
    trials = 1
    while rng.randrange(exponent.denominator * trials) < exponent.numerator:
        trials += 1
    return trials % 2 == 1


def twin_laplace(scale: int, rng: random.Random) -> int:
    while True:
        place = rng.randrange(scale)
        if not bernoulli_exp(Fraction(place, scale), rng):
            continue
        while bernoulli_exp(Fraction(1), rng):
            place += scale
        sign = rng.randrange(2)
        if place or not sign:
            return -place if sign else place


def twin_gaussian(square: Fraction, rng: random.Random) -> int:
    scale = math.isqrt(math.floor(square)) + 1
    while True:
        value = twin_laplace(scale, rng)
        if bernoulli_exp((abs(value) - square / scale) ** 2 / (2 * square), rng):
            return value


@pytest.mark.parametrize("square", [Fraction(1), Fraction(8)])
def test_the_textbook_algorithm_has_the_same_law(square: Fraction) -> None:
    rng = random.Random(5)
    twin = np.array([twin_gaussian(square, rng) for _ in range(4000)])
    top = round(2.5 * math.sqrt(square))
    for values, same in ((draw(square, 4000), True), (draw(square * 2, 4000), False)):
        table = np.array(
            [np.bincount(np.clip(each, -top, top) + top, minlength=2 * top + 1) for each in (twin, values)]
        )
        assert (stats.chi2_contingency(table).pvalue > LEAST_P) == same


# The exact path.


@pytest.mark.parametrize("square", SQUARES)
def test_deciding_everything_exactly_changes_no_draw_and_no_coin(
    square: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick, thorough = seeded(7), seeded(7)
    fast = sample_discrete_gaussian(300, square=square, coins=quick)
    calls = count_exact_decisions(monkeypatch)
    monkeypatch.setattr(gaussian, "_MARGIN", 1.0)
    slow = sample_discrete_gaussian(300, square=square, coins=thorough)
    assert len(calls) >= 300
    assert np.array_equal(fast, slow)
    assert quick.draw_bytes(32) == thorough.draw_bytes(32)


def count_exact_decisions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The words that were decided exactly from now on."""
    decided: list[int] = []

    def shows_and_counts(exponent: Fraction, word: int, *, coins: Coins) -> bool:
        decided.append(word)
        return shows_heads(exponent, word, coins=coins)

    monkeypatch.setattr(gaussian, "shows_heads", shows_and_counts)
    return decided


def magnitudes_of(square: Fraction) -> list[int]:
    """Near 0, near the middle of the test, on both slopes, far out, and the largest there can be."""
    deviation = math.isqrt(math.floor(square))
    rng = random.Random(3)
    near = {0, 1, 2, 3, deviation - 1, deviation, deviation + 1, 2**53 - 1, min(2**52, 40 * deviation)}
    return sorted(near | {rng.randrange(8 * deviation) for _ in range(60)})


@pytest.mark.parametrize("square", SQUARES)
def test_a_hundredth_of_the_margin_would_decide_every_word_rightly(
    square: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words so close to the chance that only a float that is off by more than 1e-14 could take them for others."""
    monkeypatch.setattr(gaussian, "_MARGIN", gaussian._MARGIN / 100)
    decided = count_exact_decisions(monkeypatch)
    gaps = [sign * 2**power for power in (0, 4, 8, 12, 16, 17, 18, 19, 20, 30) for sign in (-1, 1)]
    cases = []
    with localcontext(prec=DIGITS):
        for magnitude in magnitudes_of(square):
            edge = int(chance_by_decimals(magnitude, square) * 2**64)
            cases += [(magnitude, edge + gap, gap < 0) for gap in gaps if 0 <= edge + gap < 2**64]
    magnitudes, words, expected = (list(column) for column in zip(*cases, strict=True))
    scale = math.isqrt(math.floor(square)) + 1
    unread = seeded(7)
    kept = gaussian._test(np.array(magnitudes), np.array(words, dtype=np.uint64), scale, square, coins=unread)
    assert kept.tolist() == expected
    assert unread.draw_bytes(8) == seeded(7).draw_bytes(8)
    assert 0 < len(decided) < 0.75 * len(cases)


def test_a_word_that_equals_the_chance_so_far_is_decided_by_the_next_one() -> None:
    square, magnitude = Fraction(8), 5
    with localcontext(prec=DIGITS):
        word, rest = divmod(int(chance_by_decimals(magnitude, square) * 2**128), 2**64)
    for seed in range(16):
        kept = gaussian._test(np.array([magnitude]), np.array([word], dtype=np.uint64), 3, square, coins=seeded(seed))
        assert kept.tolist() == [seeded(seed).draw_bits(64) < rest]


def test_a_chance_of_one_is_kept_whatever_the_word() -> None:
    """At s^2 = 8 and t = 4, |y| = 2 would be kept always; so it is by exact arithmetic, in which 2 = s^2/t."""
    kept = gaussian._test(np.array([2]), np.array([2**64 - 1], dtype=np.uint64), 4, Fraction(8), coins=seeded(7))
    assert kept.tolist() == [True]


def test_the_same_coins_give_the_same_bytes_for_ever() -> None:
    digest = hashlib.sha256()
    for square in SQUARES:
        digest.update(draw(square, 40_000).astype("<i8").tobytes())
    assert draw(Fraction(8), 12).tolist() == [-6, -1, -2, 3, 0, 0, -1, 2, 3, 0, -5, -3]
    assert digest.hexdigest() == "df5d3f5976234d606151f431700cd538f85f96220571c9f55981cec995c4668f"


def test_no_draws_read_no_coins() -> None:
    unread = seeded(7)
    assert sample_discrete_gaussian(0, square=Fraction(8), coins=unread).shape == (0,)
    assert unread.draw_bytes(8) == seeded(7).draw_bytes(8)


@pytest.mark.parametrize("square", [Fraction(0), Fraction(-8), Fraction(1023, 1024), MAX_SQUARE + Fraction(1, 1024)])
def test_a_square_out_of_range_is_refused(square: Fraction) -> None:
    with pytest.raises(SynodError) as caught:
        draw(square, 1)
    assert caught.value.code is Code.INVALID
