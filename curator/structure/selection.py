"""Selection: which pairs are worth a table, from the residuals of their agreements against the model so far.

A pair's score estimates how far its table is from the model's, in rows of absolute error; a table's noise costs as much
as it is expected to add. Pairs are taken in order of score while the sum of gains grows and the model stays small.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from synod.curator.inference.junction import tree_cells
from synod.curator.inference.measurements import SignedSums

Floats = NDArray[np.float64]
Pair = tuple[int, int]
# A table differs from the model in more ways than a split sees. Between 4.5 and 6 published tables are equally good.
SCORE_FACTOR = 4.5
ONE_SPLIT_NOISE = 3.84  # variances: the square of normal noise exceeds it one time in twenty
MEAN_ABSOLUTE = 0.8  # the mean absolute value of noise, in deviations


def score_pairs(sums: Iterable[SignedSums], expected: Mapping[Pair, Floats], rows: int) -> dict[Pair, float]:
    """For each pair an estimate of the absolute error of the model's table of it, in rows."""
    return {one.attributes: _score(one, rows * expected[one.attributes]) for one in sums}


def _score(sums: SignedSums, counts: Floats) -> float:
    """Under several splits the noise's mean square is taken off; a single one would let a quarter of all noise pass.

    For several splits a stricter rule was measured too, and was no better.
    """
    residuals = sums.values - ((sums.left @ counts) * sums.right).sum(axis=1)
    noise = sums.variance * (ONE_SPLIT_NOISE if len(residuals) == 1 else 1)
    signal = float(np.mean(residuals**2 - noise))
    return SCORE_FACTOR * math.sqrt(max(0.0, signal))


@dataclass(frozen=True, slots=True, eq=False)
class Room:
    """What a step of tables may ask for, and with how much noise.

    Attributes:
        sizes: how many groups each feature has.
        rows: how many rows are counted.
        model_cells: the most cells of the model's junction tree.
        tables: the most tables.
        numbers: the most cells of all tables together.
        table_cells: the most cells of one table.
        deviation: of the noise on a table that gets this part of the step's budget.
        power: tables get parts of the budget in proportion to their cells to this power.
        forest: whether pairs may only join what is not joined yet.
    """

    sizes: tuple[int, ...]
    rows: int
    model_cells: int
    tables: int
    numbers: int
    table_cells: int
    deviation: Callable[[float], float]
    power: float
    forest: bool

    def cells(self, pair: Pair) -> int:
        """The cells of a pair's table."""
        return prod(self.sizes[feature] for feature in pair)

    def parts(self, pairs: Sequence[Pair]) -> Floats:
        """Each table's part of the step's budget."""
        weights = np.array([self.cells(pair) ** self.power for pair in pairs])
        parts: Floats = weights / weights.sum()
        return parts


def choose_pairs(
    scores: Mapping[Pair, float], least: float, expected: Mapping[Pair, Floats], known: Sequence[Pair], room: Room
) -> list[Pair]:
    """The pairs whose tables are worth asking for, beside those that the model holds already.

    A score below `least`, the deviation of a signed sum, is taken for noise.
    """
    chosen: list[Pair] = []
    gain, parts = 0.0, _Components(len(room.sizes), known)
    for pair in sorted(scores, key=lambda one: (-scores[one], one)):
        if scores[pair] < least:
            break
        if (room.forest and parts.joins(pair)) or not _fits(pair, chosen, known, room):
            continue
        better = _gain([*chosen, pair], scores, expected, room)
        if better > gain:
            chosen, gain = [*chosen, pair], better
            parts.join(pair)
    return chosen


def _fits(pair: Pair, chosen: Sequence[Pair], known: Sequence[Pair], room: Room) -> bool:
    asked = [*chosen, pair]
    return (
        len(asked) <= room.tables
        and room.cells(pair) <= room.table_cells
        and sum(map(room.cells, asked)) <= room.numbers
        and tree_cells(room.sizes, [*known, *asked], room.model_cells) <= room.model_cells
    )


def _gain(pairs: Sequence[Pair], scores: Mapping[Pair, float], expected: Mapping[Pair, Floats], room: Room) -> float:
    """What the tables are expected to mend less what their noise spoils: no cell is spoiled by more than its mass."""
    total = 0.0
    for pair, part in zip(pairs, room.parts(pairs), strict=True):
        spoiled = np.minimum(room.rows * expected[pair], MEAN_ABSOLUTE * room.deviation(part))
        total += scores[pair] - float(spoiled.sum())
    return total


class _Components:
    """Which features are joined by pairs."""

    def __init__(self, features: int, pairs: Iterable[Pair]) -> None:
        self._names = list(range(features))
        for pair in pairs:
            self.join(pair)

    def joins(self, pair: Pair) -> bool:
        return self._names[pair[0]] == self._names[pair[1]]

    def join(self, pair: Pair) -> None:
        first, second = self._names[pair[0]], self._names[pair[1]]
        self._names = [first if name == second else name for name in self._names]
