"""How many parts: the grid on the path of merges whose counts, spread evenly over their cells, are expected to be
nearest to the true ones.

MODL by itself takes noise for structure: on a noisy table its own best grid is often the finest. So along its path the
grid of least expected squared error is taken, which released numbers tell: with noisy cells y of variance v1, their
sums Y_g over parts g of s_g cells, m cells, G parts, and v2 the variance of the noise on the parts' own counts,

    E = sum (y_c - Y_g / s_g)^2 - (m - G) v1 + sum_g v2 / s_g.

For a grid that was fixed before, this is unbiased for parts that are published by their own counts: the first term has
(m - G) v1 of noise, and the last is theirs. The path is found from the same y, so E is a little too small. What is
published is a part's own count averaged with Y_g by precision, whose noise is less: 1 / (s_g / v2 + 1 / v1), and not
v2 / s_g. With that in its place finer grids are taken, and measured on Adult they are further from the rows
(docs/caveats.md), so it is left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

import numpy as np

from synod.curator.coclustering.criterion import Axis, Floats, Groups, Integers, gather, part_cells
from synod.curator.coclustering.merges import LEAST_DIFFERENCE, Merge, Path, find_path, replay
from synod.curator.coclustering.moves import move_values

Parts = str | int


@dataclass(frozen=True, slots=True, eq=False)
class NoisyCounts:
    """A released table, one axis for each attribute, with the variance of its noise and of the counts to come."""

    counts: Integers
    variance: float
    next_variance: float

    def expected_error(self, groups: Sequence[Groups]) -> float:
        """E of a grid."""
        counts, cells = self.counts.astype(np.float64), part_cells(groups)
        sums = gather(counts, groups)
        within = float((counts**2).sum() - (sums**2 / cells).sum())
        noise = (self.counts.size - sums.size) * self.variance
        return within - noise + self.next_variance * float((1 / cells).sum())

    def path_errors(self, merges: Sequence[Merge]) -> Iterator[float]:
        """E of the finest grid, and after each merge of a path."""
        sums = self.counts.astype(np.float64)
        members = [np.ones(size) for size in sums.shape]
        within, every = 0.0, self.counts.size
        yield self.next_variance * every
        for merge in merges:
            rows, own = np.moveaxis(sums, merge.axis, 0), members[merge.axis]
            first, second = rows[merge.kept], rows[merge.joined]
            size, other = own[merge.kept], own[merge.joined]
            cells = _outer([one for place, one in enumerate(members) if place != merge.axis])
            apart = (first / size - second / other) ** 2 / cells
            within += float(apart.sum()) * size * other / (size + other)
            rows[merge.kept] += second
            sums = np.delete(sums, merge.joined, axis=merge.axis)
            own[merge.kept] += other
            members[merge.axis] = np.delete(own, merge.joined)
            spread = float(np.prod([(1 / one).sum() for one in members]))
            yield within - (every - sums.size) * self.variance + self.next_variance * spread


def _outer(members: Sequence[Floats]) -> Floats:
    """How many cells each part of a grid has."""
    return reduce(np.multiply.outer, members, np.array(1.0))


def choose_parts(noisy: NoisyCounts, counts: Integers, axes: Sequence[Axis], parts: Parts) -> list[Groups]:
    """The part of each value of each axis, found by MODL in `counts`, whole numbers that `noisy` was made into.

    `parts` is `error` for the grid of least E, `modl` for that of least cost, or the most cells that it may have.
    """
    path = find_path(counts, axes)
    chosen = replay(axes, path.merges[: _choose_length(noisy, path, parts)])
    moved = move_values(counts, axes, chosen)
    if parts == "error" and noisy.expected_error(moved) > noisy.expected_error(chosen):
        return chosen
    return moved


def _choose_length(noisy: NoisyCounts, path: Path, parts: Parts) -> int:
    """How many merges of the path to make; of equally good numbers the least."""
    if parts == "error":
        return _first_least(list(noisy.path_errors(path.merges)))
    if parts == "modl":
        return _first_least(path.costs)
    shape = list(noisy.counts.shape)
    for length, merge in enumerate(path.merges):
        if prod(shape) <= int(parts):
            return length
        shape[merge.axis] -= 1
    return len(path.merges)


def _first_least(numbers: Sequence[float]) -> int:
    """Where the least number is, or the first that hardly differs from it."""
    return int(np.argmax(np.asarray(numbers) <= min(numbers) + LEAST_DIFFERENCE))
