"""Pairs: the table of every pair of attributes under a model, inside a clique or across several.

Across cliques the model's independence given separators is used: the attributes of one clique walk outward over the
tree, as their joint table with each separator on the way. All of a clique's attributes walk together.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import prod

import numpy as np

from synod.curator.inference.junction import Attributes, JunctionTree, reduce_table
from synod.curator.inference.propagation import Floats, divide_safely


def pair_tables(tree: JunctionTree, tables: Sequence[Floats]) -> dict[tuple[int, int], Floats]:
    """For every two attributes a < b their joint probabilities, of shape (size of a, size of b)."""
    found: dict[tuple[int, int], Floats] = {}
    for clique, table in zip(tree.cliques, tables, strict=True):
        for pair in combinations(clique, 2):
            if pair not in found:
                found[pair] = reduce_table(table, clique, pair)
    walker = _Walker(tree, tables)
    for place, owned in enumerate(_share_out(tree)):
        for pair, table in walker.walk(place, owned):
            if pair not in found:
                found[pair] = table
    return found


def _share_out(tree: JunctionTree) -> list[Attributes]:
    """Gives each attribute to one clique, the first in the tree's order."""
    owner: dict[int, int] = {}
    for place in tree.order:
        for attribute in tree.cliques[place]:
            owner.setdefault(attribute, place)
    return [tuple(a for a in clique if owner[a] == place) for place, clique in enumerate(tree.cliques)]


@dataclass(frozen=True, slots=True, eq=False)
class _Walker:
    """Walks over one tree; tables that several walks need are kept."""

    tree: JunctionTree
    tables: Sequence[Floats]
    kept: dict[tuple[int, Attributes, Attributes], Floats] = field(default_factory=dict)

    def walk(self, start: int, owned: Attributes) -> Iterator[tuple[tuple[int, int], Floats]]:
        """Tables of the owned attributes with all that lie in other cliques; each pair perhaps more than once."""
        waiting = [(start, next_, self._leave(start, owned, next_)) for next_ in self.tree.neighbours(start)]
        while owned and waiting:
            before, place, joint = waiting.pop()
            entered = self.tree.between(before, place)
            for attribute in self.tree.cliques[place]:
                if attribute not in entered:
                    yield from self._split(owned, attribute, joint @ self._given(place, entered, (attribute,)))
            for next_ in self.tree.neighbours(place):
                if next_ != before:
                    left = self.tree.between(place, next_)
                    waiting.append((place, next_, self._cross(place, joint, entered, left)))

    def _leave(self, place: int, owned: Attributes, next_: int) -> Floats:
        """Rows: all codes of the owned attributes; columns: the cells of the separator to the next clique."""
        clique, separator = self.tree.cliques[place], self.tree.between(place, next_)
        parts = [np.empty((0, prod(self.tree.shape(separator))))]
        for attribute in owned:
            joined = tuple(sorted({*separator, attribute}))
            table = reduce_table(self.tables[place], clique, joined)
            if attribute in separator:
                table = _mark_codes(table, joined.index(attribute))
            else:
                table = np.moveaxis(table, joined.index(attribute), 0)
            parts.append(table.reshape(len(table), -1))
        return np.concatenate(parts)

    def _given(self, place: int, entered: Attributes, wanted: Attributes) -> Floats:
        """P(wanted | entered) for disjoint sets of one clique, one row for each cell of `entered`."""
        key = (place, entered, wanted)
        if key not in self.kept:
            joined = tuple(sorted(entered + wanted))
            table = reduce_table(self.tables[place], self.tree.cliques[place], joined)
            table = table.transpose([joined.index(attribute) for attribute in entered + wanted])
            table = table.reshape(prod(self.tree.shape(entered)), -1)
            self.kept[key] = divide_safely(table, np.broadcast_to(table.sum(axis=1, keepdims=True), table.shape))
        return self.kept[key]

    def _cross(self, place: int, joint: Floats, entered: Attributes, left: Attributes) -> Floats:
        """From the joint table with the separator entered to that with the separator on the other side."""
        tree, rows = self.tree, len(joint)
        shared = tuple(attribute for attribute in entered if attribute in left)
        dropped = tuple(attribute for attribute in entered if attribute not in left)
        new = tuple(attribute for attribute in left if attribute not in entered)
        both, gone = prod(tree.shape(shared)), prod(tree.shape(dropped))
        moved = _reorder(joint.T, tree, entered, shared + dropped).reshape(both, gone, rows)
        given = _reorder(self._given(place, entered, new), tree, entered, shared + dropped).reshape(both, gone, -1)
        crossed = given.transpose(0, 2, 1) @ moved
        return _reorder(crossed.reshape(-1, rows), tree, shared + new, left).T

    def _split(self, owned: Attributes, attribute: int, stacked: Floats) -> Iterator[tuple[tuple[int, int], Floats]]:
        """The rows of each owned attribute as its table with another one."""
        start = 0
        for own in owned:
            table = stacked[start : start + self.tree.sizes[own]]
            start += self.tree.sizes[own]
            yield ((own, attribute), table) if own < attribute else ((attribute, own), table.T)


def _reorder(rows: Floats, tree: JunctionTree, attributes: Attributes, order: Attributes) -> Floats:
    """Rows, one for each cell over `attributes`, as rows for each cell over the same in another order."""
    table = rows.reshape(*tree.shape(attributes), rows.shape[1])
    axes = [attributes.index(attribute) for attribute in order]
    return table.transpose([*axes, len(axes)]).reshape(rows.shape)


def _mark_codes(table: Floats, axis: int) -> Floats:
    """The joint table of a separator with one of its own attributes, first: zero where their codes differ."""
    size = table.shape[axis]
    shape = [size if place == axis else 1 for place in range(table.ndim)]
    return np.eye(size).reshape(size, *shape) * table
