"""The noise of those who are left: with any |S| - t shares of a sum of S there is a full noise, with one fewer there is
not; and what a party adds under one list of parties tells nothing of what it adds under another.

Shares come from answers: each party's noisy counts under the question, by the coins of the question, minus its exact
counts. What is promised is computed here from the study alone: m tables share the step's cost evenly, a replaced row
moves two cells of a table by one, so the scale is 2 m / epsilon, and sigma^2 is m / rho.
"""

import itertools
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.marginals import SumMarginals
from synod.common.protocol.queries.parsing import query_digest
from synod.common.study.study import Study
from synod.party.answer import Round, noisy_values
from synod.party.count.tables import exact_counts
from tests.support.laws import OFF_BY, accepts, accepts_gaussian
from tests.support.parties import PartyInMemory, make_transcript, parties_in_memory
from tests.support.studies import binary, draw_columns, make_study

pytestmark = pytest.mark.slow

ATTRIBUTES = 24
PAIRS = tuple(itertools.combinations(range(ATTRIBUTES), 2))
STUDIES = 24
NAMES = ("north", "harbour", "valley", "hill", "lake")
LABEL = "ones"
Places = tuple[int, ...]
Shares = dict[int, NDArray[np.int64]]
ROSTERS = [(4, 1), (5, 2)]
LAWS: dict[str, dict[str, Any]] = {"Laplace": {}, "Gaussian": {"delta": "1e-9"}}
CASES = pytest.mark.parametrize(
    ("law", "parties", "collusion", "lost"),
    [
        pytest.param(law, parties, collusion, lost, id=f"{law}-{parties}-{collusion}-{len(lost)} lost")
        for law in LAWS
        for parties, collusion in ROSTERS
        for lost in ((), (1,))
    ],
)


def make_case(law: str, parties: int, collusion: int, number: int) -> tuple[Study, list[PartyInMemory]]:
    study = make_study(
        names=NAMES[:parties],
        rows=[2**k for k in range(parties)],
        name=f"survivors-{number}",
        schema=[binary(f"a{place}") for place in range(ATTRIBUTES)],
        method={"name": "adaptive", "rounds": 3},
        collusion=collusion,
        may_lose=1,
        **LAWS[law],
    )
    return study, parties_in_memory(study, [draw_columns(study, name) for name in study.party_names])


def shares_of(study: Study, members: list[PartyInMemory], present: Places) -> Shares:
    """What each of those who are present adds to its exact counts."""
    step, query = plan_study(study).step(LABEL), SumMarginals(PAIRS, present=present)
    transcript = make_transcript(study, members)
    digest, terms = query_digest(query, step, study), query.terms(step, study)
    drawn = {}
    for place in query.places(study):
        asked = Round(study, step, query, digest, transcript, transcript.digest(study), place)
        coins, table = asked.coins("noise", members[place].secrets), members[place].table
        noisy = noisy_values(query, study, table, terms, coins=coins)
        drawn[place] = noisy - exact_counts(query, study, table)
    return drawn


@cache
def draw(law: str, parties: int, collusion: int, lost: Places) -> Shares:
    """The shares of many studies, one after another."""
    present = tuple(place for place in range(parties) if place not in lost) if lost else ()
    found = [shares_of(*make_case(law, parties, collusion, number), present) for number in range(STUDIES)]
    return {place: np.concatenate([one[place] for one in found]) for place in found[0]}


def judge_of(law: str, parties: int, collusion: int, honest: int) -> Callable[..., bool]:
    """Whether a sample may be `shares` shares, of which `honest` are a full noise; `factor` is on its variance."""
    cost = plan_study(make_case(law, parties, collusion, 0)[0]).step(LABEL).cost

    def judge(sample: NDArray[np.int64], shares: int, factor: Fraction = Fraction(1)) -> bool:
        if law == "Laplace":
            return accepts(sample, 2 * len(PAIRS) / cost.epsilon, factor * Fraction(shares, honest))
        return accepts_gaussian(sample, factor * len(PAIRS) / cost.rho / honest, shares)

    return judge


@CASES
def test_as_many_shares_as_are_honest_are_a_full_noise_and_no_fewer(
    law: str, parties: int, collusion: int, lost: Places
) -> None:
    shares = draw(law, parties, collusion, lost)
    assert set(shares) == set(range(parties)) - set(lost)
    honest = len(shares) - collusion
    judge = judge_of(law, parties, collusion, honest)
    for chosen in itertools.combinations(shares, honest):
        total = np.sum([shares[place] for place in chosen], axis=0)
        assert judge(total, honest), chosen
        assert not any(judge(total, honest, factor) for factor in OFF_BY)
    for chosen in itertools.combinations(shares, honest - 1):
        total = np.sum([shares[place] for place in chosen], axis=0)
        assert not judge(total, honest), chosen
        assert judge(total, honest - 1), chosen
    released = np.sum(list(shares.values()), axis=0)
    assert judge(released, len(shares))
    assert not any(judge(released, len(shares), factor) for factor in OFF_BY)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("parties", "collusion"), ROSTERS)
def test_shares_that_were_cut_for_the_whole_roster_are_too_small_for_those_who_are_left(
    law: str, parties: int, collusion: int
) -> None:
    shares = draw(law, parties, collusion, ())
    honest = parties - 1 - collusion
    left = np.sum([shares[place] for place in range(honest)], axis=0)
    assert not judge_of(law, parties, collusion, honest)(left, honest)


@pytest.mark.parametrize("law", LAWS)
def test_shares_under_two_lists_of_parties_are_independent(law: str) -> None:
    """Also under lists of the same length, where nothing but the list itself can tell the two questions apart."""
    lists: list[Places] = [(), *((place,) for place in range(1, 4))]
    drawn = {lost: draw(law, 4, 1, lost)[0].astype(np.float64) for lost in lists}
    for one, other in itertools.combinations(lists, 2):
        for shape in (np.asarray, np.abs):
            correlation = np.corrcoef(shape(drawn[one]), shape(drawn[other]))[0, 1]
            assert abs(correlation) < 6 / len(drawn[one]) ** 0.5
        assert np.mean(drawn[one] == drawn[other]) < 0.5
