"""What a malicious curator can do with its private key and everything it received, and how to take a protection away.

Each attack here succeeds where the protection against it is missing; the tests show both.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from synod.common.crypto.canonical import Json
from synod.common.crypto.packing import SlotLayout, unpack
from synod.common.crypto.paillier import SecretKey, decrypt_all
from synod.common.protocol.queries.moments import SumMoments, moment_design
from synod.common.runtime.errors import SynodError
from synod.common.study.study import Study
from synod.party import masks
from synod.party.answer import Secrets
from synod.party.count.moments import sum_moments
from tests.support.encrypted_sums import layout_of, make_sum_study, sum_step
from tests.support.parties import PartyInMemory, parties_in_memory
from tests.support.studies import Table, binary

ROWS = (1000, 2000, 4000)
WIDE = 60
NOTHING = bytes(32)

Numbers = NDArray[np.int64]


def pattern_table(study: Study, index: int) -> list[NDArray[np.uint8]]:
    """A table where every moment of every party differs from that of every other party by a lot."""
    rows = study.roster[index].rows
    return [np.full(rows, index >> place % 2 & 1, dtype=np.uint8) for place in range(len(study.attributes))]


def small_study(name: str = "survey", rows: Sequence[int] = ROWS) -> Study:
    """Ten moments, noise much smaller than the moments, one ciphertext with room to spare."""
    return make_sum_study(rows, [binary(f"a{place}") for place in range(4)], name=name)


def small_case(study: Study | None = None) -> tuple[Study, list[PartyInMemory]]:
    """Three parties under the small study, or under another that they are told."""
    true = small_study()
    return study or true, parties_in_memory(study or true, [pattern_table(true, index) for index in range(len(ROWS))])


def wide_case(number: int = 0) -> tuple[Study, list[PartyInMemory]]:
    """Three parties, 1,830 moments, many ciphertexts."""
    study = make_sum_study(ROWS, [binary(f"a{place}") for place in range(WIDE)], name=f"wide-{number}")
    return study, parties_in_memory(study, [pattern_table(study, index) for index in range(len(ROWS))])


def exact_moments(study: Study, table: Table) -> Numbers:
    return sum_moments(moment_design(study), table)


def exact_sum(study: Study, members: Sequence[PartyInMemory]) -> Numbers:
    total: Numbers = np.sum([exact_moments(study, member.table) for member in members], axis=0)
    return total


def is_near(study: Study, guess: Numbers | None, truth: Numbers, factor: int = 1) -> bool:
    """Whether a guess is the truth but for noise: the attack has succeeded."""
    bound = factor * SumMoments().terms(sum_step(study), study).noise_bound
    return guess is not None and bool((abs(guess - truth) <= bound).all())


# Attacks


def read_plaintexts(
    study: Study, plaintexts: Sequence[int], modulus: int, present: tuple[int, ...] = ()
) -> Numbers | None:
    """The integers in the slots of the first plaintexts, of either sign; None if there are none. Slots are as wide as
    in a sum of those who are present.
    """
    layout = layout_of(study, present)
    half = 1 << layout.width - 1
    length = min(layout.length, layout.slots * len(plaintexts))
    signed = SlotLayout(length, -half, half - 1, layout.width, layout.slots)
    try:
        return unpack(signed, plaintexts, modulus)
    except SynodError:
        return None


def read_answer(study: Study, key: SecretKey, answer: bytes) -> Numbers | None:
    """One party's answer, decrypted on its own."""
    return read_plaintexts(study, decrypt_all(key, answer, workers=1), key.public.n)


def read_quotient(study: Study, key: SecretKey, first: bytes, second: bytes) -> Numbers | None:
    """The difference of two answers' plaintexts, which is what the quotient of their ciphertexts holds."""
    pairs = zip(decrypt_all(key, first, workers=1), decrypt_all(key, second, workers=1), strict=True)
    return read_plaintexts(study, [(one - other) % key.public.n for one, other in pairs], key.public.n)


def read_sum(study: Study, answers: Sequence[tuple[SecretKey, bytes]]) -> Numbers | None:
    """The sum of answers that may be under different keys: each decrypted, brought to the least residue, and added."""
    total = [0] * layout_of(study).ciphertexts
    for key, answer in answers:
        n = key.public.n
        plain = decrypt_all(key, answer, workers=1)
        total = [t + (p if p < n // 2 else p - n) for t, p in zip(total, plain, strict=True)]
    modulus = answers[0][0].public.n
    return read_plaintexts(study, [t % modulus for t in total], modulus)


# Protections taken away


def forget_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    """No masks at all."""

    def leave(plaintexts: Sequence[int], **_: object) -> list[int]:
        return list(plaintexts)

    monkeypatch.setattr("synod.party.answer.blind", leave)


def forget_in_masks(monkeypatch: pytest.MonkeyPatch, *forgotten: str) -> None:
    """Masks that are not bound to some of: pair, transcript, label, query."""
    bind: Callable[..., bytes] = masks.mask_key
    blank: dict[str, object] = {"pair": (0, 0), "transcript": NOTHING, "label": "", "query": NOTHING}

    def unbound(secret: bytes, other: bytes, **bound: object) -> bytes:
        return bind(secret, other, **{**bound, **{name: blank[name] for name in forgotten}})

    monkeypatch.setattr(masks, "mask_key", unbound)


def forget_in_secrets(monkeypatch: pytest.MonkeyPatch, *forgotten: str) -> None:
    """Secrets that do not depend on some of: study_hash, snapshot."""
    derive = Secrets.derive

    def unbound(self: Secrets, purpose: str, *inputs: Json) -> bytes:
        return derive(replace(self, **dict.fromkeys(forgotten, NOTHING)), purpose, *inputs)

    monkeypatch.setattr(Secrets, "derive", unbound)
