"""The one place that sees all rows: noisy tables and private choices, and what they cost in rho.

NOT private in an engineering sense: noise and choices are floats from a seeded generator, and nothing is encrypted.
Two neighbours are known: "A", one row added or removed, and "R", one row replaced, which is Synod's own. The number of
rows is taken as public under both.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations
from math import pi, prod, sqrt
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from synod.common.privacy.coins import KEY_BYTES, Coins
from synod.curator.inference.descent import Fitted, fit
from synod.curator.inference.junction import Attributes, JunctionTree, build_tree
from synod.curator.inference.measurements import Measurement
from synod.curator.inference.pairs import pair_tables
from synod.curator.inference.synthesis import draw_rows, integer_weights
from synod.curator.network.tables import project_tables

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
KeyT = TypeVar("KeyT")
MEAN_ABSOLUTE = sqrt(2 / pi)  # of Gaussian noise, in deviations
SMALLEST_SHARE = 1e-6
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Neighbours:
    """What one row can change.

    Attributes:
        squared: a table of counts, in squared L2 distance.
        absolute: a table of counts, in L1 distance; so also any L1 distance between it and a fixed table.
    """

    name: str
    squared: int
    absolute: int


NEIGHBOURS = {"A": Neighbours("A", squared=1, absolute=1), "R": Neighbours("R", squared=2, absolute=2)}


@dataclass(slots=True, eq=False)
class Place:
    """All rows, and the rho that was spent on them.

    Guarantee: all that `measure` and `choose` returned is rho-zCDP together, rho being `spent`, which never exceeds
    `rho`; up to floats, which is why this is no deployment.
    """

    columns: Sequence[Integers]
    sizes: tuple[int, ...]
    rho: float
    neighbours: Neighbours
    rng: np.random.Generator
    spent: float = 0.0
    _counted: dict[Attributes, Floats] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """The public number of rows."""
        return len(self.columns[0])

    def deviation(self, rho: float) -> float:
        """Of the noise on each count of a table that costs rho, which is squared / (2 deviation^2)."""
        return sqrt(self.neighbours.squared / (2 * rho))

    def measure(self, attributes: Attributes, rho: float) -> Measurement:
        """A noisy table that costs rho."""
        self._spend(rho)
        counts, deviation = self.count(attributes), self.deviation(rho)
        return Measurement(attributes, counts + self.rng.normal(0.0, deviation, counts.shape), deviation**2)

    def choose(self, scores: Mapping[KeyT, float], sensitivity: float, rho: float) -> KeyT:
        """One key by the exponential mechanism at epsilon = sqrt(8 rho), which is epsilon^2/8-zCDP."""
        self._spend(rho)
        keys = list(scores)
        values = np.array([scores[key] for key in keys])
        weights = np.exp(sqrt(8 * rho) / (2 * sensitivity) * (values - values.max()))
        return keys[int(self.rng.choice(len(keys), p=weights / weights.sum()))]

    def count(self, attributes: Attributes) -> Floats:
        """The true table: not to be released."""
        if attributes not in self._counted:
            shape = tuple(self.sizes[attribute] for attribute in attributes)
            cells = np.ravel_multi_index([self.columns[attribute] for attribute in attributes], shape)
            self._counted[attributes] = np.bincount(cells, minlength=prod(shape)).reshape(shape).astype(np.float64)
        return self._counted[attributes]

    def _spend(self, rho: float) -> None:
        self.spent += rho
        assert rho > 0
        assert self.spent <= self.rho * (1 + ROUNDING)


def ones_and_pairs(features: int) -> Iterable[Attributes]:
    """Every attribute, and every two."""
    return chain(combinations(range(features), 1), combinations(range(features), 2))


def base_of(ones: Iterable[Measurement], rows: int) -> list[Floats]:
    """Where a fit starts: the shares of one-way tables, none of them nothing."""
    raised = [np.maximum(project_tables(one.values, rows) / rows, SMALLEST_SHARE) for one in ones]
    return [shares / shares.sum() for shares in raised]


def fit_measured(
    sizes: tuple[int, ...],
    rows: int,
    measured: Sequence[Measurement],
    base: Sequence[Floats],
    *,
    iterations: int,
    start: Fitted | None = None,
) -> Fitted:
    """The model over all measured tables; the base is where it starts and no prior."""
    tree = build_tree(sizes, [one.attributes for one in measured])
    return fit(tree, rows, measured, base, 0.0, iterations=iterations, start=start)


def marginals_of(model: Fitted) -> dict[Attributes, Floats]:
    """The probabilities of every attribute and of every two under a model."""
    found: dict[Attributes, Floats] = {}
    found.update(pair_tables(model.tree, model.tables).items())
    for attribute in range(len(model.tree.sizes)):
        pair = next(pair for pair in found if attribute in pair)
        found[(attribute,)] = found[pair].sum(axis=1 - pair.index(attribute))
    return found


def draw(tree: JunctionTree, tables: Sequence[Floats], rows: int, *, rng: np.random.Generator) -> list[Integers]:
    """Columns of rows of a model, by Synod's synthesis."""
    return list(draw_rows(tree, integer_weights(tables), rows, coins=Coins(rng.bytes(KEY_BYTES))).T)
