"""The envelope and its exact decisions, against decimals of 80 digits and against more precision."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from synod.common.privacy import exact
from synod.common.privacy.exact import Envelope, build_envelope, enclose_power, left_end, shows_heads
from tests.support.keys import seeded

HALF, SMALL, ONE = Fraction(1, 2), Fraction(1, 49), Fraction(1)
SCALES = (Fraction(1, 3), Fraction(30), Fraction(50_000_000), Fraction(2**40))
LAWS = [(shape, scale) for shape in (ONE, HALF, SMALL) for scale in SCALES]


def chance_by_decimals(envelope: Envelope, value: int, shell: int) -> Decimal:
    """The probability of being kept, from its definition, to about 80 digits."""
    coefficient = math.prod(((i - 1 + envelope.shape) / i for i in range(1, value + 1)), start=ONE)
    exponent = -min(value, envelope.tail_start) / envelope.scale
    factor = coefficient * envelope.constant / envelope.weights[shell]
    ratio = (Decimal(-envelope.scale.denominator) / envelope.scale.numerator).exp()
    size = 1 / (1 - ratio) if shell == envelope.tail else Decimal(left_end(shell))
    decay = (Decimal(exponent.numerator) / exponent.denominator).exp()
    return size * decay * factor.numerator / factor.denominator


@pytest.mark.parametrize("first_precision", [256, 70])
@pytest.mark.parametrize(("value", "shell"), [(1, 1), (2, 2), (3, 2), (29, 5), (100, 7), (128, 8), (300, 8)])
@pytest.mark.parametrize("shape", [ONE, HALF, SMALL])
def test_a_proposal_is_kept_exactly_below_its_chance(
    shape: Fraction, value: int, shell: int, first_precision: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    envelope = build_envelope(shape, Fraction(17, 8), tail_scales=60)
    assert envelope.tail == 8
    monkeypatch.setattr(exact, "_PRECISION", first_precision)
    with localcontext(prec=80):
        scaled = chance_by_decimals(envelope, value, shell) * 2**128
    word, rest = divmod(int(scaled), 2**64)
    assert word < 2**64
    assert envelope.keeps(value, shell, word - 1, coins=seeded(7))
    assert not envelope.keeps(value, shell, word + 1, coins=seeded(7))
    for seed in range(8):
        assert envelope.keeps(value, shell, word, coins=seeded(seed)) == (seeded(seed).draw_bits(64) < rest)


def test_nothing_is_always_kept() -> None:
    assert build_envelope(HALF, Fraction(3)).keeps(0, 0, 2**64 - 1, coins=seeded(7))


@pytest.mark.parametrize("value", [1, 1000, 2**30 + 1, 2**53 - 1])
@pytest.mark.parametrize(("shape", "scale"), LAWS)
def test_a_coarse_enclosure_holds_the_fine_one(shape: Fraction, scale: Fraction, value: int) -> None:
    envelope = build_envelope(shape, scale)
    shell = min(value.bit_length(), envelope.tail)
    fine = envelope.enclose(value, shell, bits=128, precision=2048)
    assert fine[0] == fine[1]
    for precision in range(70, 210):
        lower, upper = envelope.enclose(value, shell, bits=128, precision=precision)
        assert lower <= fine[0] <= upper


@pytest.mark.parametrize(("shape", "scale"), LAWS)
def test_an_envelope_fills_a_word_and_no_chance_exceeds_one(shape: Fraction, scale: Fraction) -> None:
    envelope = build_envelope(shape, scale)
    assert sum(envelope.weights) == 2**64
    assert envelope.weights[0] == envelope.constant
    assert envelope.tail_start == left_end(envelope.tail) >= 64 * scale
    for shell in range(1, envelope.tail + 1):
        assert envelope.enclose(left_end(shell), shell, bits=64, precision=256)[1] <= 2**64


@pytest.mark.parametrize("first_precision", [256, 70, 8])
@pytest.mark.parametrize("exponent", [Fraction(1, 2**40), Fraction(1, 3), Fraction(7), Fraction(40), Fraction(10**6)])
def test_a_coin_shows_heads_exactly_below_its_chance(
    exponent: Fraction, first_precision: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact, "_PRECISION", first_precision)
    with localcontext(prec=100):
        scaled = int((Decimal(-exponent.numerator) / exponent.denominator).exp() * 2**128)
    word, rest = divmod(scaled, 2**64)
    assert word == 0 or shows_heads(exponent, word - 1, coins=seeded(7))
    assert not shows_heads(exponent, word + 1, coins=seeded(7))
    for seed in range(8):
        assert shows_heads(exponent, word, coins=seeded(seed)) == (seeded(seed).draw_bits(64) < rest)


@pytest.mark.parametrize("exponent", [Fraction(1, 2**70), Fraction(2, 7), Fraction(30), Fraction(10**9)])
def test_a_coarse_enclosure_of_a_power_holds_the_fine_one(exponent: Fraction) -> None:
    lower, upper = enclose_power(exponent, bits=64, precision=70)
    fine_lower, fine_upper = enclose_power(exponent, bits=64, precision=400)
    assert lower <= fine_lower == fine_upper <= upper


def test_a_chance_of_one_is_above_every_word() -> None:
    unread = seeded(7)
    assert shows_heads(Fraction(0), 2**64 - 1, coins=unread)
    assert unread.draw_bytes(8) == seeded(7).draw_bytes(8)
