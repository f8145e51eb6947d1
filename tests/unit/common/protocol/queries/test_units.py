"""Persons with several rows: what every kind of query costs one of them, by brute force over all rows that they may
have and all others in their place. A kind that forgets how many there may be costs too much here.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import exp, log
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from synod.common.privacy.cost import Cost
from synod.common.privacy.laws import TABLE, GaussianLaw, LaplaceLaw, NoiseLaw, Sensitivity
from synod.common.protocol.queries.agreements import SumAgreements
from synod.common.protocol.queries.marginals import Grouping, LocalMarginals, SumMarginals, Weights
from synod.common.protocol.queries.moments import SumMoments, moment_design
from synod.common.protocol.queries.noise_runs import NoisePattern
from synod.common.protocol.queries.parents import ChooseParents
from synod.common.protocol.queries.parsing import QUERIES, check_feasible, query_digest
from synod.common.protocol.steps import QueryKind, Step
from synod.common.runtime.errors import SynodError
from synod.common.study.encoding import Codes, codings_of
from synod.common.study.study import Study
from synod.party.answer import SUMMANDS
from synod.party.count import parents as parents_module
from synod.party.count.parents import choose_parents
from synod.party.count.tables import exact_counts
from tests.support.keys import seeded
from tests.support.queries import EXAMPLES
from tests.support.studies import binary, categorical, integer, make_study

Row = tuple[int, ...]
EPSILON, SEVERAL = Fraction(1), (1, 2, 3)
NOISY = sorted(set(QueryKind) - {QueryKind.SYNTHESIZE, QueryKind.CHOOSE_PARENTS}, key=lambda kind: kind.value)
SCHEMA = [categorical("x", 2), categorical("y", 3)]
BITS = [binary("a"), binary("b"), categorical("c", 3)]
MIXED = [categorical("c", 3), integer("n", 0, 10)]
COUNTED = {"name": "distdiffgen"}
MOMENTS = {"name": "hpdp-dp"}
CASES: dict[str, tuple[Any, list[dict[str, Any]], dict[str, Any]]] = {
    "tables": (SumMarginals(((0, 1), (1,))), SCHEMA, COUNTED),
    "shares": (SumMarginals(((0, 1), (1,)), (), (3, 1)), SCHEMA, COUNTED),
    "weights": (SumMarginals(((0, 1), (1,)), (), (), (Weights(1, (1, 2, 4)), Weights(1, (9, 1, 9)))), SCHEMA, COUNTED),
    "groups": (SumMarginals(((0, 2),), (Grouping(1, (0, 1, 0)),)), SCHEMA, COUNTED),
    "own tables": (LocalMarginals(((0, 1), (1,))), SCHEMA, COUNTED),
    "own weights": (LocalMarginals(((0, 1),), (), (), (Weights(0, (2, 5)),)), SCHEMA, COUNTED),
    "agreements": (SumAgreements((b"\xac", b"\x94"), 2), BITS, COUNTED),
    "agreements that tell nothing apart": (SumAgreements((b"\x00",), 1), BITS, COUNTED),
    "moments": (SumMoments(), MIXED, MOMENTS),
    "moments of bits": (SumMoments(), [binary("a"), binary("b"), binary("c")], MOMENTS),
}
TIGHT = {"tables", "shares", "groups", "own tables", "own weights", "agreements", "moments of bits", "weights"}


def study_for(schema: Sequence[dict[str, Any]], method: dict[str, Any], rows_per_unit: int, delta: str | None) -> Study:
    return make_study(schema=list(schema), method=method, epsilon="1", delta=delta, rows=(3, 3, 3),
                      max_rows_per_unit=rows_per_unit)  # fmt: skip


def step_for(query: Any, study: Study) -> Step:
    return Step("asked", "asking", query.kind, study.party_names, study.budget, query.size(study))


def rows_of(study: Study) -> list[Row]:
    """Every row, but of a number only the ends and the middle."""
    sizes = [coding.size for coding in codings_of(study)]
    return list(product(*(range(size) if size < 9 else (0, size // 2, size - 1) for size in sizes)))


def count(query: Any, study: Study, rows: Sequence[Row]) -> NDArray[np.int64]:
    """The exact numbers of a table, by the party's own code."""
    columns: list[Codes] = [
        np.array(column, dtype=coding.dtype)
        for column, coding in zip(zip(*rows, strict=True), codings_of(study), strict=True)
    ]
    counting: Callable[..., NDArray[np.int64]] = SUMMANDS.get(query.kind, exact_counts)
    return counting(query, study, columns)


def laws_of(query: Any, study: Study) -> list[NoiseLaw]:
    """The law of each number, one after the other."""
    found: list[NoiseLaw] = []
    for noise in query.runs(step_for(query, study), study):
        runs = list(noise.runs) * noise.times if isinstance(noise, NoisePattern) else [noise]
        found += [run.law for run in runs for _ in range(run.numbers)]
    return found


def changes(query: Any, study: Study, rows_per_unit: int) -> NDArray[np.int64]:
    """By how much all numbers change, for all rows of a person and all rows in their place."""
    persons = list(combinations_with_replacement(rows_of(study), rows_per_unit))
    counted = np.stack([count(query, study, rows) for rows in persons])
    return (counted[:, None] - counted[None, :]).reshape(-1, counted.shape[1])


def worst_cost(query: Any, study: Study, rows_per_unit: int) -> Fraction:
    """The most that a person with so many rows loses: the exact worst log-ratio of discrete Laplace noise, or the
    divergence of discrete Gaussian noise at order 1, of the shares that t parties do not know.
    """
    laws, moved = laws_of(query, study), changes(query, study, rows_per_unit)
    rates: list[Fraction] = []
    for law in laws:
        if isinstance(law, LaplaceLaw):
            rates.append(1 / law.scale)
        else:
            assert isinstance(law, GaussianLaw)
            rates.append(1 / (2 * law.square * (law.parties - law.threshold)))
    powers = np.abs(moved) if isinstance(laws[0], LaplaceLaw) else np.square(moved)
    candidates = np.argsort(powers @ np.array([float(rate) for rate in rates]))[-50:]
    return max(sum((int(power) * rate for power, rate in zip(powers[place], rates, strict=True)), Fraction(0))
               for place in candidates)  # fmt: skip


def test_every_kind_of_query_is_looked_at() -> None:
    assert {query.kind for query, _, _ in CASES.values()} == set(NOISY)
    assert set(QUERIES) == {*NOISY, QueryKind.CHOOSE_PARENTS, QueryKind.SYNTHESIZE}, "which draws from no row"


@pytest.mark.parametrize("rows_per_unit", SEVERAL)
@pytest.mark.parametrize("delta", [None, "1e-9"])
@pytest.mark.parametrize("name", CASES)
def test_a_person_loses_no_more_than_the_budget(name: str, delta: str | None, rows_per_unit: int) -> None:
    query, schema, method = CASES[name]
    study = study_for(schema, method, rows_per_unit, delta)
    query.check(study)
    budget = study.budget.epsilon or study.budget.rho
    worst = worst_cost(query, study, rows_per_unit)
    assert worst <= budget
    if name in TIGHT and delta is None:
        assert worst == budget * worst_cost(query, study_for(schema, method, 1, None), 1), "and no less than need be"


@pytest.mark.parametrize("rows_per_unit", [2, 3])
@pytest.mark.parametrize("delta", [None, "1e-9"])
@pytest.mark.parametrize("name", CASES)
def test_noise_for_one_row_is_too_little_for_several(name: str, delta: str | None, rows_per_unit: int) -> None:
    """So the test above can fail: epsilon grows with the rows, rho with their square."""
    query, schema, method = CASES[name]
    study = study_for(schema, method, 1, delta)
    times = rows_per_unit if delta is None else rows_per_unit**2
    assert worst_cost(query, study, rows_per_unit) == times * worst_cost(query, study, 1)


def stated_sensitivity(query: Any, study: Study) -> Sensitivity:
    """What the query's class proves of one row."""
    if isinstance(query, SumAgreements):
        return query.sensitivity(study)
    if isinstance(query, SumMoments):
        design = moment_design(study)
        return Sensitivity(design.sensitivity, design.squared_sensitivity)
    return TABLE.times(len(query.sets))


@pytest.mark.parametrize("rows", [2, 3])
@pytest.mark.parametrize("name", [name for name, (query, _, _) in CASES.items() if not getattr(query, "weights", ())])
def test_sensitivities_grow_by_the_triangle_inequality(name: str, rows: int) -> None:
    query, schema, method = CASES[name]
    study = study_for(schema, method, 1, None)
    stated = stated_sensitivity(query, study)
    moved = changes(query, study, rows)
    assert np.abs(moved).sum(axis=1).max() <= stated.for_rows(rows).absolute == rows * stated.absolute
    assert np.square(moved).sum(axis=1).max() <= stated.for_rows(rows).squared == rows**2 * stated.squared
    if name in TIGHT:
        assert np.square(moved).sum(axis=1).max() > rows * stated.squared, "it is the square that is needed"


@pytest.mark.parametrize("delta", [None, "1e-9"])
@pytest.mark.parametrize("kind", NOISY, ids=lambda kind: kind.value)
def test_the_noise_of_every_kind_grows_with_the_rows_of_a_unit(kind: QueryKind, delta: str | None) -> None:
    for query, schema, method in CASES.values():
        if query.kind is kind:
            one, three = (laws_of(query, study_for(schema, method, rows, delta)) for rows in (1, 3))
            for before, after in zip(one, three, strict=True):
                assert after.nominal_variance / before.nominal_variance == pytest.approx(9, rel=1e-3)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_the_manifest_says_whom_a_law_protects_and_a_question_is_bound_to_it(kind: str) -> None:
    query, study = EXAMPLES[kind]
    persons = study.model_copy(update={"max_rows_per_unit": 3})
    step = Step("asked", "asking", query.kind, study.party_names, study.budget, query.size(study))
    law, of_persons = query.law(step, study), query.law(step, persons)
    if query.kind is QueryKind.SYNTHESIZE:
        assert law is None
        return
    assert law is not None
    assert of_persons is not None
    assert law["protects"] == "any one row"
    assert of_persons["protects"] == "any one person with up to 3 rows at a party"
    if query.kind.is_sum:
        assert query_digest(query, step, study) != query_digest(query, step, persons)
        assert law["runs"] != of_persons["runs"]


def test_a_study_whose_persons_leave_no_room_for_their_noise_is_refused_beforehand() -> None:
    keys: dict[str, Any] = {"schema": SCHEMA, "method": {"name": "histogram"}, "epsilon": "1e-9"}
    check_feasible(make_study(**keys, max_rows_per_unit=1))
    with pytest.raises(SynodError, match="too little") as caught:
        check_feasible(make_study(**keys, max_rows_per_unit=1000))
    assert "max_rows_per_unit" in str(caught.value)


# Choices

CHOICES = {
    "F": ([binary("a"), binary("b"), binary("c")], ChooseParents((0,), ((1, (0,)), (2, (0,))), 1, 4, "F")),
    "R": ([binary("a"), binary("b"), binary("c")], ChooseParents((0,), ((1, (0,)), (2, (0,))), 1, 4, "R")),
    "I": ([binary("a"), binary("b"), binary("c")], ChooseParents((0,), ((1, (0,)), (2, (0,))), 1, 4, "I")),
}
TABLE_ROWS = 4


def choice_study(schema: list[dict[str, Any]], rows_per_unit: int) -> Study:
    method = {"name": "independent", "encoding": "vanilla"}
    return make_study(
        schema=schema, method=method, epsilon="1", rows=(TABLE_ROWS,) * 3, max_rows_per_unit=rows_per_unit
    )


def choice_law(scores: Sequence[int], epsilon: Fraction, sensitivity: int) -> list[float]:
    """The chance of each of two candidates under permute-and-flip."""
    first, second = (exp(float(epsilon * (score - max(scores)) / (2 * sensitivity))) for score in scores)
    return [first * (1 - second) + first * second / 2, second * (1 - first) + first * second / 2]


def drawn_by(
    query: ChooseParents, study: Study, rows: Sequence[Row], monkeypatch: pytest.MonkeyPatch
) -> tuple[list[int], Fraction, int]:
    """Scores, epsilon and sensitivity of the one draw that a query makes over a table."""
    seen: list[tuple[list[int], Fraction, int]] = []

    def recorded(scores: NDArray[np.int64], *, epsilon: Fraction, sensitivity: int, coins: Any) -> int:
        del coins
        seen.append((scores.tolist(), epsilon, sensitivity))
        return 0

    monkeypatch.setattr(parents_module, "permute_and_flip", recorded)
    columns: list[Codes] = [np.array(column, dtype=np.uint8) for column in zip(*rows, strict=True)]
    step = Step("asked", "asking", query.kind, study.party_names[:1], Cost.pure(EPSILON), query.size(study))
    choose_parents(query, step, study, columns, coins=seeded(1))
    ((scores, epsilon, sensitivity),) = seen
    return scores, epsilon, sensitivity


@pytest.mark.parametrize("rows_per_unit", SEVERAL)
@pytest.mark.parametrize("name", CHOICES)
def test_a_choice_costs_a_person_no_more_than_epsilon(
    name: str, rows_per_unit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over all tables of four rows, and all others with up to so many rows replaced."""
    schema, query = CHOICES[name]
    rows, one, study = list(product(range(2), repeat=3)), choice_study(schema, 1), choice_study(schema, rows_per_unit)
    tables = list(combinations_with_replacement(rows, TABLE_ROWS))
    scores = {table: drawn_by(query, study, table, monkeypatch) for table in tables}
    forgotten = drawn_by(query, one, tables[0], monkeypatch)[2]
    laws = {table: choice_law(*found) for table, found in scores.items()}
    too_few = {table: choice_law(found[0], found[1], forgotten) for table, found in scores.items()}
    worst, worst_forgotten, moved = 0.0, 0.0, 0
    for kept in combinations_with_replacement(rows, TABLE_ROWS - rows_per_unit):
        near = {tuple(sorted((*kept, *own))) for own in combinations_with_replacement(rows, rows_per_unit)}
        for option in range(2):
            chances = [laws[table][option] for table in near]
            worst = max(worst, log(max(chances) / min(chances)))
            chances = [too_few[table][option] for table in near]
            worst_forgotten = max(worst_forgotten, log(max(chances) / min(chances)))
            own = [scores[table][0][option] for table in near]
            moved = max(moved, max(own) - min(own))
    sensitivity = scores[tables[0]][2]
    assert sensitivity == rows_per_unit * forgotten
    assert moved <= sensitivity
    assert worst <= EPSILON
    if rows_per_unit > 1 and name == "F":
        assert moved > forgotten, "so a score that forgets the rows is found out"
        assert worst_forgotten > worst
