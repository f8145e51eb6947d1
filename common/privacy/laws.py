"""The law of an answer's randomness: what a cost and a sensitivity call for, and all that follows from it.

A step's cost decides the kind of noise; callers never do. Pure epsilon calls for discrete Laplace noise, drawn whole
by one party or in shares by K of them; and for permute-and-flip where something is chosen.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from synod.common.crypto.canonical import Json
from synod.common.privacy.bounds import noise_bound
from synod.common.privacy.coins import Coins
from synod.common.privacy.cost import Cost
from synod.common.privacy.noise import MAX_SCALE, sample_shares, share_variance
from synod.common.runtime.errors import invalid


@dataclass(frozen=True, slots=True)
class NoiseLaw:
    """Discrete Laplace noise of scale sensitivity/epsilon, as the sum of `parties` shares.

    Guarantee: with `shape` 1/(K-t), the shares of any K-t parties sum to a full discrete Laplace variable, so integers
    of the given L1 sensitivity to one replaced row are epsilon-DP even to anyone who knows t parties' shares.
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
        """The variance of the noise on one released integer: all parties' shares together."""
        return self.parties * share_variance(shape=self.shape, scale=self.scale)

    def sample(self, count: int, *, coins: Coins) -> NDArray[np.int64]:
        """One party's shares of the noise on `count` integers; all of the noise where there is one party."""
        return sample_shares(count, shape=self.shape, scale=self.scale, coins=coins)

    def bound(self, length: int) -> int:
        """What the noise of none of `length` released integers exceeds, but with probability 2^-64."""
        return noise_bound(self.scale, self.parties, self.threshold, length)

    def to_json(self) -> dict[str, Json]:
        """The law in exact numbers, as the manifest states it."""
        if self.parties == 1:
            return {"law": "discrete Laplace", "scale": str(self.scale), "sensitivity": str(self.sensitivity)}
        return {
            "law": "sum over parties of NB(r, a) - NB(r, a), a = exp(-1/scale)",
            "r": str(self.shape),
            "scale": str(self.scale),
            "sensitivity": str(self.sensitivity),
        }


def noise_for(cost: Cost, sensitivity: int, *, parties: int = 1, threshold: int = 0) -> NoiseLaw:
    """The noise that makes integers of this L1 sensitivity cost `cost`; refused where the sampler has a limit."""
    scale = Fraction(sensitivity) / cost.epsilon
    if scale > MAX_SCALE:
        raise invalid(
            "a step has too little epsilon for its sensitivity.",
            "Give the study more epsilon, or fewer attributes or levels.",
        )
    return NoiseLaw(sensitivity, scale, parties, threshold)


def epsilon_of_each_draw(cost: Cost, draws: int) -> Fraction:
    """The epsilon of one of several private choices that together cost `cost` (sequential composition)."""
    return cost.epsilon / draws
