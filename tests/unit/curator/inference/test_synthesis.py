"""Drawn rows: as close to the model as whole rows can be, and the same for ever."""

from hashlib import sha256

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from synod.common.privacy.coins import Coins
from synod.curator.inference import synthesis
from synod.curator.inference.junction import build_tree
from synod.curator.inference.propagation import propagate
from synod.curator.inference.synthesis import ROW, Integers, draw_rows, integer_weights
from tests.support.conditioned_trees import condition
from tests.support.joints import SHAPES, Floats, join_potentials, normalize, random_potentials, sum_out, tree_of

ROWS = 3000
PINNED_ROWS = [[15, 3, 5, 11, 14], [5, 2, 14, 7, 13], [1, 1, 1, 4, 14]]
PINNED_HASH = "54d10ad801ab1e065921126b022384037cac9298b647d3b43fb006b44b692047"


def coins_of(seed: int) -> Coins:
    return Coins(bytes([seed]) * 32)


def model_of(name: str, seed: int = 20) -> tuple[Floats, list[Floats]]:
    tree = tree_of(name)
    potentials = random_potentials(tree, seed)
    return normalize(join_potentials(tree, potentials)), propagate(tree, potentials)[1]


def count_rows(rows: Integers, attributes: tuple[int, ...], sizes: tuple[int, ...]) -> Integers:
    counts = np.zeros([sizes[attribute] for attribute in attributes], dtype=np.int64)
    np.add.at(counts, tuple(rows[:, attribute] for attribute in attributes), 1)
    return counts


@pytest.mark.parametrize("name", SHAPES)
def test_rows_have_the_models_margins(name: str) -> None:
    tree, (joint, tables) = tree_of(name), model_of(name)
    rows = draw_rows(tree, integer_weights(tables), ROWS, coins=coins_of(1))
    assert rows.shape == (ROWS, len(tree.sizes))
    for attribute in range(len(tree.sizes)):
        missed = count_rows(rows, (attribute,), tree.sizes) - ROWS * sum_out(joint, [attribute])
        assert np.abs(missed).max() <= 4
    for clique in tree.cliques:
        missed = count_rows(rows, clique, tree.sizes) - ROWS * sum_out(joint, clique)
        assert np.abs(missed).max() <= 8  # independent rows would miss by about sqrt(3000 / 4) = 27 in large cells


@pytest.mark.parametrize("name", ["deep", "two parts", "star", "ring"])
def test_rows_are_closer_than_independent_rows_across_cliques(name: str) -> None:
    tree, (joint, tables) = tree_of(name), model_of(name)
    rows = draw_rows(tree, integer_weights(tables), ROWS, coins=coins_of(2))
    flat = np.random.default_rng(2).multinomial(ROWS, joint.reshape(-1)).reshape(joint.shape)
    drawn = count_rows(rows, tuple(range(joint.ndim)), tree.sizes)
    missed, chance = (np.abs(counts - ROWS * joint).sum() for counts in (drawn, flat))
    assert missed < 0.7 * chance


def test_many_groups_are_rounded_in_several_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthesis, "LONGEST_RUN", 3)
    test_rows_have_the_models_margins("triples")


@pytest.mark.parametrize("name", ["ring", "deep"])
def test_rows_given_evidence_have_it(name: str) -> None:
    tree, (joint, tables) = tree_of(name), model_of(name)
    rows = draw_rows(tree, integer_weights(condition(tree, tables, {0: 1, 3: 0})), 400, coins=coins_of(3))
    assert set(rows[:, 0]) == {1}
    assert set(rows[:, 3]) == {0}
    kept = np.take(joint[1], 0, axis=2)
    expected = 400 * kept.sum(axis=tuple(range(1, kept.ndim))) / kept.sum()
    assert np.abs(np.bincount(rows[:, 1], minlength=3) - expected).max() <= 3


def test_a_configuration_without_weight_takes_the_margin() -> None:
    tree = tree_of("chain")
    weights = integer_weights(model_of("chain")[1])
    weights[tree.cliques.index((1, 2))] = np.array([[3, 1, 0], [1, 5, 0]])
    rows = draw_rows(tree, weights, 1000, coins=coins_of(4))
    without = rows[rows[:, 2] == 2, 1]  # drawn in the clique before, where the code has weight
    assert len(without) > 50
    assert np.abs(np.bincount(without, minlength=2) - len(without) * np.array([0.4, 0.6])).max() <= 2


def test_cells_without_weight_stay_empty() -> None:
    tree, (_, tables) = tree_of("one clique"), model_of("one clique")
    weights = integer_weights(tables)
    weights[0][:, 1, :] = 0
    weights[0][1, :, 2] = 0
    rows = draw_rows(tree, weights, 2000, coins=coins_of(5))
    counts = count_rows(rows, (0, 1, 2), tree.sizes)
    assert not counts[weights[0] == 0].any()


@pytest.mark.parametrize("count", [0, 1, 2, 17])
@pytest.mark.parametrize("name", SHAPES)
def test_few_rows_are_drawn_too(name: str, count: int) -> None:
    tree = tree_of(name)
    rows = draw_rows(tree, integer_weights(model_of(name)[1]), count, coins=coins_of(6))
    assert rows.shape == (count, len(tree.sizes))
    assert ((rows >= 0) & (rows < np.array(tree.sizes))).all()


def test_a_draw_depends_on_weights_and_key_alone() -> None:
    tree, weights = tree_of("triples"), integer_weights(model_of("triples")[1])
    first, again, other = (draw_rows(tree, weights, 500, coins=coins_of(seed)) for seed in (7, 7, 8))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    doubled = draw_rows(tree, [2 * table for table in weights], 500, coins=coins_of(7))
    assert np.array_equal(first, doubled)


def test_the_stream_of_rows_is_the_one_released_before() -> None:
    """A change here means that no earlier release can be redrawn: it needs a new version of the model."""
    tree = build_tree((17, 15, 16, 14, 18), [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)])
    weights = [
        np.array([(37 * cell * cell + 11 * cell + place) % 101 for cell in range(int(np.prod(tree.shape(clique))))])
        .reshape(tree.shape(clique))
        .astype(np.int64)
        for place, clique in enumerate(tree.cliques)
    ]
    rows = draw_rows(tree, weights, 5000, coins=Coins(bytes(range(32))))
    assert rows[:3].tolist() == PINNED_ROWS
    assert sha256(np.ascontiguousarray(rows, dtype="<i8").tobytes()).hexdigest() == PINNED_HASH


@example(6, 3, 172)  # three rows missing and only two codes possible
@given(st.integers(1, 6), st.integers(1, 7), st.integers(0, 2**32 - 1))
def test_rounding_adds_up_and_stays_near(groups: int, codes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 5, size=(groups, codes))
    weights[:, rng.integers(codes)] += 1
    rows = rng.integers(1, 9, size=groups)
    targets = synthesis._scale(weights, rows)
    carried = rng.integers(-ROW, ROW + 1, size=targets.shape)
    chance = rng.integers(0, ROW, size=targets.shape)
    rounded = synthesis._round(targets + carried, weights > 0, rows, chance)
    assert (rounded >= 0).all()
    assert np.array_equal(rounded.sum(axis=1), rows)
    assert not rounded[weights == 0].any()
    exact = synthesis._round(targets, weights > 0, rows, chance * 0)
    assert (np.abs((exact << 32) - targets) < ROW).all()


def test_a_whole_row_carried_to_a_code_without_weight_waits() -> None:
    weights, rows = np.array([[2, 0, 3]]), np.array([5])
    targets = synthesis._scale(weights, rows) + np.array([[-ROW, ROW, 0]])
    assert synthesis._round(targets, weights > 0, rows, np.zeros_like(weights)).tolist() == [[2, 0, 3]]
