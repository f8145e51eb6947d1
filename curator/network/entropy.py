"""Tables of largest entropy with given two-way margins, by iterative proportional fitting, many at once."""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from synod.curator.network.tables import Floats

SWEEPS = 20
# What a sweep still moves a margin by when it is near enough; scores are compared by far less than it changes them.
SETTLED = 1e-5


def fit_largest_entropy(
    margins: Mapping[tuple[int, int], Floats], shape: Sequence[int], sweeps: int = SWEEPS
) -> Floats:
    """Tables of this shape that have the given two-way margins, nearly, and no dependence beyond them.

    From equal cells on, each sweep scales the tables to one margin after the other; that converges to the table of
    largest entropy where margins agree. A margin that has no mass where the others need some takes it away.

    Args:
        margins: for each pair of axes, the first below the second, the margins as (size, size, tables).
        shape: of one table.
        sweeps: at most so many.

    Returns:
        an array of shape (*shape, tables).
    """
    pairs = list(combinations(range(len(shape)), 2))
    count = margins[0, 1].shape[-1]
    tables = np.full((*shape, count), 1.0 / np.prod(shape))
    others = {pair: tuple(axis for axis in range(len(shape)) if axis not in pair) for pair in pairs}
    for _ in range(sweeps):
        moved = 0.0
        for pair in pairs:
            current = tables.sum(axis=others[pair], keepdims=True)
            target = np.expand_dims(margins[pair], others[pair])
            moved = max(moved, float(np.abs(target - current).max()))
            tables *= np.divide(target, current, out=np.zeros_like(current), where=current > 0)
        if moved < SETTLED:
            break
    return tables
