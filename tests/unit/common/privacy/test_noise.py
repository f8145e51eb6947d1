"""The noise sampler against the law's formula, an integers-only slow twin, and its own exact path."""

import hashlib
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from synod.common.privacy import noise
from synod.common.privacy.coins import Coins
from synod.common.privacy.exact import Envelope, build_envelope, left_end
from synod.common.runtime.errors import Code, SynodError

HALF, SMALL, ONE = Fraction(1, 2), Fraction(1, 49), Fraction(1)
LAWS = [
    (ONE, Fraction(1, 3)),
    (ONE, Fraction(30)),
    (HALF, Fraction(7, 3)),
    (HALF, Fraction(2000)),
    (HALF, Fraction(50_000_000)),
    (SMALL, Fraction(1, 2)),
    (SMALL, Fraction(2000)),
    (SMALL, Fraction(2**40)),
]
BINS = 30
LEAST_P = 1e-3
REJECTED_P = 1e-9


def coins(seed: int = 7) -> Coins:
    return Coins(bytes([seed]) * 32)


def chi_square_p(sample: NDArray[np.int64], shape: Fraction, scale: Fraction, floor: int = 0) -> float:
    """The p-value of `sample` as NB(shape, exp(-1/scale)); above `floor`, bins of about equal probability."""
    law = stats.nbinom(float(shape), -math.expm1(-float(1 / scale)))
    levels = law.cdf(floor) + law.sf(floor) * np.arange(BINS) / BINS
    edges = np.unique(np.append(floor, law.ppf(levels[1:])))
    chances = np.append(np.diff(law.cdf(edges), prepend=0.0), law.sf(edges[-1]))
    counts = np.bincount(np.searchsorted(edges, sample), minlength=len(chances))
    return float(stats.chisquare(counts, chances * len(sample)).pvalue)


@pytest.mark.parametrize(("shape", "scale"), LAWS)
def test_the_law_is_the_negative_binomial_and_no_other_scale(shape: Fraction, scale: Fraction) -> None:
    sample = noise.sample_negative_binomial(100_000, shape=shape, scale=scale, coins=coins())
    assert chi_square_p(sample, shape, scale) > LEAST_P
    assert chi_square_p(sample, shape, scale * 13 / 10) < REJECTED_P
    assert chi_square_p(sample, shape, scale * 7 / 10) < REJECTED_P


@pytest.mark.parametrize("shape", [ONE, HALF, SMALL])
def test_the_tail_shell_has_the_same_law(shape: Fraction) -> None:
    sieve = noise._build_sieve(build_envelope(shape, Fraction(20), tail_scales=1))
    assert sieve.envelope.tail_start == 32
    sample = noise._draw(500_000, sieve, coins=coins())
    assert chi_square_p(sample, shape, Fraction(20), floor=31) > LEAST_P
    assert chi_square_p(sample, shape, Fraction(20)) > LEAST_P


def test_two_shares_of_a_half_are_a_discrete_laplace() -> None:
    scale = Fraction(12)
    total = sum(
        noise.sample_shares(100_000, shape=HALF, scale=scale, coins=coins(seed)).astype(np.int64) for seed in (1, 2)
    )
    whole = noise.sample_discrete_laplace(100_000, scale=scale, coins=coins(3))
    places = np.arange(-40, 41)
    expected = stats.dlaplace.pmf(places, float(1 / scale)) * 100_000
    for sample in (total, whole):
        counts = (np.asarray(sample)[:, None] == places).sum(axis=0)
        z_scores = (counts - expected) / np.sqrt(expected)
        assert np.abs(z_scores).max() < 4.5
        assert stats.chi2.sf((z_scores**2).sum(), len(places)) > LEAST_P


# The slow twin: integers only. Canonne, Kamath and Steinke (2020), algorithms 1 and 2, then Bernoulli tests.


def bernoulli(chance: Fraction, rng: random.Random) -> bool:
    return rng.randrange(chance.denominator) < chance.numerator


def bernoulli_exp(exponent: Fraction, rng: random.Random) -> bool:
    """True with probability exp(-exponent), 0 <= exponent <= 1."""
    trials = 1
    while bernoulli(exponent / trials, rng):
        trials += 1
    return trials % 2 == 1


def twin_geometric(scale: Fraction, rng: random.Random) -> int:
    whole = scale.numerator
    while not bernoulli_exp(Fraction(place := rng.randrange(whole), whole), rng):
        pass
    while bernoulli_exp(ONE, rng):
        place += whole
    return place // scale.denominator


def twin_negative_binomial(shape: Fraction, scale: Fraction, rng: random.Random) -> int:
    while True:
        value = twin_geometric(scale, rng)
        if all(bernoulli((i - 1 + shape) / i, rng) for i in range(1, value + 1)):
            return value


@pytest.mark.parametrize(("shape", "scale"), [(ONE, Fraction(7, 3)), (HALF, Fraction(3)), (SMALL, Fraction(5, 2))])
def test_the_slow_twin_has_the_same_law(shape: Fraction, scale: Fraction) -> None:
    rng = random.Random(5)
    twin = np.array([twin_negative_binomial(shape, scale, rng) for _ in range(4000)])
    fast = noise.sample_negative_binomial(4000, shape=shape, scale=scale, coins=coins())
    top = int(np.quantile(np.concatenate([twin, fast]), 0.995)) + 1
    table = np.array([np.bincount(np.minimum(each, top), minlength=top + 1) for each in (twin, fast)])
    assert stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue > LEAST_P


# The exact path.


@pytest.mark.parametrize(("shape", "scale"), LAWS)
def test_deciding_everything_exactly_changes_no_draw_and_no_coin(
    shape: Fraction, scale: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick, thorough = coins(), coins()
    fast = noise.sample_shares(300, shape=shape, scale=scale, coins=quick)
    calls: list[int] = []
    keeps = Envelope.keeps

    def keeps_and_counts(self: Envelope, value: int, shell: int, word: int, *, coins: Coins) -> bool:
        calls.append(value)
        return keeps(self, value, shell, word, coins=coins)

    monkeypatch.setattr(Envelope, "keeps", keeps_and_counts)
    monkeypatch.setattr(noise, "_MARGIN", 1.0)
    slow = noise.sample_shares(300, shape=shape, scale=scale, coins=thorough)
    assert len(calls) >= 600
    assert np.array_equal(fast, slow)
    assert quick.draw_bytes(32) == thorough.draw_bytes(32)


@pytest.mark.parametrize(("shape", "scale"), LAWS)
def test_the_bounds_enclose_the_chance_closely_and_with_room_to_spare(shape: Fraction, scale: Fraction) -> None:
    envelope = build_envelope(shape, scale)
    shells = np.repeat(np.arange(envelope.tail + 1), 12)
    rng = random.Random(3)
    reach = [left_end(shell) + (rng.randrange(left_end(shell)) if shell else 0) for shell in shells.tolist()]
    lower, upper = noise._build_sieve(envelope).bound(np.array(reach), shells)
    for value, shell, low, high in zip(reach, shells.tolist(), lower, upper, strict=True):
        chance = envelope.enclose(value, shell, bits=64, precision=256)[0] / 2**64
        assert low - noise._MARGIN / 100 <= chance <= high + noise._MARGIN / 100
        assert high - low < 1e-4


class FirstWords(Coins):
    """Coins whose first words are given."""

    def __init__(self, words: list[int]) -> None:
        super().__init__(bytes(32))
        self._words = words

    def draw_words(self, count: int) -> NDArray[np.uint64]:
        first, self._words = self._words, []
        return np.array(first, dtype=np.uint64) if first else super().draw_words(count)


def test_a_shell_owns_exactly_as_many_words_as_it_weighs() -> None:
    envelope = build_envelope(HALF, Fraction(50))
    sieve = noise._build_sieve(envelope)
    firsts = [sum(envelope.weights[:shell]) for shell in range(envelope.tail)]
    lasts = [first + weight - 1 for first, weight in zip(firsts, envelope.weights, strict=False)]
    lefts = [left_end(shell) for shell in range(envelope.tail)]
    rights = [max(0, 2 * left - 1) for left in lefts]
    for choices, place, expected in ((firsts, 0, lefts), (lasts, 2**64 - 1, rights)):
        scripted = FirstWords([*choices, *[place] * len(choices), *[0] * len(choices)])
        assert noise._sift(len(choices), sieve, coins=scripted).tolist() == expected


def test_the_same_coins_give_the_same_bytes_for_ever() -> None:
    digest = hashlib.sha256()
    for shape, scale in LAWS:
        digest.update(noise.sample_shares(40_000, shape=shape, scale=scale, coins=coins()).astype("<i8").tobytes())
    assert digest.hexdigest() == "adc3a8f1e2118da66486fdc90d3571224f4855794b03216db9d8dc85033a6eae"


def test_the_variance_of_a_share_is_forecast() -> None:
    shares = noise.sample_shares(200_000, shape=HALF, scale=Fraction(50), coins=coins())
    assert shares.var() == pytest.approx(noise.share_variance(shape=HALF, scale=Fraction(50)), rel=0.03)
    assert noise.share_variance(shape=ONE, scale=Fraction(2**40)) == pytest.approx(2.0**81)
    assert noise.share_variance(shape=ONE, scale=noise.MIN_SCALE) == 0


def test_next_to_no_noise_is_no_noise() -> None:
    assert not noise.sample_shares(1000, shape=HALF, scale=noise.MIN_SCALE, coins=coins()).any()


def test_no_shares_read_no_coins() -> None:
    unread = coins()
    assert noise.sample_shares(0, shape=HALF, scale=Fraction(3), coins=unread).shape == (0,)
    assert unread.draw_bytes(8) == coins().draw_bytes(8)


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-3), Fraction(2**40 + 1), Fraction(1, 2**21)])
def test_a_scale_out_of_range_is_refused(scale: Fraction) -> None:
    with pytest.raises(SynodError) as caught:
        noise.sample_discrete_laplace(1, scale=scale, coins=coins())
    assert caught.value.code is Code.INVALID
