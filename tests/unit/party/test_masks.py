"""Masks: they cancel over the whole roster and in nothing less, whatever keys a malicious party enrols with."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from synod.common.privacy.coins import Coins
from synod.common.runtime.errors import Code, SynodError
from synod.party import masks
from synod.party.masks import blind, draw_masks, mask_key

MODULUS = 2**2047 + 2**1000 + 15
FIELD = 2**255 - 19
T, Q = bytes([1]) * 32, bytes([2]) * 32


def public_key(secret: bytes) -> bytes:
    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


SECRETS = [bytes([40 + i]) * 32 for i in range(5)]
EXCHANGES = [public_key(secret) for secret in SECRETS]


def blind_as(index: int, plaintexts: Sequence[int], **changes: Any) -> list[int]:
    told: dict[str, Any] = {
        "secret": SECRETS[index],
        "exchanges": EXCHANGES[:3],
        "transcript": T,
        "label": "moments",
        "query": Q,
        "modulus": MODULUS,
    }
    told |= changes
    return blind(plaintexts, index=index, **{"present": range(len(told["exchanges"])), **told})


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 5), st.lists(st.integers(0, 2**40), min_size=1, max_size=4), st.integers(3, MODULUS))
def test_masks_cancel_over_the_whole_roster(parties: int, values: list[int], modulus: int) -> None:
    exchanges = EXCHANGES[:parties]
    vectors = [[value << i for value in values] for i in range(parties)]
    blinded = [blind_as(i, v, exchanges=exchanges, modulus=modulus) for i, v in enumerate(vectors)]
    assert all(0 <= value < modulus for vector in blinded if parties > 1 for value in vector)
    sums = [sum(column) % modulus for column in zip(*blinded, strict=True)]
    assert sums == [sum(column) % modulus for column in zip(*vectors, strict=True)]


def test_no_smaller_sum_comes_out() -> None:
    parties = range(5)
    blinded = [blind_as(i, [2**i], exchanges=EXCHANGES)[0] for i in parties]
    for size in range(1, 5):
        for chosen in combinations(parties, size):
            total = sum(blinded[i] for i in chosen) % MODULUS
            assert 2**64 < total < MODULUS - 2**64
    assert sum(blinded) % MODULUS == 2**5 - 1


@pytest.mark.parametrize(
    "told",
    [
        {"transcript": bytes(32)},
        {"label": "rows"},
        {"label": "moment"},
        {"query": bytes(32)},
        {"exchanges": [EXCHANGES[0], EXCHANGES[1], EXCHANGES[3]]},
        {"exchanges": [*EXCHANGES[:3], EXCHANGES[3]]},
    ],
)
def test_a_party_that_was_told_something_else_spoils_the_sum(told: dict[str, Any]) -> None:
    answers = [blind_as(0, [1]), blind_as(1, [2], **told), blind_as(2, [4])]
    total = sum(vector[0] for vector in answers) % MODULUS
    assert 2**64 < total < MODULUS - 2**64


def key(**changes: Any) -> bytes:
    told: dict[str, Any] = {"pair": (0, 1), "transcript": T, "label": "moments", "query": Q}
    return mask_key(SECRETS[0], EXCHANGES[1], **(told | changes))


def test_keys_differ_by_everything_that_they_are_bound_to() -> None:
    keys = [
        key(),
        key(transcript=bytes(32)),
        key(label="rows"),
        key(query=bytes(32)),
        key(pair=(0, 2)),
        key(pair=(1, 2)),
        key(label="moments" + "x", query=Q[1:]),
        mask_key(SECRETS[0], EXCHANGES[2], pair=(0, 1), transcript=T, label="moments", query=Q),
    ]
    assert len(set(keys)) == len(keys)
    assert mask_key(SECRETS[1], EXCHANGES[0], pair=(0, 1), transcript=T, label="moments", query=Q) == key()


def test_label_and_query_cannot_trade_bytes() -> None:
    assert key(label="ab", query=b"c" + Q) != key(label="abc", query=Q)


def twins(exchange: bytes) -> list[bytes]:
    """Other public keys that agree on the same secrets: the unused top bit set, and the point of order two added."""
    x = int.from_bytes(exchange, "little")
    return [(x | 1 << 255).to_bytes(32, "little"), pow(x, -1, FIELD).to_bytes(32, "little")]


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize(("victim", "copied", "thief"), [(1, 0, 2), (1, 2, 0), (0, 1, 2), (2, 0, 1)])
def test_a_party_with_a_twin_of_anothers_key_lays_nobody_bare(kind: int, victim: int, copied: int, thief: int) -> None:
    """With one mask for both, the party between the two would add it and take it off again: its plaintext bare."""
    exchanges = list(EXCHANGES[:3])
    exchanges[thief] = twins(exchanges[copied])[kind]
    assert len(set(exchanges)) == 3
    blinded = blind_as(victim, [12345, 12345], exchanges=exchanges)
    assert all(2**64 < value < MODULUS - 2**64 for value in blinded)
    agreed = {
        mask_key(SECRETS[victim], exchanges[other], pair=(5, 6), transcript=T, label="x", query=Q)
        for other in (copied, thief)
    }
    assert len(agreed) == 1, "the keys are twins, so the attack is a real one"


@pytest.mark.parametrize(
    "point",
    [
        bytes(32),
        (1).to_bytes(32, "little"),
        (FIELD - 1).to_bytes(32, "little"),
        FIELD.to_bytes(32, "little"),
        b"",
        bytes(31),
    ],
)
def test_keys_that_agree_on_nothing_are_refused(point: bytes) -> None:
    with pytest.raises(SynodError, match="not a usable X25519 key") as caught:
        blind_as(0, [1], exchanges=[EXCHANGES[0], point, EXCHANGES[2]])
    assert caught.value.code is Code.CHECK_FAILED


def test_each_ciphertext_has_a_mask_of_its_own() -> None:
    masks = draw_masks(key(), 200, MODULUS)
    assert len(set(masks)) == 200
    assert draw_masks(key(), 100, MODULUS) == masks[:100]
    assert all(0 <= mask < MODULUS for mask in masks)


def test_no_difference_of_two_plaintexts_of_an_answer_comes_out() -> None:
    """One mask for all would cancel in the quotient of two ciphertexts."""
    blinded = [blind_as(index, [7] * 20) for index in range(3)]
    differences = {(a - b) % MODULUS for vector in blinded for a, b in combinations(vector, 2)}
    assert len(differences) == 3 * 190
    assert all(2**64 < difference < MODULUS - 2**64 for difference in differences)


def test_masks_look_uniform() -> None:
    """Sixteen equal parts of Z_n, and residues of a small modulus that is far from a power of two."""
    count = 8000
    for modulus in (MODULUS, 3 * 2**70 + 1, 48):
        bins = [0] * 16
        for mask in draw_masks(key(label=str(modulus)), count, modulus):
            bins[mask * 16 // modulus] += 1
        chi_square = sum((found - count / 16) ** 2 / (count / 16) for found in bins)
        assert 1 < chi_square < 55  # 15 degrees of freedom: outside with probability below 1e-5; the key is fixed


def test_128_bits_more_than_the_modulus_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []

    class Counting(Coins):
        def draw_bytes(self, count: int) -> bytes:
            drawn.append(count)
            return super().draw_bytes(count)

    monkeypatch.setattr(masks, "Coins", Counting)
    draw_masks(key(), 3, 2**2047 + 1)
    assert drawn == [3 * (2048 + 128) // 8]
