"""Ways to split a set of features into parts so that every pair of features lies in exactly one part.

A transversal design TD(k, n) has k groups of n points and n^2 blocks that take one point from each group; any two
points of different groups meet in exactly one block. With the groups as further parts, and an apex (a point that
is put into every group) or none, this one family holds the affine planes (k = n, no apex), the projective planes
(k = n + 1, an apex) and their truncations, whose deleted points share a line. Steiner triple systems and single
pairs complete the stock. Parts of more than two features are split again, or become views (`covers.py`).
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from synod.curator.covers.galois import build_field, factor_prime_power

Part = tuple[int, ...]
"""Positions of features, ascending."""

Places = NDArray[np.intp]
"""A row for each part: positions of features, -1 where a point of the design is deleted."""


@dataclass(frozen=True, slots=True)
class Peel:
    """The first feature is paired with each other one; the others are the remaining part."""

    def parts(self, count: int) -> Iterator[Part]:
        """All parts of at least two of `count` features."""
        yield from ((0, other) for other in range(1, count))
        if count > 2:
            yield tuple(range(1, count))

    def tally(self, count: int) -> Counter[int]:
        """How many parts there are of which number of features."""
        return Counter({2: count - 1}) + Counter([count - 1] if count > 2 else [])


@dataclass(frozen=True, slots=True)
class Triples:
    """A Steiner triple system of the next order, 1 or 3 modulo 6; its last points are deleted."""

    def parts(self, count: int) -> Iterator[Part]:
        """All parts of at least two of `count` features."""
        return _rows(self.blocks(count))

    def tally(self, count: int) -> Counter[int]:
        """How many parts there are of which number of features."""
        widths = np.bincount((self.blocks(count) >= 0).sum(axis=1), minlength=4)
        return Counter({width: int(widths[width]) for width in (2, 3) if widths[width]})

    def blocks(self, count: int) -> Places:
        """The triples."""
        points = steiner_triples(next(order for order in range(count, count + 4) if order % 6 in {1, 3}))
        return np.where(points < count, points, -1)

    def lines(self, _count: int, /) -> Iterator[Part]:
        """No other parts."""
        return iter(())


@dataclass(frozen=True, slots=True)
class Transversal:
    """TD(len(groups), order) of which group i keeps its first `groups[i]` points; at most one group is not full.

    Features fill the groups in turn, and the apex is the last one. Where features are sorted by size, a group thus
    holds features of a kind, and every block takes some of the large ones and some of the small ones.
    """

    order: int
    groups: tuple[int, ...]
    apex: bool

    def parts(self, count: int) -> Iterator[Part]:
        """All parts of at least two of `count` features."""
        yield from _rows(self.blocks(count))
        yield from (line for line in self.lines(count) if len(line) > 1)

    def tally(self, count: int) -> Counter[int]:
        """How many parts there are of which number of features: each point lies on `order` blocks."""
        assert sum(self.groups) + self.apex == count
        short, width = min(self.groups), len(self.groups)
        blocks = {width: self.order * short, width - 1: self.order * (self.order - short)}
        parts = Counter(blocks) + Counter(group + self.apex for group in self.groups)
        del parts[1]
        return parts

    def blocks(self, count: int) -> Places:
        """The blocks, with a place for each group."""
        assert sum(self.groups) + self.apex == count
        points, sizes = transversal_points(self.order, len(self.groups)), np.array(self.groups)
        return np.where(points < sizes, np.cumsum(sizes) - sizes + points, -1)

    def lines(self, count: int, /) -> Iterator[Part]:
        """The groups, each with the apex if there is one."""
        start = 0
        for size in self.groups:
            yield (*range(start, start + size), *([count - 1] if self.apex else []))
            start += size


Design = Triples | Transversal
Split = Peel | Design


def list_transversals(count: int, *, least_groups: int) -> Iterator[Transversal]:
    """All of prime-power order over `count` features, the last group being the short one."""
    for apex in (False, True):
        points = count - apex
        for order in range(2, points):
            full, rest = divmod(points - 1, order)
            if least_groups - 1 <= full <= order and factor_prime_power(order):
                yield Transversal(order, (order,) * full + (rest + 1,), apex)


@lru_cache(maxsize=64)
def transversal_points(order: int, groups: int) -> Places:
    """The blocks of TD(groups, order) for a prime-power order: a row of one point for each group.

    Block (m, b) takes the point i m + b from group i, and m from the group at infinity, which comes last. Two
    points of groups i != j determine m and b, as i - j has an inverse.
    """
    assert groups <= order + 1
    field = build_field(order)
    slopes, starts = np.divmod(np.arange(order**2), order)
    finite = [field.plus[field.times[i, slopes], starts] for i in range(min(groups, order))]
    return np.stack([*finite, slopes][:groups], axis=1)


@lru_cache(maxsize=64)
def steiner_triples(order: int) -> Places:
    """The triples of Bose (order 6t + 3) or Skolem (6t + 1), from a symmetric table x * y of order n in three levels.

    Bose's table is idempotent. Skolem's has x * x = (x + t) * (x + t) = x for x < t, and one point at infinity.
    """
    n = order // 3
    levels = np.arange(3) * n
    table = _symmetric_table(n)
    x, y = np.array(list(combinations(range(n), 2)), dtype=np.intp).reshape(-1, 2).T
    mixed = [np.stack([x + levels[i], y + levels[i], table[x, y] + levels[(i + 1) % 3]], axis=1) for i in range(3)]
    low = np.arange(n if n % 2 else n // 2)
    upright = [low[:, None] + levels]
    if n % 2 == 0:
        top = np.full_like(low, order - 1)
        upright += [np.stack([low + n // 2 + levels[i], low + levels[(i + 1) % 3], top], axis=1) for i in range(3)]
    return np.sort(np.concatenate([*upright, *mixed]), axis=1)


def _symmetric_table(n: int) -> Places:
    """The sum modulo n, renamed so that the diagonal reads 0, 1, 2, ... (n odd) or 0, ..., n/2 - 1 twice (n even)."""
    total = np.add.outer(np.arange(n), np.arange(n)) % n
    half = (n + 1) // 2
    return total * half % n if n % 2 else np.where(total % 2, (total - 1) // 2 + half, total // 2)


def _rows(places: Places) -> Iterator[Part]:
    for row in places.tolist():
        part = tuple(place for place in row if place >= 0)
        if len(part) > 1:
            yield part
