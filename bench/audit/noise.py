"""Noise that is scaled on purpose, to see that an audit finds it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from synod.common.privacy.coins import Coins
from synod.common.privacy.gaussian import MIN_SQUARE
from synod.common.privacy.laws import GaussianLaw, LaplaceLaw
from synod.party.count import parents
from synod.party.count.choice import permute_and_flip


@contextmanager
def scaled_noise(factor: Fraction) -> Iterator[None]:
    """All noise that is drawn inside is `factor` times as large, and choices are as sure as with epsilon / `factor`;
    what is claimed, packed and charged stays as it is. A Gaussian is not made narrower than the sampler draws it.
    """
    if factor == 1:
        yield
        return
    laplace, gaussian = LaplaceLaw.sample, GaussianLaw.sample

    def sample_laplace(law: LaplaceLaw, count: int, *, coins: Coins) -> NDArray[np.int64]:
        return laplace(replace(law, scale=law.scale * factor), count, coins=coins)

    def sample_gaussian(law: GaussianLaw, count: int, *, coins: Coins) -> NDArray[np.int64]:
        return gaussian(replace(law, square=max(MIN_SQUARE, law.square * factor**2)), count, coins=coins)

    def choose_surely(scores: NDArray[np.int64], *, epsilon: Fraction, sensitivity: int, coins: Coins) -> int:
        return permute_and_flip(scores, epsilon=epsilon / factor, sensitivity=sensitivity, coins=coins)

    with (
        mock.patch.object(LaplaceLaw, "sample", sample_laplace),
        mock.patch.object(GaussianLaw, "sample", sample_gaussian),
        mock.patch.object(parents, "permute_and_flip", choose_surely),
    ):
        yield
