"""The judge of noise: whether a sample may be draws of the promised law. Its constants are here and nowhere else."""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy import signal, stats

from synod.common.privacy.noise import share_variance

LEAST_P = 1e-3
MOST_DEVIATIONS = 3.5
GRID_SCALES = np.linspace(-5, 5, 41)
TAIL_SCALES = 60
GRID_DEVIATIONS = np.linspace(-3.5, 3.5, 41)
TAIL_DEVIATIONS = 12
OFF_BY = [Fraction(7, 10), Fraction(13, 10)]


def accepts(sample: NDArray[np.int64], scale: Fraction, total_shape: Fraction = Fraction(1)) -> bool:
    """Whether `sample` may be draws of NB(R, a) - NB(R, a), R = total_shape; R = 1 is discrete Laplace."""
    edges = np.unique(np.floor(GRID_SCALES * float(scale)))
    chances = np.diff(cumulate(edges, scale, total_shape), prepend=0.0, append=1.0)
    counts = np.bincount(np.searchsorted(edges, sample), minlength=len(chances))
    p_value = stats.chisquare(counts, chances * len(sample)).pvalue
    return bool(p_value > LEAST_P) and deviations(sample, scale, total_shape) < MOST_DEVIATIONS


def cumulate(edges: NDArray[np.float64], scale: Fraction, total_shape: Fraction) -> NDArray[np.float64]:
    """P(Z <= edge): in closed form for the discrete Laplace, else by convolution."""
    if total_shape == 1:
        return np.asarray(stats.dlaplace.cdf(edges, float(1 / scale)))
    reach = math.ceil(TAIL_SCALES * scale)
    law = stats.nbinom.pmf(np.arange(reach), float(total_shape), -math.expm1(-float(1 / scale)))
    masses = signal.fftconvolve(law, law[::-1])
    return np.asarray(np.cumsum(masses)[edges.astype(int) + reach - 1])


def deviations(sample: NDArray[np.int64], scale: Fraction, total_shape: Fraction) -> float:
    """How many standard errors the sample's mean square is from the variance."""
    a = math.exp(-float(1 / scale))
    variance = share_variance(shape=total_shape, scale=scale)
    fourth_cumulant = 2 * float(total_shape) * a * (1 + 4 * a + a * a) / (1 - a) ** 4
    standard_error = math.sqrt((fourth_cumulant + 2 * variance**2) / len(sample))
    return abs(float(np.square(sample.astype(float)).mean()) - variance) / standard_error


def accepts_gaussian(sample: NDArray[np.int64], square: Fraction, shares: int = 1) -> bool:
    """Whether `sample` may be sums of so many independent discrete Gaussians of this s^2."""
    deviation = math.sqrt(shares * square)
    edges = np.unique(np.floor(GRID_DEVIATIONS * deviation))
    masses = gaussian_masses(square, shares)
    middle = len(masses) // 2
    chances = np.diff(np.cumsum(masses)[edges.astype(int) + middle], prepend=0.0, append=1.0)
    counts = np.bincount(np.searchsorted(edges, sample), minlength=len(chances))
    p_value = stats.chisquare(counts, chances * len(sample)).pvalue
    variance = float(masses @ np.square(np.arange(len(masses), dtype=float) - middle))
    errors = (float(np.square(sample.astype(float)).mean()) / variance - 1) / math.sqrt(2 / len(sample))
    return bool(p_value > LEAST_P) and abs(errors) < MOST_DEVIATIONS


def gaussian_masses(square: Fraction, shares: int = 1) -> NDArray[np.float64]:
    """P(Z = z) of a sum of discrete Gaussians, from the definition; z = 0 is in the middle."""
    reach = math.ceil(TAIL_DEVIATIONS * math.sqrt(square))
    weights = np.exp(-np.square(np.arange(-reach, reach + 1.0)) / (2 * float(square)))
    law = total = weights / weights.sum()
    for _ in range(shares - 1):
        total = signal.fftconvolve(total, law)
    return np.asarray(total)
