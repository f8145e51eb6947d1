"""What somebody sees of one run, and how they tell two neighbouring tables apart by many of them.

They know the study, the method, all laws and every row but the canary. Each way to tell is a score that is the higher
the more it looks like the table with the canary. Some runs are for training: they weigh numbers and choices, and pick
the event; all others are counted.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log

import numpy as np
from numpy.typing import NDArray

from bench.audit.bounds import Event, Scores, choose_event, most_loss
from synod.common.privacy.cost import Cost

Floats = NDArray[np.float64]
MOST_WAYS = 6
SMOOTHED = 4
RATIO = "likelihood ratio"
LIKELIER = Event(0.0, above=True, with_canary=True)
"""The numbers are likelier with the canary: an event that needs no training."""


@dataclass(frozen=True)
class Seen:
    """One run. `ratio` is the log-likelihood ratio of all noisy numbers whose law is known, for the canary; `choices`
    are answers that were drawn; `numbers` is a vector that is as long in every run; `scores` are other ways to tell.
    """

    ratio: float = 0.0
    choices: tuple[tuple[str, Hashable], ...] = ()
    numbers: Floats = field(default_factory=lambda: np.zeros(0))
    scores: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """The bound on what was spent, by the best way to tell, and how often its event happened."""

    way: str
    bound: float
    claim: Cost
    event: Event
    rates: tuple[float, float]
    runs: int

    @property
    def holds(self) -> bool:
        """Whether the claim is not refuted."""
        return self.bound <= most_loss(self.claim)


Way = Callable[[Sequence[Seen]], Scores]


def tell_apart(claim: Cost, without: Sequence[Seen], canary: Sequence[Seen], training: int) -> Finding:
    """The best of all ways to tell, after the first `training` runs of each side; each has an interval of its own on
    each side, so their number is what confidence is corrected for.
    """
    train, held = (without[:training], canary[:training]), (without[training:], canary[training:])
    found = []
    for name, way in learn_ways(*train).items():
        scores = [way(side) for side in held]
        for event in [choose_event(claim, way(train[0]), way(train[1])), *([LIKELIER] if name == RATIO else [])]:
            rates = event.happens(scores[0]) / len(held[0]), event.happens(scores[1]) / len(held[1])
            found.append(Finding(name, event.loss(claim, *scores), claim, event, rates, len(held[0])))
    assert len(found) <= MOST_WAYS
    return max(found, key=lambda finding: finding.bound)


def learn_ways(without: Sequence[Seen], canary: Sequence[Seen]) -> dict[str, Way]:
    """Every way to tell that these runs allow."""
    first = without[0]
    ways: dict[str, Way] = {}
    if any(seen.ratio for seen in without):
        ways[RATIO] = lambda side: np.array([seen.ratio for seen in side])
    if first.choices:
        weigh, scale = _weigh_choices(without, canary), _scale_ratio(without, canary)
        ways["choices with the ratio"] = lambda side: np.array([scale * seen.ratio + weigh(seen) for seen in side])
    if len(first.numbers):
        ways["linear statistic"] = _weigh_numbers(without, canary)
    for name in first.scores:
        ways[name] = lambda side, name=name: np.array([seen.scores[name] for seen in side])  # type: ignore[misc]
    return ways


def _scale_ratio(without: Sequence[Seen], canary: Sequence[Seen]) -> float:
    """By what to multiply the log ratio of the claimed laws, so that choices weigh beside it as much as they tell: that
    of the true laws has means that are apart by its variance.
    """
    ratios = [np.array([seen.ratio for seen in side]) for side in (without, canary)]
    apart, spread = ratios[1].mean() - ratios[0].mean(), (ratios[0].var() + ratios[1].var()) / 2
    return float(np.clip(apart / max(spread, 1e-9), 0.1, 100))


def _weigh_choices(without: Sequence[Seen], canary: Sequence[Seen]) -> Callable[[Seen], float]:
    """Log ratios of how often each answer was drawn; one that was never seen counts for little."""
    counts = [Counter(choice for seen in side for choice in seen.choices) for side in (without, canary)]
    weights = {one: log((counts[1][one] + SMOOTHED) / (counts[0][one] + SMOOTHED)) for one in counts[0] | counts[1]}
    return lambda seen: sum(weights.get(choice, 0.0) for choice in seen.choices)


def _weigh_numbers(without: Sequence[Seen], canary: Sequence[Seen]) -> Way:
    """Each number by how far its means are apart, in units of its variance."""
    sides = [np.stack([seen.numbers for seen in side]) for side in (without, canary)]
    spread = sum(side.var(axis=0) for side in sides)
    weights = (sides[1].mean(axis=0) - sides[0].mean(axis=0)) / np.maximum(spread, 1e-9)
    return lambda side: np.stack([seen.numbers for seen in side]) @ weights
