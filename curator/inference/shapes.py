"""The shape of a column of numbers, as far as a Gaussian cannot have it: skewness and spikes.

For advice in the house of whoever holds the rows. What comes of it is not private and must never reach a release.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LARGEST_SKEWNESS = 1.0
LARGEST_SHARE = 0.10
LARGEST_SHARE_AT_END = 0.02


@dataclass(frozen=True, slots=True)
class Spike:
    """A value that too many rows have; `end` is "minimum" or "maximum" where it is one of the column, or empty."""

    value: float
    share: float
    end: str


def skewness(values: Floats) -> float:
    """The third standardized moment; 0 where there is no spread."""
    if len(values) == 0 or values.min() == values.max():
        return 0.0
    centred = values - values.mean()
    return float(((centred / np.sqrt((centred**2).mean())) ** 3).mean())


def find_spike(values: Floats) -> Spike | None:
    """The greatest spike: a value with more than a tenth of the rows, or the minimum or maximum with more than 2 %."""
    if len(values) == 0:
        return None
    found, counts = np.unique(values, return_counts=True)
    shares, last = counts / len(values), len(found) - 1
    limits = np.full(len(found), LARGEST_SHARE)
    limits[[0, last]] = LARGEST_SHARE_AT_END
    excess = np.where(shares > limits, shares, 0.0)
    place = int(excess.argmax())
    if not excess[place]:
        return None
    end = "minimum" if place == 0 else "maximum" if place == last else ""
    return Spike(float(found[place]), float(shares[place]), end)
