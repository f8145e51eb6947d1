"""Networks: which features each feature is drawn from, how large such families may be, and the choice among them.

A network lists its AP pairs, (feature, parents), so that parents come first: it cannot hold a cycle. A search
frontier is a network too, of a larger degree, and the next network is chosen inside it (DP-SUBN, Section VI-A,
step 3). Everything here works on released tables or public numbers; it must never see rows.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

from synod.common.models.candidates import ParentSets
from synod.common.runtime.errors import invalid
from synod.curator.network.levels import PLAIN, Levels

Features = tuple[int, ...]
Score = Callable[[int, Features], float]

# Sums of logarithms end in digits that depend on the machine; a choice must not.
SCORE_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Pair:
    """An AP pair: a feature and the parents that it depends on."""

    feature: int
    parents: Features

    @property
    def family(self) -> Features:
        """The features of the pair's table, in the order of its axes."""
        return (self.feature, *self.parents)


@dataclass(frozen=True, slots=True)
class Network:
    """AP pairs in an order in which they can be drawn: each feature once, after all of its parents. A parent may be a
    coarser level of a feature that comes before.
    """

    pairs: tuple[Pair, ...]
    levels: Levels = PLAIN

    def __post_init__(self) -> None:
        placed: set[int] = set()
        for pair in self.pairs:
            if pair.feature in placed:
                raise invalid(f"The network has feature {pair.feature} twice.")
            parents = {self.levels.base(parent) for parent in pair.parents}
            if len(parents) != len(pair.parents):
                raise invalid(f"A parent of feature {pair.feature} is listed twice.")
            if not placed.issuperset(parents):
                raise invalid(f"A parent of feature {pair.feature} does not come before it.")
            placed.add(pair.feature)

    @property
    def features(self) -> Features:
        """The features in the order in which they are drawn."""
        return tuple(pair.feature for pair in self.pairs)

    @property
    def degree(self) -> int:
        """The largest number of parents."""
        return max((len(pair.parents) for pair in self.pairs), default=0)

    @property
    def edges(self) -> frozenset[tuple[int, int]]:
        """All (parent, feature), whatever the level of the parent."""
        return frozenset((self.levels.base(parent), pair.feature) for pair in self.pairs for parent in pair.parents)

    def asked_families(self) -> tuple[Features, ...]:
        """The families whose tables must be asked: every other one lies inside one of these, maybe on coarser levels,
        and is derived. No family tells an earlier one of the same length: each would have the other's feature as a
        parent.
        """
        kept: list[Features] = []
        for pair in sorted(self.pairs, key=lambda pair: -len(pair.family)):
            if not any(self.levels.covers(family, pair.family) for family in kept):
                kept.append(pair.family)
        return tuple(sorted(kept, key=lambda family: self.features.index(family[0])))

    def asked_sets(self) -> tuple[Features, ...]:
        """The same as a query names them."""
        return tuple(self.levels.order(family) for family in self.asked_families())


@dataclass(frozen=True, slots=True)
class Bound:
    """How large a family may be: a limit on parents, on cells, or on both; 0 leaves no parents."""

    sizes: tuple[int, ...]
    degree: int | None = None
    cells: int | None = None

    def __post_init__(self) -> None:
        assert self.degree is not None or self.cells is not None

    def admits(self, feature: int, parents: Features) -> bool:
        """Whether the pair may be in the network; a feature without parents always may."""
        few = self.degree is None or len(parents) <= self.degree
        small = self.cells is None or self._count_cells(feature, parents) <= self.cells
        return not parents or (few and small)

    def room(self, feature: int, parents: Features) -> float:
        """How many more parents fit: k' - |Pa(X)| of Definition 3, which counts bits where cells are bounded.

        log2(cells / cells of the family) is the same number if all features are binary and cells = 2^(k'+1).
        """
        rooms: list[float] = []
        if self.degree is not None:
            rooms.append(self.degree - len(parents))
        if self.cells is not None:
            rooms.append(math.log2(max(1, self.cells)) - math.log2(self._count_cells(feature, parents)))
        return max(0.0, min(rooms))

    def _count_cells(self, feature: int, parents: Features) -> int:
        return self.sizes[feature] * math.prod(self.sizes[parent] for parent in parents)


def select_network(frontier: Network, score: Score, bound: Bound) -> Network:
    """The network inside `frontier` that gives each feature its best parents within `bound`, in the same order.

    Scores are compared rounded; of equals, fewer parents and then lower indices win. A score of -inf stands for
    parents about which no table says anything. Where features have levels, a parent may be as coarse as it gets, and
    only maximal sets are weighed: a larger or finer one tells no less, and all sets would be too many.
    """
    levels = frontier.levels
    chosen = tuple(Pair(pair.feature, _best_parents(pair, score, bound, levels)) for pair in frontier.pairs)
    return Network(chosen, levels)


def _best_parents(candidates: Pair, score: Score, bound: Bound, levels: Levels) -> Features:
    best: Features = ()
    best_score = -math.inf
    for parents in _parent_sets(candidates, bound) if levels == PLAIN else _maximal_sets(candidates, bound, levels):
        value = round(score(candidates.feature, parents), SCORE_DIGITS)
        if value > best_score:
            best, best_score = parents, value
    return best


def _parent_sets(candidates: Pair, bound: Bound) -> Iterator[Features]:
    """The admitted subsets of the candidate parents, small ones first."""
    for count in range(len(candidates.parents) + 1):
        sets = combinations(sorted(candidates.parents), count)
        yield from (parents for parents in sets if bound.admits(candidates.feature, parents))


def _maximal_sets(candidates: Pair, bound: Bound, levels: Levels) -> Iterable[Features]:
    """The maximal sets of the candidate parents, each on its own level or a coarser one."""
    assert bound.cells is not None
    finest = {levels.base(parent): parent for parent in candidates.parents}
    chains = [
        [level for level in levels.chain(base) if level >= finest.get(base, base)]
        for base in range(max(finest, default=-1) + 1)
    ]
    room = bound.cells // bound.sizes[candidates.feature]
    return ParentSets(list(finest), bound.sizes, chains, bound.degree).within(room)


def typical_families(sizes: Sequence[int], cells: int) -> tuple[tuple[int, ...], ...]:
    """One table for each feature, with as many of the next features as the table may have cells: for a forecast."""
    families = []
    for feature in range(len(sizes)):
        chosen = [feature]
        for other in range(feature + 1, len(sizes)):
            if prod(sizes[i] for i in (*chosen, other)) > cells:
                break
            chosen.append(other)
        families.append(tuple(chosen))
    return tuple(families)
