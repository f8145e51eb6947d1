"""MST and AIM in one place: what a row can change, what is spent, how large the noise is, and what comes out."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest

from bench.central.aim import Limits, choose_table, publish_aim, score_table, teaches_little, weigh
from bench.central.mst import group_rare, publish_mst, span_pairs, ungroup
from bench.central.place import NEIGHBOURS, Integers, Place, base_of, fit_measured, marginals_of, ones_and_pairs
from synod.curator.inference.measurements import Measurement

SIZES = (2, 3, 2)
ROWS: list[tuple[int, ...]] = [(0, 0, 0), (0, 1, 1), (1, 2, 1), (1, 2, 0), (1, 1, 1)]
QUICK = Limits(model_cells=1_000, round_iterations=20, last_iterations=50)
METHODS: dict[str, Callable[[Place], list[Integers]]] = {
    "mst": publish_mst,
    "aim": lambda place: publish_aim(place, QUICK),
}


def make_place(rows: list[tuple[int, ...]], *, rho: float = 1.0, neighbours: str = "A", seed: int = 1) -> Place:
    columns = [np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)]
    return Place(columns, SIZES, rho, NEIGHBOURS[neighbours], np.random.default_rng(seed))


def make_chain(count: int = 4_000, *, rho: float, neighbours: str = "A", seed: int = 3) -> Place:
    """Four attributes, each of which mostly follows the one before."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, 3, count)]
    for _ in range(3):
        columns.append(np.where(rng.random(count) < 0.8, columns[-1], rng.integers(0, 3, count)))
    return Place(columns, (3,) * 4, rho, NEIGHBOURS[neighbours], np.random.default_rng(seed))


def neighbours_of(rows: list[tuple[int, ...]], name: str) -> Iterator[list[tuple[int, ...]]]:
    """Every table with one row removed, or with one row replaced."""
    for place in range(len(rows)):
        rest = rows[:place] + rows[place + 1 :]
        if name == "A":
            yield rest
        else:
            yield from ([*rest, row] for row in product(*map(range, SIZES)))


@pytest.mark.parametrize("name", ["A", "R"])
def test_a_row_changes_a_table_by_what_the_neighbours_say(name: str) -> None:
    true = make_place(ROWS)
    changes = [
        true.count(own) - make_place(other).count(own)
        for other in neighbours_of(ROWS, name)
        for own in ones_and_pairs(len(SIZES))
    ]
    assert max(np.abs(change).sum() for change in changes) == NEIGHBOURS[name].absolute
    assert max(np.square(change).sum() for change in changes) == NEIGHBOURS[name].squared


@pytest.mark.parametrize("name", ["A", "R"])
def test_a_score_moves_by_no_more_than_its_sensitivity(name: str) -> None:
    """The number of rows is public: the model's table is in the rows of the true one."""
    true = make_place(ROWS)
    shares = {own: np.full(true.count(own).shape, 1 / true.count(own).size) for own in ones_and_pairs(len(SIZES))}
    largest = 0.0
    for other in neighbours_of(ROWS, name):
        for own, table in shares.items():
            scale = len(ROWS) / len(other)
            moved = score_table(true, own, table, 1.0) - score_table(make_place(other), own, table * scale, 1.0)
            largest = max(largest, abs(moved))
    assert largest == pytest.approx(NEIGHBOURS[name].absolute)


def test_a_pair_weighs_twice_an_attribute_in_the_workload() -> None:
    assert {weigh(own, 3) for own in combinations(range(3), 1)} == {3}
    assert {weigh(own, 3) for own in combinations(range(3), 2)} == {6}


@pytest.mark.parametrize("name", ["A", "R"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rho", [0.001, 0.05])
def test_all_of_rho_is_spent_and_no_more(method: str, name: str, rho: float) -> None:
    place = make_chain(500, rho=rho, neighbours=name)
    columns = METHODS[method](place)
    assert place.spent == pytest.approx(rho, rel=1e-9)
    assert [len(column) for column in columns] == [500] * 4


def test_more_than_rho_cannot_be_spent() -> None:
    place = make_place(ROWS, rho=0.1)
    place.measure((0,), 0.06)
    with pytest.raises(AssertionError):
        place.measure((1,), 0.06)


@pytest.mark.parametrize(("name", "variance"), [("A", 1 / 0.02), ("R", 2 / 0.02)])
def test_the_noise_has_the_deviation_of_its_cost(name: str, variance: float) -> None:
    place = make_place(ROWS, rho=100.0, neighbours=name)
    measured = [place.measure((0, 1), 0.01) for _ in range(2_000)]
    noise = np.array([one.values - place.count((0, 1)) for one in measured])
    assert measured[0].variance == pytest.approx(variance)
    assert noise.mean() == pytest.approx(0, abs=0.5)
    assert noise.var() == pytest.approx(variance, rel=0.06)


def test_choices_follow_the_exponential_mechanism() -> None:
    place = make_place(ROWS, rho=1_000.0)
    drawn = [place.choose({"a": 0.0, "b": 1.0, "c": 3.0}, 2.0, 0.125) for _ in range(4_000)]
    weights = np.exp(np.array([0.0, 1.0, 3.0]) / (2 * 2.0))
    shares = [drawn.count(key) / len(drawn) for key in "abc"]
    assert shares == pytest.approx(weights / weights.sum(), abs=0.03)
    assert place.spent == pytest.approx(4_000 * 0.125)


def test_mst_spans_the_pairs_that_are_farthest_from_independence() -> None:
    place = make_chain(rho=1e6)
    base = base_of([place.measure((f,), 1e3) for f in range(4)], place.rows)
    assert sorted(span_pairs(place, base, 1e5)) == [(0, 1), (1, 2), (2, 3)]


def test_rare_values_are_taken_together_and_come_back() -> None:
    one = Measurement((0,), np.array([50.0, 2.0, 40.0, -1.0, 0.5]), 1.0)
    groups = group_rare(one)
    assert groups.tolist() == [0, 2, 1, 2, 2]
    drawn = ungroup(np.array([0, 1, 2] * 300), groups, rng=np.random.default_rng(1))
    assert set(drawn[0::3].tolist()) == {0}
    assert set(drawn[1::3].tolist()) == {2}
    assert np.bincount(drawn[2::3], minlength=5)[[1, 3, 4]].min() > 60
    assert group_rare(replace(one, values=one.values + 50)).tolist() == [0, 1, 2, 3, 4]


def test_aim_leaves_out_pairs_that_make_the_model_too_large() -> None:
    place = make_chain(rho=1e6)
    measured = [place.measure((f,), 1e3) for f in range(4)]
    model = fit_measured(place.sizes, place.rows, measured, base_of(measured, place.rows), iterations=5)
    found = marginals_of(model)
    small = {len(choose_table(place, measured, found, 1e4, cells)) for cells in (12, 20) for _ in range(3)}
    assert small == {1}
    assert len(choose_table(place, measured, found, 1e5, 10_000)) == 2


def test_a_table_that_moves_the_model_by_less_than_its_noise_teaches_little() -> None:
    place = make_chain(rho=1.0)
    even, uneven = np.full((3, 3), 1 / 9), np.eye(3) / 3
    assert teaches_little(place, even, even, 0.1)
    assert not teaches_little(place, even, uneven, 0.1)
    assert teaches_little(place, even, uneven, 1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_without_noise_neighbouring_attributes_keep_their_tables(method: str) -> None:
    place = make_chain(rho=1e4)
    columns = METHODS[method](place)
    for pair in [(0, 1), (1, 2), (2, 3)]:
        drawn = np.zeros((3, 3))
        np.add.at(drawn, (columns[pair[0]], columns[pair[1]]), 1)
        assert np.abs(drawn - place.count(pair)).sum() / 2 / place.rows < 0.01
