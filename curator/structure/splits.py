"""Splits: a sign for each group of values of each feature, so that the agreements of all pairs tell the most.

A split should halve the rows. The first takes ordered values from one end up to about half of the rows, the second the
middle against the ends; further ones, and all of unordered values, are random. They depend on released one-way shares
and public coins.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MIDDLE = (0.25, 0.78)


def choose_signs(shares: Floats, order: Sequence[int] | None, split: int, *, rng: np.random.Generator) -> Floats:
    """The sign of each group of one feature in a split; both signs occur where there are two groups.

    `order` are the groups in the order of their values, where they have one; a missing value's group is not in it.
    """
    random: list[int] = rng.permutation(len(shares)).tolist()
    if order is not None and split == 0:
        signs = _take_half(shares, order)
    elif order is not None and split == 1 and len(order) > 3:
        signs = _take_middle(shares, order)
    elif split == 0:
        signs = _take_half(shares, sorted(random, key=lambda group: -shares[group]))
    else:
        signs = _take_half(shares, random)
    if abs(signs.sum()) == len(signs):
        signs[np.argmax(shares)] *= -1
    return signs


def _take_half(shares: Floats, order: Sequence[int]) -> Floats:
    """Plus for groups in this order as long as they bring the total nearer to one half."""
    signs, total = np.full(len(shares), -1.0), 0.0
    for group in order:
        if total + shares[group] / 2 < 0.5:
            signs[group] = 1.0
            total += shares[group]
    return signs


def _take_middle(shares: Floats, order: Sequence[int]) -> Floats:
    """Plus for the groups of the middle half of the rows."""
    signs, reached = np.full(len(shares), -1.0), np.cumsum(shares[list(order)])
    inside = (reached > MIDDLE[0]) & (reached <= MIDDLE[1])
    signs[np.asarray(order)[inside]] = 1.0
    return signs
