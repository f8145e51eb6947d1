"""The noise of every kind of query in a study for persons with several rows, through the party's own code: the law for
all rows of a person is accepted, that for one row is rejected.
"""

from collections.abc import Callable
from fractions import Fraction
from math import exp
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from synod.common.protocol.queries.agreements import SumAgreements
from synod.common.protocol.queries.marginals import LocalMarginals, SumMarginals
from synod.common.protocol.queries.moments import SumMoments, moment_design
from synod.common.protocol.queries.parents import ChooseParents
from synod.common.protocol.steps import QueryKind, Step
from synod.common.study.study import Study
from synod.party.answer import SUMMANDS, noisy_values
from synod.party.count.parents import choose_parents
from synod.party.count.scores import score_sensitivity
from synod.party.count.tables import exact_counts, noisy_counts
from tests.support.keys import seeded
from tests.support.laws import LEAST_P, accepts, accepts_gaussian
from tests.support.studies import binary, categorical, draw_columns, make_study

pytestmark = pytest.mark.slow

ROWS_PER_PERSON, PARTIES, DRAWS = 3, 3, 12_000
CELLS = {"name": "distdiffgen"}
SCHEMA = [categorical("x", 4), categorical("y", 5), binary("a"), binary("b")]
# By hand, for one row: a table moves by 2 and its square by 2; six pairs of four features with one split by 4; moments
# of three bits by 2 x 2 x 2 / 2 in units of a quarter, whose squares are twice that.
CASES: dict[str, tuple[Any, list[dict[str, Any]], dict[str, Any], int, int]] = {
    "sums of tables": (SumMarginals(((0, 1),)), SCHEMA, CELLS, 2, 2),
    "one's own tables": (LocalMarginals(((0, 1),)), SCHEMA, CELLS, 2, 2),
    "agreements": (SumAgreements((b"\xaa\xa8",)), SCHEMA, CELLS, 4, 4),
    "moments": (SumMoments(), [binary("a"), binary("b"), binary("c")], {"name": "hpdp-dp"}, 8, 16),
}


def study_for(schema: list[dict[str, Any]], method: dict[str, Any], delta: str | None) -> Study:
    return make_study(schema=schema, method=method, epsilon="1", delta=delta, max_rows_per_unit=ROWS_PER_PERSON)


def draw_noise(query: Any, study: Study) -> NDArray[np.int64]:
    """What parties answer, less what is true: of all of them together, or of one."""
    query.check(study)
    step = Step("asked", "asking", query.kind, study.party_names, study.budget, query.size(study))
    tables = [draw_columns(study, name) for name in study.party_names]
    drawn: list[NDArray[np.int64]] = []
    coins, numbers = seeded(1), 0
    while numbers < DRAWS:
        if query.kind is QueryKind.LOCAL_MARGINALS:
            noise = noisy_counts(query, step, study, tables[0], coins=coins) - exact_counts(query, study, tables[0])
        else:
            terms, summand = query.terms(step, study), SUMMANDS[query.kind]
            shares = [noisy_values(query, study, t, terms, coins=coins) - summand(query, study, t) for t in tables]
            noise = np.sum(shares, axis=0)
        drawn.append(noise)
        numbers += len(noise)
    return np.concatenate(drawn)


def judge(query: Any, study: Study, noise: NDArray[np.int64]) -> Callable[[Fraction], bool]:
    """Whether noise may be that for a sensitivity, or a squared one where there is a delta."""
    parties, known = (1, 0) if query.kind is QueryKind.LOCAL_MARGINALS else (PARTIES, study.collusion)
    if study.delta is None:
        shape = Fraction(parties, parties - known)
        return lambda sensitivity: accepts(noise, sensitivity / study.budget.epsilon, shape)
    return lambda squared: accepts_gaussian(noise, squared / (2 * study.budget.rho * (parties - known)), parties)


@pytest.mark.parametrize("delta", [None, "1e-9"])
@pytest.mark.parametrize("name", CASES)
def test_noise_is_for_all_rows_of_a_person(name: str, delta: str | None) -> None:
    query, schema, method, absolute, squared = CASES[name]
    study = study_for(schema, method, delta)
    if query.kind is QueryKind.SUM_MOMENTS:
        assert (moment_design(study).sensitivity, moment_design(study).squared_sensitivity) == (absolute, squared)
    accepted = judge(query, study, draw_noise(query, study))
    one, times = (absolute, ROWS_PER_PERSON) if delta is None else (squared, ROWS_PER_PERSON**2)
    assert accepted(Fraction(one * times))
    assert not accepted(Fraction(one)), "which is enough for one row only"
    if delta is not None:
        assert not accepted(Fraction(one * ROWS_PER_PERSON)), "squares do not add up by rows"


def test_choices_are_made_for_all_rows_of_a_person() -> None:
    """Of two parents, one is drawn so much more often as its score allows for all rows of a person."""
    method = {"name": "independent", "encoding": "vanilla"}
    study = make_study(schema=[binary("a"), binary("b"), binary("c")], method=method, epsilon="1",
                       rows=(8, 8, 8), max_rows_per_unit=ROWS_PER_PERSON)  # fmt: skip
    told = np.array([0, 1] * 4, dtype=np.uint8)
    columns = [told, told, np.array([0, 0, 1, 1] * 2, dtype=np.uint8)]
    query = ChooseParents((1, 2), ((0, (1, 2)),), 1, 4, "F")
    step = Step("asked", "asking", query.kind, study.party_names[:1], study.budget, query.size(study))
    coins = seeded(1)
    drawn = [choose_parents(query, step, study, columns, coins=coins)[0][1] for _ in range(DRAWS)]
    counts = np.array([drawn.count((1,)), drawn.count((2,))])
    assert counts.sum() == DRAWS

    def law(sensitivity: int) -> NDArray[np.float64]:
        heads = exp(-float(study.budget.epsilon) * 8 / (2 * sensitivity))  # F is 0 where a copy tells, -8 where not
        return np.array([1 - heads / 2, heads / 2])

    one = score_sensitivity("F", 8, True)
    chances = [stats.chisquare(counts, law(times * one) * DRAWS).pvalue for times in (1, ROWS_PER_PERSON)]
    assert chances[0] < LEAST_P < chances[1]
