"""Projection, mutual information and margins against twins that do it one table and one cell at a time."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synod.curator.network.tables import Floats, marginalize, mutual_information, project_tables, project_unequal

TOTALS = [0.0, 1.0, 37.5, 21_574.0]


def slow_projection(table: list[float], total: float) -> list[float]:
    """The constant by bisection: what is left after subtracting it and cutting at zero falls with it."""
    low, high = min(table) - total, max(table)
    for _ in range(200):
        middle = (low + high) / 2
        left = sum(max(0.0, cell - middle) for cell in table)
        low, high = (middle, high) if left > total else (low, middle)
    return [max(0.0, cell - high) for cell in table]


@given(st.lists(st.integers(-500, 500), min_size=1, max_size=20), st.sampled_from(TOTALS))
def test_projection_is_the_slow_twins(table: list[int], total: float) -> None:
    projected = project_tables(np.array(table, dtype=np.int64), total)
    assert projected == pytest.approx(slow_projection([float(cell) for cell in table], total), abs=1e-8)


@pytest.mark.parametrize("total", TOTALS)
def test_many_tables_are_projected_as_one_by_one(total: float) -> None:
    tables = np.random.default_rng(1).laplace(scale=100, size=(3, 50, 16))
    projected = project_tables(tables, total)
    assert projected.min() >= 0
    assert projected.sum(axis=-1) == pytest.approx(np.full((3, 50), total))
    for place in np.ndindex(3, 50):
        assert np.array_equal(projected[place], project_tables(tables[place], total))


def test_projection_is_nearer_than_any_other_table_of_the_total() -> None:
    rng = np.random.default_rng(2)
    tables = rng.laplace(scale=30, size=(200, 8))
    others = rng.dirichlet(np.full(8, 0.3), size=200) * 100.0
    nearest = ((project_tables(tables, 100.0) - tables) ** 2).sum(axis=1)
    assert (nearest <= ((others - tables) ** 2).sum(axis=1)).all()


def test_a_table_of_its_total_is_left_as_it_is() -> None:
    assert project_tables(np.array([3, 0, 5, 2]), 10.0).tolist() == [3, 0, 5, 2]


def slow_information(table: Floats, size: int) -> float:
    joint = table.reshape(size, -1) / table.sum()
    cells = product(range(size), range(joint.shape[1]))
    terms = [
        joint[x, pi] * math.log2(joint[x, pi] / (joint[x].sum() * joint[:, pi].sum()))
        for x, pi in cells
        if joint[x, pi] > 0
    ]
    return math.fsum(terms)


@pytest.mark.parametrize(("size", "others"), [(2, 1), (2, 8), (3, 5), (7, 2), (1, 4)])
def test_information_is_the_definitions(size: int, others: int) -> None:
    tables = np.random.default_rng(size).dirichlet(np.full(size * others, 0.3), size=(4, 5)) * 1000
    tables[tables < 5] = 0
    information = mutual_information(tables, size)
    assert information.shape == (4, 5)
    for place in np.ndindex(4, 5):
        assert information[place] == pytest.approx(slow_information(tables[place], size), abs=1e-12)


def test_information_of_known_tables_is_in_bits() -> None:
    tables = np.array([[5, 0, 0, 5], [1, 1, 1, 1], [0, 0, 0, 0], [4, 0, 2, 0]], dtype=float)
    assert mutual_information(tables, 2).tolist() == [1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("subset", [(), (4,), (0,), (2, 4), (4, 2), (0, 4, 2), (2, 0, 4)])
def test_margins_are_sums_over_cells(subset: tuple[int, ...]) -> None:
    sizes, features = [3, 9, 2, 9, 4], (4, 0, 2)
    table = np.random.default_rng(0).integers(0, 1000, size=24)
    expected = dict.fromkeys(product(*(range(sizes[feature]) for feature in subset)), 0)
    for place, cell in enumerate(product(*(range(sizes[feature]) for feature in features))):
        expected[tuple(cell[features.index(feature)] for feature in subset)] += int(table[place])
    margin = marginalize(table, features, sizes, subset)
    assert margin.dtype == np.int64
    assert margin.tolist() == list(expected.values())


# Unequal noise


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(1, 9)), min_size=1, max_size=8), st.integers(0, 100))
def test_unequal_noise_is_projected_as_the_conditions_of_the_optimum_say(
    cells: list[tuple[int, int]], total: int
) -> None:
    """Least sum of (x - y)^2 / v over x >= 0 with the total: x = y - lambda v where that is positive, else 0."""
    counts, variances = (np.array(part, dtype=np.float64) for part in zip(*cells, strict=True))
    projected = project_unequal(counts, variances, total)
    assert projected.min() >= 0
    assert projected.sum() == pytest.approx(total, abs=1e-9)
    if total:
        kept = projected > 1e-9
        multipliers = ((counts - projected) / variances)[kept]
        assert multipliers == pytest.approx(multipliers[0], abs=1e-9)
        assert (counts - multipliers[0] * variances <= 1e-9)[~kept].all()


def test_equal_noise_is_norm_sub() -> None:
    counts = np.random.default_rng(1).normal(0, 10, 40)
    assert project_unequal(counts, np.full(40, 3.0), 25) == pytest.approx(project_tables(counts, 25))
