"""Colluding parties hand the curator their secrets: what is left is the honest parties' sum under full noise."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from synod.common.crypto.paillier import decrypt_all
from synod.common.privacy.coins import Coins
from synod.common.privacy.laws import LaplaceLaw
from synod.common.privacy.noise import sample_shares
from synod.common.protocol.transcript import Transcript
from synod.common.study.study import Study
from synod.party import masks
from tests.support.attacks import (
    WIDE,
    Numbers,
    exact_moments,
    exact_sum,
    forget_in_masks,
    is_near,
    read_answer,
    read_plaintexts,
    small_case,
    wide_case,
)
from tests.support.encrypted_sums import answer, ask
from tests.support.keys import paillier_key
from tests.support.laws import OFF_BY, accepts
from tests.support.parties import PartyInMemory, make_transcript

FIELD = 2**255 - 19
STUDIES = 20
SCALE = Fraction(2 * (-(-(WIDE + 1) // 2)) * ((WIDE + 1) // 2))


def strip(
    study: Study, members: list[PartyInMemory], colluders: Sequence[int], honest: Sequence[int]
) -> Numbers | None:
    """The curator decrypts honest answers, takes off every mask that a colluder knows, and adds up."""
    key = paillier_key()
    transcript = make_transcript(study, members, key)
    total: list[int] = []
    for index in honest:
        asked = ask(study, transcript, index)
        plain = decrypt_all(key, answer(members[index], asked), workers=1)
        for other in colluders:
            pair_key = masks.mask_key(
                members[other].secrets.exchange_key(),
                transcript.enrolments[index].exchange,
                pair=(min(index, other), max(index, other)),
                transcript=asked.transcript_hash,
                label="moments",
                query=asked.query_hash,
            )
            sign = 1 if index < other else -1
            taken = masks.draw_masks(pair_key, len(plain), key.public.n)
            plain = [value - sign * mask for value, mask in zip(plain, taken, strict=True)]
        total = [a + b for a, b in zip(total or [0] * len(plain), plain, strict=True)]
    return read_plaintexts(study, [value % key.public.n for value in total], key.public.n)


@pytest.mark.parametrize("colluder", [0, 1, 2])
def test_a_colluder_opens_the_honest_sum_and_no_honest_party(colluder: int) -> None:
    study, members = small_case()
    honest = [index for index in range(3) if index != colluder]
    truth = exact_sum(study, [members[index] for index in honest])
    assert is_near(study, strip(study, members, [colluder], honest), truth)
    for index in honest:
        assert strip(study, members, [colluder], [index]) is None


def test_all_others_together_open_the_last_one() -> None:
    """More than t colluders are no longer kept out: the attack itself works."""
    study, members = small_case()
    assert is_near(study, strip(study, members, [0, 2], [1]), exact_moments(study, members[1].table))


def draw_left(colluders: Sequence[int], honest: Sequence[int]) -> Numbers:
    """What the coalition is left with, minus the honest rows' exact moments."""
    noise = []
    for study, members in map(wide_case, range(STUDIES)):
        left = strip(study, members, colluders, honest)
        assert left is not None
        noise.append(left - exact_sum(study, [members[index] for index in honest]))
    return np.concatenate(noise)


@pytest.mark.slow
@pytest.mark.parametrize("colluder", [0, 2])
def test_what_a_coalition_is_left_with_has_full_noise(colluder: int) -> None:
    noise = draw_left([colluder], [index for index in range(3) if index != colluder])
    assert accepts(noise, SCALE)
    for factor in OFF_BY:
        assert not accepts(noise, SCALE * factor)


@pytest.mark.slow
def test_shares_that_forget_the_colluder_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(law: LaplaceLaw, count: int, *, coins: Coins) -> Numbers:
        return sample_shares(count, shape=Fraction(1, law.parties), scale=law.scale, coins=coins)

    monkeypatch.setattr(LaplaceLaw, "sample", forgetful)
    assert not accepts(draw_left([0], [1, 2]), SCALE)


# A colluder enrols with a twin of an honest party's exchange key: other bytes, the same shared secrets.


def flip_top_bit(exchange: bytes) -> bytes:
    """X25519 ignores the top bit (RFC 7748, 5)."""
    return exchange[:31] + bytes([exchange[31] ^ 0x80])


def add_order_two(exchange: bytes) -> bytes:
    """P + (0, 0), whose u is 1/u: clamped scalars are even, so that it agrees on the same secrets as P."""
    return pow(int.from_bytes(exchange, "little"), -1, FIELD).to_bytes(32, "little")


def enrol_twin(study: Study, members: list[PartyInMemory], twin: bytes) -> Transcript:
    transcript = make_transcript(study, members)
    last = replace(transcript.enrolments[2], exchange=twin).signed_by(members[2].identity, study.digest())
    return replace(transcript, enrolments=(*transcript.enrolments[:2], last))


@pytest.mark.parametrize("make_twin", [flip_top_bit, add_order_two])
def test_a_twin_of_a_key_does_not_cancel_a_mask(make_twin: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Party 1 subtracts its mask with party 0 and adds that with party 2: if they were equal, nothing would hide it."""
    assert callable(make_twin)
    study, members = small_case()
    transcript = enrol_twin(study, members, make_twin(members[0].enrolment().exchange))
    truth = exact_moments(study, members[1].table)
    key = paillier_key()
    assert read_answer(study, key, answer(members[1], ask(study, transcript, 1))) is None
    forget_in_masks(monkeypatch, "pair")
    assert is_near(study, read_answer(study, key, answer(members[1], ask(study, transcript, 1))), truth)
