"""Two-way margins: what noise adds to dependence is taken off, on every level; without noise they are exact."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from synod.common.study.features import base_sizes, chains_of, sizes_of, space_of
from synod.common.study.study import Study
from synod.curator.methods.base import Released
from synod.curator.network.consistency import NoisyTable, agree
from synod.curator.network.dependence import (
    PairMargins,
    agree_on_ones,
    expected_dependence,
    find_pairs,
    shrink_dependence,
)
from synod.curator.network.levels import levels_of
from synod.curator.network.tables import marginalize, mutual_information, project_tables
from tests.support.studies import binary, categorical, integer, make_study

Floats = NDArray[np.float64]
ROWS = 6000


def study_of(schema: list[dict[str, Any]]) -> Study:
    method = {"name": "privbayes", "structure": "pooled", "parameter_cells": 30}
    return make_study(schema=schema, rows=(ROWS // 3,) * 3, epsilon="5", method=method)


STUDY = study_of([integer("age", 0, 15), categorical("w", 3), binary("sex"), categorical("v", 4)])


def columns(*, dependent: bool) -> list[NDArray[np.int64]]:
    rng = np.random.default_rng(3)
    drawn = [rng.integers(0, size, ROWS) for size in base_sizes(STUDY)]
    if dependent:
        drawn[2] = np.where(rng.random(ROWS) < 0.9, drawn[0] >= 8, drawn[2]).astype(np.int64)
    return drawn


def tables_of(drawn: list[NDArray[np.int64]], deviation: float, seed: int = 1) -> list[Released]:
    """One table of the first three features, and the pairs of the last, with Gaussian noise."""
    rng, sizes = np.random.default_rng(seed), base_sizes(STUDY)
    found = []
    for features in ((0, 1, 2), (0, 3), (1, 3), (2, 3)):
        shape = [sizes[i] for i in features]
        counts = np.zeros(shape)
        np.add.at(counts, tuple(drawn[i] for i in features), 1)
        noise = rng.normal(0, deviation, counts.size) if deviation else np.zeros(counts.size)
        found.append(Released(features, counts.reshape(-1) + noise, ROWS, max(deviation, 1e-9) ** 2))
    return found


def test_without_noise_margins_are_those_of_the_rows_on_every_level() -> None:
    drawn = columns(dependent=True)
    pairs = find_pairs(STUDY, tables_of(drawn, 0))
    encoded = space_of(STUDY).encode([column.astype(np.uint8) for column in drawn])
    sizes, levels = sizes_of(STUDY), levels_of(STUDY)
    for x, y in combinations(range(len(sizes)), 2):
        if levels.base(x) != levels.base(y):
            truth = np.zeros((sizes[x], sizes[y]))
            np.add.at(truth, (encoded[x], encoded[y]), 1 / ROWS)
            assert pairs.margin(x, y) == pytest.approx(truth, abs=1e-6)
            assert pairs.margin(y, x) == pytest.approx(truth.T, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_what_noise_adds_to_the_deviation_from_independence(seed: int) -> None:
    """The expected square against the mean over many draws, for margins of uneven groups."""
    rng = np.random.default_rng(seed)
    groups = [np.array([0, 0, 0, 1, 2, 2]), np.array([0, 1, 1, 1, 1])]
    cells = [np.bincount(group) for group in groups]
    p, q = rng.dirichlet(np.full(3, 3.0)), rng.dirichlet(np.full(2, 3.0))
    fold = [np.eye(len(own))[group].T for own, group in zip(cells, groups, strict=True)]
    shares, deviation = np.outer(p, q), 1e-4
    squares = []
    for _ in range(4000):
        noisy = shares + fold[0] @ rng.normal(0, deviation, (6, 5)) @ fold[1].T
        alone = np.outer(noisy.sum(axis=1), noisy.sum(axis=0)) / noisy.sum()
        squares.append(float(((noisy - alone) ** 2).sum()))
    assert np.mean(squares) == pytest.approx(expected_dependence(shares, deviation**2, cells), rel=0.06)


def test_dependence_that_is_all_noise_is_gone_and_other_dependence_stays() -> None:
    ones = [np.ones(2, dtype=np.intp)] * 2
    alone, tied = np.array([[0.12, 0.28], [0.18, 0.42]]), np.array([[0.4, 0.0], [0.0, 0.6]])
    slight = alone + np.array([[0.01, -0.01], [-0.01, 0.01]])
    assert shrink_dependence(slight, slight, 0.01, ones) == pytest.approx(alone)
    assert shrink_dependence(slight, slight, 1e-12, ones) == pytest.approx(slight)
    assert shrink_dependence(tied, tied, 1e-6, ones) == pytest.approx(tied, abs=1e-4)
    assert shrink_dependence(alone, alone, 0.0, ones) == pytest.approx(alone)


def raw_information(pairs: PairMargins, x: int, y: int) -> float:
    """The information of a level of the first feature with another, with what noise adds to it."""
    table = marginalize(pairs.noisy[0, y].reshape(-1), (0, y), pairs.sizes, (x, y), levels_of(STUDY))
    return float(mutual_information(project_tables(table, 1.0), pairs.sizes[x]))


@pytest.mark.parametrize("level", range(4))
def test_columns_that_are_independent_look_so(level: int) -> None:
    """What noise adds to the information is taken off on every level."""
    x, found, raw = chains_of(STUDY)[0][level], [], []
    for seed in range(20):
        pairs = find_pairs(STUDY, tables_of(columns(dependent=False), 60, seed))
        found.append(pairs.information(x, 3))
        raw.append(raw_information(pairs, x, 3))
    assert np.mean(raw) > 0.01
    assert np.mean(found) < np.mean(raw) / 3


def test_a_coarse_level_shows_what_noise_hides_on_the_finest() -> None:
    study_pairs = find_pairs(STUDY, tables_of(columns(dependent=True), 25))
    coarsest = chains_of(STUDY)[0][-1]
    assert study_pairs.information(coarsest, 2) > 0.3


@pytest.mark.parametrize("sizes", [(2, 3), (4, 2, 3), (2, 3, 2, 5, 3)])
def test_agreement_of_pairs_is_that_of_any_tables(sizes: tuple[int, ...]) -> None:
    """The slow twin looks at all that two tables share."""
    rng = np.random.default_rng(5)
    shapes: dict[tuple[int, ...], tuple[int, int]] = {
        (x, y): (sizes[x], sizes[y]) for x, y in combinations(range(len(sizes)), 2)
    }
    tables = {pair: rng.normal(1 / np.prod(shape), 0.1, shape) for pair, shape in shapes.items()}
    variances = {pair: float(rng.uniform(0.5, 4)) for pair in tables}
    slow = agree([NoisyTable(p, t.reshape(-1), variances[p]) for p, t in tables.items()], sizes, total=1.0)
    fast = agree_on_ones(tables, variances)
    for own, twin in zip(fast.values(), slow, strict=True):
        assert own.reshape(-1) == pytest.approx(twin)


def test_every_pair_comes_from_the_table_that_has_it() -> None:
    tables = tables_of(columns(dependent=True), 5)
    pairs, sizes = find_pairs(STUDY, tables), sizes_of(STUDY)
    assert set(pairs.projected) == set(combinations(range(4), 2))
    # the values of the third feature were added up
    assert pairs.variances[0, 1] * ROWS**2 == pytest.approx(tables[0].variance * sizes[2])
    assert pairs.variances[0, 3] * ROWS**2 == pytest.approx(tables[1].variance)
    one = marginalize(tables[0].counts, (0, 1, 2), sizes, (0, 1)) / ROWS
    assert pairs.noisy[0, 1].reshape(-1) == pytest.approx(one, abs=0.01)
