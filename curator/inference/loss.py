"""The loss of a model against all released numbers, and its derivative, over the cells of all factors at once."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synod.curator.inference.measurements import Floats, Layout, Measurement, SignedSums

Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Pooled:
    """Several noisy readings of the same numbers as one: sum of (x - value)^2 / (2 variance) over the readings is
    weight (x - mean)^2 / 2 and a constant.
    """

    means: Floats
    weights: Floats
    constant: float


class _Readings:
    """Sums from which a `Pooled` is made."""

    def __init__(self, cells: int) -> None:
        self.weights = np.zeros(cells)
        self.weighted = np.zeros(cells)
        self.squares = 0.0

    def add(self, where: slice, values: Floats, variance: Floats) -> None:
        """One reading of the numbers in `where`."""
        self.weights[where] += 1 / variance
        self.weighted[where] += values / variance
        self.squares += 0.5 * float((values * values / variance).sum())

    def pool(self) -> Pooled:
        """All readings as one."""
        means = self.weighted / np.where(self.weights > 0, self.weights, 1.0)
        return Pooled(means, self.weights, self.squares - 0.5 * float((self.weights * means * means).sum()))


@dataclass(frozen=True, slots=True, eq=False)
class Loss:
    """The sum of squared residual / (2 variance) as a function of the counts in all cells of a layout.

    Attributes:
        tables: of whole factors, by cell.
        one_ways: by code, the codes of all attributes side by side.
        cells, codes: each cell in which a one-way table is read, and the code that it belongs to.
        signs: rows of signs over all cells; row k has the k-th signed sum of every factor.
        sums: by row and factor; weight zero where a factor has fewer.
    """

    layout: Layout
    tables: Pooled
    one_ways: Pooled
    cells: Places
    codes: Places
    signs: Floats
    sums: Floats
    sum_weights: Floats

    def evaluate(self, counts: Floats) -> tuple[float, Floats]:
        """The loss and its derivative by each cell's count."""
        residual = counts - self.tables.means
        gradient = self.tables.weights * residual
        loss = self.tables.constant + 0.5 * float(gradient @ residual)
        loss += self._add_one_ways(counts, gradient)
        if len(self.signs):
            loss += self._add_sums(counts, gradient)
        return loss, gradient

    def _add_one_ways(self, counts: Floats, gradient: Floats) -> float:
        found = np.bincount(self.codes, weights=counts[self.cells], minlength=len(self.one_ways.means))
        residual = found - self.one_ways.means
        weighted = self.one_ways.weights * residual
        gradient += np.bincount(self.cells, weights=weighted[self.codes], minlength=len(gradient))
        return self.one_ways.constant + 0.5 * float(weighted @ residual)

    def _add_sums(self, counts: Floats, gradient: Floats) -> float:
        starts = np.array(self.layout.starts)
        residual = np.add.reduceat(self.signs * counts, starts[:-1], axis=1) - self.sums
        weighted = self.sum_weights * residual
        gradient += np.einsum("kc,kc->c", self.signs, np.repeat(weighted, np.diff(starts), axis=1))
        return 0.5 * float((weighted * residual).sum())


def make_loss(layout: Layout, measurements: Iterable[Measurement | SignedSums]) -> Loss:
    """The loss against those measurements that a factor of the layout holds."""
    factors = {tuple(sorted(attributes)): factor for factor, attributes in enumerate(layout.factors)}
    tables, one_ways = _Readings(layout.cells), _Readings(sum(layout.sizes))
    code_starts = np.concatenate([[0], np.cumsum(layout.sizes)])
    sums: dict[int, list[SignedSums]] = {}
    for measured in measurements:
        if isinstance(measured, SignedSums):
            if measured.attributes in factors:
                sums.setdefault(factors[measured.attributes], []).append(measured)
        elif len(measured.attributes) == 1:
            start = int(code_starts[measured.attributes[0]])
            where = slice(start, start + layout.sizes[measured.attributes[0]])
            one_ways.add(where, measured.values, _widen(measured))
        elif measured.attributes in factors:
            factor = factors[measured.attributes]
            values = layout.flatten(measured.values, measured.attributes, factor)
            tables.add(layout.span(factor), values, layout.flatten(_widen(measured), measured.attributes, factor))
    cells, codes = _read_one_ways(layout, code_starts)
    return Loss(layout, tables.pool(), one_ways.pool(), cells, codes, *_stack_sums(layout, sums))


def _widen(measured: Measurement) -> Floats:
    """The variance of each cell."""
    return np.broadcast_to(np.asarray(measured.variance, dtype=np.float64), measured.values.shape)


def _read_one_ways(layout: Layout, code_starts: Places) -> tuple[Places, Places]:
    """For each attribute the cells of its host and the code of each."""
    cells, codes = [], []
    for attribute, size in enumerate(layout.sizes):
        span, spread = layout.spread(np.arange(size, dtype=np.int64), attribute)
        cells.append(np.arange(span.start, span.stop))
        codes.append(spread + code_starts[attribute])
    return np.concatenate(cells), np.concatenate(codes)


def _stack_sums(layout: Layout, sums: dict[int, list[SignedSums]]) -> tuple[Floats, Floats, Floats]:
    """Signs, values and weights of all signed sums, filled up with zeros."""
    rows = max((sum(len(one.values) for one in several) for several in sums.values()), default=0)
    signs = np.zeros((rows, layout.cells))
    values, weights = np.zeros((rows, len(layout.factors))), np.zeros((rows, len(layout.factors)))
    for factor, several in sums.items():
        row = 0
        for one in several:
            for sign, value, variance in zip(one.signs(), one.values, _each(one), strict=True):
                signs[row, layout.span(factor)] = layout.flatten(sign, one.attributes, factor)
                values[row, factor], weights[row, factor] = value, 1 / variance
                row += 1
    return signs, values, weights


def _each(sums: SignedSums) -> Floats:
    return np.broadcast_to(np.asarray(sums.variance, dtype=np.float64), sums.values.shape)
