"""Pairs, any marginal and conditioning against the full joint table."""

from itertools import combinations, permutations

import numpy as np
import pytest

from synod.common.runtime.errors import SynodError
from synod.curator.inference.pairs import pair_tables
from synod.curator.inference.propagation import propagate
from tests.support.conditioned_trees import condition, marginal
from tests.support.joints import SHAPES, Floats, join_potentials, normalize, random_potentials, sum_out, tree_of


@pytest.fixture(params=SHAPES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def potentials_with_zeros(name: str) -> list[Floats]:
    potentials = random_potentials(tree_of(name), 6)
    rng = np.random.default_rng(6)
    for potential in potentials:
        potential[rng.random(potential.shape) < 0.2] = -np.inf
        potential.reshape(-1)[-1] = 0.0
    return potentials


@pytest.mark.parametrize("zeros", [False, True])
def test_every_pair_is_exact(name: str, zeros: bool) -> None:
    tree = tree_of(name)
    potentials = potentials_with_zeros(name) if zeros else random_potentials(tree, 7)
    joint = normalize(join_potentials(tree, potentials))
    found = pair_tables(tree, propagate(tree, potentials)[1])
    assert set(found) == set(combinations(range(len(tree.sizes)), 2))
    for pair, table in found.items():
        assert np.allclose(table, sum_out(joint, pair), atol=1e-14)


def test_every_marginal_is_exact(name: str) -> None:
    tree = tree_of(name)
    potentials = potentials_with_zeros(name)
    joint, tables = normalize(join_potentials(tree, potentials)), propagate(tree, potentials)[1]
    for length in range(min(3, len(tree.sizes)) + 1):
        for attributes in permutations(range(len(tree.sizes)), length):
            assert np.allclose(marginal(tree, tables, attributes), sum_out(joint, attributes), atol=1e-14)
    everything = tuple(range(len(tree.sizes)))
    assert np.allclose(marginal(tree, tables, everything), joint, atol=1e-14)


def test_conditioning_is_exact(name: str) -> None:
    tree = tree_of(name)
    potentials = potentials_with_zeros(name)
    joint, tables = normalize(join_potentials(tree, potentials)), propagate(tree, potentials)[1]
    rng = np.random.default_rng(8)
    for _ in range(12):
        row = np.unravel_index(rng.choice(joint.size, p=joint.reshape(-1)), joint.shape)
        given = rng.choice(joint.ndim, size=rng.integers(joint.ndim + 1), replace=False)
        evidence = {int(attribute): int(row[attribute]) for attribute in given}
        kept = np.zeros_like(joint)
        where = tuple(evidence.get(attribute, slice(None)) for attribute in range(joint.ndim))
        kept[where] = joint[where]
        for clique, table in zip(tree.cliques, condition(tree, tables, evidence), strict=True):
            assert np.allclose(table, sum_out(kept / kept.sum(), clique), atol=1e-13)


def test_evidence_without_probability_is_refused() -> None:
    tree = tree_of("chain")
    potentials = random_potentials(tree, 9)
    home = tree.home((1, 2))
    assert home is not None
    potentials[home][1, 2] = -np.inf
    tables = propagate(tree, potentials)[1]
    with pytest.raises(SynodError, match="no probability"):
        condition(tree, tables, {1: 1, 2: 2})


@pytest.mark.parametrize("evidence", [{9: 0}, {-1: 0}, {1: 2}, {1: -1}])
def test_evidence_that_does_not_exist_is_refused(evidence: dict[int, int]) -> None:
    tree = tree_of("chain")
    with pytest.raises(SynodError, match="does not have"):
        condition(tree, propagate(tree, random_potentials(tree, 9))[1], evidence)


@pytest.mark.parametrize("attributes", [(1, 1), (0, 4), (-1,)])
def test_a_marginal_is_over_different_attributes_that_exist(attributes: tuple[int, ...]) -> None:
    tree = tree_of("chain")
    with pytest.raises(SynodError, match="different attributes"):
        marginal(tree, propagate(tree, random_potentials(tree, 9))[1], attributes)
