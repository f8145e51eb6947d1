"""Public coins: the same for everybody and for ever, whatever was drawn is drawn again."""

import numpy as np
import pytest

from synod.common.privacy.coins import Coins

PINNED = {
    (0, "rows"): "4e6be3c2cef9e09227f2fde69c299544",
    (7, "values"): "beb7a57fd4d131a4d4ec6f05584525cf",
}


@pytest.mark.parametrize(("key", "first"), PINNED.items(), ids=str)
def test_public_coins_are_what_they_were(key: tuple[int, str], first: str) -> None:
    """Releases are drawn again from these bytes: whatever changes them makes every older release fail to verify."""
    assert Coins.public(*key).draw_bytes(16).hex() == first


def test_seed_and_purpose_make_other_coins() -> None:
    keys = [(seed, purpose) for seed in (0, 1, 10, 2**53 - 1) for purpose in ("rows", "values", "rows\0" + "1")]
    assert len({Coins.public(*key).draw_bytes(16) for key in keys}) == len(keys)


def test_uniforms_are_multiples_of_2_to_the_minus_53_below_one() -> None:
    drawn = Coins.public(3, "values").draw_uniforms(20_000)
    words = Coins.public(3, "values").draw_words(20_000)
    assert drawn.dtype == np.float64
    assert 0 <= drawn.min() <= drawn.max() < 1
    assert [int(number * 2**53) for number in drawn[:50]] == [int(word) >> 11 for word in words[:50]]
    assert np.abs(np.histogram(drawn, bins=10, range=(0, 1))[0] - 2_000).max() < 6 * 1_800**0.5


def test_the_largest_word_is_below_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Coins, "draw_words", lambda _, count: np.full(count, 2**64 - 1, dtype=np.uint64))
    assert Coins.public(0, "values").draw_uniforms(2).tolist() == [1 - 2**-53] * 2


def test_parts_of_a_stream_are_the_stream() -> None:
    whole, parts = Coins.public(1, "rows"), Coins.public(1, "rows")
    assert whole.draw_bytes(40) == parts.draw_bytes(8) + parts.draw_words(3).tobytes() + parts.draw_bytes(8)
    assert parts.draw_words(0).tolist() == []
    assert parts.draw_uniforms(0).tolist() == []
