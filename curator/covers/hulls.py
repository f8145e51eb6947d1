"""Which of many covers may turn out best: the lower convex front over (number of views, cost).

The real objective is views^2 * cost, where cost is the sum over pairs of the cells that a 2-way cell sums up. The
number of views is that of the whole design, so the best cover of a part depends on all other parts, and no part
can be optimized on its own, as Eq. 6 and Algorithm 2 of DP-SUBN (VI-D) do.

What can be kept of a part is little: 2 log(views) + log(cost) is concave, so over any set of points its minimum
lies at a vertex of the convex hull; the hull of a sum of sets is the sum of their hulls; and a vertex of the sum
adds vertices with a common direction. Hence vertices of the lower left hull suffice, parts of the same kind are
covered alike, and the dynamic program stays exact for the real objective.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, TypeVar

Plan = TypeVar("Plan")


@dataclass(frozen=True, slots=True)
class Vertex(Generic[Plan]):
    """A cover that may be a part of the best one: how many views, what they cost, and how to lay them."""

    views: int
    cost: int
    plan: Plan


Front = tuple[Vertex[Plan], ...]
"""Vertices with ever more views and ever less cost."""


@dataclass(frozen=True, slots=True)
class Parts(Generic[Plan]):
    """Parts that must all be covered: some views that are fixed, and `counts[i]` parts of `fronts[i]` each."""

    fixed_views: int
    fixed_cost: int
    counts: tuple[int, ...]
    fronts: tuple[Front[Plan], ...]

    def steps(self) -> list[int]:
        """In which order the parts move to the next vertex of their front: the most saved for a view goes first.

        Slopes are compared as doubles; two that rounding cannot tell apart may swap, which moves a vertex by
        less than a part in 10^15.
        """
        slopes = [
            ((after.cost - before.cost) / (after.views - before.views), part)
            for part, front in enumerate(self.fronts)
            for before, after in pairwise(front)
        ]
        return [part for _, part in sorted(slopes)]

    def totals(self) -> Iterator[tuple[int, int]]:
        """Views and cost of all parts together, before the first step and after each."""
        views = self.fixed_views + sum(n * front[0].views for n, front in zip(self.counts, self.fronts, strict=True))
        cost = self.fixed_cost + sum(n * front[0].cost for n, front in zip(self.counts, self.fronts, strict=True))
        yield views, cost
        place = [0] * len(self.fronts)
        for part in self.steps():
            before, after = self.fronts[part][place[part] : place[part] + 2]
            place[part] += 1
            views += self.counts[part] * (after.views - before.views)
            cost += self.counts[part] * (after.cost - before.cost)
            yield views, cost

    def plans(self, step: int) -> tuple[Plan, ...]:
        """The plan of each kind of part after so many steps."""
        place = [0] * len(self.fronts)
        for part in self.steps()[:step]:
            place[part] += 1
        return tuple(front[at].plan for front, at in zip(self.fronts, place, strict=True))


Point = tuple[int, int, int, int]
"""Views, cost, the number of an option, and a step of its parts."""


def list_points(option: int, parts: Parts[Plan]) -> Iterator[Point]:
    """All sums of one option's parts that may be vertices."""
    for step, (views, cost) in enumerate(parts.totals()):
        yield views, cost, option, step


def keep_lower_hull(points: Iterable[Point]) -> list[Point]:
    """The vertices of the lower left convex hull, the fewest views first; of equal ones the first option."""
    hull: list[Point] = []
    for point in sorted(points):
        if hull and point[1] >= hull[-1][1]:
            continue
        while len(hull) > 1 and not _turns_left(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return hull


def _turns_left(first: Point, middle: Point, last: Point) -> bool:
    return (middle[1] - first[1]) * (last[0] - first[0]) < (last[1] - first[1]) * (middle[0] - first[0])


def choose_best(front: Sequence[Vertex[Plan]]) -> Vertex[Plan]:
    """The vertex with the least views^2 * cost, the mean variance of a 2-way cell times the number of pairs."""
    return min(front, key=lambda vertex: (vertex.views**2 * vertex.cost, vertex.views))
