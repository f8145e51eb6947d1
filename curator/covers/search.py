"""The best cover of features of one size by views in which every pair lies in exactly one: an exact search.

A set of features is one view, or it is split (`designs.py`) and each part is covered in the same way. The dynamic
program over the number of features keeps a front for each (`hulls.py`). It is integer arithmetic on public numbers
with ties broken by order, so every machine finds the same cover.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb

from synod.curator.covers.designs import Peel, Split, Triples, list_transversals
from synod.curator.covers.hulls import Front, Parts, Vertex, choose_best, keep_lower_hull, list_points

View = tuple[int, ...]
"""Indices of features, ascending."""


@dataclass(frozen=True, slots=True)
class Cover:
    """One view (no split), or a split and the covers of its parts by their number of features."""

    split: Split | None
    parts: tuple[tuple[int, "Cover"], ...] = ()


WHOLE = Cover(None)


@lru_cache(maxsize=256)
def best_cover(count: int, size: int, max_cells: int | None = None) -> Vertex[Cover]:
    """The cover of `count` features of `size` codes that has the least views^2 * cost.

    A view has at most `max_cells` cells unless it is a pair.
    """
    if count == 1:
        return Vertex(1, 0, WHOLE)
    for fewer in range(2, count):
        cover_front(fewer, size, max_cells)
    return choose_best(cover_front(count, size, max_cells))


@lru_cache(maxsize=4096)
def cover_front(count: int, size: int, max_cells: int | None) -> Front[Cover]:
    """The covers of at least two features that may be a part of a best cover."""
    if count == 2:
        return (Vertex(1, 1, WHOLE),)
    splits = list_splits(count)
    tallies = [split.tally(count) for split in splits]
    options = [
        Parts(0, 0, tuple(tally.values()), tuple(cover_front(width, size, max_cells) for width in tally))
        for tally in tallies
    ]
    points = [point for i, parts in enumerate(options) for point in list_points(i, parts)]
    if max_cells is None or size**count <= max_cells:
        points.append((1, view_cost(count, size), -1, 0))
    return tuple(
        Vertex(views, cost, Cover(splits[i], tuple(zip(tallies[i], options[i].plans(step), strict=True))))
        if i >= 0
        else Vertex(views, cost, WHOLE)
        for views, cost, i, step in keep_lower_hull(points)
    )


def list_splits(count: int) -> list[Split]:
    """All splits of more than two features; three are a triple themselves."""
    splits: list[Split] = [Peel(), *list_transversals(count, least_groups=2)]
    return [*splits, Triples()] if count > 3 else splits


def view_cost(width: int, size: int) -> int:
    """Over the pairs of a view of features of one size, the sum of the cells that add up to one 2-way cell."""
    cells_of_others: int = size ** max(0, width - 2)
    return comb(width, 2) * cells_of_others


def lay_cover(cover: Cover, features: Sequence[int]) -> Iterator[View]:
    """The views of a cover over the given features."""
    if cover.split is None:
        yield tuple(features)
        return
    covers = dict(cover.parts)
    for part in cover.split.parts(len(features)):
        yield from lay_cover(covers[len(part)], [features[place] for place in part])
