"""Plans: how one clique's table is summed down to many small tables, and built up from them, in few passes.

A plan is a tree of sums: from the clique to the union of several wanted sets at once, from there to each of them.
The same steps, walked backwards, add small log-potentials up to the potential of the clique, so the clique itself
is touched only by the two or three steps that start at it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import prod

import numpy as np
from numpy.typing import NDArray

from synod.curator.inference.junction import Attributes

Floats = NDArray[np.float64]
# Below this many cells in a row, numpy's sum over an inner axis is slower than a product with a selecting matrix.
SHORT_ROW = 8


@dataclass(frozen=True, slots=True, eq=False)
class Sum:
    """One sum over some axes of a table.

    Attributes:
        shape: the source's shape with neighbouring axes that are treated alike made one.
        axes: which of those are summed over.
        selection: if given, the matrix whose product with the source does it; for `leading` from the left.
        leading: whether the summed axis is the first.
        result: the shape of what is kept.
        spread: the shape with which the result broadcasts against the source.
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    selection: Floats | None
    leading: bool
    result: tuple[int, ...]
    spread: tuple[int, ...]

    def run(self, table: Floats) -> Floats:
        """The sum of a table of the source's shape, in C order."""
        source = table.reshape(self.shape)
        if self.selection is None:
            total: Floats = source.sum(axis=self.axes)
        else:
            total = self.selection @ source if self.leading else source @ self.selection
        return total.reshape(self.result)


def plan_sum(attributes: Attributes, kept: Iterable[int], sizes: Sequence[int]) -> Sum:
    """The sum from a table over `attributes` to one over those that are kept."""
    wanted = set(kept)
    blocks = [(held, prod(sizes[a] for a in run)) for held, run in groupby(attributes, key=wanted.__contains__)]
    shape, axes = tuple(cells for _, cells in blocks), tuple(axis for axis, (held, _) in enumerate(blocks) if not held)
    result = tuple(sizes[attribute] for attribute in attributes if attribute in wanted)
    spread = tuple(sizes[attribute] if attribute in wanted else 1 for attribute in attributes)
    pattern = tuple(held for held, _ in blocks)
    if pattern == (False, True):
        return Sum(shape, axes, np.ones(shape[0]), True, result, spread)
    if pattern == (True, False):
        return Sum(shape, axes, np.ones(shape[1]), False, result, spread)
    if pattern == (True, False, True) and shape[2] < SHORT_ROW:
        selection = np.tile(np.eye(shape[2]), (shape[1], 1))
        return Sum((shape[0], shape[1] * shape[2]), (1,), selection, False, result, spread)
    return Sum(shape, axes, None, False, result, spread)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A sum from the table numbered `source` to the table numbered `target`."""

    source: int
    target: int
    sum: Sum


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The steps from a clique, which is table 0, to all wanted sets.

    Attributes:
        shape: of the clique's table.
        steps: each after the step that makes its source.
        places: for each wanted set the number of its table.
    """

    shape: tuple[int, ...]
    steps: tuple[Step, ...]
    places: tuple[int, ...]

    def reduce(self, table: Floats, scale: float) -> list[Floats]:
        """The marginals of `scale` times a clique's table on the wanted sets."""
        tables = [table] * (len(self.steps) + 1)
        for step in self.steps:
            tables[step.target] = step.sum.run(tables[step.source])
            if step.source == 0 and scale != 1:
                tables[step.target] *= scale
        return [tables[place] if place else table * scale for place in self.places]

    def gather(self, potentials: Sequence[Floats]) -> list[Floats]:
        """Few tables whose broadcast sum over the clique is the sum of the potentials of the wanted sets."""
        totals: list[Floats | None] = [None] * (len(self.steps) + 1)
        top = [potential for place, potential in zip(self.places, potentials, strict=True) if place == 0]
        for place, potential in zip(self.places, potentials, strict=True):
            totals[place] = _add(totals[place], potential) if place else None
        for step in reversed(self.steps):
            part = totals[step.target]
            assert part is not None
            spread = part.reshape(step.sum.spread)
            if step.source:
                totals[step.source] = _add(totals[step.source], spread)
            else:
                top.append(spread)
        return top


def _add(total: Floats | None, part: Floats) -> Floats:
    return part if total is None else total + part


def make_plan(clique: Attributes, wanted: Sequence[Attributes], sizes: Sequence[int]) -> Plan:
    """A plan for these sets, each in the order of `clique`; a set may be wanted twice."""
    numbers: dict[Attributes, int] = {clique: 0}
    steps: list[Step] = []
    _divide(clique, [set_ for set_ in dict.fromkeys(wanted) if set_ != clique], sizes, numbers, steps)
    shape = tuple(sizes[attribute] for attribute in clique)
    return Plan(shape, tuple(steps), tuple(numbers[set_] for set_ in wanted))


def _divide(
    source: Attributes,
    wanted: Sequence[Attributes],
    sizes: Sequence[int],
    numbers: dict[Attributes, int],
    steps: list[Step],
) -> None:
    """Steps from `source` to the wanted sets, in groups: first those that lack the attribute that most sets lack."""
    waiting = list(wanted)
    while waiting:
        lacking = {a: sum(a not in set_ for set_ in waiting) for a in source}
        dropped = max(source, key=lambda attribute: (lacking[attribute], sizes[attribute]))
        group = [set_ for set_ in waiting if dropped not in set_]
        waiting = [set_ for set_ in waiting if dropped in set_]
        union = tuple(attribute for attribute in source if any(attribute in set_ for set_ in group))
        numbers[union] = len(steps) + 1
        steps.append(Step(numbers[source], numbers[union], plan_sum(source, union, sizes)))
        _divide(union, [set_ for set_ in group if set_ != union], sizes, numbers, steps)
