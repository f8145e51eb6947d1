"""Models of finitely many values: variables that are drawn one after the other, each given some of those before it.

A Bayesian network is such a model, and so is a junction tree, or a table of all cells. An attribute is one variable or
several, such as the bits of its code. Conditions are worked in by elimination, so rows that satisfy them are drawn
directly, however rare they are; where that would take too much memory, rows are drawn without the condition.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from synod.common.runtime.errors import SynodError, invalid
from synod.common.study.encoding import Codes
from synod.curator.drawing.base import Allowed, Floats, RowModel
from synod.curator.drawing.elimination import Elimination, Factor, Integers, ancestors, draw_variable, eliminate


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """How one variable is drawn: `chances` has an axis for each parent, in order, and then the variable's."""

    variable: int
    parents: tuple[int, ...]
    chances: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """Where an attribute is: the variables that make it up, and for each of its codes the cell of their table."""

    variables: tuple[int, ...]
    cells: Integers
    dtype: np.dtype[np.unsignedinteger]


@dataclass(frozen=True, slots=True, eq=False)
class DiscreteModel(RowModel):
    """Nodes in the order in which they are drawn, one for each variable, and a column for each attribute."""

    sizes: tuple[int, ...]
    nodes: tuple[Node, ...]
    columns: tuple[Column, ...]
    _parents: tuple[tuple[int, ...], ...] = field(init=False)

    def __post_init__(self) -> None:
        parents = {node.variable: node.parents for node in self.nodes}
        object.__setattr__(self, "_parents", tuple(parents[variable] for variable in range(len(self.sizes))))

    def draw(self, rows: int, allowed: Allowed, *, rng: np.random.Generator) -> list[Codes]:
        """Implements `RowModel.draw`: what conditions are about backwards through the elimination, the rest forwards.

        Guarantee: exact up to the rounding of floats, given the conditions, or without them where they would take too
        much memory.
        """
        values: list[Integers] = [np.zeros(0, dtype=np.int64) for _ in self.sizes]
        drawn = set[int]()
        eliminated = self._eliminate(self._evidence(allowed)) if any(own is not None for own in allowed) else None
        if eliminated is not None:
            if not float(eliminated.left) > 0:
                raise impossible_conditions()
            for bucket in reversed(eliminated.buckets):
                own = draw_variable(values, bucket.given, bucket.weights, self.sizes, rows, rng=rng)
                values[bucket.variable] = own
                drawn.add(bucket.variable)
        for node in self.nodes:
            if node.variable not in drawn:
                values[node.variable] = draw_variable(values, node.parents, node.chances, self.sizes, rows, rng=rng)
        return [self._code(column, values, rows) for column in self.columns]

    def chance(self, allowed: Allowed) -> float | None:
        """Implements `RowModel.chance`."""
        eliminated = self._eliminate(self._evidence(allowed))
        return None if eliminated is None else float(eliminated.left * np.exp(eliminated.log_scale))

    def table(self, attributes: Sequence[int]) -> Floats | None:
        """Implements `RowModel.table`."""
        kept = tuple(variable for attribute in attributes for variable in self.columns[attribute].variables)
        eliminated = self._eliminate([], kept)
        if eliminated is None:
            return None
        joint = eliminated.left * np.exp(eliminated.log_scale)
        joint = joint.reshape([self._cells(self.columns[attribute]) for attribute in attributes])
        chances: Floats = joint[np.ix_(*(self.columns[attribute].cells for attribute in attributes))]
        return chances

    def _evidence(self, allowed: Allowed) -> list[Factor]:
        """A factor for each condition: 1 where its attribute's code is allowed."""
        factors = []
        for column, own in zip(self.columns, allowed, strict=True):
            if own is not None:
                indicator = np.zeros(self._cells(column))
                indicator[column.cells[own]] = 1.0
                factors.append(Factor(column.variables, indicator.reshape(self._shape(column))))
        return factors

    def _eliminate(self, evidence: Sequence[Factor], kept: Sequence[int] = ()) -> Elimination | None:
        """What evidence or kept variables depend on; the chances of all others add up to 1."""
        wanted = {variable for factor in evidence for variable in factor.variables} | set(kept)
        needed = ancestors(self._parents, wanted)
        own = [Factor((*node.parents, node.variable), node.chances) for node in self.nodes if node.variable in needed]
        return eliminate([*own, *evidence], self.sizes, kept)

    def _shape(self, column: Column) -> list[int]:
        return [self.sizes[variable] for variable in column.variables]

    def _cells(self, column: Column) -> int:
        return int(np.prod(self._shape(column), dtype=np.int64))

    def _code(self, column: Column, values: Sequence[Integers], rows: int) -> Codes:
        codes = np.zeros(self._cells(column), dtype=column.dtype)
        codes[column.cells] = np.arange(len(column.cells), dtype=column.dtype)
        cells = np.zeros(rows, dtype=np.int64)
        for variable in column.variables:
            cells = cells * self.sizes[variable] + values[variable]
        return codes[cells]


def share_out(weights: NDArray[np.int64] | Floats) -> Floats:
    """Chances in proportion to weights along the last axis; equal ones where there are none."""
    values = weights.astype(np.float64)
    values = np.where(values.any(axis=-1, keepdims=True), values, 1.0)
    chances: Floats = values / values.sum(axis=-1, keepdims=True)
    return chances


def impossible_conditions() -> SynodError:
    """What to say where conditions rule out every row that the model may give."""
    return invalid("the model gives no row under these conditions any chance.", "Loosen or leave out a condition.")
