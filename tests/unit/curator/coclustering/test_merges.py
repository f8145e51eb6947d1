"""The path of merges against a twin that prices every grid anew, the best of all grids, and planted blocks."""

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synod.common.study.levels import number_groups
from synod.curator.coclustering.criterion import Axis, grid_cost
from synod.curator.coclustering.merges import LEAST_DIFFERENCE, Merge, find_path, replay
from synod.curator.coclustering.moves import move_values

Groups = tuple[int, ...]


def allowed_merges(axes: Sequence[Axis], groups: Sequence[Groups]) -> list[Merge]:
    """Every merge that a grid allows, in the order in which ties are broken. Ordered parts are numbered in order."""
    found = []
    for place, (axis, own) in enumerate(zip(axes, groups, strict=True)):
        parts = max(own) + 1
        for kept, joined in combinations(range(parts), 2):
            is_missing = axis.has_missing and joined == parts - 1 and parts > 2
            if not axis.is_ordered or (joined == kept + 1 and not is_missing):
                found.append(Merge(place, kept, joined))
    return found


def slow_path(counts: np.ndarray, axes: Sequence[Axis]) -> tuple[list[Merge], list[float]]:
    """Each time the cost of every merged grid, from the definition."""
    merges: list[Merge] = []
    costs = [grid_cost(counts, axes, replay(axes, []))]
    while options := allowed_merges(axes, replay_in_place(axes, merges)):
        priced = [(grid_cost(counts, axes, replay(axes, [*merges, one])), one) for one in options]
        least = min(cost for cost, _ in priced)
        cost, best = next(one for one in priced if one[0] <= least + LEAST_DIFFERENCE)
        merges.append(best)
        costs.append(cost)
    return merges, costs


def replay_in_place(axes: Sequence[Axis], merges: Sequence[Merge]) -> list[Groups]:
    """Parts under the numbers that the path gives them, which a canonical numbering agrees with."""
    groups = replay(axes, merges)
    assert all(number_groups(own) == own for own in groups)
    return groups


SHAPES = [
    [Axis(4), Axis(3)],
    [Axis(3), Axis(2), Axis(4)],
    [Axis(5, is_ordered=True), Axis(3)],
    [Axis(5, is_ordered=True, has_missing=True), Axis(4, is_ordered=True), Axis(2)],
    [Axis(2, is_ordered=True, has_missing=True), Axis(3)],
    [Axis(6)],
    [Axis(1), Axis(3)],
]


@pytest.mark.parametrize("axes", SHAPES, ids=str)
@pytest.mark.parametrize("density", [0.3, 3.0, 40.0])
def test_the_path_is_the_slow_twins(axes: list[Axis], density: float) -> None:
    for seed in range(6):
        counts = np.random.default_rng(seed).poisson(density, [axis.size for axis in axes])
        path = find_path(counts, axes)
        merges, costs = slow_path(counts, axes)
        assert list(path.merges) == merges
        assert path.costs == pytest.approx(costs, abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(0, 10**6), st.floats(0.1, 20))
def test_every_change_is_the_difference_of_costs(sizes: list[int], seed: int, density: float) -> None:
    rng = np.random.default_rng(seed)
    axes = [Axis(size, is_ordered=bool(rng.integers(2))) for size in sizes]
    counts = rng.poisson(density, sizes)
    path = find_path(counts, axes)
    assert len(path.merges) == sum(sizes) - len(sizes)
    for level, cost in enumerate(path.costs):
        assert cost == pytest.approx(grid_cost(counts, axes, replay(axes, path.merges[:level])), abs=1e-6)


def test_large_tables_keep_their_gains_up_to_date() -> None:
    rng = np.random.default_rng(3)
    axes = [Axis(9), Axis(8, is_ordered=True), Axis(7), Axis(4)]
    counts = rng.poisson(0.4, [axis.size for axis in axes])
    path = find_path(counts, axes)
    for level in range(0, len(path.costs), 3):
        assert path.costs[level] == pytest.approx(grid_cost(counts, axes, replay(axes, path.merges[:level])), abs=1e-6)


def every_grid(axes: Sequence[Axis]) -> list[tuple[Groups, ...]]:
    def splits(axis: Axis) -> list[Groups]:
        every = [own for own in product(range(axis.size), repeat=axis.size) if number_groups(own) == own]
        return [own for own in every if not axis.is_ordered or list(own) == sorted(own)]

    return list(product(*(splits(axis) for axis in axes)))


@pytest.mark.parametrize("ordered", list(product([False, True], repeat=3)))
def test_no_level_is_below_the_best_of_all_grids(ordered: tuple[bool, ...]) -> None:
    axes = [Axis(size, is_ordered) for size, is_ordered in zip((2, 3, 2), ordered, strict=True)]
    for seed in range(4):
        counts = np.random.default_rng(seed).poisson(5, (2, 3, 2))
        best = min(grid_cost(counts, axes, groups) for groups in every_grid(axes))
        assert min(find_path(counts, axes).costs) >= best - 1e-6


def planted(rows: int = 4000) -> tuple[np.ndarray, Groups, Groups]:
    """Three by three blocks, of which the diagonal has nearly all rows."""
    first, second = (0, 1, 2, 0, 1, 2, 0), (0, 0, 1, 1, 2, 2)
    blocks = np.array([[8.0, 0.2, 0.2], [0.2, 8.0, 0.2], [0.2, 0.2, 8.0]])
    law = blocks[np.ix_(first, second)]
    return np.random.default_rng(5).multinomial(rows, (law / law.sum()).ravel()).reshape(law.shape), first, second


@pytest.mark.parametrize("is_ordered", [False, True])
def test_planted_blocks_are_the_best_level(is_ordered: bool) -> None:
    counts, first, second = planted()
    axes = [Axis(7), Axis(6, is_ordered)]
    path = find_path(counts, axes)
    assert replay(axes, path.merges[: int(np.argmin(path.costs))]) == [first, second]


def test_planted_blocks_are_the_best_of_all_grids() -> None:
    counts = np.array([[30, 30, 0, 0], [0, 0, 30, 30], [31, 29, 0, 1]])
    axes = [Axis(3), Axis(4)]
    path = find_path(counts, axes)
    costs = {groups: grid_cost(counts, axes, groups) for groups in every_grid(axes)}
    best = min(costs, key=costs.__getitem__)
    assert best == ((0, 1, 0), (0, 0, 1, 1))
    assert min(path.costs) == pytest.approx(costs[best])


def test_intervals_stay_intervals_and_a_missing_value_stays_alone() -> None:
    axes = [Axis(8, is_ordered=True, has_missing=True), Axis(5)]
    for seed in range(20):
        rng = np.random.default_rng(seed)
        counts = rng.poisson(rng.gamma(0.5, 4, (8, 5)))
        path = find_path(counts, axes)
        for level in range(len(path.costs)):
            for groups in (
                replay(axes, path.merges[:level]),
                move_values(counts, axes, replay(axes, path.merges[:level])),
            ):
                numbers, parts = groups[0][:-1], max(groups[0]) + 1
                assert list(numbers) == sorted(numbers)
                assert parts == 1 or groups[0][-1] not in numbers
                assert all(number_groups(own) == own for own in groups)


def test_ties_go_to_the_first_attribute_and_the_first_parts() -> None:
    counts = np.ones((3, 3), dtype=np.int64)
    path = find_path(counts, [Axis(3), Axis(3)])
    assert path.merges[0] == Merge(0, 0, 1)


# Moves


def test_moves_never_cost_and_keep_the_number_of_parts() -> None:
    for seed in range(30):
        rng = np.random.default_rng(seed)
        axes = [Axis(6), Axis(7, is_ordered=True), Axis(3)]
        counts = rng.poisson(rng.gamma(0.6, 3, (6, 7, 3)))
        path = find_path(counts, axes)
        groups = replay(axes, path.merges[: int(rng.integers(len(path.merges)))])
        moved = move_values(counts, axes, groups)
        assert grid_cost(counts, axes, moved) <= grid_cost(counts, axes, groups) + 1e-6
        assert [max(own) for own in moved] == [max(own) for own in groups]


def test_a_value_in_the_wrong_part_moves_to_the_right_one() -> None:
    counts, first, second = planted()
    wrong = [number_groups((1, *first[1:])), number_groups((*second[:3], 0, *second[4:]))]
    assert wrong != [first, second]
    assert move_values(counts, [Axis(7), Axis(6)], wrong) == [first, second]


def test_a_bin_moves_across_its_boundary() -> None:
    counts = np.array([[40, 0], [38, 1], [41, 0], [0, 39], [1, 40]])
    axes = [Axis(5, is_ordered=True), Axis(2)]
    assert move_values(counts, axes, [(0, 0, 1, 1, 1), (0, 1)]) == [(0, 0, 0, 1, 1), (0, 1)]


def test_every_single_move_is_priced_as_the_difference_of_costs() -> None:
    """A sweep that finds nothing to move: no single move of a value would cost less."""
    axes = [Axis(5), Axis(4, is_ordered=True)]
    for seed in range(10):
        counts = np.random.default_rng(seed).poisson(4, (5, 4))
        path = find_path(counts, axes)
        groups = move_values(counts, axes, replay(axes, path.merges[:3]))
        cost = grid_cost(counts, axes, groups)
        for place, own in enumerate(groups):
            for value, target in product(range(len(own)), range(max(own) + 1)):
                other = tuple(target if at == value else part for at, part in enumerate(own))
                is_sound = not axes[place].is_ordered or list(other) == sorted(other)
                if is_sound and len(set(other)) == len(set(own)):
                    trial = [other if at == place else one for at, one in enumerate(groups)]
                    assert grid_cost(counts, axes, trial) >= cost - 2e-6
