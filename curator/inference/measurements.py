"""Measurements: the released numbers that a model is fitted to, and the small tables in which they are read.

A factor is a small table inside a clique; all numbers about one set of attributes are read in one factor, and an
attribute's one-way table in a factor that holds it. The cells of all factors lie side by side in one row, so that
a loss over thousands of numbers is a handful of numpy calls.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from synod.curator.inference.junction import Attributes, JunctionTree, Number

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """Noisy counts of every cell of a table.

    Attributes:
        attributes: one or more, ascending.
        values: the counts, one axis for each attribute.
        variance: of the noise, one for all cells or one for each.
    """

    attributes: Attributes
    values: Floats
    variance: float | Floats


@dataclass(frozen=True, slots=True, eq=False)
class SignedSums:
    """Noisy signed sums over the rows: number k adds left[k, i] right[k, j] for a row with codes (i, j).

    Attributes:
        attributes: two, ascending.
        left: for each number the sign of every code of the first attribute.
        right: likewise of the second.
        values: the noisy sums.
        variance: of the noise, one for all or one for each.
    """

    attributes: tuple[int, int]
    left: Floats
    right: Floats
    values: Floats
    variance: float | Floats

    def signs(self) -> Floats:
        """For each number the sign of every cell."""
        return self.left[:, :, np.newaxis] * self.right[:, np.newaxis, :]


def choose_factors(tree: JunctionTree, measurements: Iterable[Measurement | SignedSums]) -> list[Attributes]:
    """The small tables to which all measurements inside cliques can be read off: their sets of attributes, those
    of one attribute only where no larger one holds it, and every attribute in at least one.
    """
    sets = sorted({m.attributes for m in measurements if tree.home(m.attributes) is not None})
    joint = [attributes for attributes in sets if len(attributes) > 1]
    covered = {attribute for attributes in joint for attribute in attributes}
    return joint + [(attribute,) for attribute in range(len(tree.sizes)) if attribute not in covered]


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The cells of all factors in one row, each factor in the order of its own axes.

    Attributes:
        factors: attributes in the order of the factor's axes.
        starts: where each factor's cells start.
        hosts: for each attribute the factor and the axis in which its one-way table is read.
    """

    sizes: tuple[int, ...]
    factors: tuple[Attributes, ...]
    starts: tuple[int, ...]
    hosts: tuple[tuple[int, int], ...]

    @property
    def cells(self) -> int:
        """How many cells all factors have."""
        return self.starts[-1]

    def shape(self, factor: int) -> tuple[int, ...]:
        """The shape of one factor's table."""
        return tuple(self.sizes[attribute] for attribute in self.factors[factor])

    def span(self, factor: int) -> slice:
        """Where one factor's cells are."""
        return slice(self.starts[factor], self.starts[factor + 1])

    def flatten(self, table: Floats, attributes: Attributes, factor: int) -> Floats:
        """A table over the factor's attributes, in whatever order, in the order of the factor's cells."""
        return table.transpose([attributes.index(attribute) for attribute in self.factors[factor]]).reshape(-1)

    def split(self, cells: Floats) -> list[Floats]:
        """Each factor's own table."""
        return [cells[self.span(factor)].reshape(self.shape(factor)) for factor in range(len(self.factors))]

    def spread(self, table: NDArray[Number], attribute: int) -> tuple[slice, NDArray[Number]]:
        """A one-way table over all cells of the factor that hosts it."""
        factor, axis = self.hosts[attribute]
        shape = [1] * len(self.factors[factor])
        shape[axis] = -1
        return self.span(factor), np.broadcast_to(table.reshape(shape), self.shape(factor)).reshape(-1)


def make_layout(sizes: tuple[int, ...], factors: Sequence[Attributes]) -> Layout:
    """The layout of these factors; an attribute's one-way table is read in the first that holds it."""
    cells = [prod(sizes[attribute] for attribute in factor) for factor in factors]
    first = {a: (f, axis) for f in reversed(range(len(factors))) for axis, a in enumerate(factors[f])}
    starts = tuple(int(start) for start in np.cumsum([0, *cells]))
    return Layout(sizes, tuple(factors), starts, tuple(first[attribute] for attribute in range(len(sizes))))
