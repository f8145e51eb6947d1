"""Covers beside each other: NOCD's, the one that Synod takes, and overlapping ones as PriView has them.

Figure 7 of the DP-SUBN paper compares them in one place with one share of noise: 2-way marginals are projected from
noisy views, averaged by precision where several views hold a pair, and made non-negative. PriView's further steps are
left out for all alike; bench/rivals/priview.py has them, for the same covers and for PriView's own.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from synod.common.privacy.coins import Coins
from synod.common.privacy.laws import TABLE
from synod.common.privacy.noise import sample_shares
from synod.curator.covers.nocd import nocd_views
from synod.curator.covers.search import View
from synod.curator.covers.views import design_views, expected_variance, overlapping_views
from synod.curator.network.tables import marginalize, project_tables
from synod.deploy.evaluate.marginals import total_variation
from synod.deploy.evaluate.tables import Table
from synod.party.count.marginals import count_marginals

WIDTHS = range(3, 9)
Floats = NDArray[np.float64]


def _best_overlapping(sizes: tuple[int, ...]) -> tuple[View, ...]:
    covers = [overlapping_views(sizes, width) for width in WIDTHS]
    return min(covers, key=lambda views: expected_variance(views, sizes))


MAKERS: dict[str, Callable[[tuple[int, ...]], tuple[View, ...]]] = {
    "NOCD": lambda sizes: nocd_views(len(sizes)),
    "chosen": design_views,
    "overlapping, width 8": overlapping_views,
    "overlapping, best width": _best_overlapping,
}


def measure_cover(name: str, features: int) -> dict[str, float]:
    """How many views a cover of binary features has, and the mean variance of a 2-way cell in units of one marginal."""
    sizes = (2,) * features
    views = MAKERS[name](sizes)
    return {"views": len(views), "variance": expected_variance(views, sizes)}


def measure_views(name: str, bits: Table, epsilon: str, *, coins: Coins) -> dict[str, float]:
    """The mean total variation distance of all 2-way marginals out of noisy views."""
    views = MAKERS[name](bits.sizes)
    noisy = add_noise(count_marginals(bits.columns, bits.sizes, views), Fraction(epsilon), coins=coins)
    pairs = list(combinations(range(len(bits.sizes)), 2))
    exact = count_marginals(bits.columns, bits.sizes, pairs)
    estimates = project_pairs(views, noisy, bits.sizes)
    distances = [
        total_variation(project_tables(estimates[pair], bits.rows) / bits.rows, counts / bits.rows)
        for pair, counts in zip(pairs, exact, strict=True)
    ]
    return {"tvd2": float(np.mean(distances)), "views": len(views)}


def add_noise(tables: Sequence[NDArray[np.int64]], epsilon: Fraction, *, coins: Coins) -> list[Floats]:
    """The tables with one share of discrete Laplace noise for all of them."""
    scale = TABLE.absolute * len(tables) / epsilon
    noise = sample_shares(sum(map(len, tables)), shape=Fraction(1), scale=scale, coins=coins)
    parts = np.split(noise, np.cumsum([len(table) for table in tables])[:-1])
    return [(table + part).astype(np.float64) for table, part in zip(tables, parts, strict=True)]


def project_pairs(
    views: Sequence[View], tables: Sequence[Floats], sizes: Sequence[int]
) -> dict[tuple[int, int], Floats]:
    """The table of each pair: the mean over the views that hold it, weighted by precision."""
    sums: dict[tuple[int, int], Floats] = {}
    weights: dict[tuple[int, int], float] = {}
    for view, table in zip(views, tables, strict=True):
        for a, b in combinations(view, 2):
            weight = sizes[a] * sizes[b] / len(table)
            sums[a, b] = sums.get((a, b), 0.0) + weight * marginalize(table, view, sizes, (a, b))
            weights[a, b] = weights.get((a, b), 0.0) + weight
    return {pair: total / weights[pair] for pair, total in sums.items()}
