"""Information of pairs from released tables, and what noise makes up of it."""

import numpy as np
import pytest

from synod.curator.network.information import estimate_information, measure_information, most_correlated, simulate_noise
from synod.curator.network.tables import marginalize, mutual_information

SIZES = (2, 3, 16, 16)
VIEWS = ((0, 1), (0, 2, 3), (1, 2), (1, 3))


def tables_of(rng: np.random.Generator, deviation: float) -> list[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """40,000 rows in which 0 decides much of 1, and 2 and 3 are independent of all; with noise."""
    rows = 40_000
    zero = rng.integers(0, 2, rows)
    columns = [zero, np.where(rng.random(rows) < 0.7, zero, 2), rng.integers(0, 16, rows), rng.integers(0, 16, rows)]
    found = []
    for view in VIEWS:
        sizes = [SIZES[i] for i in view]
        exact = np.bincount(np.ravel_multi_index([columns[i] for i in view], sizes), minlength=int(np.prod(sizes)))
        found.append((exact + np.rint(rng.normal(0, deviation, len(exact)))).astype(np.int64))
    return found


def test_without_noise_it_is_that_of_the_counts() -> None:
    tables = tables_of(np.random.default_rng(1), 0.0)
    found = measure_information(VIEWS, tables, SIZES, 40_000)
    assert np.array_equal(found, found.T)
    pair = marginalize(tables[1], VIEWS[1], SIZES, (2, 3)).astype(float)
    assert found[2, 3] == pytest.approx(float(mutual_information(pair, 16)))
    assert np.allclose(estimate_information(VIEWS, tables, SIZES, 40_000, [1e-9] * 4), found, atol=1e-6)


def test_what_noise_makes_up_is_taken_off() -> None:
    """Without that, two independent columns of 16 values seem to tell more than a column that decides another."""
    tables = tables_of(np.random.default_rng(2), 300.0)
    raw = measure_information(VIEWS, tables, SIZES, 40_000)
    assert raw[2, 3] > raw[0, 1] > 0.5
    found = estimate_information(VIEWS, tables, SIZES, 40_000, [300.0**2] * 4)
    assert found[0, 1] == pytest.approx(raw[0, 1], abs=0.05)
    assert max(found[2, 3], found[1, 2], found[1, 3]) < 0.3 * found[0, 1]
    assert found.min() >= 0


def test_simulated_noise_grows_with_the_cells() -> None:
    rng = np.random.default_rng(1)
    few, many = (
        simulate_noise(np.full(size, 1 / size), np.full(size, 1 / size), 10_000, 100.0**2, 6, rng=rng).mean()
        for size in (2, 16)
    )
    assert 0 <= few < 0.01
    assert many > 0.5


def test_the_most_correlated_of_some() -> None:
    information = np.array([[0, 0.3, 0.1, 0.3], [0.3, 0, 0, 0], [0.1, 0, 0, 0], [0.3, 0, 0, 0]])
    assert most_correlated(information, 0, range(4), 2) == (1, 3)
    assert most_correlated(information, 0, (3, 2), 1) == (3,)
    assert most_correlated(information, 1, (3, 2), 1) == (2,)
