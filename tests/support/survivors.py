"""The noise of a published sum: what was released, less what the tables of those who are in it hold."""

from collections.abc import Mapping
from fractions import Fraction
from math import sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from synod.common.privacy.noise import share_variance
from synod.common.protocol.answers import ANSWERS_FILE, ReleasedAnswers
from synod.common.protocol.manifest import Verdict
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.marginals import SumMarginals
from synod.common.study.encoding import codings_of
from synod.party.count.tables import exact_counts
from synod.party.table.encode import read_table

SIGMAS = 6.0  # fresh noise must never fail a test by chance
SPREAD = {"Laplace": 5.0, "Gaussian": 2.0}
"""The variance of a square of noise, as a multiple of its squared mean; of sums of shares it is no more."""


def squares_to_promise(folder: Path, verdict: Verdict, label: str, tables: Mapping[str, Path]) -> NDArray[np.float64]:
    """The squares of one round's noise, cell by cell, as multiples of the variance that is promised for it: that of a
    full noise from any |S| - t of the |S| parties that are in the sum.
    """
    study, query, step = verdict.study, verdict.queries[label], plan_study(verdict.study).step(label)
    assert isinstance(query, SumMarginals)
    released = query.join(ReleasedAnswers(folder / ANSWERS_FILE, study, verdict.queries).read(label))
    present = [study.roster[place] for place in query.places(study)]
    exact = np.zeros_like(released)
    for entry in present:
        read = read_table(tables[entry.name], codings_of(study), unit=None, expected_rows=entry.rows)
        exact += exact_counts(query, study, read.columns)
    full = [
        float(1 / (part * step.cost.rho))
        if step.cost.rho
        else share_variance(shape=Fraction(1), scale=2 / (part * step.cost.epsilon))
        for part in query.parts()
    ]
    honest = len(present) - study.collusion
    promised = np.repeat(full, query.cells(study)) * len(present) / honest
    return np.asarray(np.square((released - exact).astype(float)) / promised)


def may_be(squares: NDArray[np.float64], law: str, factor: float = 1.0) -> bool:
    """Whether the noise may have `factor` times the promised variance."""
    return bool(abs(squares.mean() / factor - 1) < SIGMAS * sqrt(SPREAD[law] / len(squares)))
