"""What a rival answers: every marginal of one order, as shares of the rows, and how far these are from the truth."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from synod.deploy.evaluate.marginals import total_variation
from synod.deploy.evaluate.tables import Table
from synod.party.count.marginals import count_marginals

Floats = NDArray[np.float64]
Attributes = tuple[int, ...]
Answers = list[Floats]
"""One flat table of shares for each set of `list_sets`, in its order."""


def list_sets(attributes: int, order: int) -> list[Attributes]:
    """All sets of so many attributes, in the order of answers."""
    return list(combinations(range(attributes), order))


def count_exactly(table: Table, order: int) -> Answers:
    """The true counts of all marginals of one order: not to be released."""
    counted = count_marginals(table.columns, table.sizes, list_sets(len(table.sizes), order))
    return [counts.astype(np.float64) for counts in counted]


def clip_and_rescale(counts: Floats) -> Floats:
    """Shares as the PrivBayes paper makes them of a noisy marginal (6.1): negative counts are 0, the sum is 1."""
    kept = np.maximum(counts, 0.0)
    total = kept.sum()
    return kept / total if total > 0 else np.full(len(counts), 1 / len(counts))


def project_joint(joint: Floats, order: int) -> Answers:
    """All marginals of one order out of a table with one axis for each attribute.

    Attributes are kept or summed out one after the other, so that marginals share the work of what they begin with.
    """
    found: dict[Attributes, Floats] = {}

    def decide(part: Floats, kept: Attributes, attribute: int) -> None:
        if attribute == joint.ndim:
            found[kept] = part.reshape(-1)
            return
        if len(kept) < order:
            decide(part, (*kept, attribute), attribute + 1)
        if len(kept) + joint.ndim - attribute > order:
            decide(part.sum(axis=len(kept)), kept, attribute + 1)

    decide(joint, (), 0)
    return [found[own] for own in list_sets(joint.ndim, order)]


def mean_distance(table: Table, order: int, answers: Sequence[Floats]) -> float:
    """The mean over all marginals of one order of the total variation distance to the true one."""
    true = count_exactly(table, order)
    return float(
        np.mean([total_variation(own, counts / table.rows) for own, counts in zip(answers, true, strict=True)])
    )
