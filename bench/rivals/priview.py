"""PriView (Qardaji, Yang, Li 2014): noisy views that cover all pairs or triples, made to agree, and all else from them.

1. Each of w views is released with noise of scale 2 w / epsilon.
2. Views are made to agree on what they share (curator/network/consistency.py), freed of negative counts, and made to
   agree again. Negative counts are cut by norm-sub, or by the paper's ripple.
3. A marginal inside a view is the mean over the views that hold it. Any other is the table of maximum entropy that has
   its margins inside views.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from bench.rivals.answers import Answers, Attributes, Floats, list_sets
from bench.rivals.covers import cover_features
from bench.rivals.entropy import fit_margins
from bench.rivals.plain import TABLE_CHANGE
from synod.common.runtime.errors import refused
from synod.curator.covers.search import View
from synod.curator.network.consistency import NoisyTable, agree, reconcile
from synod.curator.network.tables import marginalize, project_tables
from synod.deploy.evaluate.tables import Table
from synod.party.count.marginals import count_marginals

Shape = tuple[int, ...]
SMALLEST_DEBT = 1.0
"""Counts above minus one row are left to the last cut: a smaller bound only takes longer."""
MOST_RIPPLES = 10_000


def answer_priview(
    table: Table, order: int, epsilon: float, *, strength: int, is_rippled: bool = False, rng: np.random.Generator
) -> Answers:
    """All marginals out of the views that hold every pair (strength 2) or every triple (3) of binary features.

    Guarantee: epsilon-differential privacy for a replaced row, by `release_views`; the rest is post-processing.
    """
    if set(table.sizes) != {2}:
        raise refused("PriView's covers are of binary features.", "Compare on the bits of codes.")
    views = cover_features(len(table.sizes), strength)
    return publish_views(table, views, epsilon, is_rippled=is_rippled, rng=rng).answer(order)


def publish_views(
    table: Table, views: Sequence[View], epsilon: float, *, is_rippled: bool, rng: np.random.Generator
) -> "Views":
    """Views that agree, out of which marginals of every order come: any views that hold every feature will do.

    Guarantee: as `release_views`, for all orders together.
    """
    noisy = release_views(table, views, epsilon, rng=rng)
    combine = ripple_and_agree if is_rippled else _cut_and_agree
    agreed = combine(noisy, table.sizes, float(table.rows))
    return Views(views, agreed, table.sizes, table.rows)


def release_views(table: Table, views: Sequence[View], epsilon: float, *, rng: np.random.Generator) -> list[NoisyTable]:
    """The views with their noise.

    Guarantee: epsilon-differential privacy for a replaced row, which changes each of w views by 2 in L1.
    """
    scale = TABLE_CHANGE * len(views) / epsilon
    counted = count_marginals(table.columns, table.sizes, views)
    noisy = [counts + rng.laplace(0.0, scale, counts.shape) for counts in counted]
    return [NoisyTable(view, counts, 2 * scale**2) for view, counts in zip(views, noisy, strict=True)]


def _cut_and_agree(noisy: Sequence[NoisyTable], sizes: Sequence[int], total: float) -> list[Floats]:
    return reconcile(noisy, sizes, total=total)


def ripple_and_agree(noisy: Sequence[NoisyTable], sizes: Sequence[int], total: float) -> list[Floats]:
    """PriView's own order: agree, ripple, agree; what is then negative is small, and is cut in each marginal."""
    agreed = agree(noisy, sizes, total=total)
    rippled = [
        replace(table, counts=ripple(counts.reshape([sizes[feature] for feature in table.features])).reshape(-1))
        for table, counts in zip(noisy, agreed, strict=True)
    ]
    return agree(rippled, sizes, total=total)


def ripple(table: Floats, *, smallest: float = SMALLEST_DEBT) -> Floats:
    """Moves the debt of negative cells, evenly, to the cells that differ in one feature, until none is large.

    The total stays. All negative cells move theirs at once; a table without rows keeps its debt, as there is nobody to
    pay it.
    """
    counts = table.copy()
    neighbours = sum(size - 1 for size in table.shape)
    if counts.sum() <= 0 or neighbours == 0:
        return counts
    for _ in range(MOST_RIPPLES):
        debt = np.where(counts < -smallest, -counts, 0.0)
        if not debt.any():
            break
        owed = sum(debt.sum(axis=axis, keepdims=True) - debt for axis in range(debt.ndim))
        counts += debt - owed / neighbours
    return counts


class Views:
    """Tables that agree, as what all marginals are made of. Sets of features are bits of integers here."""

    def __init__(self, views: Sequence[View], tables: Sequence[Floats], sizes: Sequence[int], rows: int) -> None:
        self.views, self.tables, self.sizes, self.rows = views, tables, sizes, rows
        self._masks = [_mask(view) for view in views]
        self._held: dict[Attributes, Floats] = {}

    def answer(self, order: int) -> Answers:
        """All marginals of one order, as shares."""
        return [counts / self.rows for counts in self.marginals(order)]

    def marginals(self, order: int) -> Answers:
        """Non-negative tables with the public total, in the order of `list_sets`."""
        found: dict[Attributes, Floats] = {}
        patterns: dict[tuple[Shape, tuple[Attributes, ...]], list[Attributes]] = {}
        for own in list_sets(len(self.sizes), order):
            parts = self.largest_parts(own)
            if parts == [own]:
                found[own] = self.margin(own)
            else:
                shape = tuple(self.sizes[feature] for feature in own)
                axes = tuple(tuple(own.index(feature) for feature in part) for part in parts)
                patterns.setdefault((shape, axes), []).append(own)
        for (shape, axes), sets in patterns.items():
            found.update(self._fit(shape, axes, sets))
        return [found[own] for own in list_sets(len(self.sizes), order)]

    def largest_parts(self, own: Attributes) -> list[Attributes]:
        """The parts of a set that lie in a view, without those that lie in another; sorted."""
        wanted = _mask(own)
        parts = {wanted & mask for mask in self._masks}
        kept = [part for part in parts if not any(part != other and part & other == part for other in parts)]
        return sorted(tuple(feature for feature in own if part >> feature & 1) for part in kept)

    def margin(self, own: Attributes) -> Floats:
        """The mean over the views that hold this set, cut by norm-sub."""
        if own not in self._held:
            wanted = _mask(own)
            places = [place for place, mask in enumerate(self._masks) if mask & wanted == wanted]
            margins = [marginalize(self.tables[place], self.views[place], self.sizes, own) for place in places]
            self._held[own] = project_tables(np.mean(margins, axis=0), self.rows)
        return self._held[own]

    def _fit(
        self, shape: Shape, axes: Sequence[Attributes], sets: Sequence[Attributes]
    ) -> Iterator[tuple[Attributes, Floats]]:
        """Sets of one shape whose parts lie alike are fitted together."""
        margins = {part: np.stack([self.margin(tuple(own[axis] for axis in part)) for own in sets]) for part in axes}
        yield from zip(sets, fit_margins(shape, margins).reshape(len(sets), -1), strict=True)


def _mask(features: Sequence[int]) -> int:
    return sum(1 << feature for feature in features)
