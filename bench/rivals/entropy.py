"""Tables of maximum entropy with given margins, by iterative proportional fitting; many of one pattern at a time."""

from collections.abc import Mapping
from math import prod

import numpy as np

from bench.rivals.answers import Attributes, Floats

SWEEPS = 50


def fit_margins(shape: tuple[int, ...], margins: Mapping[Attributes, Floats], *, sweeps: int = SWEEPS) -> Floats:
    """For each of a stack, the table of this shape that is nearest to even among those with these margins.

    `margins` has for each tuple of ascending axes a stack of non-negative tables of these axes, of one total. Margins
    that contradict each other, as noisy ones may, are each met in turn; the last one then holds exactly.
    """
    stack = len(next(iter(margins.values())))
    totals = next(iter(margins.values())).reshape(stack, -1).sum(axis=1)
    tables: Floats = np.ones((stack, *shape)) * (totals / prod(shape)).reshape(-1, *[1] * len(shape))
    for _ in range(sweeps):
        for axes, wanted in margins.items():
            summed = tuple(axis + 1 for axis in range(len(shape)) if axis not in axes)
            present = tables.sum(axis=summed, keepdims=True)
            aim = wanted.reshape(present.shape)
            tables *= np.divide(aim, present, out=np.zeros_like(present), where=present > 0)
    return tables
