"""The table of all attributes: how it is asked for, and what is released of it."""

import numpy as np
from numpy.typing import NDArray

from synod.common.protocol.queries.marginals import SumMarginals
from synod.common.study.features import sizes_of
from synod.common.study.study import Study
from synod.curator.methods.base import Parties, Released, sum_variances
from synod.curator.structure.cells import Groups


def ask_everything(study: Study) -> SumMarginals:
    """The query of the one table of all features."""
    return SumMarginals((tuple(range(len(sizes_of(study)))),))


def release_everything(study: Study, parties: Parties, label: str, counts: NDArray[np.int64]) -> Released:
    """The released table of all features."""
    query = ask_everything(study)
    (variance,) = sum_variances(study, parties, label, query)
    return Released(query.sets[0], counts.astype(np.float64), study.total_rows, variance)


def values_apart(study: Study) -> list[Groups]:
    """Every value in a group of its own."""
    return [tuple(range(size)) for size in sizes_of(study)]
