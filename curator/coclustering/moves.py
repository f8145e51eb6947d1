"""Moves: single values change their part while the criterion falls. Merges cannot take back what they joined early."""

from collections.abc import Iterator, Sequence

import numpy as np

from synod.common.study.levels import number_groups
from synod.curator.coclustering.criterion import (
    Axis,
    Floats,
    Groups,
    Integers,
    gather,
    log_factorials,
    part_costs,
)

MOST_SWEEPS = 20
LEAST_GAIN = 1e-6


def move_values(counts: Integers, axes: Sequence[Axis], groups: Sequence[Groups]) -> list[Groups]:
    """A grid of as many parts of each attribute and of no higher cost: each value of each attribute in turn goes where
    it costs the least, in at most 20 sweeps. A value at the end of an interval may go to the next one.
    """
    current = list(groups)
    for _ in range(MOST_SWEEPS):
        before = list(current)
        for place, axis in enumerate(axes):
            others = [tuple(range(axis.size)) if i == place else own for i, own in enumerate(current)]
            values = np.moveaxis(gather(counts, others), place, 0).reshape(axis.size, -1)
            current[place] = _sweep(values, axis, current[place])
        if current == before:
            break
    return [number_groups(own) for own in current]


def _sweep(values: Integers, axis: Axis, groups: Groups) -> Groups:
    """One attribute's parts after each of its values had its turn; `values` has a row of cells for each."""
    own, members = np.array(groups), np.bincount(groups)
    parts = np.stack([values[own == part].sum(axis=0) for part in range(len(members))])
    totals = parts.sum(axis=1)
    for value, row in enumerate(values):
        source = int(own[value])
        targets = np.array(sorted(_targets(axis, own, value)), dtype=np.int64)
        if members[source] == 1 or len(targets) == 0:
            continue
        changes = _changes(parts, totals, members, row, source, targets)
        best = int(np.argmin(changes))
        if changes[best] < -LEAST_GAIN:
            target = int(targets[best])
            own[value] = target
            for numbers, moved in ((parts, row), (totals, row.sum()), (members, 1)):
                numbers[source] -= moved
                numbers[target] += moved
    return tuple(own.tolist())


def _targets(axis: Axis, own: Integers, value: int) -> Iterator[int]:
    """The parts that a value may move to."""
    if not axis.is_ordered:
        yield from (part for part in range(int(own.max()) + 1) if part != own[value])
        return
    numbers = axis.size - axis.has_missing
    if value < numbers:
        near = [other for other in (value - 1, value + 1) if 0 <= other < numbers]
        yield from {int(own[other]) for other in near} - {int(own[value])}


def _changes(
    parts: Integers, totals: Integers, members: Integers, row: Integers, source: int, targets: Integers
) -> Floats:
    """How the cost changes if a value with this row of cells leaves `source` for each of the targets."""
    columns, total = np.flatnonzero(row), int(row.sum())
    moving, left, found = row[columns], parts[source, columns], parts[np.ix_(targets, columns)]
    own = slice(source, source + 1)
    leaves = log_factorials(left).sum() - log_factorials(left - moving).sum()
    leaves += part_costs(totals[own] - total, members[own] - 1)[0] - part_costs(totals[own], members[own])[0]
    enters = log_factorials(found).sum(axis=1) - log_factorials(found + moving).sum(axis=1)
    enters += part_costs(totals[targets] + total, members[targets] + 1) - part_costs(totals[targets], members[targets])
    changes: Floats = leaves + enters
    return changes
