"""Smoothing: what the agreements of all pairs of two-valued attributes say of each pair, together.

A few factors behind all attributes explain most of what pairs have in common, with fewer numbers than there are pairs,
so that noise averages out in them; what they do not explain is kept as far as it exceeds noise. All of it is
post-processing of released numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from synod.curator.inference.measurements import SignedSums

Floats = NDArray[np.float64]
FEWEST_PAIRS = 3
MOST_FACTORS = 8
SWEEPS = 100


def smooth_sums(sums: Sequence[SignedSums], shares: Sequence[Floats], rows: int) -> tuple[SignedSums, ...]:
    """The sums of signs of all pairs, their correlations smoothed.

    The stated variance stays that of the noise: telling the fit of the smaller error made no difference.

    Args:
        sums: one for each pair of attributes, with one number each.
        shares: each attribute's shares of its two values, none of them nothing.
        rows: of the study.
    """
    if len(sums) < FEWEST_PAIRS:
        return tuple(sums)
    means = np.array([second - first for first, second in shares])
    spreads = np.sqrt(1 - means**2)
    places = np.array([one.attributes for one in sums]).T
    scales = rows * spreads[places[0]] * spreads[places[1]]
    expected = rows * means[places[0]] * means[places[1]]
    noisy = np.zeros((len(shares), len(shares)))
    values = (np.array([one.values[0] for one in sums]) - expected) / scales
    noisy[places[0], places[1]] = noisy[places[1], places[0]] = values
    variances = np.array([float(np.mean(one.variance)) for one in sums]) / scales**2
    smooth = expected + scales * smooth_pairs(noisy, float(variances.mean())).values[places[0], places[1]]
    return tuple(replace(one, values=np.array([value])) for one, value in zip(sums, smooth, strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class Smoothed:
    """Estimates for all pairs, symmetric and 0 on the diagonal, and an estimate of their mean squared error."""

    values: Floats
    error: float
    factors: int


def smooth_pairs(noisy: Floats, variance: float) -> Smoothed:
    """The smoothed numbers of all pairs, by as many factors as promise the least error.

    Args:
        noisy: one number for each pair, symmetric; the diagonal is not read.
        variance: of the noise of a pair's number, in the mean.
    """
    size = len(noisy)
    counts = [k for k in range(MOST_FACTORS + 1) if count_parameters(size, k) <= size * (size - 1) // 4]
    return min((smooth_by(noisy, variance, factors) for factors in counts), key=lambda one: one.error)


def smooth_by(noisy: Floats, variance: float, factors: int) -> Smoothed:
    """What so many factors say of each pair, and of the rest the part that is not noise.

    Of M numbers, the q parameters of the factors take up the noise of q; the others leave residuals of the noise's
    variance v and of a spread t of their own. Shrunk by t / (t + v), such a residual errs by t v / (t + v).
    """
    size = len(noisy)
    pairs, parameters = size * (size - 1) // 2, count_parameters(size, factors)
    explained = fit_factors(noisy, factors)
    residuals = _without_diagonal(noisy - explained)
    spread = max(0.0, float((residuals**2).sum()) / 2 / (pairs - parameters) - variance)
    kept = spread / (spread + variance) if spread else 0.0
    error = variance * (parameters + kept * (pairs - parameters)) / pairs
    return Smoothed(_without_diagonal(explained + kept * residuals), error, factors)


def count_parameters(size: int, factors: int) -> int:
    """Loadings of every attribute on every factor, less the rotations of the factors, which change nothing."""
    return size * factors - factors * (factors - 1) // 2


def fit_factors(noisy: Floats, factors: int) -> Floats:
    """The numbers of so many factors that are nearest off the diagonal, by principal axes: the diagonal follows from
    the factors, and they from it.
    """
    current = _without_diagonal(noisy)
    if not factors:
        return np.zeros_like(current)
    np.fill_diagonal(current, np.abs(current).max(axis=1))
    explained = current
    for _ in range(SWEEPS):
        values, vectors = np.linalg.eigh(current)
        loadings = vectors[:, -factors:] * np.sqrt(np.maximum(values[-factors:], 0.0))
        explained = loadings @ loadings.T
        np.fill_diagonal(current, np.diag(explained))
    return explained


def _without_diagonal(matrix: Floats) -> Floats:
    return matrix * (1 - np.eye(len(matrix)))
