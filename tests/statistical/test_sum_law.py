"""The released sum minus the true sum has the promised law, through everything that lies between rows and release.

What is promised is computed here from the study alone: with s two-valued attributes, one row moves the moments by at
most 2 ceil((s+1)/2) floor((s+1)/2), when half of the signs flip. A sensitivity, epsilon or shape that goes wrong in
the plumbing gives another law. Each study has coins of its own, and all its moments have independent noise.
"""

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from synod.common.privacy.coins import Coins
from synod.common.protocol.queries.moments import SumMoments, moment_design
from synod.common.study.study import Study
from synod.party.answer import noisy_values
from synod.party.count.moments import sum_moments
from tests.support.encrypted_sums import answer_all, ask, make_sum_study, open_sum, sum_step
from tests.support.keys import paillier_key
from tests.support.laws import OFF_BY, accepts
from tests.support.parties import PartyInMemory, make_transcript, parties_in_memory
from tests.support.studies import binary, fill_table

pytestmark = pytest.mark.slow

ATTRIBUTES = 60
STUDIES = 110
ENCRYPTED_STUDIES = 30
ROSTERS = [(3, 1), (5, 2), (2, 0)]
EPSILON = Fraction(4, 5)
SCALE = 2 * (-(-(ATTRIBUTES + 1) // 2)) * ((ATTRIBUTES + 1) // 2) / EPSILON

Release = Callable[[Study, list[PartyInMemory]], NDArray[np.int64]]


def make_case(number: int, parties: int, collusion: int) -> tuple[Study, list[PartyInMemory]]:
    """A study by its number, where party k has 2^k rows."""
    schema = [binary(f"a{place}") for place in range(ATTRIBUTES)]
    rows = [2**k for k in range(parties)]
    study = make_sum_study(rows, schema, name=f"survey-{number}", epsilon="0.8", collusion=collusion)
    tables = [fill_table(study, [(k + place) % 2 for place in range(ATTRIBUTES)], 2**k) for k in range(parties)]
    return study, parties_in_memory(study, tables)


def exact_sum(study: Study, members: list[PartyInMemory]) -> NDArray[np.int64]:
    total: NDArray[np.int64] = np.sum([sum_moments(moment_design(study), member.table) for member in members], axis=0)
    return total


def release_values(study: Study, members: list[PartyInMemory]) -> NDArray[np.int64]:
    """Everybody's noisy values, one row each, from the coins that an answer would use."""
    terms = SumMoments().terms(sum_step(study), study)
    query = ask(study, make_transcript(study, members), 0).query_hash
    keys = [member.secrets.derive("noise", "moments", query.hex()) for member in members]
    return np.stack(
        [
            noisy_values(SumMoments(), study, member.table, terms, coins=Coins(key))
            for member, key in zip(members, keys, strict=True)
        ]
    )


def release_plain(study: Study, members: list[PartyInMemory]) -> NDArray[np.int64]:
    total: NDArray[np.int64] = release_values(study, members).sum(axis=0)
    return total


def release_encrypted(study: Study, members: list[PartyInMemory]) -> NDArray[np.int64]:
    key = paillier_key()
    return open_sum(study, key, answer_all(study, members, make_transcript(study, members, key)))


def run_studies(count: int, parties: int, collusion: int) -> Iterator[tuple[Study, list[PartyInMemory]]]:
    return (make_case(number, parties, collusion) for number in range(count))


def draw_noise(release: Release, count: int, parties: int, collusion: int) -> NDArray[np.int64]:
    """Released minus true, over many studies."""
    pairs = run_studies(count, parties, collusion)
    return np.concatenate([release(study, members) - exact_sum(study, members) for study, members in pairs])


def assert_law(noise: NDArray[np.int64], total_shape: Fraction) -> None:
    assert accepts(noise, SCALE, total_shape)
    for factor in OFF_BY:
        assert not accepts(noise, SCALE * factor, total_shape)
        assert not accepts(noise, SCALE, total_shape * factor)


@pytest.mark.parametrize(("parties", "collusion"), ROSTERS)
def test_released_sum_has_the_promised_noise(parties: int, collusion: int) -> None:
    noise = draw_noise(release_plain, STUDIES, parties, collusion)
    assert_law(noise, Fraction(parties, parties - collusion))


def test_released_sum_has_the_promised_noise_after_encryption() -> None:
    noise = draw_noise(release_encrypted, ENCRYPTED_STUDIES, 3, 1)
    assert_law(noise, Fraction(3, 2))
    assert (noise == draw_noise(release_plain, ENCRYPTED_STUDIES, 3, 1)).all()


@pytest.mark.parametrize(("parties", "collusion"), ROSTERS)
def test_what_is_left_to_the_curator_and_its_colluders(parties: int, collusion: int) -> None:
    """Whoever colludes: every choice of t parties that hand over their tables, and with them all their coins."""
    left: dict[tuple[int, ...], list[NDArray[np.int64]]] = {}
    for study, members in run_studies(STUDIES, parties, collusion):
        values = release_values(study, members)
        for colluders in itertools.combinations(range(parties), collusion):
            honest = [member for index, member in enumerate(members) if index not in colluders]
            known = values[list(colluders)].sum(axis=0)
            noise = values.sum(axis=0) - known - exact_sum(study, honest)
            left.setdefault(colluders, []).append(noise)
    for noises in left.values():
        assert_law(np.concatenate(noises), Fraction(1))


def test_noise_is_told_apart_from_that_of_a_study_with_another_threshold() -> None:
    """Shares that forget a colluder are too small for what is left, and are found out."""
    values = [release_values(study, members)[1:] for study, members in run_studies(STUDIES, 3, 0)]
    exact = [exact_sum(study, members[1:]) for study, members in run_studies(STUDIES, 3, 0)]
    left = np.concatenate([value.sum(axis=0) - true for value, true in zip(values, exact, strict=True)])
    assert not accepts(left, SCALE)
