"""Laplace, Contingency and Uniform: the rivals that only add noise to counts, or not even that."""

from math import comb, prod

import numpy as np

from bench.rivals.answers import Answers, Floats, clip_and_rescale, count_exactly, list_sets, project_joint
from synod.common.runtime.errors import refused
from synod.deploy.evaluate.tables import Table
from synod.party.count.marginals import count_marginals

TABLE_CHANGE = 2
"""A replaced row takes 1 from one cell of a table and gives 1 to another."""
MOST_CELLS = 1 << 20


def answer_laplace(table: Table, order: int, epsilon: float, *, rng: np.random.Generator) -> Answers:
    """Every marginal with its own noise.

    Guarantee: epsilon-differential privacy for a replaced row. C(d, order) tables change by 2 each in L1.
    """
    scale = laplace_scale(len(table.sizes), order, epsilon)
    return [clip_and_rescale(counts + rng.laplace(0.0, scale, counts.shape)) for counts in count_exactly(table, order)]


def laplace_scale(attributes: int, order: int, epsilon: float) -> float:
    """The scale of the noise of each cell of all marginals of one order."""
    return TABLE_CHANGE * comb(attributes, order) / epsilon


def answer_uniform(table: Table, order: int, epsilon: float, *, rng: np.random.Generator) -> Answers:
    """The same share for every cell, which reads no row."""
    del epsilon, rng
    cells = [prod(table.sizes[attribute] for attribute in own) for own in list_sets(len(table.sizes), order)]
    return [np.full(count, 1 / count) for count in cells]


def answer_contingency(
    table: Table, order: int, epsilon: float, *, is_cut: bool = False, rng: np.random.Generator
) -> Answers:
    """All marginals out of one noisy table of all attributes.

    The paper's text cuts negative counts of marginals. Its figure of ACS, where this rival is as bad as Uniform, fits
    only if the cells of the table were cut before (`is_cut`): that adds half a scale to nearly every cell.

    Guarantee: epsilon-differential privacy for a replaced row, which changes the one table by 2 in L1.
    """
    counts = count_joint(table)
    noisy = counts + rng.laplace(0.0, TABLE_CHANGE / epsilon, counts.shape)
    released = np.maximum(noisy, 0.0) if is_cut else noisy
    return [clip_and_rescale(margin) for margin in project_joint(released, order)]


def count_joint(table: Table) -> Floats:
    """The true table of all attributes, one axis for each; refused where it has too many cells to be held."""
    cells = prod(table.sizes)
    if cells > MOST_CELLS:
        raise refused(f"the table of all attributes has {float(cells):.0e} cells.", f"At most {MOST_CELLS} are held.")
    (counts,) = count_marginals(table.columns, table.sizes, [tuple(range(len(table.sizes)))])
    return counts.astype(np.float64).reshape(table.sizes)
