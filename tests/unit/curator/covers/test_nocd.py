"""NOCD covers every pair once, as the paper says, and its tree is the best one by the real objective."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from numpy.typing import NDArray

from synod.curator.covers.galois import is_prime
from synod.curator.covers.hulls import choose_best
from synod.curator.covers.nocd import Node, best_tree, lay_tree, nocd_views, tree_front
from synod.curator.covers.search import view_cost
from synod.curator.covers.views import expected_variance

Point = tuple[int, int]


def times_together(views: Sequence[tuple[int, ...]], count: int) -> NDArray[np.intp]:
    """For each pair of features, in how many views both lie."""
    codes = [np.zeros(0, dtype=np.intp)]
    for width in {len(view) for view in views}:
        rows = np.array([view for view in views if len(view) == width])
        codes += [rows[:, a] * count + rows[:, b] for a, b in combinations(range(width), 2)]
    together = np.bincount(np.concatenate(codes), minlength=count**2).reshape(count, count)
    assert not np.tril(together).any(), "a view's features ascend"
    return together[np.triu_indices(count, 1)]


@pytest.mark.parametrize("count", range(2, 201))
def test_every_pair_lies_in_exactly_one_view(count: int) -> None:
    assert (times_together(nocd_views(count), count) == 1).all()


def test_the_smallest_counts_are_single_views() -> None:
    assert nocd_views(1) == ((0,),)
    assert nocd_views(2) == ((0, 1),)
    assert nocd_views(3) == ((0, 1, 2),)


def test_the_matrix_follows_the_papers_figure() -> None:
    leaf = Node(3, 1, 3)
    views = set(lay_tree(Node(9, 3, 3, (leaf, leaf, leaf)), range(9)))
    diagonal, rows, columns = {(0, 4, 8)}, {(0, 1, 2), (3, 4, 5), (6, 7, 8)}, {(0, 3, 6), (1, 4, 7), (2, 5, 8)}
    assert diagonal | rows | columns < views
    assert len(views) == 3**2 + 3


@pytest.mark.parametrize("count", [*range(2, 60), 97, 128, 200])
def test_nodes_obey_the_constraints_of_the_parameter_tree(count: int) -> None:
    nodes = [best_tree(count)]
    while nodes:
        node = nodes.pop()
        assert (node.rows - 1) * node.columns < node.size <= node.rows * node.columns
        assert node.rows == 1 or (is_prime(node.columns) and node.rows <= node.columns)
        assert len(node.children) == (node.rows if node.rows > 1 else 0)
        assert sum(child.size for child in node.children) in {0, node.size}
        nodes += node.children


@pytest.mark.parametrize("count", range(2, 201))
def test_the_front_predicts_the_views_that_are_laid(count: int) -> None:
    vertex = choose_best(tree_front(count))
    views = nocd_views(count)
    assert len(views) == vertex.views
    assert sum(view_cost(len(view), 2) for view in views) == vertex.cost
    expected = vertex.views**2 * vertex.cost / comb(count, 2)
    assert expected_variance(views, (2,) * count) == pytest.approx(expected)


@pytest.mark.parametrize("count", range(2, 30))
def test_every_vertex_of_the_front_is_what_it_lays(count: int) -> None:
    for vertex in tree_front(count):
        views = list(lay_tree(vertex.plan, range(count)))
        assert (len(views), sum(view_cost(len(view), 2) for view in views)) == (vertex.views, vertex.cost)


@pytest.mark.parametrize("widest", [100, 2, 3, 4])
@pytest.mark.parametrize("count", range(2, 45))
def test_the_tree_is_the_best_of_all_by_exhaustion(count: int, widest: int) -> None:
    vertex = choose_best(tree_front(count, 2**widest))
    assert vertex.views**2 * vertex.cost == min(views**2 * cost for views, cost in all_trees(count, widest))


@pytest.mark.parametrize("max_cells", [4, 7, 8, 16, 4096])
@pytest.mark.parametrize("count", [2, 3, 4, 5, 13, 52, 120])
def test_views_within_so_many_cells_hold_every_pair_once(count: int, max_cells: int) -> None:
    views = nocd_views(count, max_cells)
    assert (times_together(views, count) == 1).all()
    assert max(2 ** len(view) for view in views) <= max_cells
    assert views == nocd_views(count) or max(map(len, nocd_views(count))) > max_cells.bit_length() - 1


@lru_cache
def all_trees(count: int, widest: int) -> frozenset[Point]:
    """The slow twin: views and cost of every tree whose views have at most `widest` features, rows chosen one by one;
    only dominated ones are dropped.
    """
    if count == 1:
        return frozenset([(0, 0)])
    found = {(1, comb(count, 2) * 2 ** (count - 2))} if count <= widest else set()
    for n in filter(is_prime, range(2, count)):
        rows = [min(n, count - start) for start in range(0, count, n)]
        if len(rows) <= min(n, widest):
            across_views, across_cost = across_rows(rows, n)
            found |= {(views + across_views, cost + across_cost) for views, cost in sums(rows, widest)}
    return undominated(found)


def sums(rows: list[int], widest: int) -> frozenset[Point]:
    total = frozenset([(0, 0)])
    for row in rows:
        total = undominated({(a + c, b + d) for (a, b), (c, d) in product(total, all_trees(row, widest))})
    return total


def across_rows(rows: list[int], n: int) -> Point:
    widths = [
        sum((start + i * slope) % n < row for i, row in enumerate(rows)) for slope in range(n) for start in range(n)
    ]
    kept = [width for width in widths if width > 1]
    return len(kept), sum(comb(width, 2) * 2 ** (width - 2) for width in kept)


def undominated(points: set[Point]) -> frozenset[Point]:
    kept: list[Point] = []
    for point in sorted(points):
        if not kept or point[1] < kept[-1][1]:
            kept.append(point)
    return frozenset(kept)
