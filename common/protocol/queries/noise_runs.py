"""The noise on a vector of integers: runs of one law each, and patterns of such runs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synod.common.crypto.canonical import Json
from synod.common.privacy.coins import Coins
from synod.common.privacy.laws import NoiseLaw

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NoiseRun:
    """So many consecutive integers of a vector whose noise has one law."""

    numbers: int
    law: NoiseLaw

    @property
    def laws(self) -> tuple[NoiseLaw, ...]:
        """The laws that occur."""
        return (self.law,)

    @property
    def variance(self) -> float:
        """The variance of the noise on an integer, on average."""
        return self.law.variance

    def variances(self) -> Floats:
        """The variance of the noise on each integer."""
        return np.full(self.numbers, self.law.variance)

    def sample(self, *, coins: Coins) -> Counts:
        """One party's noise."""
        return self.law.sample(self.numbers, coins=coins)

    def to_json(self) -> dict[str, Json]:
        """The run in exact numbers."""
        return {"numbers": self.numbers, **self.law.to_json()}


@dataclass(frozen=True, slots=True)
class NoisePattern:
    """Runs that follow each other, and all of them again, so many times: the cells of a table whose noise depends on
    one of its values.
    """

    times: int
    runs: tuple[NoiseRun, ...]

    @property
    def numbers(self) -> int:
        """How many integers there are."""
        return self.times * sum(run.numbers for run in self.runs)

    @property
    def laws(self) -> tuple[NoiseLaw, ...]:
        """The laws that occur, each once, by first occurrence."""
        return tuple(dict.fromkeys(run.law for run in self.runs))

    @property
    def variance(self) -> float:
        """The variance of the noise on an integer, on average."""
        return self.times * sum(run.numbers * run.law.variance for run in self.runs) / self.numbers

    def variances(self) -> Floats:
        """The variance of the noise on each integer."""
        return np.tile(np.concatenate([run.variances() for run in self.runs]), self.times)

    def sample(self, *, coins: Coins) -> Counts:
        """One party's noise: that of each law is drawn at once, in the order of `laws`, and put where it belongs.

        Guarantee: which integer gets which draw follows from the pattern alone, so the noise on each integer is an
        independent draw of its law.
        """
        places = {law: place for place, law in enumerate(self.laws)}
        once = np.repeat([places[run.law] for run in self.runs], [run.numbers for run in self.runs])
        owners = np.tile(once.astype(np.min_scalar_type(len(places))), self.times)
        noise = np.empty(self.numbers, dtype=np.int64)
        for law, place in places.items():
            own = owners == place
            noise[own] = law.sample(int(np.count_nonzero(own)), coins=coins)
        return noise

    def to_json(self) -> dict[str, Json]:
        """The pattern in exact numbers."""
        runs: list[Json] = [run.to_json() for run in self.runs]
        return {"times": self.times, "runs": runs}


Noise = NoiseRun | NoisePattern


def sample_runs(runs: Sequence[Noise], *, coins: Coins) -> Counts:
    """One party's noise on all integers, run after run."""
    drawn = [run.sample(coins=coins) for run in runs]
    return drawn[0] if len(drawn) == 1 else np.concatenate(drawn)
