"""Agreement against a generic least-squares solver over the joint table, and what it does to simulated noise."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synod.common.runtime.errors import SynodError
from synod.curator.network.consistency import NoisyTable, agree, reconcile, shared_sets
from synod.curator.network.tables import Floats, count_cells, marginalize, project_tables

Families = list[tuple[int, ...]]

SIZES = [2, 3, 2, 2, 3]
DESIGNS: list[Families] = [
    [(0, 1), (1, 2), (2, 0)],
    [(3, 1, 0), (1, 3), (4, 3, 2), (0, 2, 3), (1, 4)],
    [(0,), (1,)],
    [(0, 1, 2), (2, 1, 0), (1, 0, 2)],
    [(4, 0, 1, 2), (3, 2, 1, 0), (3, 4), (2,)],
]


def random_tables(families: Families, seed: int) -> list[NoisyTable]:
    rng = np.random.default_rng(seed)
    cells = [count_cells(family, SIZES) for family in families]
    return [
        NoisyTable(family, rng.normal(50, 20, size=count), float(rng.uniform(0.5, 40)))
        for family, count in zip(families, cells, strict=True)
    ]


def largest_disagreement(families: Families, tables: list[Floats], sizes: list[int]) -> float:
    gaps = [0.0]
    for (f, a), (g, b) in combinations(zip(families, tables, strict=True), 2):
        shared = sorted(set(f) & set(g))
        gaps.append(float(np.abs(marginalize(a, f, sizes, shared) - marginalize(b, g, sizes, shared)).max()))
    return max(gaps)


def slow_fit(tables: list[NoisyTable], total: float) -> list[Floats]:
    """Weighted least squares over all signed joint tables; the total is an observation of almost no variance."""
    everything = tuple(range(len(SIZES)))
    basis = np.eye(count_cells(everything, SIZES))
    maps = [np.stack([marginalize(e, everything, SIZES, table.features) for e in basis], axis=1) for table in tables]
    deviations = [np.broadcast_to(np.sqrt(table.variance), table.counts.shape) for table in tables]
    blocks = [matrix / deviation[:, None] for matrix, deviation in zip(maps, deviations, strict=True)]
    values = [table.counts / deviation for table, deviation in zip(tables, deviations, strict=True)]
    rows, right = np.vstack([*blocks, 1e5 * np.ones((1, len(basis)))]), np.concatenate([*values, [1e5 * total]])
    joint = np.linalg.lstsq(rows, right, rcond=1e-13)[0]
    return [matrix @ joint for matrix in maps]


@pytest.mark.parametrize("families", DESIGNS)
@pytest.mark.parametrize("seed", range(3))
def test_agreement_is_the_least_squares_fit(families: Families, seed: int) -> None:
    tables = random_tables(families, seed)
    fitted = agree(tables, SIZES, total=900.0)
    for table, expected in zip(fitted, slow_fit(tables, 900.0), strict=True):
        assert table == pytest.approx(expected, abs=1e-4)


def unequal_tables(families: Families, seed: int) -> list[NoisyTable]:
    """Each cell with a variance of its own, in every second table."""
    rng = np.random.default_rng(seed)
    return [
        table if place % 2 else replace(table, variance=rng.uniform(0.5, 40, len(table.counts)))
        for place, table in enumerate(random_tables(families, seed))
    ]


@pytest.mark.parametrize("families", DESIGNS)
@pytest.mark.parametrize("seed", range(3))
def test_with_unequal_variances_repeated_agreement_comes_to_the_least_squares_fit(
    families: Families, seed: int
) -> None:
    """To spread a difference evenly would end elsewhere."""
    tables = unequal_tables(families, seed)
    expected = slow_fit(tables, 900.0)
    repeated = tables
    for _ in range(300):
        fitted = agree(repeated, SIZES, total=900.0)
        repeated = [replace(table, counts=counts) for table, counts in zip(repeated, fitted, strict=True)]
    for table, counts in zip(repeated, expected, strict=True):
        assert table.counts == pytest.approx(counts, abs=1e-3)


def test_two_tables_of_unequal_variances_agree_at_once() -> None:
    tables = [
        NoisyTable((0, 1), np.array([30.0, 10, 20, 5, 15, 20]), np.array([1.0, 2, 3, 4, 5, 6])),
        NoisyTable((1,), np.array([40.0, 30, 30]), 3.0),
    ]
    first, second = agree(tables, SIZES, total=100.0)
    # Sums over the first feature are 35, 25 and 40, of variances 5, 7 and 9.
    assert second == pytest.approx([(35 / 5 + 40 / 3) / (1 / 5 + 1 / 3), (25 / 7 + 30 / 3) / (1 / 7 + 1 / 3), 32.5])
    assert first[0] - 30 == pytest.approx((second[0] - 35) / 5)
    assert first[5] - 20 == pytest.approx((second[2] - 40) * 6 / 9)


def test_equal_variances_of_all_cells_are_one_variance() -> None:
    tables = random_tables(DESIGNS[1], 5)
    apart = [replace(table, variance=np.full(len(table.counts), table.variance)) for table in tables]
    for one, other in zip(reconcile(tables, SIZES, total=700.0), reconcile(apart, SIZES, total=700.0), strict=True):
        assert one == pytest.approx(other)


def test_norm_sub_goes_by_the_variance_of_each_cell() -> None:
    (fitted,) = reconcile([NoisyTable((1,), np.array([10.0, 10, 10]), np.array([1.0, 2, 7]))], SIZES, total=20.0)
    assert fitted == pytest.approx([9, 8, 3])


@pytest.mark.parametrize("families", DESIGNS)
def test_margins_agree_and_totals_are_kept(families: Families) -> None:
    tables = random_tables(families, 9)
    fitted = agree(tables, SIZES, total=1234.0)
    assert largest_disagreement(families, [table.counts for table in tables], SIZES) > 1 or len(families) == 2
    assert largest_disagreement(families, fitted, SIZES) < 1e-9
    assert [table.sum() for table in fitted] == pytest.approx([1234.0] * len(families))


@pytest.mark.parametrize("families", DESIGNS)
def test_reconciled_tables_are_non_negative_of_the_total_and_agree(families: Families) -> None:
    tables = [NoisyTable(table.features, table.counts - 45, table.variance) for table in random_tables(families, 4)]
    fitted = reconcile(tables, SIZES, total=10.0, passes=60)
    assert min(table.min() for table in fitted) >= 0
    assert any((table == 0).any() for table in fitted)
    assert [table.sum() for table in fitted] == pytest.approx([10.0] * len(families))
    assert largest_disagreement(families, fitted, SIZES) < 0.01


def test_tables_that_agree_are_left_as_they_are() -> None:
    joint = np.random.default_rng(0).integers(0, 50, size=count_cells(range(5), SIZES)).astype(float)
    tables = [NoisyTable(f, marginalize(joint, range(5), SIZES, f), 3.0) for f in DESIGNS[1]]
    for table, fitted in zip(tables, reconcile(tables, SIZES, total=joint.sum()), strict=True):
        assert fitted == pytest.approx(table.counts)


def test_inputs_are_not_changed() -> None:
    tables = random_tables(DESIGNS[1], 2)
    before = [table.counts.copy() for table in tables]
    reconcile(tables, SIZES, total=700.0)
    assert all(np.array_equal(table.counts, old) for table, old in zip(tables, before, strict=True))


@given(st.lists(st.sets(st.integers(0, 6), min_size=1, max_size=5), max_size=6))
def test_shared_sets_are_all_intersections(sets: list[set[int]]) -> None:
    expected = {
        frozenset(set.intersection(*some)) for count in range(2, len(sets) + 1) for some in combinations(sets, count)
    }
    found = shared_sets([tuple(family) for family in sets])
    assert len(found) == len(set(found))
    assert set(found) == expected - {frozenset()}
    assert [len(shared) for shared in found] == sorted(len(shared) for shared in found)


@pytest.mark.parametrize("scale", [8.0, 60.0])
def test_the_error_of_noisy_tables_goes_down(scale: float) -> None:
    """Mean L1 error over 30 trials of eight 4-way tables: at least 15 % below norm-sub alone."""
    rng, sizes, rows = np.random.default_rng(3), [2] * 8, 5000
    errors = np.zeros(2)
    for _ in range(30):
        joint = rng.multinomial(rows, rng.dirichlet(np.full(256, 0.15))).astype(float)
        others = [[j for j in range(8) if j != i] for i in range(8)]
        families = [(i, *rng.choice(rest, 3, replace=False).tolist()) for i, rest in enumerate(others)]
        exact = [marginalize(joint, range(8), sizes, family) for family in families]
        noisy = [table + rng.laplace(scale=scale, size=table.shape) for table in exact]
        tables = [NoisyTable(f, counts, 2 * scale**2) for f, counts in zip(families, noisy, strict=True)]
        alone = [project_tables(counts, rows) for counts in noisy]
        together = reconcile(tables, sizes, total=rows)
        errors += [sum(np.abs(a - b).sum() for a, b in zip(ours, exact, strict=True)) for ours in (alone, together)]
    assert errors[1] < 0.85 * errors[0]


def test_a_table_without_variance_is_refused() -> None:
    with pytest.raises(SynodError, match="positive variance"):
        agree([NoisyTable((0,), np.ones(2), 0.0)], SIZES, total=2.0)
    with pytest.raises(SynodError, match="positive variance"):
        agree([NoisyTable((0,), np.ones(2), np.array([1.0, 0.0]))], SIZES, total=2.0)
