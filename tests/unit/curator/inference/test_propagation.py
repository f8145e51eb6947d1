"""Propagation, sweeps and plans against the full joint table."""

from itertools import combinations
from math import inf, log

import numpy as np
import pytest

from synod.curator.inference import plans
from synod.curator.inference.junction import JunctionTree, expand_table, reduce_table
from synod.curator.inference.plans import make_plan
from synod.curator.inference.propagation import propagate
from synod.curator.inference.sweeps import arrange, make_sweeper
from tests.support.joints import SHAPES, Floats, join_potentials, normalize, random_potentials, sum_out, tree_of


def log_sum(potential: Floats) -> float:
    highest = float(potential.max())
    return highest + log(float(np.exp(potential - highest).sum()))


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("scale", [0.0, 1.5, 400.0])
def test_propagation_is_exact(name: str, scale: float) -> None:
    tree = tree_of(name)
    potentials = random_potentials(tree, 1, scale)
    joined = join_potentials(tree, potentials)
    log_total, tables = propagate(tree, potentials)
    assert log_total == pytest.approx(log_sum(joined), rel=1e-12)
    for clique, table in zip(tree.cliques, tables, strict=True):
        assert np.allclose(table, sum_out(normalize(joined), clique), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("name", SHAPES)
def test_impossible_cells_stay_impossible(name: str) -> None:
    tree = tree_of(name)
    rng = np.random.default_rng(2)
    potentials = [np.where(rng.random(p.shape) < 0.3, -inf, p) for p in random_potentials(tree, 2)]
    for potential in potentials:
        potential.reshape(-1)[-1] = 0.0  # the last codes together stay possible
    log_total, tables = propagate(tree, potentials)
    joint = normalize(join_potentials(tree, potentials))
    assert log_total > -inf
    for clique, table in zip(tree.cliques, tables, strict=True):
        assert np.allclose(table, sum_out(joint, clique), atol=1e-15)


def test_nothing_possible_is_told() -> None:
    tree = tree_of("chain")
    potentials = random_potentials(tree, 3)
    potentials[0][...] = -inf
    log_total, tables = propagate(tree, potentials)
    assert log_total == -inf
    assert not any(np.isnan(table).any() for table in tables)


# Sweeps


def factors_of(tree: JunctionTree) -> list[tuple[int, ...]]:
    """Some pairs of every clique and every second attribute alone; some cliques may have none."""
    pairs = sorted({pair for clique in tree.cliques for pair in combinations(clique, 2)})
    return pairs[::2] + [(attribute,) for attribute in range(0, len(tree.sizes), 2)]


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("scale", [0.0, 1.5, 300.0, 3000.0])
def test_a_sweep_is_exact(name: str, scale: float) -> None:
    tree = tree_of(name)
    factors = factors_of(tree)
    sweeper = make_sweeper(tree, factors)
    axes = [arrange(factor, sweeper.ranks) for factor in factors]
    rng = np.random.default_rng(4)
    potentials = [rng.normal(scale=scale, size=tree.shape(factor)) for factor in axes]
    joined = np.zeros(tree.sizes)
    for factor, potential in zip(axes, potentials, strict=True):
        joined += expand_table(potential.transpose(np.argsort(factor)), factor, tuple(range(joined.ndim)))
    for _ in range(2):  # the second sweep finds the tables of the first
        log_total, marginals = sweeper.sweep(potentials)
        assert log_total == pytest.approx(log_sum(joined), rel=1e-12, abs=1e-12)
        for factor, marginal in zip(axes, marginals, strict=True):
            assert np.allclose(marginal, sum_out(normalize(joined), factor), rtol=1e-9, atol=1e-15)


# Plans


@pytest.mark.parametrize("short_row", [0, 1000])
def test_a_plan_sums_and_gathers(short_row: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "SHORT_ROW", short_row)
    sizes, rng = (3, 1, 2, 4, 2, 3), np.random.default_rng(5)
    clique = (0, 1, 2, 3, 5)
    every = [held for length in range(6) for held in combinations(clique, length)]
    for _ in range(40):
        wanted = [every[place] for place in rng.integers(len(every), size=rng.integers(1, 9))]
        plan = make_plan(clique, wanted, sizes)
        table = rng.random([sizes[a] for a in clique])
        potentials = [rng.random([sizes[a] for a in held]) for held in wanted]
        for held, found in zip(wanted, plan.reduce(table, 0.5), strict=True):
            assert np.allclose(found, 0.5 * reduce_table(table, clique, held))
        total = sum((expand_table(p, held, clique) for held, p in zip(wanted, potentials, strict=True)), np.zeros(1))
        gathered = sum(plan.gather(potentials), np.zeros(table.shape))
        assert np.allclose(gathered, np.broadcast_to(total, table.shape))
