"""The curator with its private key and everything it ever received learns nothing but the sum.

It tries single ciphertexts, quotients, differences across rounds, transcripts, studies and snapshots, and different
stories told to different parties. Every attack is run twice: as things are, where it must fail, and with the
protection against it taken away, where it must succeed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from synod.common.crypto.packing import pack
from synod.common.crypto.paillier import PublicKey, decrypt_all
from synod.common.protocol.transcript import Transcript
from synod.common.study.study import Study
from synod.party import masks
from tests.support.attacks import (
    ROWS,
    Numbers,
    exact_moments,
    exact_sum,
    forget_in_masks,
    forget_in_secrets,
    forget_masks,
    is_near,
    pattern_table,
    read_answer,
    read_plaintexts,
    read_quotient,
    read_sum,
    small_case,
    small_study,
    wide_case,
)
from tests.support.encrypted_sums import answer, answer_all, ask, layout_of, open_sum, sum_step
from tests.support.keys import paillier_key, seed_bytes
from tests.support.parties import PartyInMemory, make_transcript, parties_in_memory

LEAST_P = 1e-4
Forget = Callable[[pytest.MonkeyPatch], None]


def another_generator(transcript: Transcript) -> Transcript:
    """The same transcript but for h_s: another sound one for the same n."""
    n, h_s = transcript.key.n, transcript.key.h_s
    return replace(transcript, key=PublicKey(n, pow(h_s, 3, n**2)))


def forget_study(patch: pytest.MonkeyPatch) -> None:
    """Nothing is bound to the study, its roster or its transcript."""
    forget_in_secrets(patch, "study_hash")
    forget_in_masks(patch, "transcript", "query")


# Single ciphertexts


def opened_alone(study: Study, members: list[PartyInMemory]) -> list[bool]:
    key = paillier_key()
    answers = answer_all(study, members, make_transcript(study, members, key))
    return [
        is_near(study, read_answer(study, key, vector), exact_moments(study, member.table))
        for vector, member in zip(answers, members, strict=True)
    ]


def test_one_answer_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    study, members = small_case()
    assert opened_alone(study, members) == [False, False, False]
    forget_masks(monkeypatch)
    assert opened_alone(study, members) == [True, True, True]


def test_the_sum_can_be_read_and_is_all_there_is() -> None:
    study, members = small_case()
    key = paillier_key()
    answers = answer_all(study, members, make_transcript(study, members, key))
    truth = exact_sum(study, members)
    assert is_near(study, open_sum(study, key, answers), truth)
    for left_out in range(3):
        rest = [(key, vector) for index, vector in enumerate(answers) if index != left_out]
        assert read_sum(study, rest) is None


def looks_uniform(numbers: Sequence[int], modulus: int) -> bool:
    """By eighths of the range, and by the lowest three bits."""
    eighths = np.bincount([8 * number // modulus for number in numbers], minlength=8)
    low_bits = np.bincount([number % 8 for number in numbers], minlength=8)
    return bool(min(stats.chisquare(eighths).pvalue, stats.chisquare(low_bits).pvalue) > LEAST_P)


def read_alone(count: int) -> tuple[list[int], list[int]]:
    """All that single ciphertexts hold over some studies, and what of it is not the party's exact plaintext."""
    key = paillier_key()
    plain: list[int] = []
    beside: list[int] = []
    for number in range(count):
        study, members = wide_case(number)
        for index, member in enumerate(members):
            vector = answer(member, ask(study, make_transcript(study, members, key), index))
            seen = decrypt_all(key, vector, workers=1)
            packed = pack(layout_of(study), exact_moments(study, member.table), key.public.n)
            plain += seen
            beside += [(s - p) % key.public.n for s, p in zip(seen, packed, strict=True)]
    return plain, beside


def test_single_plaintexts_look_uniform_and_unrelated_to_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    modulus = paillier_key().public.n
    plain, beside = read_alone(4)
    assert len(plain) > 150
    assert looks_uniform(plain, modulus)
    assert looks_uniform(beside, modulus)
    forget_masks(monkeypatch)
    plain, beside = read_alone(4)
    assert not looks_uniform(plain, modulus)
    assert not looks_uniform(beside, modulus)


# Quotients


def test_two_ciphertexts_of_one_answer_have_nothing_in_common(monkeypatch: pytest.MonkeyPatch) -> None:
    """One mask for all ciphertexts of an answer would cancel in their quotients."""
    study, members = wide_case()
    key = paillier_key()
    slots = layout_of(study).slots
    asked = ask(study, make_transcript(study, members, key), 1)
    moments = exact_moments(study, members[1].table)
    truth = moments[:slots] - moments[slots : 2 * slots]
    assert truth.any()

    def quotient() -> Numbers | None:
        first, second, *_ = decrypt_all(key, answer(members[1], asked), workers=1)
        return read_plaintexts(study, [(first - second) % key.public.n], key.public.n)

    assert not is_near(study, quotient(), truth, factor=2)
    draw = masks.draw_masks
    monkeypatch.setattr(masks, "draw_masks", lambda key, count, modulus: draw(key, 1, modulus) * count)
    assert is_near(study, quotient(), truth, factor=2)


@dataclass(frozen=True)
class Second:
    """A second question to party 1 whose answer is divided by that to the first."""

    forget: Forget
    round_changes: Callable[[Study], dict[str, Any]] = lambda _: {}
    transcript: Callable[[Transcript], Transcript] = lambda transcript: transcript
    study_name: str = "survey"

    def quotient(self, study: Study, members: list[PartyInMemory]) -> Numbers | None:
        key = paillier_key()
        other_study, others = small_case(small_study(self.study_name))
        transcript = make_transcript(study, members, key)
        other_transcript = self.transcript(make_transcript(other_study, others, key))
        changes = self.round_changes(other_study)
        first = answer(members[1], ask(study, transcript, 1))
        second = answer(others[1], ask(other_study, other_transcript, 1, **changes))
        return read_quotient(study, key, first, second)


def later_step(study: Study) -> dict[str, Any]:
    return {"step": replace(sum_step(study), label="maximum")}


SECONDS = {
    "a later round": Second(lambda patch: forget_in_masks(patch, "label"), round_changes=later_step),
    "another query": Second(
        lambda patch: forget_in_masks(patch, "query"), round_changes=lambda _: {"query_hash": seed_bytes("Q")}
    ),
    "another transcript": Second(lambda patch: forget_in_masks(patch, "transcript"), transcript=another_generator),
    "another study": Second(
        forget_study,
        study_name="survey-2",
    ),
}


@pytest.mark.parametrize("second", SECONDS.values(), ids=list(SECONDS))
def test_quotient_of_one_partys_answers_to_two_questions(second: Second, monkeypatch: pytest.MonkeyPatch) -> None:
    """Masks used twice would cancel, and leave the difference of the two answers: noise alone, as rows are the same."""
    study, members = small_case()
    nothing = np.zeros(layout_of(study).length, dtype=np.int64)
    assert second.quotient(study, members) is None
    second.forget(monkeypatch)
    assert is_near(study, second.quotient(study, members), nothing, factor=2)


def test_quotient_over_two_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger restored from before the approval, and a table with one more row changed: were coins and masks not
    bound to the snapshot, both would cancel, and the curator would read that row's moments exactly.
    """
    study, members = small_case()
    changed = [column.copy() for column in pattern_table(study, 1)]
    for place in (0, 3):
        changed[place][17] ^= 1
    key = paillier_key()

    def quotient() -> Numbers | None:
        tables = [members[0].table, changed, members[2].table]
        rosters = parties_in_memory(study, [member.table for member in members]), parties_in_memory(study, tables)
        first, second = (answer(party[1], ask(study, make_transcript(study, party, key), 1)) for party in rosters)
        return read_quotient(study, key, first, second)

    row = exact_moments(study, members[1].table) - exact_moments(study, changed)
    assert row.any()
    assert quotient() is None
    forget_in_secrets(monkeypatch, "snapshot")
    learned = quotient()
    assert learned is not None
    assert learned.tolist() == row.tolist()


def test_a_retry_is_the_same_bytes() -> None:
    study, members = small_case()
    asked = ask(study, make_transcript(study, members), 1)
    assert answer(members[1], asked) == answer(members[1], asked)


# Different stories told to different parties


@dataclass(frozen=True)
class Story:
    """What party 0 is told while the others are told the truth."""

    forget: Forget
    study: Study = field(default_factory=small_study)
    transcript: Callable[[Transcript], Transcript] = lambda transcript: transcript
    round_changes: Callable[[Study], dict[str, Any]] = lambda _: {}
    key: int = 1

    def outcome(self, study: Study, members: list[PartyInMemory]) -> Numbers | None:
        truth = make_transcript(study, members)
        told_study, told_members = small_case(self.study)
        told = self.transcript(make_transcript(told_study, told_members, paillier_key(self.key)))
        lie = ask(told_study, told, 0, **self.round_changes(told_study))
        answers = [(paillier_key(self.key), answer(told_members[0], lie))]
        answers += [(paillier_key(), answer(members[index], ask(study, truth, index))) for index in (1, 2)]
        return read_sum(study, answers)


def with_other_nonce(transcript: Transcript) -> Transcript:
    """Party 2, a colluder, enrols twice and shows each of the others another enrolment."""
    first, second, last = transcript.enrolments
    return replace(transcript, enrolments=(first, second, replace(last, nonce=seed_bytes("other nonce"))))


STORIES = {
    "another query": Story(
        lambda patch: forget_in_masks(patch, "query"), round_changes=lambda _: {"query_hash": seed_bytes("Q")}
    ),
    "another round": Story(lambda patch: forget_in_masks(patch, "label"), round_changes=later_step),
    "another h_s": Story(lambda patch: forget_in_masks(patch, "transcript"), transcript=another_generator),
    "another n": Story(forget_masks, key=2),
    "another enrolment of a colluder": Story(
        lambda patch: forget_in_masks(patch, "transcript"), transcript=with_other_nonce
    ),
    "other row counts": Story(forget_study, study=small_study(rows=(1000, 2001, 4000))),
    "another study": Story(forget_study, study=small_study("survey-2")),
}


@pytest.mark.parametrize("story", STORIES.values(), ids=list(STORIES))
def test_a_story_of_its_own_for_one_party_gives_garbage(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    study, members = small_case()
    truth = exact_sum(study, members)
    assert story.outcome(study, members) is None
    story.forget(monkeypatch)
    assert is_near(study, story.outcome(study, members), truth)


def test_another_roster_for_one_party_gives_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Party 0 is told of a fourth party, the curator's own, whose masks the curator can take off."""
    study, members = small_case()
    four = small_study(rows=(*ROWS, 1))
    tables = [pattern_table(four, index) for index in range(4)]
    key = paillier_key()
    truth = exact_sum(study, members)

    def outcome() -> Numbers | None:
        told = parties_in_memory(four, tables)
        story = make_transcript(four, told, key)
        own = told[3]
        answers = [answer(told[0], ask(four, story, 0))]
        answers += [answer(members[index], ask(study, make_transcript(study, members, key), index)) for index in (1, 2)]
        pair = masks.mask_key(
            own.secrets.exchange_key(),
            story.enrolments[0].exchange,
            pair=(0, 3),
            transcript=story.digest(four),
            label="moments",
            query=ask(four, story, 0).query_hash,
        )
        known = masks.draw_masks(pair, 1, key.public.n)[0]
        plain = [decrypt_all(key, vector, workers=1)[0] for vector in answers]
        return read_plaintexts(study, [(sum(plain) - known) % key.public.n], key.public.n)

    assert outcome() is None
    forget_study(monkeypatch)
    assert is_near(study, outcome(), truth)
