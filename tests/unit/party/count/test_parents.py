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
from synod.common.runtime.errors import SynodError
from synod.common.study.encoding import Codes, codings_of
from synod.common.study.features import sizes_of, space_of
from synod.common.study.study import Study
from synod.party.count import families as families_module
from synod.party.count import parents as parents_module
from synod.party.count.choice import permute_and_flip
from synod.party.count.families import FamilyCounter
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


@pytest.mark.parametrize("sets", [((2,),), ((2, 3),), ((0, 3), (2, 1), (2, 3)), ((2,), (0,), (3,))])
def test_the_sensitivity_of_tables_over_levels_is_that_of_others(sets: tuple[tuple[int, ...], ...]) -> None:
    """Brute force, as above: 2 and 3 are levels of the features 0 and 1, a missing value among the groups."""
    schema = [
        {"name": "a", "type": "integer", "min": 0, "max": 3, "bins": 4},
        {"name": "b", "type": "categorical", "taxonomy": ["p", ["q", "r"]], "nullable": True},
    ]
    study = make_study(schema=schema, method={"name": "independent", "encoding": "hierarchical"})
    assert sizes_of(study) == (4, 4, 2, 3)
    query = LocalMarginals(sets)
    query.check(study)
    values = list(product(range(4), range(4)))

    def count(*rows: tuple[int, int]) -> NDArray[np.int64]:
        columns: list[Codes] = [np.array(column, dtype=np.uint8) for column in zip(*rows, strict=True)]
        return exact_counts(query, study, columns)

    changes = [count(one, third) - count(other, third) for one, other, third in product(values, repeat=3)]
    assert max(int(np.abs(change).sum()) for change in changes) == 2 * len(sets)
    assert max(int(np.square(change).sum()) for change in changes) == 2 * len(sets)


@pytest.mark.parametrize("entries", [(0, 4), (1, 0), (1, 4), (4, 0), (4, 5), (7,)])
def test_a_set_has_one_level_of_an_attribute_in_the_order_of_attributes(entries: tuple[int, ...]) -> None:
    study = leveled()
    LocalMarginals(((4, 1),)).check(study)
    LocalMarginals(((5, 6, 2, 3),)).check(study)
    with pytest.raises(SynodError, match="are not sets of the study's features"):
        LocalMarginals((entries,)).check(study)


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


@pytest.mark.parametrize(
    ("sizes", "binary"), [((3, 2, 2, 3, 2, 2), True), ((2, 2, 2, 2, 2, 3), False), ((2, 3, 3, 2, 3, 3), False)]
)
@pytest.mark.parametrize("kind", ["R", "I"])
def test_the_smaller_sensitivity_is_for_queries_whose_open_features_are_all_binary(
    monkeypatch: pytest.MonkeyPatch, kind: Score, sizes: tuple[int, ...], binary: bool
) -> None:
    """Placed features, 0 and 3, may have any size: one side of every table is binary. One larger open feature is enough
    for tables of which neither side is.
    """
    study, used = sized(*sizes), set()

    def recorded(scores: NDArray[np.int64], *, epsilon: Fraction, sensitivity: int, coins: Coins) -> int:
        used.add(sensitivity)
        return permute_and_flip(scores, epsilon=epsilon, sensitivity=sensitivity, coins=coins)

    monkeypatch.setattr(parents_module, "permute_and_flip", recorded)
    query = ChooseParents(CHOICE.placed, CHOICE.candidates, 3, 30, kind)
    step = step_of(Fraction(1), QueryKind.CHOOSE_PARENTS)
    choose_parents(query, step, study, draw_columns(study, "north"), coins=seeded(1))
    rows = study.roster[0].rows
    assert used == {score_sensitivity(kind, rows, binary)}
    assert score_sensitivity(kind, rows, True) < score_sensitivity(kind, rows, False)


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


@pytest.mark.parametrize(("chunk_rows", "block_cells"), [(2**16, 2**22), (3, 10), (7, 60)])
def test_tables_of_families_are_those_of_a_loop_over_rows(
    chunk_rows: int, block_cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fast way along common beginnings beside its slow twin, on levels of features, in any order of pairs."""
    monkeypatch.setattr(families_module, "CHUNK_ROWS", chunk_rows)
    monkeypatch.setattr(families_module, "BLOCK_CELLS", block_cells)
    study = leveled()
    columns = draw_columns(study, "north")
    features = space_of(study).encode(columns)
    sizes = sizes_of(study)
    pairs = [
        (3, (0, 1)),
        (2, ()),
        (2, (0, 6)),
        (3, (0, 1, 2)),
        (1, (5, 2)),
        (0, (1, 2)),
        (2, (0, 1)),
        (3, (4,)),
        (1, ()),
    ]
    found = dict(FamilyCounter(features, sizes).count(pairs))
    assert found.keys() == set(pairs)
    for (feature, parents), table in found.items():
        assert table.shape == (sizes[feature], np.prod([sizes[parent] for parent in parents], dtype=int))
        assert table.ravel().tolist() == count_slowly([(feature, *parents)], study, columns)


def leveled(**changes: Any) -> Study:
    """Features of sizes 8, 6, 2 and 3; 4 and 5 are levels of the first, 6 of the second."""
    schema = [
        {"name": "a", "type": "integer", "min": 0, "max": 7, "bins": 8},
        {"name": "b", "type": "categorical", "taxonomy": ["p", ["q", "r"], ["s", "t", "u"]]},
        categorical("c", 2),
        categorical("d", 3),
    ]
    return make_study(schema=schema, method={"name": "independent", "encoding": "hierarchical"}, **changes)


def test_the_levels_of_the_tests_are_those_of_the_study() -> None:
    assert sizes_of(leveled()) == (8, 6, 2, 3, 4, 2, 3)


@pytest.mark.parametrize("max_parents", [None, 1])
@pytest.mark.parametrize("max_cells", [1, 6, 12, 24, 60])
def test_choices_over_levels_stay_inside_the_query(max_cells: int, max_parents: int | None) -> None:
    study = leveled()
    every = tuple((x, tuple(i for i in range(4) if i != x)) for x in (1, 2, 3))
    query = ChooseParents((0,), every, 3, max_cells, "R", max_parents)
    query.check(study)
    step, seen = step_of(Fraction(1), QueryKind.CHOOSE_PARENTS), set()
    for seed in range(20):
        chosen = choose_parents(query, step, study, draw_columns(study, "north"), coins=seeded(seed))
        assert query.read_answer(query.write_answer(chosen), study) == chosen
        seen |= {parent for _, parents in chosen for parent in parents}
    assert bool(seen & {4, 5, 6}) == (max_cells in (6, 12, 24) or (max_cells == 60 and max_parents is None))


def test_a_level_that_decides_is_found() -> None:
    """The last feature follows from the halves of the first, which leave room for the second one's groups, too."""
    study = leveled(rows=(600, 50, 60))
    rng = np.random.default_rng(3)
    a, b, c = (rng.integers(0, size, 600).astype(np.uint8) for size in (8, 6, 2))
    group = np.array([0, 1, 1, 2, 2, 2], dtype=np.uint8)[b]
    d = ((a // 4 + group) % 3).astype(np.uint8)
    query = ChooseParents((0, 1, 2), ((3, (0, 1, 2)),), 1, 18, "R")
    step = step_of(Fraction(1000), QueryKind.CHOOSE_PARENTS)
    assert choose_parents(query, step, study, [a, b, c, d], coins=seeded(1)) == [(3, (5, 6))]


def test_ordered_draws_take_features_as_listed_and_pay_for_choices_only(monkeypatch: pytest.MonkeyPatch) -> None:
    study = sized(2, 3, 2, 5)
    draws: list[tuple[Fraction, int]] = []

    def recorded(scores: NDArray[np.int64], *, epsilon: Fraction, sensitivity: int, coins: Coins) -> int:
        draws.append((epsilon, len(scores)))
        return permute_and_flip(scores, epsilon=epsilon, sensitivity=sensitivity, coins=coins)

    monkeypatch.setattr(parents_module, "permute_and_flip", recorded)
    query = ChooseParents((0,), ((3, (0,)), (2, (0, 3)), (1, (0, 2, 3))), 3, 20, "R", ordered=True)
    query.check(study)
    step = step_of(Fraction(3, 7), QueryKind.CHOOSE_PARENTS)
    for seed in range(5):
        draws.clear()
        chosen = choose_parents(query, step, study, draw_columns(study, "north"), coins=seeded(seed))
        assert [feature for feature, _ in chosen] == [3, 2, 1]
        assert query.read_answer(query.write_answer(chosen), study) == chosen
        # The second draw has both parents, which fit together: forced. The last chooses between (0, 2) and (3,).
        assert chosen[:2] == [(3, (0,)), (2, (0, 3))]
        assert draws == [(Fraction(3, 7), 2)]
    assert query.epsilon_each(step, study) == Fraction(3, 7)


def test_where_every_ordered_draw_is_forced_nothing_is_spent_and_no_coin_read() -> None:
    study = sized(2, 2, 2)
    query = ChooseParents((0,), ((2, (0,)), (1, (0, 2))), 2, 8, "F", ordered=True)
    step = step_of(Fraction(1), QueryKind.CHOOSE_PARENTS)
    columns = draw_columns(study, "north")
    found = {tuple(choose_parents(query, step, study, columns, coins=seeded(seed))) for seed in range(4)}
    assert found == {((2, (0,)), (1, (0, 2)))}
    assert query.epsilon_each(step, study) == 0


def test_a_table_of_one_row_can_be_chosen_from() -> None:
    for kind in ("F", "R", "I"):
        study = sized(*[2] * 6, rows=(1, 50, 60))
        query = ChooseParents(CHOICE.placed, CHOICE.candidates, 4, 8, kind)
        step = step_of(Fraction(1), QueryKind.CHOOSE_PARENTS)
        assert len(choose_parents(query, step, study, draw_columns(study, "north"), coins=seeded(1))) == 4


def test_codes_of_the_tests_are_of_the_study() -> None:
    study = sized(*SIZES)
    assert tuple(coding.size for coding in codings_of(study)) == SIZES == sizes_of(study)
