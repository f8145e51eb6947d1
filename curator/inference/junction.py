"""Junction trees: which attributes a model's tables join, and how the tables hang together.

Attributes that were measured together are joined by edges; eliminating attributes one at a time, the one with the
smallest clique first, adds the edges that make the graph chordal. Its maximal cliques form a tree in which the
cliques that hold one attribute are connected, so that inference is exact (Lauritzen and Spiegelhalter 1988).
Nothing here reads a table: sizes and sets of attributes are public.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Attributes = tuple[int, ...]
Number = TypeVar("Number", np.float64, np.int64)


def _link(size: int, sets: Iterable[Sequence[int]]) -> list[int]:
    """For each attribute the others that share a set with it, as bits of one integer."""
    neighbours = [0] * size
    for attributes in sets:
        joined = 0
        for attribute in attributes:
            joined |= 1 << attribute
        for attribute in attributes:
            neighbours[attribute] |= joined
    return [joined & ~(1 << attribute) for attribute, joined in enumerate(neighbours)]


def _members(mask: int) -> Iterator[int]:
    """The attributes whose bits are set, ascending."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def _eliminate(sizes: Sequence[int], sets: Iterable[Sequence[int]]) -> Iterator[tuple[int, int]]:
    """The maximal cliques as bits, each with its cells, in order of elimination: the attribute with the smallest
    clique first, ties by index.

    A clique that lies in an earlier one is what was left of that one without the attribute eliminated then, so one
    look into the set of what was left finds it.
    """
    neighbours = _link(len(sizes), sets)
    cells = [prod((sizes[other] for other in _members(mask)), start=sizes[a]) for a, mask in enumerate(neighbours)]
    remaining, left = list(range(len(sizes))), set()
    while remaining:
        attribute = min(remaining, key=cells.__getitem__)
        remaining.remove(attribute)
        around = neighbours[attribute]
        clique = around | 1 << attribute
        if clique not in left:
            yield clique, cells[attribute]
        left.add(around)
        for other in _members(around):
            added = around & ~neighbours[other] & ~(1 << other)
            neighbours[other] = (neighbours[other] | added) & ~(1 << attribute)
            cells[other] = prod((sizes[new] for new in _members(added)), start=cells[other] // sizes[attribute])


def triangulate(sizes: Sequence[int], sets: Iterable[Sequence[int]]) -> list[Attributes]:
    """The maximal cliques of a chordal graph in which every set lies in a clique; every attribute is in one."""
    return [tuple(_members(clique)) for clique, _ in _eliminate(sizes, sets)]


def tree_cells(sizes: Sequence[int], sets: Iterable[Sequence[int]], most: int | None = None) -> int:
    """The cells of all cliques of `triangulate`; counting ends early once they are more than `most`."""
    total = 0
    for _, cells in _eliminate(sizes, sets):
        total += cells
        if most is not None and total > most:
            break
    return total


@dataclass(frozen=True, slots=True)
class JunctionTree:
    """Cliques of attributes, each but the root hung on the clique with which it shares its separator.

    Attributes:
        sizes: how many codes each attribute has.
        cliques: attributes, ascending.
        parents: for each clique the one above it, -1 for the root.
        order: the cliques, parents first.
        separators: for each clique what it shares with its parent, ascending; empty for the root and where parts
            of the tree share nothing.
        children: for each clique those hung on it.
    """

    sizes: tuple[int, ...]
    cliques: tuple[Attributes, ...]
    parents: tuple[int, ...]
    order: tuple[int, ...]
    separators: tuple[Attributes, ...]
    children: tuple[tuple[int, ...], ...]

    @property
    def cells(self) -> int:
        """The cells of all clique tables."""
        return sum(prod(self.shape(clique)) for clique in self.cliques)

    def shape(self, attributes: Iterable[int]) -> tuple[int, ...]:
        """The shape of a table over these attributes."""
        return tuple(self.sizes[attribute] for attribute in attributes)

    def home(self, attributes: Iterable[int]) -> int | None:
        """The clique with the fewest cells that holds all of them, if one does."""
        wanted = set(attributes)
        holding = [place for place, clique in enumerate(self.cliques) if wanted <= set(clique)]
        return min(holding, key=lambda place: prod(self.shape(self.cliques[place])), default=None)

    def neighbours(self, clique: int) -> tuple[int, ...]:
        """The cliques next to one: its parent, if it has one, and its children."""
        above = (self.parents[clique],) if self.parents[clique] >= 0 else ()
        return above + self.children[clique]

    def between(self, clique: int, other: int) -> Attributes:
        """What two neighbours share."""
        return self.separators[clique] if self.parents[clique] == other else self.separators[other]


def build_tree(sizes: Sequence[int], sets: Iterable[Sequence[int]]) -> JunctionTree:
    """The junction tree over these sets and every attribute alone, rooted at its largest clique.

    A spanning tree whose separators have the most attributes in sum is a junction tree (Jensen and Jensen 1994).
    """
    cliques = triangulate(sizes, sets)
    parents, order = _span(sizes, cliques)
    above = [set(cliques[parent]) if parent >= 0 else set() for parent in parents]
    shared = tuple(tuple(a for a in clique if a in held) for clique, held in zip(cliques, above, strict=True))
    children = tuple(tuple(c for c in order if parents[c] == place) for place in range(len(cliques)))
    return JunctionTree(tuple(sizes), tuple(cliques), tuple(parents), tuple(order), shared, children)


def _span(sizes: Sequence[int], cliques: Sequence[Attributes]) -> tuple[list[int], list[int]]:
    """Prim's algorithm: each time the clique that shares the most with one in the tree, ties by index."""
    root = max(range(len(cliques)), key=lambda place: prod(sizes[attribute] for attribute in cliques[place]))
    held = [set(clique) for clique in cliques]
    parents, order = [root] * len(cliques), [root]
    parents[root] = -1
    shared = [len(held[root] & other) for other in held]
    waiting = [place for place in range(len(cliques)) if place != root]
    while waiting:
        nearest = max(waiting, key=shared.__getitem__)
        waiting.remove(nearest)
        order.append(nearest)
        for place in waiting:
            if len(held[nearest] & held[place]) > shared[place]:
                parents[place], shared[place] = nearest, len(held[nearest] & held[place])
    return parents, order


def reduce_table(table: NDArray[Number], attributes: Attributes, kept: Iterable[int]) -> NDArray[Number]:
    """The marginal of a table over `attributes` on those that are kept, in the order of `attributes`."""
    wanted = set(kept)
    dropped = tuple(axis for axis, attribute in enumerate(attributes) if attribute not in wanted)
    reduced: NDArray[Number] = table.sum(axis=dropped) if dropped else table
    return reduced


def expand_table(table: NDArray[Number], attributes: Iterable[int], onto: Attributes) -> NDArray[Number]:
    """A table over `attributes`, ordered as in `onto`, as one that broadcasts against a table over `onto`."""
    held, lengths = set(attributes), iter(table.shape)
    return table.reshape([next(lengths) if attribute in held else 1 for attribute in onto])
