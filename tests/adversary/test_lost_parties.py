"""A curator that lies about who is lost: what it can open is the sum of those whom it told one and the same story.

Five parties, or four, of which some may be lost; party k's moments differ from everybody's by a lot.
"""

from collections.abc import Sequence
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from synod.common.crypto.paillier import decrypt_all
from synod.common.protocol.queries.moments import SumMoments, moment_design
from synod.common.protocol.queries.noise_runs import Noise
from synod.common.protocol.queries.rows import Synthesize, share_rows
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.study import Study
from synod.party import answer as answers_module
from synod.party import masks
from tests.support.attacks import WIDE, Numbers, exact_moments, exact_sum, pattern_table, read_plaintexts
from tests.support.encrypted_sums import answer, ask, layout_of, make_sum_study, open_sum, sum_step
from tests.support.keys import paillier_key
from tests.support.parties import (
    MOMENTS,
    PartyInMemory,
    PartyUnderTest,
    make_transcript,
    open_party,
    parties_in_memory,
    seal,
)
from tests.support.studies import binary, make_model

ROWS = (1000, 2000, 4000, 8000)
Places = tuple[int, ...]


def make_case(attributes: int = 4, may_lose: int = 1) -> tuple[Study, list[PartyInMemory]]:
    schema = [binary(f"a{place}") for place in range(attributes)]
    study = make_sum_study(ROWS, schema, may_lose=may_lose)
    return study, parties_in_memory(study, [pattern_table(study, index) for index in range(len(ROWS))])


def asked_of(present: Places, study: Study) -> SumMoments:
    """The question to these, which does not name everybody."""
    return SumMoments(() if len(present) == len(study.roster) else present)


def is_near(study: Study, guess: Numbers | None, truth: Numbers) -> bool:
    bound = SumMoments((0, 1, 2)).terms(sum_step(study), study).noise_bound
    return guess is not None and bool((abs(guess - truth) <= bound).all())


def decrypt(study: Study, members: Sequence[PartyInMemory], index: int, present: Places) -> list[int]:
    """The plaintexts of a party's answer under a story."""
    key = paillier_key()
    asked = ask(study, make_transcript(study, members, key), index, asked_of(present, study).present)
    return decrypt_all(key, answer(members[index], asked), workers=1)


def add(plaintexts: Sequence[Sequence[int]]) -> list[int]:
    return [sum(column) % paillier_key().public.n for column in zip(*plaintexts, strict=True)]


def read(study: Study, plaintexts: Sequence[int], present: Places) -> Numbers | None:
    """The integers in plaintexts that are packed as for a sum of these."""
    return read_plaintexts(study, plaintexts, paillier_key().public.n, asked_of(present, study).present)


def test_the_sum_of_those_who_stay_is_exactly_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise, and each party with another power of two of rows."""

    def nothing(runs: Sequence[Noise], **_: object) -> NDArray[np.int64]:
        return np.zeros(sum(run.numbers for run in runs), dtype=np.int64)

    monkeypatch.setattr(answers_module, "sample_runs", nothing)
    study, members = make_case(may_lose=2)
    key = paillier_key()
    transcript = make_transcript(study, members, key)
    for present in [*combinations(range(4), 2), *combinations(range(4), 3)]:
        told = [answer(members[index], ask(study, transcript, index, present)) for index in present]
        total = open_sum(study, key, told, present)
        assert (total == exact_sum(study, [members[index] for index in present])).all()


def test_only_one_story_told_to_all_who_are_in_it_opens_a_sum() -> None:
    """All ways to tell four parties who is there, and all sums of their answers."""
    study, members = make_case()
    everybody = tuple(range(4))
    told = {
        (index, present): decrypt(study, members, index, present)
        for present in (everybody, *combinations(range(4), 3))
        for index in present
    }
    choices = [[present for own, present in told if own == index] for index in range(4)]
    opened = 0
    for stories in product(*choices):
        for size in range(1, 5):
            for chosen in combinations(range(4), size):
                total = add([told[i, stories[i]] for i in chosen])
                for story in {stories[i] for i in chosen}:
                    guess = read(study, total, story)
                    if {stories[i] for i in chosen} == {chosen}:
                        assert is_near(study, guess, exact_sum(study, [members[i] for i in chosen]))
                        opened += 1
                    else:
                        assert guess is None
    assert opened == 1 + 4 * 4  # everybody once, and each three under every story of the fourth


def test_what_a_party_says_to_another_story_looks_uniform_even_to_a_colluder() -> None:
    """Party 3 is told that all are there, the others that it is lost; party 0 hands over its secret."""
    study, members = make_case(attributes=WIDE)
    key = paillier_key()
    transcript = make_transcript(study, members, key)
    others = [answer(members[index], ask(study, transcript, index, (0, 1, 2))) for index in range(3)]
    assert is_near(study, open_sum(study, key, others, (0, 1, 2)), exact_sum(study, members[:3]))
    asked = ask(study, transcript, 3)
    plain = decrypt_all(key, answer(members[3], asked), workers=1)
    pair_key = masks.mask_key(
        members[0].secrets.exchange_key(),
        transcript.enrolments[3].exchange,
        pair=(0, 3),
        transcript=asked.transcript_hash,
        label="moments",
        query=asked.query_hash,
    )
    taken = masks.draw_masks(pair_key, len(plain), key.public.n)
    left = [(value + mask) % key.public.n for value, mask in zip(plain, taken, strict=True)]
    assert read_plaintexts(study, left, key.public.n) is None
    # What a mask leaves is above n / 2 half of the time; without masks the top 64 bits would be empty or full.
    share = np.array([value * 2**53 // key.public.n for value in left]) / 2**53
    assert len(share) >= 15
    assert 0.2 < share.mean() < 0.8
    assert share.std() > 0.15


def test_masks_of_absent_parties_would_open_nothing_that_they_answered() -> None:
    """A lost party's answer from before stays under masks with those who stay: nobody is asked for these again."""
    study, members = make_case()
    plain = decrypt(study, members, 3, (0, 1, 2, 3))
    smaller = [decrypt(study, members, index, (0, 1, 2)) for index in range(3)]
    for chosen in (plain, add([plain, *smaller]), add([plain, smaller[0]])):
        assert read(study, chosen, (0, 1, 2, 3)) is None
        assert read(study, chosen, (0, 1, 2)) is None


def test_noise_under_one_story_tells_nothing_of_that_under_another() -> None:
    study, members = make_case(attributes=WIDE)
    step = sum_step(study)
    drawn = []
    for present in ((), (0, 1, 2), (0, 1, 3)):
        query = SumMoments(present)
        asked = ask(study, make_transcript(study, members), 0, present)
        coins = asked.coins("noise", members[0].secrets)
        values = answers_module.noisy_values(query, study, members[0].table, query.terms(step, study), coins=coins)
        drawn.append((values - exact_moments(study, members[0].table)).astype(np.float64))
    matrix = np.asarray(np.corrcoef(drawn))
    assert (abs(matrix[~np.eye(3, dtype=bool)]) < 0.15).all()  # 1,830 numbers: six deviations
    assert drawn[1].std() > 1.05 * drawn[0].std()  # a third of a full noise became a half


# Parties with ledgers


def ledgers(folder: Path, may_lose: int = 1) -> tuple[Study, list[PartyUnderTest], bytes]:
    study, _ = make_case(may_lose=may_lose)
    members = [open_party(folder / entry.name, study, entry.name) for entry in study.roster]
    return study, members, seal(make_transcript(study, members))


def heads(members: Sequence[PartyUnderTest]) -> list[bytes]:
    return [member.ledger.head().hash for member in members]


def test_whoever_has_answered_a_round_answers_it_under_no_other_story(tmp_path: Path) -> None:
    """The answer of party 3 is held back, it is called lost, and the others are asked again without it."""
    study, members, envelope = ledgers(tmp_path)
    first = [member.answer(envelope) for member in members]
    before = heads(members)
    for member, stored in zip(members[:3], first, strict=False):
        with pytest.raises(SynodError) as caught:
            member.check(envelope, SumMoments((0, 1, 2)).to_proto())
        assert caught.value.code is Code.REFUSED
        assert member.answer(envelope, SumMoments((0, 1, 2)).to_proto()) == stored
    assert heads(members) == before
    assert all(member.charges() == ["moments"] for member in members)
    assert study.may_lose == 1


def test_the_same_story_twice_gets_the_same_bytes(tmp_path: Path) -> None:
    _, members, envelope = ledgers(tmp_path)
    query = SumMoments((1, 2, 3)).to_proto()
    assert members[1].answer(envelope, query) == members[1].answer(envelope, query)
    assert members[1].charges() == ["moments"]


@pytest.mark.parametrize(
    ("present", "why"),
    [
        pytest.param((1, 2, 3), "without this party", id="without itself"),
        pytest.param((0, 2, 1), "other parties", id="unsorted"),
        pytest.param((0, 1, 1, 2), "other parties", id="twice"),
        pytest.param((0, 1, 4), "other parties", id="unknown"),
        pytest.param((0, 1), "other parties", id="too few"),
        pytest.param((0,), "other parties", id="no more than collude"),
        pytest.param((0, 1, 2, 3), "other parties", id="everybody written out"),
    ],
)
def test_a_party_refuses_a_story_that_is_not_sound(tmp_path: Path, present: Places, why: str) -> None:
    _, members, envelope = ledgers(tmp_path)
    before = heads(members)
    with pytest.raises(SynodError, match=why):
        members[0].answer(envelope, SumMoments(present).to_proto())
    assert heads(members) == before
    assert members[0].spent() == members[1].spent()


def test_who_was_left_out_stays_out(tmp_path: Path) -> None:
    study, members, envelope = ledgers(tmp_path, may_lose=2)
    model = make_model(study)

    def rows(present: Places) -> Synthesize:
        return Synthesize(model, share_rows(study, present), present)

    members[0].answer(envelope, SumMoments((0, 1, 2)).to_proto())
    assert members[0].ledger.entries()[-1]["present"] == [0, 1, 2]
    before = heads(members)
    for grown in ((), (0, 1, 3), (0, 3)):
        with pytest.raises(SynodError, match="an earlier sum went without"):
            members[0].check(envelope, rows(grown).to_proto(), "rows")
    assert heads(members) == before
    members[0].answer(envelope, rows((0, 2)).to_proto(), "rows")
    assert members[0].charges() == ["moments", "rows"]


def test_nothing_is_written_of_who_is_present_where_all_are(tmp_path: Path) -> None:
    _, members, envelope = ledgers(tmp_path)
    members[0].answer(envelope, MOMENTS)
    assert "present" not in members[0].ledger.entries()[-1]


def test_sums_have_as_many_integers_whoever_is_there() -> None:
    study, _ = make_case()
    for present in ((), (0, 1, 2)):
        assert layout_of(study, present).length == moment_design(study).length
