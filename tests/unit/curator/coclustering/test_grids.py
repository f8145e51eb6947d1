"""E, the expected error of a grid: unbiased for a fixed one, the same along a path, and the level that it picks."""

from itertools import product

import numpy as np
import pytest

from synod.curator.coclustering.criterion import Axis, gather, part_cells
from synod.curator.coclustering.grids import NoisyCounts, choose_parts
from synod.curator.coclustering.merges import find_path, replay
from synod.curator.coclustering.rounding import round_counts
from synod.curator.network.tables import project_tables

AXES = [Axis(4), Axis(3, is_ordered=True), Axis(3)]
SHAPE = (4, 3, 3)


def test_a_path_has_the_errors_of_its_grids() -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        counts = rng.integers(-20, 60, SHAPE)
        noisy = NoisyCounts(counts, 7.0, 11.0)
        path = find_path(np.maximum(counts, 0), AXES)
        grids = [replay(AXES, path.merges[:level]) for level in range(len(path.costs))]
        assert list(noisy.path_errors(path.merges)) == pytest.approx([noisy.expected_error(own) for own in grids])


def test_the_error_is_the_literal_one() -> None:
    counts, groups = np.random.default_rng(2).integers(-9, 30, SHAPE), [(0, 0, 1, 0), (0, 1, 1), (0, 1, 0)]
    literal, cells = 0.0, dict[tuple[int, ...], list[int]]()
    for place in product(*map(range, SHAPE)):
        cells.setdefault(tuple(own[v] for own, v in zip(groups, place, strict=True)), []).append(counts[place])
    for own in cells.values():
        literal += float(np.square(np.array(own) - np.mean(own)).sum()) + 5.0 / len(own)
    literal -= (counts.size - len(cells)) * 3.0
    assert NoisyCounts(counts, 3.0, 5.0).expected_error(groups) == pytest.approx(literal)


def test_the_error_of_a_fixed_grid_is_unbiased() -> None:
    """Over noisy copies of a toy, E is on average the squared error of the parts' own noisy counts, spread evenly."""
    rng = np.random.default_rng(7)
    true, groups = rng.poisson(12, SHAPE), [(0, 0, 1, 1), (0, 1, 1), (0, 0, 1)]
    first, later, copies = 4.0, 9.0, 4000  # of -3 .. 3, uniform, the variance is 4
    cells = part_cells(groups)
    stated, real = [], []
    for _ in range(copies):
        noisy = NoisyCounts(true + rng.integers(-3, 4, SHAPE), first, later)
        stated.append(noisy.expected_error(groups))
        published = (gather(true, groups) + rng.normal(0, later**0.5, cells.shape)) / cells
        real.append(((published[np.ix_(*groups)] - true) ** 2).sum())
    spread = (np.var(stated) / copies + np.var(real) / copies) ** 0.5
    assert abs(np.mean(stated) - np.mean(real)) < 4 * spread
    assert spread < 0.02 * np.mean(real), "so that a missing term is seen"


ROWS, COLUMNS = (0, 0, 1, 1, 0, 1), (0, 1, 0, 1, 1, 0)


def blocks(rows: int) -> np.ndarray:
    """Two by two blocks, of which the diagonal has nearly all rows."""
    law = np.array([[8.0, 0.2], [0.2, 8.0]])[np.ix_(ROWS, COLUMNS)]
    counts: np.ndarray = np.rint(rows * law / law.sum()).astype(np.int64)
    return counts


def choose(true: np.ndarray, variance: float, parts: str | int, seed: int = 1) -> list[tuple[int, ...]]:
    noise = np.rint(np.random.default_rng(seed).laplace(0, (variance / 2) ** 0.5, true.shape)).astype(np.int64)
    rows = int(true.sum())
    whole = round_counts(project_tables((true + noise).reshape(-1), rows), rows).reshape(true.shape)
    noisy = NoisyCounts(true + noise, variance, variance)
    return choose_parts(noisy, whole, [Axis(size) for size in true.shape], parts)


def cells_of(groups: list[tuple[int, ...]]) -> int:
    return int(np.prod([max(own) + 1 for own in groups]))


def test_planted_blocks_are_found_through_noise() -> None:
    """No part has values of two blocks, and on average there are fewer than half as many cells as without parts."""
    found = [choose(blocks(4000), 400.0, "error", seed) for seed in range(10)]
    for groups in found:
        for own, block in zip(groups, (ROWS, COLUMNS), strict=True):
            assert len(set(zip(own, block, strict=True))) == max(own) + 1
    assert np.mean([cells_of(groups) for groups in found]) < 16


def test_without_noise_parts_that_differ_stay_apart() -> None:
    true = np.arange(36).reshape(6, 6) ** 2
    assert choose(true, 1e-6, "error") == [tuple(range(6))] * 2


def test_noise_alone_is_few_cells() -> None:
    assert np.mean([cells_of(choose(np.full((6, 6), 3), 1e4, "error", seed)) for seed in range(8)]) < 8


@pytest.mark.parametrize("most", [1, 2, 3, 5, 9, 20, 36, 100])
def test_a_number_is_the_most_cells_of_parts(most: int) -> None:
    found = choose(blocks(4000), 100.0, most)
    assert cells_of(found) <= most
    assert most < 36 or cells_of(found) == 36


def test_modl_takes_its_own_best_level() -> None:
    assert choose(blocks(4000), 1e-6, "modl") == [ROWS, COLUMNS]


def test_whole_counts_are_the_nearest_with_the_total() -> None:
    shares = np.array([0.5, 1.5, 0.9, 2.1, 0.0])
    assert round_counts(shares, 5).tolist() == [1, 1, 1, 2, 0]
    assert round_counts(np.array([0.4, 0.4, 0.2]), 1).tolist() == [1, 0, 0], "ties by place"
    assert round_counts(np.array([3.0, 0.0]), 3).tolist() == [3, 0]
