"""From how often an event happens under each of two neighbouring tables to a lower bound on what was spent.

Rates are never taken as they were seen, but at the end of their Clopper-Pearson interval that hurts the bound. Every
interval fails with probability `ERROR` at most, so that a sound program fails an audit of `MOST_INTERVALS` of them with
probability 1e-4 at most.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import log

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from synod.common.privacy.cost import Cost

MOST_INTERVALS = 400
ERROR = 1e-4 / MOST_INTERVALS
MOST_THRESHOLDS = 60
# Orders of the Renyi divergence at which a bound on rho is looked for; each of them gives a sound one.
ORDERS = (1.05, 1.2, 1.5, 2.0, 3.0, 5.0, 8.0, 16.0)

Scores = NDArray[np.float64]


@lru_cache(maxsize=4096)
def rate_interval(hits: int, runs: int) -> tuple[float, float]:
    """Between which rates an event's true one lies (Clopper and Pearson 1934); each end fails with probability `ERROR`
    at most.
    """
    low = float(stats.beta.ppf(ERROR, hits, runs - hits + 1)) if hits > 0 else 0.0
    high = float(stats.beta.ppf(1 - ERROR, hits + 1, runs - hits)) if hits < runs else 1.0
    return low, high


def least_loss(claim: Cost, more: float, less: float) -> float:
    """What was spent at least, of the claim's kind, if an event has a rate of `more` or above under one table and of
    `less` or below under its neighbour.

    Guarantee: epsilon-DP has more <= e^epsilon less. What is rho-zCDP has, of every order a > 1, a Renyi divergence of
    at most a rho, also of the event alone (data processing), and that of the two rates grows as they move apart.
    """
    if more <= less:
        return 0.0
    if claim.rho:
        return max(_divergence(more, less, order) / order for order in ORDERS)
    return log(more / less)


def _divergence(more: float, less: float, order: float) -> float:
    """The Renyi divergence of two coins."""
    terms = [order * log(more) + (1 - order) * log(less)]
    if more < 1:
        terms.append(order * log(1 - more) + (1 - order) * log(1 - less))
    return float(np.logaddexp.reduce(terms)) / (order - 1)


def most_loss(claim: Cost) -> float:
    """What the claim allows, as `least_loss` counts it."""
    return float(claim.rho or claim.epsilon)


@dataclass(frozen=True, slots=True)
class Event:
    """Scores of at least a threshold, or below it; and under which of the two tables this is the more likely."""

    threshold: float
    above: bool
    with_canary: bool

    def happens(self, scores: Scores) -> int:
        """In how many runs."""
        hits = int(np.count_nonzero(scores >= self.threshold))
        return hits if self.above else len(scores) - hits

    def loss(self, claim: Cost, without: Scores, canary: Scores) -> float:
        """What these scores show to be spent at least."""
        first, second = (canary, without) if self.with_canary else (without, canary)
        more, _ = rate_interval(self.happens(first), len(first))
        _, less = rate_interval(self.happens(second), len(second))
        return least_loss(claim, more, less)


def choose_event(claim: Cost, without: Scores, canary: Scores) -> Event:
    """The event that shows the most in these runs, which are then not counted again."""
    pooled = np.unique(np.concatenate([without, canary]))
    places = np.linspace(0, len(pooled) - 1, min(len(pooled), MOST_THRESHOLDS)).round().astype(int)
    events = [
        Event(float(threshold), above, with_canary)
        for threshold in pooled[places]
        for above in (True, False)
        for with_canary in (True, False)
    ]
    return max(events, key=lambda event: event.loss(claim, without, canary))
