"""Distances of marginals against a twin that counts row by row."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings

from synod.deploy.evaluate import marginals
from synod.deploy.evaluate.marginals import Distances, choose_sets, measure_marginals
from synod.deploy.evaluate.tables import Table
from tests.support.comparisons import draw_table, pairs_of_tables, shares_slowly, table_of


def measure(real: Table, synthetic: Table, order: int) -> Distances:
    return measure_marginals(real, synthetic, order, rng=np.random.default_rng(0))


def check(real: Table, synthetic: Table, order: int) -> None:
    found = measure(real, synthetic, order)
    assert list(found.sets) == list(combinations(range(len(real.sizes)), order))
    for place, attributes in enumerate(found.sets):
        left, right = shares_slowly(real, attributes), shares_slowly(synthetic, attributes)
        variation = sum(abs(left[cell] - right[cell]) for cell in left) / 2
        squares = math.fsum((math.sqrt(left[cell]) - math.sqrt(right[cell])) ** 2 for cell in left)
        assert found.total_variation[place] == pytest.approx(float(variation), abs=1e-12)
        assert found.hellinger[place] == pytest.approx(math.sqrt(squares / 2), abs=1e-7)


@settings(max_examples=60, deadline=None)
@given(pairs_of_tables())
def test_all_orders_of_any_tables(tables: tuple[Table, Table]) -> None:
    for order in (1, 2, 3):
        check(*tables, order)


def test_cells_that_occur_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets of more cells than rows take another way, and several blocks one after the other the same."""
    monkeypatch.setattr(marginals, "FEW_CELLS", 8)
    monkeypatch.setattr(marginals, "BLOCK_CELLS", 40)
    real, synthetic = draw_table([2, 3, 7, 2, 11], 5, 1), draw_table([2, 3, 7, 2, 11], 9, 2)
    for order in (1, 2, 3):
        check(real, synthetic, order)


def test_all_triples_of_52_bits_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The way of single sets would take minutes for a table of the papers' size."""
    monkeypatch.setattr(marginals, "_occurring_shares", lambda *_: pytest.fail("one set at a time"))
    found = measure(draw_table([2] * 52, 500, 1), draw_table([2] * 52, 400, 2), 3)
    assert (found.all_sets, len(found.sets)) == (22_100, 22_100)
    assert 0.03 < found.total_variation.mean() < 0.1


def test_domains_too_large_to_count_densely() -> None:
    """Three domains of 65,001 codes have 2.7e14 cells."""
    sizes = [65_001] * 3
    real = table_of([[65_000, 65_000, 0], [65_000, 1, 0], [65_000, 2, 0]], sizes)
    synthetic = table_of([[65_000], [65_000], [65_000]], sizes)
    assert measure(real, synthetic, 3).total_variation.tolist() == [pytest.approx(2 / 3)]
    assert measure(real, synthetic, 2).total_variation == pytest.approx([2 / 3] * 3)


def test_equal_tables_are_at_distance_0_and_disjoint_ones_at_1() -> None:
    one, other = draw_table([2, 3, 5], 30, 3), table_of([[0] * 4, [1] * 4, [4] * 4], [2, 3, 5])
    twice = table_of([column.tolist() * 2 for column in one.columns], one.sizes)
    far = table_of([[1] * 7, [0] * 7, [3] * 7], [2, 3, 5])
    for order in (1, 2, 3):
        for same in (one, twice):
            assert measure(one, same, order).total_variation.max() == 0
            assert measure(one, same, order).hellinger.max() == 0
        assert measure(other, far, order).total_variation.min() == 1
        assert measure(other, far, order).hellinger.min() == 1


def test_an_order_beyond_the_attributes_has_no_marginal() -> None:
    found = measure(draw_table([2, 2], 5, 1), draw_table([2, 2], 5, 2), 3)
    assert (found.all_sets, found.sets, len(found.total_variation), found.worst(3)) == (0, (), 0, [])


def test_the_worst_come_first() -> None:
    real = table_of([[0, 0], [0, 0], [0, 0]], [2, 2, 2])
    synthetic = table_of([[0, 1], [1, 1], [0, 0]], [2, 2, 2])
    assert measure(real, synthetic, 1).worst(2) == [1, 0]


def test_too_many_sets_are_sampled_evenly() -> None:
    everything = list(combinations(range(6), 3))
    assert choose_sets(6, 3, 20, rng=np.random.default_rng(1)) == everything
    drawn = [choose_sets(6, 3, 10, rng=np.random.default_rng(seed)) for seed in range(400)]
    assert all(len(set(sets)) == 10 and set(sets) <= set(everything) for sets in drawn)
    counts = [sum(one in sets for sets in drawn) for one in everything]
    assert min(counts) > 140
    assert max(counts) < 260


def test_a_sample_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marginals, "MOST_SETS", 4)
    found = measure(draw_table([2] * 5, 9, 1), draw_table([2] * 5, 9, 2), 2)
    assert (found.all_sets, len(found.sets), len(found.total_variation)) == (10, 4, 4)
