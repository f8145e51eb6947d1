"""Long tails: what small noisy counts are worth when they are known to be small and not negative.

A group of rare values is released as noisy counts; each count is taken as exponential with the group's mean, and
what is expected of it given its noisy reading replaces the reading. Readings below zero become small positive
numbers and readings far above the mean are pulled towards it, which halves the error of long tails.
"""

from math import erfc, exp, pi, sqrt

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# From here on the continued fraction is exact to the last digits with so many terms, and erfc loses them.
FRACTION_FROM = 3.0
FRACTION_TERMS = 80
SMALLEST_MEAN = 0.1


def posterior_means(values: Floats, deviation: float, total: float) -> Floats:
    """The expected counts given noisy readings y = x + N(0, deviation^2) of x, exponential with a common mean.

    Args:
        values: the readings.
        deviation: the noise's standard deviation, above zero.
        total: the group's count; the common mean is total / len(values), and at least a tenth of the deviation
            divided by len(values).
    """
    mean = max(total, SMALLEST_MEAN * deviation) / len(values)
    shifted = values / deviation - deviation / mean
    return deviation * truncated_means(shifted)


def truncated_means(shifts: Floats) -> Floats:
    """The mean of N(shift, 1) given that it is above zero: shift + density(shift) / distribution(shift)."""
    means = np.empty_like(shifts)
    far = shifts < -FRACTION_FROM
    means[far] = _excess_hazard(-shifts[far])
    means[~far] = [_direct(shift) for shift in shifts[~far].tolist()]
    return means


def _direct(shift: float) -> float:
    density = exp(-0.5 * shift * shift) / sqrt(2 * pi)
    return shift + density / (0.5 * erfc(-shift / sqrt(2)))


def _excess_hazard(beyond: Floats) -> Floats:
    """density(t) / distribution(-t) - t as Laplace's continued fraction 1 / (t + 2 / (t + 3 / (t + ...)))."""
    tail = beyond.copy()
    for term in range(FRACTION_TERMS, 1, -1):
        tail = beyond + term / tail
    return 1 / tail
