"""Candidate parent sets: what a draw of `ChooseParents` chooses among, from public numbers only."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import comb
from typing import Literal

Features = tuple[int, ...]
Score = Literal["F", "R", "I"]


def maximal_sets(feature: int, allowed: Sequence[int], sizes: Sequence[int], max_cells: int) -> Iterator[Features]:
    """The largest subsets of `allowed` whose table with `feature` has at most `max_cells` cells; each once, sorted.

    With binary features those are all subsets of one size (PrivBayes, Algorithm 4); in general a set is left out
    when another feature would still fit (Algorithm 5).
    """
    room = max_cells // sizes[feature]
    ordered = sorted(allowed)
    if all(sizes[other] == 2 for other in ordered):
        yield from combinations(ordered, min(len(ordered), max(room, 1).bit_length() - 1))
    else:
        yield from _grow((), 1, ordered, ordered, sizes, room)


def _grow(
    chosen: Features, cells: int, rest: Sequence[int], all_allowed: Sequence[int], sizes: Sequence[int], room: int
) -> Iterator[Features]:
    fits = [other for other in all_allowed if other not in chosen and cells * sizes[other] <= room]
    if not fits:
        yield chosen
        return
    for place, other in enumerate(rest):
        if cells * sizes[other] <= room:
            yield from _grow((*chosen, other), cells * sizes[other], rest[place + 1 :], all_allowed, sizes, room)


def shortlist_length(sizes: Sequence[int], max_cells: int, max_candidates: int) -> int:
    """How many parents a feature may be offered so that all features together have at most `max_candidates` sets."""
    d = len(sizes)
    degree = _largest_degree(sizes, max_cells)
    length = d - 1
    while length > 1 and d * comb(length, min(degree, length // 2)) > max_candidates:
        length -= 1
    return length


def _largest_degree(sizes: Sequence[int], max_cells: int) -> int:
    ordered = sorted(sizes)
    cells, degree = ordered[0], 0
    for size in ordered[1:]:
        cells *= size
        if cells > max_cells:
            break
        degree += 1
    return degree
