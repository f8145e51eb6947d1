"""Packing against its definition, with values far outside of their slots."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from synod.common.crypto import packing
from synod.common.crypto.packing import SlotLayout, pack, plan_slots, unpack
from synod.common.crypto.paillier import Encryptor, add_all, decrypt_all, generate_key
from synod.common.privacy.coins import Coins
from synod.common.runtime.errors import Code, SynodError

INT64 = st.integers(-(2**63), 2**63 - 1)


def pack_by_definition(layout: SlotLayout, values: Sequence[int], modulus: int) -> list[int]:
    chunks = [values[i : i + layout.slots] for i in range(0, len(values), layout.slots)]
    return [sum(v << (layout.width * i) for i, v in enumerate(chunk)) % modulus for chunk in chunks]


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 62), st.integers(63, 700), st.lists(INT64, min_size=1, max_size=150), st.data())
@example(62, 63, [-(2**63)] * 3, None)
@example(1, 700, [-1, 2**63 - 1, -(2**63)] * 50, None)
def test_pack_is_exact_for_all_values(width: int, key_bits: int, values: list[int], data: st.DataObject | None) -> None:
    modulus = 2**key_bits - 1
    if data is not None:
        modulus = data.draw(st.integers(2 ** (key_bits - 1), modulus))
    layout = SlotLayout(len(values), 0, 2**width - 1, width, (key_bits - 1) // width)
    packed = pack(layout, np.array(values, dtype=np.int64), modulus)
    assert packed == pack_by_definition(layout, values, modulus)
    assert len(packed) == layout.ciphertexts


@st.composite
def layouts(draw: st.DrawFn) -> tuple[SlotLayout, int]:
    key_bits = draw(st.integers(128, 700))
    low = draw(st.integers(-(2**60), 2**60))
    high = low + draw(st.integers(0, 2 ** draw(st.integers(0, 59))))
    noise = draw(st.integers(0, 2 ** draw(st.integers(0, 59))))
    layout = plan_slots(draw(st.integers(1, 200)), low, high, noise, key_bits)
    return layout, draw(st.integers(2 ** (key_bits - 1), 2**key_bits - 1))


@settings(max_examples=200, deadline=None)
@given(layouts(), st.integers(1, 4), st.data())
def test_sum_of_packed_unpacks_to_the_sum(plan: tuple[SlotLayout, int], parties: int, data: st.DataObject) -> None:
    layout, modulus = plan
    total = data.draw(hnp.arrays(np.int64, layout.length, elements=st.integers(layout.low, layout.high)))
    wide = st.integers(-(2**60), 2**60)
    shares = [data.draw(hnp.arrays(np.int64, layout.length, elements=wide)) for _ in range(parties - 1)]
    last = total - sum(shares, np.zeros(layout.length, dtype=np.int64))
    packed = [pack(layout, share, modulus) for share in [*shares, last]]
    sums = [sum(column) % modulus for column in zip(*packed, strict=True)]
    unpacked = unpack(layout, sums, modulus)
    assert unpacked.dtype == np.int64
    assert np.array_equal(unpacked, total)


@pytest.mark.parametrize("length", [1, 115, 116, 117, 1000])
def test_both_ends_of_the_range_fit(length: int) -> None:
    layout = plan_slots(length, 0, 45_222, 40_000, 2048)
    assert (layout.low, layout.high, layout.width, layout.slots) == (-40_000, 85_222, 17, 116)
    assert layout.ciphertexts == -(-length // 116)
    for value in (layout.low, 0, layout.high):
        values = np.full(length, value, dtype=np.int64)
        assert np.array_equal(unpack(layout, pack(layout, values, 2**2047), 2**2047), values)


def test_width_is_the_least_that_holds_the_range() -> None:
    assert plan_slots(10, 0, 1023, 0, 2048).width == 10
    assert plan_slots(10, 0, 1024, 0, 2048).width == 11
    assert plan_slots(10, -3, 4, 4, 2048).width == 4
    assert plan_slots(10, 7, 7, 0, 2048).width == 1
    assert plan_slots(10, 0, 2**62 - 1, 0, 2048).width == 62


def test_slots_stay_below_the_least_modulus_of_the_key_length() -> None:
    assert plan_slots(10, 0, 2**16 - 1, 0, 2048).slots == 123
    assert plan_slots(10, 0, 2**23 - 1, 0, 2048).slots == 86


@pytest.mark.parametrize(
    ("low", "high", "noise"), [(0, 2**62, 0), (0, 0, 2**61), (2**62, 2**62, 0), (-(2**62), -(2**62) + 1, 0)]
)
def test_ranges_beyond_62_bits_are_refused(low: int, high: int, noise: int) -> None:
    with pytest.raises(SynodError, match="more than 62 bits") as caught:
        plan_slots(10, low, high, noise, 2048)
    assert caught.value.code is Code.INVALID


def test_totals_with_masks_left_in_are_refused() -> None:
    layout = plan_slots(100, 0, 1000, 500, 256)
    modulus = 2**256 - 189
    sound = pack(layout, np.arange(100), modulus)
    top = 1 << layout.width * layout.slots
    for place, left_in in product(range(layout.ciphertexts), (top, -top, modulus // 2)):
        masked = [total + left_in * (index == place) for index, total in enumerate(sound)]
        with pytest.raises(SynodError, match="did not cancel") as caught:
            unpack(layout, masked, modulus)
        assert caught.value.code is Code.CHECK_FAILED


def test_totals_with_something_in_unused_slots_are_refused() -> None:
    layout = plan_slots(100, 0, 1000, 500, 256)
    assert layout.last_slots < layout.slots
    totals = pack(layout, np.arange(100), 2**255)
    totals[-1] += 1 << layout.width * layout.last_slots
    with pytest.raises(SynodError, match="does not fit its slots"):
        unpack(layout, totals, 2**255)


def test_encrypted_masked_sum_equals_the_plain_sum() -> None:
    secret = generate_key(512, coins=Coins(bytes(32)))
    n = secret.public.n
    layout = plan_slots(60, -1000, 1000, 300, 512)
    vectors = [np.arange(60, dtype=np.int64) << shift for shift in (0, 30, 30)]
    vectors[2] = -vectors[2] - 7
    encryptor = Encryptor(secret.public, 10)
    masks = [n // 3, n // 5, -(n // 3) - n // 5]
    submissions = [
        encryptor.encrypt_batch([(m + mask) % n for m in pack(layout, vector, n)], coins=Coins(bytes([place]) * 32))
        for place, (vector, mask) in enumerate(zip(vectors, masks, strict=True))
    ]
    totals = decrypt_all(secret, add_all(secret.public, submissions), workers=1)
    assert np.array_equal(unpack(layout, totals, n), np.arange(60) - 7)


@pytest.mark.parametrize("block", [1, 2, 3, 7])
@pytest.mark.parametrize("length", [1, 122, 123, 124, 861, 1000])
def test_blocks_do_not_change_a_plaintext(block: int, length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors are packed and unpacked a few ciphertexts at a time: with any number of them the same."""
    layout = plan_slots(length, 0, 50_000, 6_000, 2048)
    assert layout.slots == 123
    values = np.random.default_rng(length).integers(-6_000, 56_000, length)
    modulus = (1 << 2048) - 1
    whole = pack(layout, values, modulus)
    monkeypatch.setattr(packing, "BLOCK", block)
    assert pack(layout, values, modulus) == whole
    assert np.array_equal(unpack(layout, whole, modulus), values)
