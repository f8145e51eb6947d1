"""PriView's covers hold what they promise, its steps are those of slow twins, and its answers those of the views."""

from itertools import combinations, product

import numpy as np
import pytest

from bench.rivals.answers import Attributes, Floats, mean_distance
from bench.rivals.covers import (
    TRIPLE_WIDTH,
    WIDTH,
    circle_through,
    cover_features,
    inversive_plane,
    keep_maximal,
    quadruples,
)
from bench.rivals.entropy import fit_margins
from bench.rivals.priview import Views, answer_priview, publish_views, release_views, ripple, ripple_and_agree
from synod.common.runtime.errors import SynodError
from synod.curator.covers.views import overlapping_views
from synod.deploy.evaluate.tables import Table


def make_table(count: int, rows: int = 2_000) -> Table:
    rng = np.random.default_rng(4)
    hidden = rng.random(rows)
    columns = tuple((hidden + rng.normal(0, 0.4, rows) > 0.6).astype(np.uint8) for _ in range(count))
    return Table(tuple(f"a{place}" for place in range(count)), (2,) * count, (2,) * count, columns)


# Covers


@pytest.mark.parametrize("strength", [2, 3])
@pytest.mark.parametrize("count", [3, 8, 9, 12, 16, 20, 23, 26, 33, 52])
def test_every_pair_or_triple_lies_in_a_view(count: int, strength: int) -> None:
    views = cover_features(count, strength)
    covered = {part for view in views for part in combinations(view, strength)}
    assert covered == set(combinations(range(count), strength))
    assert max(map(len, views)) <= (WIDTH if strength == 2 else TRIPLE_WIDTH)


@pytest.mark.parametrize(
    ("count", "strength", "views"),
    [(16, 2, 6), (26, 2, 13), (32, 2, 20), (52, 2, 57), (16, 3, 14), (20, 3, 30), (32, 3, 140), (52, 3, 520)],
)
def test_covers_are_as_small_as_the_designs_behind_them(count: int, strength: int, views: int) -> None:
    """Groups of two on the planes of order 3 and 4, the plane of order 7, quadruples, and inversive planes."""
    assert len(cover_features(count, strength)) == views


def test_no_cover_of_pairs_has_more_views_than_the_greedy_one() -> None:
    counts = range(9, 60, 3)
    assert all(len(cover_features(count, 2)) <= len(overlapping_views((2,) * count, WIDTH)) for count in counts)
    assert len(cover_features(52, 2)) < len(overlapping_views((2,) * 52, WIDTH)) == 66


@pytest.mark.parametrize("order", [2, 3, 4, 5, 7, 8])
def test_three_points_of_an_inversive_plane_lie_on_one_circle(order: int) -> None:
    circles = inversive_plane(order, order**2 + 1)
    assert {len(circle) for circle in circles} == {order + 1}
    covered = [part for circle in circles for part in combinations(circle, 3)]
    assert len(covered) == len(set(covered)) == (order**2 + 1) * order**2 * (order**2 - 1) // 6


def test_a_circle_is_the_same_from_any_of_its_points() -> None:
    circle = circle_through(3, 0, 4, 7)
    assert all(circle_through(3, *part) == circle for part in combinations(circle, 3))


def test_three_vectors_of_bits_lie_in_one_quadruple() -> None:
    covered = [part for block in quadruples(16) for part in combinations(block, 3)]
    assert len(quadruples(16)) == 140
    assert len(covered) == len(set(covered)) == 560


def test_views_inside_others_are_left_out() -> None:
    assert keep_maximal([(0, 1), (1, 0, 2), (3,), (2, 3)], 2) == ((0, 1, 2), (2, 3))


# Ripple


def ripple_slowly(table: Floats) -> Floats:
    """All negative cells at once, by the definition."""
    cells = list(product(*map(range, table.shape)))
    counts = {cell: float(table[cell]) for cell in cells}
    while any(count < -1 for count in counts.values()):
        debts = {cell: -count for cell, count in counts.items() if count < -1}
        for cell, debt in debts.items():
            near = [other for other in cells if sum(a != b for a, b in zip(cell, other, strict=True)) == 1]
            counts[cell] += debt
            for other in near:
                counts[other] -= debt / len(near)
    return np.array([counts[cell] for cell in cells]).reshape(table.shape)


@pytest.mark.parametrize("shape", [(2, 2), (2, 2, 2, 2), (3, 2, 4)])
def test_ripple_moves_debts_to_cells_that_differ_in_one_feature(shape: tuple[int, ...]) -> None:
    table = np.random.default_rng(3).normal(15, 25, shape)
    assert table.min() < -1 < 0 < table.sum()
    found = ripple(table)
    assert found == pytest.approx(ripple_slowly(table))
    assert found.min() >= -1
    assert found.sum() == pytest.approx(table.sum())


def test_a_table_without_rows_keeps_its_debt() -> None:
    table = np.array([[-5.0, 2.0], [1.0, 1.0]])
    assert (ripple(table) == table).all()


def test_a_table_that_owes_nothing_stays() -> None:
    table = np.array([[5.0, -0.5], [1.0, 1.0]])
    assert (ripple(table) == table).all()


# Maximum entropy


def entropy(table: Floats) -> float:
    kept = table[table > 0] / table.sum()
    return float(-(kept * np.log(kept)).sum())


def test_of_all_tables_with_these_margins_the_one_of_most_entropy_is_found() -> None:
    """Tables of three bits with the same three pairs differ by one number: a twin tries all of them."""
    truth = np.random.default_rng(5).random((2, 2, 2))
    margins: dict[Attributes, Floats] = {
        axes: truth.sum(axis=3 - sum(axes))[None] for axes in combinations(range(3), 2)
    }
    (found,) = fit_margins((2, 2, 2), margins, sweeps=200)
    parity = 1.0 - 2.0 * (np.indices((2, 2, 2)).sum(axis=0) % 2)
    tried = [truth + shift * parity for shift in np.linspace(-0.5, 0.5, 4_001)]
    best = max((table for table in tried if table.min() >= 0), key=entropy)
    assert found == pytest.approx(best, abs=1e-3)
    assert entropy(found) >= entropy(best) - 1e-9


def test_many_tables_are_fitted_as_one_by_one() -> None:
    rng = np.random.default_rng(6)
    margins: dict[Attributes, Floats] = {(0, 1): rng.random((5, 2, 3)), (1, 2): rng.random((5, 3, 2))}
    margins = {axes: stack / stack.sum(axis=(1, 2), keepdims=True) for axes, stack in margins.items()}
    together = fit_margins((2, 3, 2), margins)
    for place in range(5):
        alone = fit_margins((2, 3, 2), {axes: stack[place : place + 1] for axes, stack in margins.items()})
        assert together[place] == pytest.approx(alone[0])


def test_a_cell_whose_margin_is_empty_is_empty() -> None:
    (found,) = fit_margins((2, 2), {(0,): np.array([[4.0, 0.0]]), (1,): np.array([[1.0, 3.0]])})
    assert found.tolist() == [[1, 3], [0, 0]]


# Answers


def test_parts_of_a_set_that_lie_in_views() -> None:
    views = Views([(0, 1, 2), (2, 3), (0, 3)], [], (2,) * 4, 10)
    assert views.largest_parts((0, 1)) == [(0, 1)]
    assert views.largest_parts((0, 1, 3)) == [(0, 1), (0, 3)]
    assert views.largest_parts((0, 1, 2, 3)) == [(0, 1, 2), (0, 3), (2, 3)]


@pytest.mark.parametrize("is_rippled", [False, True])
@pytest.mark.parametrize("strength", [2, 3])
def test_without_noise_marginals_inside_views_are_exact(strength: int, is_rippled: bool) -> None:
    table = make_table(12)
    for order in range(1, strength + 1):
        answers = answer_priview(
            table, order, 1e7, strength=strength, is_rippled=is_rippled, rng=np.random.default_rng(1)
        )
        assert mean_distance(table, order, answers) < 1e-3
    beyond = answer_priview(table, 4, 1e7, strength=strength, is_rippled=is_rippled, rng=np.random.default_rng(1))
    assert 1e-3 < mean_distance(table, 4, beyond) < 0.05


def test_the_noise_of_a_view_is_that_of_all_views() -> None:
    table = make_table(12)
    views = cover_features(12, 2)
    drawn = [release_views(table, views, 0.5, rng=np.random.default_rng(seed))[0].counts for seed in range(40)]
    assert np.std(drawn, axis=0).mean() == pytest.approx(2**0.5 * 2 * 3 / 0.5, rel=0.1)
    assert release_views(table, views, 0.5, rng=np.random.default_rng(1))[0].variance == 2 * (2 * 3 / 0.5) ** 2


def test_views_agree_after_the_ripple() -> None:
    table = make_table(12)
    noisy = release_views(table, cover_features(12, 2), 0.2, rng=np.random.default_rng(1))
    agreed = ripple_and_agree(noisy, table.sizes, float(table.rows))
    margins = [counts.reshape((2,) * 8).sum(axis=(4, 5, 6, 7)) for counts in agreed[:2]]
    assert noisy[0].features[:4] == noisy[1].features[:4]
    assert margins[0] == pytest.approx(margins[1])


def test_consistency_helps() -> None:
    """Views that share features are nearer together than each by itself."""
    table = make_table(16)
    views = cover_features(16, 2)
    together = publish_views(table, views, 0.2, is_rippled=False, rng=np.random.default_rng(1)).answer(2)
    noisy = release_views(table, views, 0.2, rng=np.random.default_rng(1))
    alone = Views(views, [view.counts for view in noisy], table.sizes, table.rows)
    apart = mean_distance(table, 2, alone.answer(2))
    assert mean_distance(table, 2, together) < apart


def test_tables_that_are_not_binary_are_refused() -> None:
    table = Table(("a", "b"), (2, 3), (2, 3), (np.zeros(4, dtype=np.uint8),) * 2)
    with pytest.raises(SynodError, match="binary"):
        answer_priview(table, 2, 1.0, strength=2, rng=np.random.default_rng(1))
