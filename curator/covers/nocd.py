"""NOCD, the non-overlapping covering design of DP-SUBN (VI-C), and its best parameter tree (VI-D).

The features of a node fill the l rows of an l x n matrix, n prime. Each choice of a slope and a start takes one
feature from each row: n^2 views, in which any two features of different rows meet exactly once. Each row is then
covered by a node of its own. Two slips of the paper are not repeated: the number of views of the whole tree scales
the noise of every view, which a node cannot see (`hulls.py`), and Algorithm 2 (line 12) sets l to ceil(sqrt(d))
where it means ceil(d/n). Views of a single feature, which cover no pair, are left out. The paper bounds no view; here
trees with a view of too many cells are passed over, and a tree of pairs is always left: there is a prime between d/2
and d.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from synod.curator.covers.galois import is_prime
from synod.curator.covers.hulls import Front, Parts, Vertex, choose_best, keep_lower_hull, list_points
from synod.curator.covers.search import View, view_cost


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the parameter tree: `size` features in `rows` (l) rows of up to `columns` (n) features.

    A leaf has one row, which is a view; another node has one child for each row, the last row being the short one.
    """

    size: int
    rows: int
    columns: int
    children: tuple["Node", ...] = ()


def nocd_views(count: int, max_cells: int | None = None) -> tuple[View, ...]:
    """The views of the best parameter tree over `count` binary features.

    A view has at most `max_cells` cells unless it is a pair.
    """
    return tuple(sorted(lay_tree(best_tree(count, max_cells), range(count))))


@lru_cache(maxsize=256)
def best_tree(count: int, max_cells: int | None = None) -> Node:
    """The parameter tree with the least mean variance of a 2-way cell, of all trees that the paper allows."""
    if count == 1:
        return _leaf(1)
    for size in range(1, count):
        tree_front(size, max_cells)
    return choose_best(tree_front(count, max_cells)).plan


@lru_cache(maxsize=1024)
def tree_front(size: int, max_cells: int | None = None) -> Front[Node]:
    """The trees over `size` binary features that may be a part of a best tree."""
    if size == 1:
        return (Vertex(0, 0, _leaf(1)),)

    def fits(width: int) -> bool:
        return width == 2 or max_cells is None or 1 << width <= max_cells

    orders = [n for n in range(2, size) if is_prime(n) and -(-size // n) <= n and fits(-(-size // n))]
    options = [_rows(size, n, max_cells) for n in orders]
    points = [(1, view_cost(size, 2), -1, 0)] if fits(size) else []
    points += [point for i, parts in enumerate(options) for point in list_points(i, parts)]
    hull = keep_lower_hull(points)
    return tuple(
        Vertex(views, cost, _grow(size, orders[i], options[i].plans(step)) if i >= 0 else _leaf(size))
        for views, cost, i, step in hull
    )


def lay_tree(node: Node, features: Sequence[int]) -> Iterator[View]:
    """The views of a tree over the given features: steps 2 to 4 of VI-C."""
    if node.rows == 1:
        yield tuple(features)
        return
    n = node.columns
    matrix = [features[n * i : n * (i + 1)] for i in range(node.rows)]
    for slope in range(n):
        for start in range(n):
            places = [(start + i * slope) % n for i in range(node.rows)]
            view = tuple(row[place] for row, place in zip(matrix, places, strict=True) if place < len(row))
            if len(view) > 1:
                yield view
    for child, row in zip(node.children, matrix, strict=True):
        if child.size > 1:
            yield from lay_tree(child, row)


def _leaf(size: int) -> Node:
    return Node(size, 1, size)


def _rows(size: int, n: int, max_cells: int | None) -> Parts[Node]:
    """The n^2 views across the rows, n of them through each feature of the last row; and the rows to cover."""
    full_rows, last = divmod(size - 1, n)
    last += 1
    long, short = n * last, n * (n - last) if full_rows > 1 else 0
    cost = long * view_cost(full_rows + 1, 2) + short * view_cost(full_rows, 2)
    return Parts(long + short, cost, (full_rows, 1), (tree_front(n, max_cells), tree_front(last, max_cells)))


def _grow(size: int, n: int, plans: tuple[Node, ...]) -> Node:
    full, last = plans
    rows = -(-size // n)
    return Node(size, rows, n, (full,) * (rows - 1) + (last,))
