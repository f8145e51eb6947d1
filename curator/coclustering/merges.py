"""The path of merges: from the finest grid to a single cell, each time the two parts whose joining costs the least.

What joining two parts i and j of one attribute saves in the cells is the sum over the other attributes' cells of
ln C(N_i + N_j, N_i). These gains are kept for all pairs; a merge changes those of other attributes only in the two
slices that it joins, and of its own attribute only those of the new part.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synod.common.study.levels import number_groups
from synod.curator.coclustering.criterion import (
    Axis,
    Floats,
    Groups,
    Integers,
    grid_cost,
    log_factorials,
    log_splits,
    part_costs,
    rows_prior,
)

LEAST_DIFFERENCE = 1e-6  # of costs; less is a tie


@dataclass(frozen=True, slots=True)
class Merge:
    """Parts `kept` and `joined` of an attribute, `kept` being the lower, become one."""

    axis: int
    kept: int
    joined: int


@dataclass(frozen=True, slots=True)
class Path:
    """Merges in order, and the costs of the grids before the first and after each."""

    merges: tuple[Merge, ...]
    costs: tuple[float, ...]


def find_path(counts: Integers, axes: Sequence[Axis]) -> Path:
    """All merges from every value in a part of its own to one part of each attribute.

    Of merges whose costs hardly differ the first attribute's, and of those the first parts', is taken.
    """
    state, merges = _State(counts.copy(), axes), list[Merge]()
    costs = [grid_cost(counts, axes, [tuple(range(axis.size)) for axis in axes])]
    while any(size > 1 for size in state.counts.shape):
        change, merge = state.best_merge()
        merges.append(merge)
        costs.append(costs[-1] + change)
        state.merge(merge.axis, merge.kept, merge.joined)
    return Path(tuple(merges), tuple(costs))


def replay(axes: Sequence[Axis], merges: Sequence[Merge]) -> list[Groups]:
    """The part of each value of each axis after these merges."""
    groups = [np.arange(axis.size) for axis in axes]
    for merge in merges:
        own = groups[merge.axis]
        own[own == merge.joined] = merge.kept
        own[own > merge.joined] -= 1
    return [number_groups(own.tolist()) for own in groups]


def pair_gains(rows: Integers, *, is_ordered: bool, signs: Floats | None = None) -> Floats:
    """What joining each two rows of a table saves in its cells: of neighbours where rows are ordered, else of all
    pairs, above the diagonal. Columns count with their signs.

    A column in which either row has nothing saves nothing, so only columns where the first has something are read.
    """
    if is_ordered:
        both = log_factorials(rows[:-1] + rows[1:]) - log_factorials(rows[:-1]) - log_factorials(rows[1:])
        return both.sum(axis=1) if signs is None else both @ signs
    gains = np.zeros((len(rows), len(rows)))
    for place in range(len(rows) - 1):
        gains[place, place + 1 :] = gains_with(rows[place], rows[place + 1 :], signs=signs)
    return gains


def gains_with(row: Integers, others: Integers, *, signs: Floats | None = None) -> Floats:
    """What joining a row with each of the others saves."""
    columns = np.flatnonzero(row)
    own, theirs = row[columns], others[:, columns]
    both = log_factorials(theirs + own) - log_factorials(theirs) - log_factorials(own)
    return both.sum(axis=1) if signs is None else both @ signs[columns]


class _State:
    """A grid on its way: the counts of its cells, the values and counts of each part, and the scores of all pairs.

    The score of two parts is how their joining changes the cost, but for what is the same for all pairs of an
    attribute; of ordered parts only neighbours have one, of others those above the diagonal.
    """

    def __init__(self, counts: Integers, axes: Sequence[Axis]) -> None:
        self.counts = counts
        self._axes = axes
        self._rows = int(counts.sum())
        self._splits = [log_splits(axis) for axis in axes]
        self._members = [np.ones(axis.size, dtype=np.int64) for axis in axes]
        self._totals = [counts.sum(axis=self._others(place)) for place in range(len(axes))]
        self._scores = [self._first_scores(place) for place in range(len(axes))]

    def _others(self, place: int) -> tuple[int, ...]:
        return tuple(other for other in range(len(self._axes)) if other != place)

    def _first_scores(self, place: int) -> Floats:
        rows, parts = _as_rows(self.counts, place), self.counts.shape[place]
        if self._axes[place].is_ordered:
            return self._part_changes(place, slice(0, -1), slice(1, None)) - pair_gains(rows, is_ordered=True)
        scores = np.stack([self._part_changes(place, slice(None), part) for part in range(parts)])
        scores -= pair_gains(rows, is_ordered=False)
        scores[np.tril_indices(parts)] = np.inf
        return scores

    def _part_changes(self, place: int, one: slice, other: slice | int) -> Floats:
        """How the costs of parts change if they are joined."""
        totals, members = self._totals[place], self._members[place]
        costs = part_costs(totals, members)
        return part_costs(totals[one] + totals[other], members[one] + members[other]) - costs[one] - costs[other]

    def best_merge(self) -> tuple[float, Merge]:
        """The least change of cost, and the merge that makes it."""
        found = [self._best_of(place) for place, parts in enumerate(self.counts.shape) if parts > 1]
        least = min(change for change, _ in found)
        return next(one for one in found if one[0] <= least + LEAST_DIFFERENCE)

    def _best_of(self, place: int) -> tuple[float, Merge]:
        """The best merge of one attribute."""
        axis, scores, parts = self._axes[place], self._scores[place], self.counts.shape[place]
        if axis.is_ordered:
            scores = scores[: parts - 1 - (axis.has_missing and parts > 2)]
        best = int(np.argmax(scores <= scores.min() + LEAST_DIFFERENCE))
        kept, joined = (best, best + 1) if axis.is_ordered else divmod(best, parts)
        return float(scores.reshape(-1)[best]) + self._fixed(place), Merge(place, kept, joined)

    def _fixed(self, place: int) -> float:
        """How the cost changes with any merge of an attribute: fewer ways to split it, and fewer cells."""
        parts, cells, splits = self.counts.shape[place], self.counts.size, self._splits[place]
        fewer = rows_prior(self._rows, cells // parts * (parts - 1)) - rows_prior(self._rows, cells)
        return float(splits[parts - 2] - splits[parts - 1]) + fewer

    def merge(self, place: int, kept: int, joined: int) -> None:
        """Joins two parts."""
        before = [np.take(self.counts, part, axis=place) for part in (kept, joined)]
        self._update_others(place, [before[0] + before[1], *before])
        for numbers in (self._members, self._totals):
            numbers[place][kept] += numbers[place][joined]
            numbers[place] = np.delete(numbers[place], joined)
        rows = np.moveaxis(self.counts, place, 0)
        rows[kept] += rows[joined]
        self.counts = np.delete(self.counts, joined, axis=place)
        self._update_own(place, kept, joined)

    def _update_others(self, place: int, slices: Sequence[Integers]) -> None:
        """Other attributes' scores: the new slice's gains come, those of the two old ones go."""
        for other in self._others(place):
            rows = np.concatenate([_as_rows(one, other - (other > place)) for one in slices], axis=1)
            signs = np.repeat([1.0, -1.0, -1.0], slices[0].size // len(rows))
            self._scores[other] -= pair_gains(rows, is_ordered=self._axes[other].is_ordered, signs=signs)

    def _update_own(self, place: int, kept: int, joined: int) -> None:
        """The attribute's own scores: those of the new part are computed anew."""
        rows = _as_rows(self.counts, place)
        if self._axes[place].is_ordered:
            scores = np.delete(self._scores[place], kept)
            for left in range(max(kept - 1, 0), min(kept + 1, len(scores))):
                gain = pair_gains(rows[left : left + 2], is_ordered=True)
                scores[left] = (self._part_changes(place, slice(left, left + 1), left + 1) - gain)[0]
        else:
            scores = np.delete(np.delete(self._scores[place], joined, axis=0), joined, axis=1)
            new = self._part_changes(place, slice(None), kept) - gains_with(rows[kept], rows)
            scores[:kept, kept], scores[kept, kept + 1 :] = new[:kept], new[kept + 1 :]
        self._scores[place] = scores


def _as_rows(table: Integers, axis: int) -> Integers:
    """One row of cells for each part of an axis."""
    return np.moveaxis(table, axis, 0).reshape(table.shape[axis], -1)
