"""The law of an answer's randomness: what a cost and a sensitivity call for, and all that follows from it.

A step's cost decides the kind of noise; callers never do. Pure epsilon calls for discrete Laplace noise and rho for
discrete Gaussian noise, drawn whole by one party or in shares by K of them; something that is chosen is chosen by
permute-and-flip.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, isqrt
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from synod.common.crypto.canonical import Json
from synod.common.privacy.bounds import gaussian_bound, noise_bound
from synod.common.privacy.coins import Coins
from synod.common.privacy.cost import Cost
from synod.common.privacy.gaussian import MAX_SQUARE, sample_discrete_gaussian
from synod.common.privacy.noise import MAX_SCALE, sample_shares, share_variance
from synod.common.runtime.errors import SynodError, invalid

LEAST_RHO = Fraction(1, 2**40)
LEAST_SQUARE = Fraction(8)  # of one share: what a sum of shares lacks of a true Gaussian is then below 2^-110 a cell
SHARE_SLACK = Fraction(1, 2**60)
SQUARE_UNIT = 1024
DRAW_UNIT = 2**64


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """By how much a vector of integers can change when one row is replaced: the most that the absolute changes add up
    to (L1), and the most that their squares do (L2 squared).
    """

    absolute: int
    squared: int

    def times(self, count: int) -> "Sensitivity":
        """That of `count` such vectors, one after the other."""
        return Sensitivity(self.absolute * count, self.squared * count)

    def for_rows(self, rows: int) -> "Sensitivity":
        """That of the same vector when up to `rows` rows are replaced at once.

        Guarantee: the rows can be replaced one after the other. Each of these changes is within the L1 and the L2 norm
        of one row, so by the triangle inequality all of them are within `rows` times that norm: L2 squared grows with
        the square of `rows`.
        """
        return Sensitivity(self.absolute * rows, self.squared * rows**2)


TABLE = Sensitivity(absolute=2, squared=2)  # of counts: one replaced row leaves one cell and enters another


class NoiseLaw(Protocol):
    """Integer noise on each number of a vector, as the sum of one share from each of `parties`."""

    @property
    def variance(self) -> float:
        """The variance of the noise on one released integer: all parties' shares together."""
        ...

    @property
    def nominal_variance(self) -> Fraction:
        """The variance of the continuous law of the same parameters: exact, for rules that all sides must agree on."""
        ...

    def sample(self, count: int, *, coins: Coins) -> NDArray[np.int64]:
        """One party's shares of the noise on `count` integers; all of the noise where there is one party."""
        ...

    def bound(self, length: int) -> int:
        """What the noise of none of `length` released integers exceeds, but with probability 2^-64."""
        ...

    def to_json(self) -> dict[str, Json]:
        """The law in exact numbers, as the manifest states it."""
        ...


@dataclass(frozen=True, slots=True)
class LaplaceLaw:
    """Discrete Laplace noise of scale sensitivity/epsilon, as the sum of `parties` shares.

    Guarantee: with `shape` 1/(K-t), the shares of any K-t parties sum to a full discrete Laplace variable, so integers
    of the given L1 sensitivity, to the replaced rows of one unit, are epsilon-DP even to anyone who knows t parties'
    shares.
    """

    sensitivity: int
    scale: Fraction
    parties: int
    threshold: int

    @property
    def shape(self) -> Fraction:
        """The r of one party's share, NB(r, a) - NB(r, a)."""
        return Fraction(1, self.parties - self.threshold)

    @property
    def variance(self) -> float:
        """Implements `NoiseLaw.variance`."""
        return self.parties * share_variance(shape=self.shape, scale=self.scale)

    @property
    def nominal_variance(self) -> Fraction:
        """Implements `NoiseLaw.nominal_variance`."""
        return 2 * self.parties * self.shape * self.scale**2

    def sample(self, count: int, *, coins: Coins) -> NDArray[np.int64]:
        """Implements `NoiseLaw.sample`."""
        return sample_shares(count, shape=self.shape, scale=self.scale, coins=coins)

    def bound(self, length: int) -> int:
        """Implements `NoiseLaw.bound`."""
        return noise_bound(self.scale, self.parties, self.threshold, length)

    def to_json(self) -> dict[str, Json]:
        """Implements `NoiseLaw.to_json`."""
        if self.parties == 1:
            return {"law": "discrete Laplace", "scale": str(self.scale), "sensitivity": str(self.sensitivity)}
        return {
            "law": "sum over parties of NB(r, a) - NB(r, a), a = exp(-1/scale)",
            "r": str(self.shape),
            "scale": str(self.scale),
            "sensitivity": str(self.sensitivity),
        }


@dataclass(frozen=True, slots=True)
class GaussianLaw:
    """Discrete Gaussian noise, as the sum of `parties` shares that each have the parameter s^2 = `square`.

    Guarantee (Kairouz, Liu and Steinke 2021, proposition 14): let Z be the sum of m shares on d integers. For every
    shift x and order a, D_a(Z || Z + x) <= a |x|^2 / (2 m s^2) + tau d, where tau = 10 sum over k < m of
    exp(-2 pi^2 s^2 k/(k+1)). With m = K-t, s^2 >= sigma^2 / m and s^2 >= 8 the first term is at most a times the rho
    that `noise_for` made the noise for, and the second is below 2^-80 for 2^30 integers, which the 2^-60 that it holds
    back pays for. So integers of the given squared sensitivity are rho-zCDP even to anyone who knows t parties' shares.
    """

    sensitivity: int
    square: Fraction
    parties: int
    threshold: int

    @property
    def variance(self) -> float:
        """Implements `NoiseLaw.variance`: from s^2 = 8 on it is s^2 to all digits of a float."""
        return self.parties * float(self.square)

    @property
    def nominal_variance(self) -> Fraction:
        """Implements `NoiseLaw.nominal_variance`."""
        return self.parties * self.square

    def sample(self, count: int, *, coins: Coins) -> NDArray[np.int64]:
        """Implements `NoiseLaw.sample`."""
        return sample_discrete_gaussian(count, square=self.square, coins=coins)

    def bound(self, length: int) -> int:
        """Implements `NoiseLaw.bound`."""
        return gaussian_bound(self.square, self.parties, length)

    def to_json(self) -> dict[str, Json]:
        """Implements `NoiseLaw.to_json`."""
        law = "discrete Gaussian" if self.parties == 1 else "sum over parties of discrete Gaussians"
        exact = {"square": str(self.square), "squared_sensitivity": str(self.sensitivity)}
        return {"law": f"{law}, P(z) ~ exp(-z^2 / (2 square))", **exact}


def noise_for(
    cost: Cost,
    sensitivity: Sensitivity,
    *,
    rows_per_unit: int,
    part: Fraction = Fraction(1),
    parties: int = 1,
    threshold: int = 0,
) -> NoiseLaw:
    """The noise that makes integers of this sensitivity to one row cost `part` of `cost`, a cost of one kind, where one
    unit of privacy has up to `rows_per_unit` rows; refused where the sampler has a limit.

    Guarantee: neighbours differ in all rows of one unit. Vectors whose parts of one cost add up to at most 1 cost at
    most `cost` together.
    """
    assert rows_per_unit >= 1
    assert 0 < part <= 1
    assert 0 <= threshold < parties
    assert (cost.epsilon == 0) != (cost.rho == 0)
    whole = sensitivity.for_rows(rows_per_unit)
    if cost.rho:
        return _gaussian_for(cost.rho, whole.squared, part, parties, threshold)
    scale = Fraction(whole.absolute) / (cost.epsilon * part)
    if scale > MAX_SCALE:
        raise _too_little()
    return LaplaceLaw(whole.absolute, scale, parties, threshold)


def _gaussian_for(rho: Fraction, squared: int, part: Fraction, parties: int, threshold: int) -> GaussianLaw:
    """sigma^2 = squared / (2 part (rho - 2^-60)), in shares of sigma^2 / (K-t), each rounded up to 1/1024."""
    if rho < LEAST_RHO:
        raise _too_little()
    whole = Fraction(squared) / (2 * part * (rho - SHARE_SLACK))
    share = max(LEAST_SQUARE, whole / (parties - threshold))
    square = Fraction(ceil(share * SQUARE_UNIT), SQUARE_UNIT)
    if square > MAX_SQUARE:
        raise _too_little()
    return GaussianLaw(squared, square, parties, threshold)


def _too_little() -> SynodError:
    return invalid(
        "a step has too little of the study's epsilon for its sensitivity.",
        "Give the study more epsilon, fewer attributes or levels, or a smaller `max_rows_per_unit`.",
    )


def epsilon_of_each_draw(cost: Cost, draws: int) -> Fraction:
    """The epsilon of one of several private choices that together cost `cost`.

    Guarantee: sequential composition; and what is epsilon-DP is epsilon^2/2-zCDP (Bun and Steinke 2016), so of rho each
    draw gets sqrt(2 rho / draws), rounded down to a multiple of 2^-64. A rho that is too little for noise is refused.
    """
    assert (cost.epsilon == 0) != (cost.rho == 0)
    if cost.rho:
        if cost.rho < LEAST_RHO:
            raise _too_little()
        square = 2 * cost.rho / draws * DRAW_UNIT**2
        return Fraction(isqrt(square.numerator // square.denominator), DRAW_UNIT)
    return cost.epsilon / draws
