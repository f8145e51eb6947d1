"""Answers that are private on their own, against slow twins, brute force over small tables, and their own promises."""

from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from synod.common.models.candidates import Score
from synod.common.privacy.coins import Coins
from synod.common.privacy.cost import Cost
from synod.common.privacy.noise import share_variance
from synod.common.protocol.queries.marginals import LocalMarginals
from synod.common.protocol.queries.parents import ChooseParents
from synod.common.protocol.steps import Limit, QueryKind, Step
from synod.common.study.encoding import Codes, codings_of
from synod.common.study.features import sizes_of, space_of
from synod.common.study.study import Study
from synod.party.count import parents as parents_module
from synod.party.count.choice import permute_and_flip
from synod.party.count.parents import choose_parents
from synod.party.count.scores import score_sensitivity
from synod.party.count.tables import exact_counts, noisy_counts
from tests.support.keys import seeded
from tests.support.studies import categorical, draw_columns, make_study

SIZES = (2, 3, 2, 5)


def sized(*sizes: int, encoding: str = "vanilla", **changes: Any) -> Study:
    schema = [categorical(f"x{i}", size)
              for i, size in enumerate(sizes)]  # fmt: skip
    return make_study(schema=schema, method={"name": "dp-subn", "encoding": encoding}, **changes)


def step_of(epsilon: Fraction, kind: QueryKind = QueryKind.LOCAL_MARGINALS) -> Step:
    return Step("update-north", "update", kind, ("north",), Cost.pure(epsilon), Limit(numbers=10_000))


def count_slowly(sets: list[tuple[int, ...]], study: Study, columns: tuple[Codes, ...]) -> list[int]:
    """One row after the other, one cell after the other."""
    rows = list(zip(*(column.tolist() for column in space_of(study).encode(columns)), strict=True))
    counts = []
    for features in sets:
        seen = Counter(tuple(row[feature] for feature in features) for row in rows)
        counts += [seen[cell] for cell in product(*(range(sizes_of(study)[feature]) for feature in features))]
    return counts


@pytest.mark.parametrize("encoding", ["vanilla", "binary", "gray"])
def test_exact_counts_are_those_of_a_loop_over_rows(encoding: str) -> None:
    study = sized(*SIZES, encoding=encoding)
    columns = draw_columns(study, "north")
    last = len(sizes_of(study)) - 1
    sets = [(0,), (last,), (0, 1), (1, 2, last), (0, 1, 2, 3), (0, 1)]
    assert exact_counts(LocalMarginals(tuple(sets)), study, columns).tolist() == count_slowly(sets, study, columns)


def test_one_row_and_constant_columns_are_counted() -> None:
    study = sized(2, 3, rows=(1, 4, 4))
    assert exact_counts(LocalMarginals(((0, 1),)), study, draw_columns(study, "north")).sum() == 1
    constant: tuple[Codes, ...] = (np.zeros(4, dtype=np.uint8), np.full(4, 2, dtype=np.uint8))
    assert exact_counts(LocalMarginals(((0, 1), (1,))), study, constant).tolist() == [0, 0, 4, 0, 0, 0, 0, 0, 4]


@pytest.mark.parametrize("encoding", ["vanilla", "binary", "gray"])
@pytest.mark.parametrize("sets", [[(0,)], [(0, 1)], [(0,), (1,)], [(0, 1), (0, 1), (1,)]])
def test_the_sensitivity_of_m_marginals_is_2m_over_all_neighbours(sets: list[tuple[int, ...]], encoding: str) -> None:
    """Brute force: every table of two rows, and every replacement of one row."""
    study = sized(2, 4, encoding=encoding)
    values = list(product(range(2), range(4)))
    counts: dict[tuple[tuple[int, int], ...], NDArray[np.int64]] = {}
    for rows in product(values, repeat=2):
        columns: list[Codes] = [np.array(column, dtype=np.uint8) for column in zip(*rows, strict=True)]
        counts[rows] = exact_counts(LocalMarginals(tuple(sets)), study, columns)
    worst = 0
    for (first, second), table in counts.items():
        for other in values:
            worst = max(worst, int(np.abs(table - counts[other, second]).sum()))
            worst = max(worst, int(np.abs(table - counts[first, other]).sum()))
    assert worst == 2 * len(sets)


def test_noise_has_the_scale_that_the_plan_pays_for() -> None:
    study = sized(*SIZES)
    columns = draw_columns(study, "north")
    sets = ((0, 1, 2), (1, 3)) * 200
    step = step_of(Fraction(7, 3))
    query = LocalMarginals(sets)
    noise = noisy_counts(query, step, study, columns, coins=seeded(1)) - exact_counts(query, study, columns)
    expected = share_variance(shape=Fraction(1), scale=Fraction(2 * 400) / Fraction(7, 3))
    assert len(noise) > 5000
    assert noise.var() / expected == pytest.approx(1, abs=0.15)  # a scale 30 % off gives 0.49 or 1.69
    assert abs(noise.mean()) < 4 * (expected / len(noise)) ** 0.5


def test_noise_is_a_function_of_the_coins() -> None:
    study = sized(*SIZES)
    columns, query, step = draw_columns(study, "north"), LocalMarginals(((0, 1),)), step_of(Fraction(1, 10))
    one, again, other = (noisy_counts(query, step, study, columns, coins=seeded(seed)) for seed in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


# Chosen parents

CHOICE = ChooseParents((0, 3), ((1, (0, 2, 3)), (2, (0, 1)), (4, ()), (5, (1, 2, 4))), 4, 8, "F")


@pytest.mark.parametrize("seed", range(12))
def test_choices_stay_inside_the_query_and_follow_from_the_coins(seed: int) -> None:
    study = sized(*[2] * 6)
    columns, step = draw_columns(study, "north", seed), step_of(Fraction(1), QueryKind.CHOOSE_PARENTS)
    chosen = choose_parents(CHOICE, step, study, columns, coins=seeded(seed))
    assert sorted(feature for feature, _ in chosen) == [1, 2, 4, 5]
    placed, shortlists = set(CHOICE.placed), dict(CHOICE.candidates)
    for feature, parents in chosen:
        allowed = placed & set(shortlists[feature])
        assert set(parents) <= allowed
        assert len(parents) == min(2, len(allowed))
        placed.add(feature)
    assert CHOICE.read_answer(CHOICE.write_answer(chosen), study, "north") == chosen
    assert chosen == choose_parents(CHOICE, step, study, columns, coins=seeded(seed))


def test_other_coins_choose_otherwise() -> None:
    study = sized(*[2] * 6)
    columns, step = draw_columns(study, "north"), step_of(Fraction(1, 10), QueryKind.CHOOSE_PARENTS)
    found = {tuple(choose_parents(CHOICE, step, study, columns, coins=seeded(seed))) for seed in range(12)}
    assert len(found) > 6


def test_fewer_draws_than_open_features() -> None:
    study = sized(*[2] * 6)
    query = ChooseParents(CHOICE.placed, CHOICE.candidates, 2, 8, "F")
    columns, step = draw_columns(study, "north"), step_of(Fraction(1), QueryKind.CHOOSE_PARENTS)
    assert len(choose_parents(query, step, study, columns, coins=seeded(1))) == 2


@pytest.mark.parametrize(("kind", "sizes"), [("F", (2,) * 6), ("R", (2,) * 6), ("R", (3,) * 6), ("I", (3, 2) * 3)])
@pytest.mark.parametrize("count", [1, 3, 4])
def test_each_draw_is_private_at_epsilon_over_count(
    monkeypatch: pytest.MonkeyPatch, kind: Score, sizes: tuple[int, ...], count: int
) -> None:
    study = sized(*sizes)
    epsilon, rows = Fraction(3, 7), study.roster[0].rows
    draws: list[tuple[Fraction, int]] = []

    def recorded(scores: NDArray[np.int64], *, epsilon: Fraction, sensitivity: int, coins: Coins) -> int:
        draws.append((epsilon, sensitivity))
        return permute_and_flip(scores, epsilon=epsilon, sensitivity=sensitivity, coins=coins)

    monkeypatch.setattr(parents_module, "permute_and_flip", recorded)
    query = ChooseParents(CHOICE.placed, CHOICE.candidates, count, 30, kind)
    choose_parents(query, step_of(epsilon, QueryKind.CHOOSE_PARENTS), study, draw_columns(study, "north"),
                   coins=seeded(1))  # fmt: skip
    binary = all(size == 2 for size in sizes)
    assert draws == [(epsilon / count, score_sensitivity(kind, rows, binary))] * count
    assert sum(spent for spent, _ in draws) == epsilon


@pytest.mark.parametrize("kind", ["F", "R", "I"])
def test_with_much_epsilon_the_true_parents_are_found(kind: Score) -> None:
    study = sized(*[2] * 4, rows=(400, 50, 60))
    rng = np.random.default_rng(5)
    first, third = (rng.integers(0, 2, 400).astype(np.uint8) for _ in range(2))
    columns: list[Codes] = [first, first.copy(), third, 1 - third]
    query = ChooseParents((0, 2), ((1, (0, 2, 3)), (3, (0, 1, 2))), 2, 4, kind)
    step = step_of(Fraction(1000), QueryKind.CHOOSE_PARENTS)
    chosen = choose_parents(query, step, study, columns, coins=seeded(1))
    assert dict(chosen)[1] == (0,)
    assert dict(chosen)[3] == (2,)


def test_a_table_of_one_row_can_be_chosen_from() -> None:
    for kind in ("F", "R", "I"):
        study = sized(*[2] * 6, rows=(1, 50, 60))
        query = ChooseParents(CHOICE.placed, CHOICE.candidates, 4, 8, kind)
        step = step_of(Fraction(1), QueryKind.CHOOSE_PARENTS)
        assert len(choose_parents(query, step, study, draw_columns(study, "north"), coins=seeded(1))) == 4


def test_codes_of_the_tests_are_of_the_study() -> None:
    study = sized(*SIZES)
    assert tuple(coding.size for coding in codings_of(study)) == SIZES == sizes_of(study)
