"""Candidate parent sets: what a draw of `ChooseParents` chooses among, from public numbers only."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import combinations, islice
from math import comb, prod
from typing import Literal

Features = tuple[int, ...]
Score = Literal["F", "R", "I"]


Chains = Sequence[Sequence[int]]


class _TooManyError(Exception):
    """There are more sets than was asked about."""


class ParentSets:
    """The maximal sets of parents among some base features, for any number of cells that they may have together.

    A set has at most one level of a feature. It is maximal if it fits and no single step does: another feature on its
    coarsest level, as long as there are fewer than `max_parents`, or one parent a level finer. Found by PrivBayes'
    Algorithm 6; the rows of a level divide the room that is left, rounded down, and floor(floor(T/a)/b) = floor(T/ab),
    so that few different numbers of cells occur and what was found for one is kept.
    """

    def __init__(
        self, allowed: Sequence[int], sizes: Sequence[int], chains: Chains = (), max_parents: int | None = None
    ) -> None:
        bases = sorted(allowed)
        self._chains = [[(level, sizes[level]) for level in (chains[base] if chains else (base,))] for base in bases]
        self._parents = len(bases) if max_parents is None else min(max_parents, len(bases))
        self._uniform = _single_size(self._chains)
        self._known: dict[tuple[int, int, int], list[Features]] = {}
        self._most: int | None = None

    def within(self, room: int) -> list[Features]:
        """The sets whose sizes multiply to at most `room`, in the order of base features; without room, the empty
        one.
        """
        if self._uniform is None:
            return self._find(0, room, self._parents) if room >= 1 else [()]
        width = self._width(room)
        if (0, width, width) not in self._known:
            self._known[0, width, width] = list(combinations([chain[0][0] for chain in self._chains], width))
        return self._known[0, width, width]

    def count(self, room: int, most: int) -> int:
        """How many these are, or one more than `most` where they are more; time and memory go by `most`.

        Every list of sets of the last features that is made on the way is no longer than the whole one: each of its
        sets is the end of another set of the whole. So one that is longer than `most` is enough to know.
        """
        if self._uniform is not None:
            return min(comb(len(self._chains), self._width(room)), most + 1)
        self._most = most
        try:
            return min(len(self.within(room)), most + 1)
        except _TooManyError:
            return most + 1
        finally:
            self._most = None

    def _width(self, room: int) -> int:
        """How many features are in a set where all have one size and no levels: sets are then all of one length."""
        width, size = 0, self._uniform or 1
        while width < self._parents and size ** (width + 1) <= room:
            width += 1
        return width

    def _find(self, place: int, room: int, parents: int) -> list[Features]:
        """The maximal sets of the features from `place` on."""
        if place == len(self._chains) or not parents:
            return [()]
        key = (place, room, parents)
        if key not in self._known:
            most = None if self._most is None else self._most + 1
            self._known[key] = list(islice(self._grow(place, room, parents), most))
            if most is not None and len(self._known[key]) == most:
                del self._known[key]
                raise _TooManyError
        return self._known[key]

    def _grow(self, place: int, room: int, parents: int) -> Iterator[Features]:
        """Each level of the first feature with the maximal sets of the others in what it leaves, finest first. A set
        that a finer level has room for is left out.
        """
        seen: set[Features] = set()
        for level, size in self._chains[place]:
            if size <= room:
                fresh = [rest for rest in self._find(place + 1, room // size, parents - 1) if rest not in seen]
                seen.update(fresh)
                yield from ((level, *rest) for rest in fresh)
        yield from (rest for rest in self._find(place + 1, room, parents) if rest not in seen)


def _single_size(chains: Sequence[Sequence[tuple[int, int]]]) -> int | None:
    """The size that all features have, where they have no levels; None where sizes differ."""
    sizes = {size for chain in chains for _, size in chain}
    return sizes.pop() if len(sizes) == 1 and all(len(chain) == 1 for chain in chains) else None


class ParentOptions:
    """What the draws of one query choose among: open features with their maximal sets of placed ones.

    Sets are found once for all features that may have the same parents, and those of one draw are kept for the next: a
    feature has new ones only when one of its candidates was placed.
    """

    def __init__(self, sizes: Sequence[int], chains: Chains, max_cells: int, max_parents: int | None = None) -> None:
        self._sizes, self._chains, self._max_cells, self._max_parents = sizes, chains, max_cells, max_parents
        self._sets: dict[Features, ParentSets] = {}

    def of(self, shortlists: Iterable[tuple[int, Features]], placed: set[int]) -> list[tuple[int, Features]]:
        """Every one of these features with every one of its sets, in the order that draws count on."""
        used: dict[Features, ParentSets] = {}
        options: list[tuple[int, Features]] = []
        for feature, shortlist in shortlists:
            allowed = tuple(sorted(placed.intersection(shortlist)))
            if allowed not in used:
                kept = self._sets.get(allowed)
                used[allowed] = kept or ParentSets(allowed, self._sizes, self._chains, self._max_parents)
            sets = used[allowed].within(self._max_cells // self._sizes[feature])
            options.extend((feature, parents) for parents in sets)
        self._sets = used
        return options


def count_options(
    shortlists: Iterable[tuple[int, Features]],
    sizes: Sequence[int],
    chains: Chains,
    max_cells: int,
    max_parents: int | None = None,
    *,
    most: int,
) -> int:
    """How many options a draw among these features would have if all candidates were placed, or some number above
    `most` where that is exceeded. More placed features never leave fewer options.
    """
    options = 0
    for feature, allowed in shortlists:
        options += ParentSets(allowed, sizes, chains, max_parents).count(max_cells // sizes[feature], most)
        if options > most:
            break
    return options


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


def is_maximal(
    feature: int,
    parents: Sequence[int],
    allowed: Collection[int],
    sizes: Sequence[int],
    max_cells: int,
    chains: Chains = (),
    max_parents: int | None = None,
) -> bool:
    """Whether these are among the maximal sets, without listing them all."""
    levels = {level: base for base in allowed for level in (chains[base] if chains else (base,))}
    if not levels.keys() >= set(parents):
        return False
    bases = [levels[parent] for parent in parents]
    cells = sizes[feature] * prod(sizes[parent] for parent in parents)
    if bases != sorted(set(bases)) or (parents and cells > max_cells):
        return False
    if max_parents is not None and len(parents) >= max_parents:
        more: list[int] = []
    else:
        more = [cells * sizes[chains[base][-1] if chains else base] for base in allowed if base not in bases]
    finer = [
        cells // sizes[parent] * sizes[chains[base][chains[base].index(parent) - 1]]
        for parent, base in zip(parents, bases, strict=True)
        if parent != base
    ]
    few = max_parents is None or len(parents) <= max_parents
    return few and all(grown > max_cells for grown in (*more, *finer))


def shortlist_length(sizes: Sequence[int], max_cells: int, max_candidates: int, max_parents: int | None = None) -> int:
    """How many parents a feature may be offered so that all features together have at most `max_candidates` sets.

    No maximal set holds another, so of sets of at most k among l features there are no more than C(l, min(k, l/2)).
    """
    d = len(sizes)
    degree = _largest_degree(sizes, max_cells)
    if max_parents is not None:
        degree = min(degree, max_parents)
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
