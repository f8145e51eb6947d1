"""CSFC against a slow twin that reads sparsity and impact off their definitions, and against the paper's example."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from synod.common.runtime.errors import SynodError
from synod.curator.network.frontier import INFORMATION_UNIT, Edge, build_frontier, direct_edge, start_draft
from synod.curator.network.graph import Bound, Network, Pair
from synod.curator.network.levels import Levels

Information = NDArray[np.float64]


def symmetric(count: int, entries: dict[Edge, float]) -> Information:
    matrix = np.zeros((count, count))
    for (x, y), value in entries.items():
        matrix[x, y] = matrix[y, x] = value
    return matrix


def reached(edges: set[Edge], start: int, *, forward: bool) -> set[int]:
    """The features on paths from (or to) `start`, itself included, by graph search."""
    seen, todo = {start}, [start]
    while todo:
        here = todo.pop()
        steps = {b if forward else a for a, b in edges if here == (a if forward else b)}
        todo.extend(steps - seen)
        seen |= steps
    return seen


class SlowTwin:
    """Algorithm 1 line by line; no order is kept, every question is a search of the graph."""

    def __init__(self, network: Network, information: Information, degree: int) -> None:
        self.information = [[Fraction(round(v / INFORMATION_UNIT)) for v in row] for row in information.tolist()]
        self.degree = degree
        self.edges = set(network.edges)

    def parents(self, x: int) -> set[int]:
        return {a for a, b in self.edges if b == x}

    def sparsity(self, x: int) -> int:
        lower = reached(self.edges, x, forward=False)
        return self.degree * len(lower) - sum(len(self.parents(z)) for z in lower)

    def impact(self, x: int, y: int) -> Fraction:
        lower, upper = reached(self.edges, x, forward=False), reached(self.edges, y, forward=True)
        pairs = [(a, b) for a in lower for b in upper if (a, b) != (x, y)]
        return sum((self.information[a][b] for a, b in pairs), Fraction(0))

    def direct(self, x: int, y: int) -> Edge | None:
        x_has_room, y_has_room = len(self.parents(x)) < self.degree, len(self.parents(y)) < self.degree
        x_first = y in reached(self.edges, x, forward=True)
        y_first = x in reached(self.edges, y, forward=True)
        if x_has_room and y_has_room:
            if x_first:
                return (x, y)
            if y_first:
                return (y, x)
            left, right = self.sparsity(x) * self.impact(x, y), self.sparsity(y) * self.impact(y, x)
            return (y, x) if left >= right else (x, y)
        if x_has_room and y_first:
            return (y, x)
        if y_has_room and x_first:
            return (x, y)
        return None

    def run(self) -> set[Edge]:
        count = len(self.information)
        queue = [(x, y) for x in range(count) for y in range(x + 1, count)]
        for x, y in sorted(queue, key=lambda pair: (-self.information[pair[0]][pair[1]], pair)):
            if (x, y) in self.edges or (y, x) in self.edges:
                continue
            edge = self.direct(x, y)
            if edge is not None:
                self.edges.add(edge)
        return self.edges


@st.composite
def starts(draw: st.DrawFn) -> tuple[Network, Information, int]:
    """A network of degree k in a shuffled order, information with ties, and k' >= k."""
    count = draw(st.integers(1, 9))
    degree = draw(st.integers(0, 2))
    order = draw(st.permutations(range(count)))
    pairs = []
    for place, feature in enumerate(order):
        most = min(degree, place)
        parents = draw(st.lists(st.sampled_from(order[:place]), max_size=most, unique=True)) if most else []
        pairs.append(Pair(feature, tuple(parents)))
    levels = st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.7, 1.0])
    entries = {(x, y): draw(levels) for x in range(count) for y in range(x)}
    return Network(tuple(pairs)), symmetric(count, entries), draw(st.integers(degree, 4))


def free(count: int) -> Network:
    return Network(tuple(Pair(x, ()) for x in range(count)))


@given(starts())
def test_the_frontier_is_the_slow_twins(start: tuple[Network, Information, int]) -> None:
    network, information, degree = start
    frontier = build_frontier(network, information, Bound((2,) * len(information), degree))
    assert frontier.edges == SlowTwin(network, information, degree).run()


@pytest.mark.parametrize("seed", range(4))
def test_a_larger_frontier_is_the_slow_twins(seed: int) -> None:
    rng = np.random.default_rng(seed)
    half = rng.exponential(size=(16, 16))
    network = Network(tuple(Pair(x, tuple(range(max(0, x - 1), x))) for x in range(16)))
    frontier = build_frontier(network, half + half.T, Bound((2,) * 16, 4))
    assert frontier.edges == SlowTwin(network, half + half.T, 4).run()
    assert build_frontier(free(16), half + half.T, Bound((2,) * 16, 4)).edges == (
        SlowTwin(free(16), half + half.T, 4).run()
    )


@given(starts(), st.booleans())
def test_frontiers_are_acyclic_hold_their_degree_and_contain_the_network(
    start: tuple[Network, Information, int], one_sided: bool
) -> None:
    network, information, degree = start
    frontier = build_frontier(network, information, Bound((2,) * len(information), degree), one_sided=one_sided)
    edges = set(frontier.edges)
    assert all(a not in reached(edges, b, forward=True) for a, b in edges)
    assert frontier.degree <= degree
    assert network.edges <= frontier.edges
    assert sorted(frontier.features) == list(range(len(information)))


@given(starts())
def test_a_degree_is_the_cell_limit_of_binary_features(start: tuple[Network, Information, int]) -> None:
    network, information, degree = start
    sizes = (2,) * len(information)
    by_cells = build_frontier(network, information, Bound(sizes, cells=2 ** (degree + 1)))
    assert by_cells == build_frontier(network, information, Bound(sizes, degree))


@given(starts())
def test_one_sided_leaves_out_a_pair_only_for_want_of_room(start: tuple[Network, Information, int]) -> None:
    network, information, degree = start
    count = len(information)
    frontier = build_frontier(network, information, Bound((2,) * count, degree), one_sided=True)
    edges = set(frontier.edges)
    full = {pair.feature for pair in frontier.pairs if len(pair.parents) >= degree}
    for x, y in ((x, y) for x in range(count) for y in range(count) if x != y):
        if (x, y) not in edges and (y, x) not in edges and x not in reached(edges, y, forward=True):
            assert y in full


def test_one_sided_joins_what_the_printed_algorithm_passes_over() -> None:
    network = Network((Pair(0, ()), Pair(1, (0,)), Pair(2, ())))
    information = symmetric(3, {(0, 1): 0.9, (1, 2): 0.8, (0, 2): 0.1})
    assert (1, 2) not in build_frontier(network, information, Bound((2,) * 3, 1)).edges
    assert (1, 2) in build_frontier(network, information, Bound((2,) * 3, 1), one_sided=True).edges


def test_the_direction_rule_agrees_with_the_papers_example() -> None:
    """Figure 1 is not in the text; this graph, X1 to X4 as 0 to 3, has its sparsities and impacts, with k' = 2."""
    network = Network((Pair(0, ()), Pair(1, (0,)), Pair(2, (0,)), Pair(3, (2,))))
    information = symmetric(4, {(0, 1): 1.39, (0, 3): 1.10, (0, 2): 0.98, (1, 2): 0.80, (1, 3): 0.75, (2, 3): 0.70})
    draft = start_draft(network, information, Bound((2,) * 4, 2))
    draft.add((0, 3))
    assert (draft.sparsity(1), draft.sparsity(2)) == (3, 3)
    assert draft.impact(1, 2) == pytest.approx(2.83, abs=1e-8)
    assert draft.impact(2, 1) == pytest.approx(1.39, abs=1e-8)
    assert direct_edge(draft, 1, 2, one_sided=False) == (2, 1)
    assert direct_edge(draft, 2, 1, one_sided=False) == (2, 1)
    frontier = build_frontier(network, information, Bound((2,) * 4, 2))
    assert frontier.edges == network.edges | {(0, 3), (2, 1)}


def test_ties_go_by_index() -> None:
    frontier = build_frontier(free(3), symmetric(3, {(0, 1): 0.5, (0, 2): 0.5, (1, 2): 0.5}), Bound((2,) * 3, 1))
    assert frontier.edges == {(1, 0), (1, 2)}


def test_the_last_digits_of_information_decide_nothing() -> None:
    rng = np.random.default_rng(5)
    levels = np.triu(rng.integers(0, 4, size=(12, 12)) * 0.25, 1)
    jitter = np.triu(rng.uniform(-1e-13, 1e-13, size=(12, 12)), 1)
    bound = Bound((2,) * 12, 3)
    expected = build_frontier(free(12), levels + levels.T, bound)
    assert build_frontier(free(12), levels + jitter + (levels + jitter).T, bound) == expected


def test_large_features_take_the_room_of_several_binary_ones() -> None:
    information = symmetric(4, {(0, 1): 0.9, (0, 2): 0.8, (0, 3): 0.7, (1, 2): 0.1, (1, 3): 0.1, (2, 3): 0.1})
    bound = Bound((2, 64, 2, 2), cells=64)
    frontier = build_frontier(free(4), information, bound)
    assert all(bound.admits(pair.feature, pair.parents) for pair in frontier.pairs)
    assert not [edge for edge in frontier.edges if 1 in edge]
    assert bound.room(0, ()) == 5
    assert bound.room(0, (2, 3)) == 3
    assert bound.room(1, ()) == 0
    assert bound.room(1, (0,)) == 0


def test_edges_of_the_network_stay_where_they_leave_no_room() -> None:
    network = Network((Pair(0, ()), Pair(1, ()), Pair(2, (0, 1))))
    frontier = build_frontier(network, symmetric(3, {(0, 1): 0.5, (0, 2): 0.5, (1, 2): 0.5}), Bound((2,) * 3, 0))
    assert frontier.edges == network.edges


def test_a_network_of_other_features_is_refused() -> None:
    with pytest.raises(SynodError, match="does not place exactly the features"):
        build_frontier(free(2), np.zeros((3, 3)), Bound((2,) * 3, 1))


# Levels: features of 2, 4 and 3 values, 3 and 4 being coarser ones of the last two, of two groups each

LEVELS = Levels((0, 1, 2, 1, 2), ((), (), (), (0, 0, 1, 1), (0, 0, 1)))
LEVEL_SIZES = (2, 4, 3, 2, 2)


def test_an_edge_takes_the_finest_level_that_fits() -> None:
    """In 7 cells the first feature has room for the groups of the second, in 8 for the second itself."""
    network = Network((Pair(0, ()), Pair(1, ()), Pair(2, ())), LEVELS)
    information = symmetric(3, {(0, 1): 0.5, (0, 2): 0.4, (1, 2): 0.1})

    def parents(cells: int) -> dict[int, tuple[int, ...]]:
        frontier = build_frontier(network, information, Bound(LEVEL_SIZES, cells=cells), one_sided=True)
        return {pair.feature: pair.parents for pair in frontier.pairs if pair.parents}

    assert parents(3) == {}
    assert parents(4) == {0: (3,)}
    assert parents(7) == {0: (3,), 2: (0,)}
    assert parents(8) == {0: (1,), 2: (0,)}


@given(st.integers(0, 200), st.integers(1, 60))
def test_frontiers_over_levels_fit_and_no_added_parent_could_be_finer(seed: int, cells: int) -> None:
    rng = np.random.default_rng(seed)
    half = rng.exponential(size=(3, 3))
    network = Network((Pair(1, ()), Pair(2, ()), Pair(0, ())), LEVELS)
    frontier = build_frontier(network, half + half.T, Bound(LEVEL_SIZES, cells=cells))
    assert frontier.levels == LEVELS
    bound = Bound(LEVEL_SIZES, cells=cells)
    for pair in frontier.pairs:
        assert bound.admits(pair.feature, pair.parents)
        assert len({LEVELS.base(parent) for parent in pair.parents}) == len(pair.parents)
        if len(pair.parents) == 1:
            (parent,) = pair.parents
            finer = [level for level in LEVELS.chain(LEVELS.base(parent)) if level < parent]
            assert not any(bound.admits(pair.feature, (level,)) for level in finer)


@given(starts())
def test_levels_that_are_all_base_features_change_nothing(start: tuple[Network, Information, int]) -> None:
    network, information, degree = start
    count = len(information)
    plain = Levels(tuple(range(count)), ((),) * count)
    bound = Bound((2,) * count, degree)
    over = build_frontier(Network(network.pairs, plain), information, bound)
    assert over.pairs == build_frontier(network, information, bound).pairs


def test_a_parent_on_a_level_is_no_second_parent() -> None:
    """The third feature has the groups of the second; that pair is not added again, in either way, and the partial
    order knows it: the first feature, a parent of the second, can only be a parent of the third.
    """
    network = Network((Pair(0, ()), Pair(1, (0,)), Pair(2, (3,))), LEVELS)
    information = symmetric(3, {(1, 2): 0.9, (0, 2): 0.1})
    assert start_draft(network, information, Bound(LEVEL_SIZES, cells=1000)).below.tolist() == [
        [True, True, True],
        [False, True, True],
        [False, False, True],
    ]
    frontier = build_frontier(network, information, Bound(LEVEL_SIZES, cells=1000))
    parents = {pair.feature: pair.parents for pair in frontier.pairs}
    assert parents == {0: (), 1: (0,), 2: (0, 3)}
