"""Views of about eight features that hold every pair, or every triple, of features: the covers of PriView.

PriView's noise grows with the number of views, so of all covers of a width the one with the fewest is taken. Features
may be tied in groups that always go together: a cover of g times fewer points by blocks of 8/g then serves. Pairs of
points are covered by planes (curator/covers/designs.py), triples by
- inversive planes of order q: q^2 + 1 points, circles of q + 1, every three points on exactly one;
- affine planes in the vector space of m bits: 2^m points, blocks of 4, every three points on exactly one.
Points beyond those needed are deleted. All of it is a function of public numbers.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations

import numpy as np

from synod.curator.covers.designs import list_transversals
from synod.curator.covers.galois import build_field, factor_prime_power
from synod.curator.covers.search import View
from synod.curator.covers.views import overlapping_views

WIDTH = 8
TRIPLE_WIDTH = 9
"""One wider: the inversive plane of order 8 has circles of 9 points, which for 52 features lose two on average."""
GROUPS = (1, 2, 4)


@lru_cache(maxsize=64)
def cover_features(count: int, strength: int) -> tuple[View, ...]:
    """The fewest views known here such that every `strength` (2 or 3) of `count` binary features lie in one."""
    assert strength in {2, 3}
    if count <= WIDTH:
        return (tuple(range(count)),)
    covers = [keep_maximal(views, strength) for views in _list_covers(count, strength)]
    return min(covers, key=lambda views: (len(views), views))


def keep_maximal(views: Iterable[Iterable[int]], least: int) -> tuple[View, ...]:
    """Sorted views of at least so many features, without those that lie in another."""
    kept: list[frozenset[int]] = []
    for view in sorted(map(frozenset, views), key=len, reverse=True):
        if len(view) >= least and not any(view <= other for other in kept):
            kept.append(view)
    return tuple(sorted(tuple(sorted(view)) for view in kept))


def _list_covers(count: int, strength: int) -> Iterator[Sequence[View]]:
    """Every cover that is built here, over groups of features of each size."""
    if strength == 2:
        yield overlapping_views((2,) * count, WIDTH)
    for size in GROUPS:
        points = -(-count // size)
        blocks = cover_point_pairs(points, WIDTH // size) if strength == 2 else cover_point_triples(points, size)
        yield from ([_ungroup(block, size, count) for block in cover] for cover in blocks)


def _ungroup(block: Iterable[int], size: int, count: int) -> View:
    return tuple(feature for point in block for feature in range(point * size, min(count, (point + 1) * size)))


def cover_point_pairs(points: int, width: int) -> Iterator[Sequence[View]]:
    """Planes and their truncations with blocks of at most so many points, or all pairs."""
    if width == 2 or points == 2:
        yield list(combinations(range(points), 2))
    for design in list_transversals(points, least_groups=2):
        if max(design.tally(points)) <= width:
            yield list(design.parts(points))


def cover_point_triples(points: int, size: int) -> Iterator[Sequence[View]]:
    """Inversive planes, and affine planes over bits, whose blocks have few enough features in groups of `size`."""
    for order in range(2, TRIPLE_WIDTH // size):
        if factor_prime_power(order) and points <= order**2 + 1:
            yield inversive_plane(order, points)
    if 4 * size <= WIDTH:
        yield quadruples(points)


@lru_cache(maxsize=16)
def quadruples(points: int) -> tuple[View, ...]:
    """Every three of the points, as vectors of bits, with their sum, which is a fourth vector; each block once."""
    triples = combinations(range(points), 3)
    blocks = {frozenset((a, b, c, a ^ b ^ c)) for a, b, c in triples}
    return tuple(sorted(tuple(sorted(point for point in block if point < points)) for block in blocks))


@lru_cache(maxsize=16)
def inversive_plane(order: int, points: int) -> tuple[View, ...]:
    """The circles of the first points of GF(q^2) and, last, infinity: the images of GF(q) and infinity under x ->
    (a x + b) / (c x + d). Three points lie on exactly one; each is found from its first three.
    """
    assert points <= order**2 + 1
    found: set[View] = set()
    is_open = np.ones((order**2 + 1,) * 3, dtype=bool)
    for a, b, c in combinations(range(points), 3):
        if is_open[a, b, c]:
            circle = circle_through(order, a, b, c)
            is_open[np.ix_(circle, circle, circle)] = False
            found.add(tuple(point for point in circle if point < points))
    return tuple(sorted(found))


def circle_through(order: int, a: int, b: int, c: int) -> View:
    """The circle of three points, the last of which may be infinity (the number q^2).

    x -> (c k x + a) / (k x + 1) with k = (b - a) / (c - b) takes 0, 1 and infinity to a, b and c; where c is infinity,
    x -> a + (b - a) x does.
    """
    field, infinity = build_field(order**2), order**2
    plus, times = field.plus, field.times
    minus = np.argmin(plus, axis=1)
    inverse = np.argmax(times == 1, axis=1)
    line = [x for x in range(infinity) if _power(times, x, order) == x]
    step = plus[b, minus[a]]
    if c == infinity:
        return tuple(sorted([*(int(plus[a, times[step, x]]) for x in line), infinity]))
    factor = times[step, inverse[plus[c, minus[b]]]]
    circle = {c}
    for x in line:
        scaled = times[factor, x]
        above, below = plus[times[c, scaled], a], plus[scaled, 1]
        circle.add(int(times[above, inverse[below]]) if below else infinity)
    return tuple(sorted(circle))


def _power(times: "np.ndarray[tuple[int, ...], np.dtype[np.intp]]", x: int, exponent: int) -> int:
    value = 1
    for _ in range(exponent):
        value = int(times[value, x])
    return value
