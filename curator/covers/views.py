"""Views: the sets of features whose marginals are asked together, and what they promise for 2-way marginals.

DP-SUBN (VI-C) quantifies correlations from 2-way marginals that are projected from views. Here every pair lies in
exactly one view. All is a function of public numbers (how many features, of how many codes), never of data.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from synod.curator.covers.mixed import mixed_views
from synod.curator.covers.search import View, best_cover, lay_cover

MAX_CELLS = 4096


def design_views(sizes: Sequence[int], max_cells: int = MAX_CELLS) -> tuple[View, ...]:
    """Views such that every pair of features lies in exactly one, with a low `expected_variance`.

    The optimum of the designs for features of one size (such as bits); a good cover otherwise. A view has at most
    `max_cells` cells, except a pair that alone has more (`oversized_pairs`, see coarse.py). The same on every machine.
    """
    assert sizes
    assert min(sizes) >= 1
    return _design(tuple(sizes), max_cells)


@lru_cache(maxsize=64)
def _design(sizes: tuple[int, ...], max_cells: int) -> tuple[View, ...]:
    order = sorted(range(len(sizes)), key=lambda feature: (-sizes[feature], feature))
    if len(set(sizes)) == 1:
        places = list(lay_cover(best_cover(len(sizes), sizes[0], max_cells).plan, range(len(sizes))))
    else:
        places = mixed_views(tuple(sizes[feature] for feature in order), max_cells)
    return tuple(sorted(tuple(sorted(order[place] for place in view)) for view in places))


def oversized_pairs(sizes: Sequence[int], max_cells: int = MAX_CELLS) -> tuple[View, ...]:
    """The pairs with more than `max_cells` cells: each is a view of its own."""
    return tuple((a, b) for a, b in combinations(range(len(sizes)), 2) if sizes[a] * sizes[b] > max_cells)


def expected_variance(views: Sequence[View], sizes: Sequence[int], *, at_rho: bool = False) -> float:
    """The mean over all pairs of features of the variance of a cell of their 2-way marginal.

    The unit is the variance of a cell of one marginal that is asked alone at the same cost (with Laplace noise
    8 / epsilon^2, with Gaussian noise 1 / rho). Since m views have L1 sensitivity 2m, a cell of each has m^2 units, or
    m of them `at_rho`, since their squared L2 sensitivity is 2m too; and a 2-way cell sums
    cells(view) / (size_a * size_b) of them. A pair that lies in several views is the mean of their independent
    answers, weighted by precision; one that lies in none makes this infinite. Of a single feature there is no
    pair: the variance is that of a cell of its view.
    """
    units = len(views) if at_rho else len(views) ** 2
    if len(sizes) == 1:
        return float(units)
    precision = np.zeros((len(sizes), len(sizes)))
    for width in sorted({len(view) for view in views}):
        rows = np.array([view for view in views if len(view) == width])
        members = np.array(sizes, dtype=np.float64)[rows]
        shares = members[:, :, None] * members[:, None, :] / members.prod(axis=1)[:, None, None]
        np.add.at(precision, (rows[:, :, None], rows[:, None, :]), shares)
    pairs = precision[np.triu_indices(len(sizes), 1)]
    return float(units * np.mean(1 / pairs)) if pairs.all() else float("inf")


def overlapping_views(sizes: Sequence[int], width: int = 8, max_cells: int = MAX_CELLS) -> tuple[View, ...]:
    """A greedy covering design as PriView would use one: views of up to `width` features in which every pair lies
    at least once. Ties go to the lower index.
    """
    if len(sizes) == 1:
        return ((0,),)
    missing = ~np.eye(len(sizes), dtype=bool)
    views = []
    while missing.any():
        view = _grow_view(missing, np.array(sizes), width, max_cells)
        missing[np.ix_(view, view)] = False
        views.append(tuple(sorted(view)))
    return tuple(views)


def _grow_view(missing: NDArray[np.bool_], sizes: NDArray[np.intp], width: int, max_cells: int) -> list[int]:
    """From the feature with most missing pairs on, the feature that adds most of them while the cells allow."""
    view = [int(missing.sum(axis=1).argmax())]
    while len(view) < width:
        gains = missing[view].sum(axis=0)
        gains[view] = 0
        allowed = np.where(sizes * prod(int(sizes[feature]) for feature in view) <= max_cells, gains, 0)
        if len(view) == 1 and not allowed.any():
            allowed = gains
        if not allowed.any():
            break
        view.append(int(allowed.argmax()))
    return view
