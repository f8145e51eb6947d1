"""The search frontier: a network and, beside its own, those edges that its successors may want.

CSFC, Algorithm 1 of DP-SUBN (Section VI-B). Pairs of features are taken by falling mutual information; an edge
between two of them follows the partial order that the edges so far imply, or, if that is silent, goes where more
room is left for later edges. It is computed from released correlations and a released network, so it is free.

Where features have levels, an edge that is added has its parent on the finest level that fits. Pairs, partial order and
correlations are of base features.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synod.common.runtime.errors import invalid
from synod.curator.network.graph import Bound, Network, Pair
from synod.curator.network.levels import Levels

Frontier = Network
Edge = tuple[int, int]
"""A parent, which may be a level of a feature, and the feature that it is a parent of."""

# Multiples of this, as long as they add up to less than 2^20, have sums that are exact in any order.
INFORMATION_UNIT = 2.0**-32


def build_frontier(
    network: Network, information: NDArray[np.float64], bound: Bound, *, one_sided: bool = False
) -> Frontier:
    """Add edges to `network` within `bound`, those of high information first, and keep it acyclic.

    Args:
        network: places every feature; its edges stay, even where they leave no room.
        information: the symmetric matrix of the pairs' mutual information.
        bound: k', as a degree or by cells.
        one_sided: also join two incomparable features of which only one has room, which Algorithm 1 as printed
            passes over.
    """
    draft = start_draft(network, information, bound)
    for x, y in _rank_pairs(draft.information):
        edge = direct_edge(draft, x, y, one_sided=one_sided)
        if edge is not None:
            draft.add(edge)
    return draft.finish()


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """A frontier in the making: parents, and the partial order as a matrix, `below[X, Y]` for X <= Y."""

    information: NDArray[np.float64]
    bound: Bound
    parents: tuple[list[int], ...]
    below: NDArray[np.bool_]
    levels: Levels

    def add(self, edge: Edge) -> None:
        """Whatever is at or below the parent is now below all that is at or above the child."""
        parent, child = edge
        self.parents[child].append(parent)
        self.below[self.below[:, self.levels.base(parent)]] |= self.below[child]

    def has_edge(self, parent: int, child: int) -> bool:
        """Whether the child has this parent, on whatever level."""
        return any(self.levels.base(one) == parent for one in self.parents[child])

    def fit_edge(self, parent: int, child: int) -> Edge | None:
        """The edge from the finest level of this parent that the child may get too."""
        own = self.parents[child]
        fitting = (level for level in self.levels.chain(parent) if self.bound.admits(child, (*own, level)))
        return next(((level, child) for level in fitting), None)

    def sparsity(self, x: int) -> float:
        """Sp(X): how many parents the features at or below X can still get."""
        return sum(self.bound.room(int(z), tuple(self.parents[z])) for z in np.flatnonzero(self.below[:, x]))

    def impact(self, x: int, y: int) -> float:
        """Im(X, Y): the information of the pairs that X -> Y would forbid to be directed the other way."""
        pairs = self.information[np.ix_(self.below[:, x], self.below[y])]
        return float(pairs.sum() - self.information[x, y])

    def finish(self) -> Frontier:
        """A feature above another has more features at or below it, which sorts them."""
        order = np.argsort(self.below.sum(axis=0), kind="stable")
        return Network(tuple(Pair(int(x), self.levels.order(self.parents[x])) for x in order), self.levels)


def start_draft(network: Network, information: NDArray[np.float64], bound: Bound) -> Draft:
    """The draft that holds the network's own edges."""
    count = len(information)
    if sorted(network.features) != list(range(count)):
        raise invalid("The network does not place exactly the features that have correlations.")
    assert information.shape == (count, count)
    rounded = np.rint(information / INFORMATION_UNIT) * INFORMATION_UNIT
    assert np.abs(rounded).sum() < 2**20
    assert np.array_equal(rounded, rounded.T)
    draft = Draft(rounded, bound, tuple([] for _ in range(count)), np.eye(count, dtype=bool), network.levels)
    for pair in network.pairs:
        for parent in pair.parents:
            draft.add((parent, pair.feature))
    return draft


def direct_edge(draft: Draft, x: int, y: int, *, one_sided: bool) -> Edge | None:
    """The edge (parent, child) between x and y that Algorithm 1 adds, lines 5 to 22, if it adds one."""
    if draft.has_edge(x, y) or draft.has_edge(y, x):
        return None
    to_x, to_y = draft.fit_edge(y, x), draft.fit_edge(x, y)
    if draft.below[x, y]:
        return to_y
    if draft.below[y, x]:
        return to_x
    if to_x and to_y:
        costs_more = draft.sparsity(x) * draft.impact(x, y) >= draft.sparsity(y) * draft.impact(y, x)
        return to_x if costs_more else to_y
    return (to_x or to_y) if one_sided else None


def _rank_pairs(information: NDArray[np.float64]) -> Iterator[Edge]:
    """All pairs x < y by falling information, equals by index."""
    x, y = np.triu_indices(len(information), 1)
    order = np.argsort(-information[x, y], kind="stable")
    yield from zip(x[order].tolist(), y[order].tolist(), strict=True)
