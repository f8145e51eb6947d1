"""MWEM (Hardt, Ligett, McSherry 2012): a distribution over all cells, corrected round by round where it is worst.

Queries are single cells of all marginals of one order. Half of a round's budget chooses the cell whose count is
furthest off, half counts it; the cells of the distribution behind it are then scaled up or down.
"""

from dataclasses import dataclass

import numpy as np

from bench.rivals.answers import Answers, Attributes, Floats, count_exactly, list_sets, project_joint
from bench.rivals.plain import count_joint
from synod.deploy.evaluate.tables import Table

ROUND_EPSILON = 0.05
"""The PrivBayes paper's budget of a round (6.5), so that there is one at its smallest epsilon."""
COUNT_CHANGE = 1
"""A replaced row changes one count by at most 1, and so also its distance to a fixed number."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a marginal: where the marginal stands among all, and the flat place in it."""

    marginal: int
    place: int


def answer_mwem(table: Table, order: int, epsilon: float, *, rng: np.random.Generator) -> Answers:
    """The marginals of the mean of the distributions after each round.

    The original's mean leaves the last round out and has the uniform start in; with few rounds that wastes one.

    Guarantee: epsilon-differential privacy for a replaced row: T rounds, each an exponential mechanism and a Laplace
    count of epsilon / 2T each.
    """
    rounds = count_rounds(epsilon)
    half = epsilon / (2 * rounds)
    true, model = count_exactly(table, order), _even(table)
    total = np.zeros_like(model)
    sets = list_sets(len(table.sizes), order)
    for _ in range(rounds):
        cell = choose_cell(true, project_joint(model, order), half, rng=rng)
        noisy = true[cell.marginal][cell.place] + rng.laplace(0.0, COUNT_CHANGE / half)
        model = update(model, sets[cell.marginal], cell.place, noisy)
        total += model
    return project_joint(total / total.sum(), order)


def count_rounds(epsilon: float) -> int:
    """T: at least one."""
    return max(1, round(epsilon / ROUND_EPSILON))


def choose_cell(true: Answers, found: Answers, epsilon: float, *, rng: np.random.Generator) -> Cell:
    """A cell by the exponential mechanism, scored by how far the distribution's count is off.

    Guarantee: epsilon-differential privacy. Adding Gumbel noise to the exponents and taking the largest is that draw.
    """
    scores = np.concatenate([np.abs(a - b) for a, b in zip(true, found, strict=True)])
    drawn = int(np.argmax(epsilon * scores / (2 * COUNT_CHANGE) + rng.gumbel(size=len(scores))))
    starts = np.cumsum([0, *(len(counts) for counts in true)])
    marginal = int(np.searchsorted(starts, drawn, side="right")) - 1
    return Cell(marginal, drawn - int(starts[marginal]))


def update(model: Floats, own: Attributes, place: int, noisy: float) -> Floats:
    """Scales the cells behind one cell of a marginal by exp((noisy - count) / 2n), and all back to n rows."""
    rows = model.sum()
    codes = np.unravel_index(place, [model.shape[attribute] for attribute in own])
    behind: list[slice | int] = [slice(None)] * model.ndim
    for attribute, code in zip(own, codes, strict=True):
        behind[attribute] = int(code)
    changed = model.copy()
    part = changed[tuple(behind)]
    changed[tuple(behind)] = part * np.exp((noisy - part.sum()) / (2 * rows))
    scaled: Floats = changed * (rows / changed.sum())
    return scaled


def _even(table: Table) -> Floats:
    """As many rows as the table has, evenly over all cells; refused where these are too many."""
    counts = count_joint(table)
    return np.full(counts.shape, table.rows / counts.size)
