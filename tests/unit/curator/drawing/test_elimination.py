"""Elimination beside the product of all factors, written out."""

from itertools import product
from math import exp, isclose

import numpy as np
import pytest

from synod.curator.drawing import elimination
from synod.curator.drawing.elimination import Factor, ancestors, eliminate

SIZES = (2, 3, 1, 2, 4)
SCOPES = [(0,), (0, 1), (1, 3), (3, 0, 4), (2,), (4, 1)]


def make_factors() -> list[Factor]:
    rng = np.random.default_rng(5)
    return [Factor(scope, rng.random([SIZES[v] for v in scope])) for scope in SCOPES]


def brute_force(factors: list[Factor], kept: tuple[int, ...]) -> np.ndarray:
    """The sum over all cells, one at a time."""
    table = np.zeros([SIZES[variable] for variable in kept])
    for cell in product(*map(range, SIZES)):
        weight = 1.0
        for factor in factors:
            weight *= float(factor.values[tuple(cell[v] for v in factor.variables)])
        table[tuple(cell[v] for v in kept)] += weight
    return table


@pytest.mark.parametrize("kept", [(), (1,), (4, 0), (3, 2, 1)])
def test_it_leaves_the_sum_over_all_others(kept: tuple[int, ...]) -> None:
    factors = make_factors()
    found = eliminate(factors, SIZES, kept)
    assert found is not None
    assert np.allclose(found.left * exp(found.log_scale), brute_force(factors, kept), rtol=1e-12)


def test_each_bucket_is_the_law_of_its_variable_given_those_eliminated_later() -> None:
    factors = make_factors()
    found = eliminate(factors, SIZES)
    assert found is not None
    joint = brute_force(factors, tuple(range(len(SIZES))))
    for cell in product(*map(range, SIZES)):
        chance = 1.0
        for bucket in found.buckets:
            weights = bucket.weights[tuple(cell[v] for v in bucket.given)]
            chance *= float(weights[cell[bucket.variable]] / weights.sum())
        assert isclose(chance, float(joint[cell] / joint.sum()), rel_tol=1e-9)


def test_it_gives_up_before_tables_get_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    assert eliminate(make_factors(), SIZES) is not None
    monkeypatch.setattr(elimination, "MOST_CELLS", 20)
    assert eliminate(make_factors(), SIZES) is None


def test_ancestors_are_all_that_a_variable_depends_on() -> None:
    parents = [(), (0,), (1,), (), (3, 1)]
    assert ancestors(parents, [2]) == {0, 1, 2}
    assert ancestors(parents, [4]) == {0, 1, 3, 4}
    assert ancestors(parents, []) == set()
