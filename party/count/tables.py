"""Counts of a study's features: exact ones, and one party's own with its noise. Pure.

Exact counts never leave this folder but through noise or a private choice.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from synod.common.privacy.coins import Coins
from synod.common.protocol.queries.marginals import LocalMarginals
from synod.common.protocol.steps import Step
from synod.common.study.encoding import Codes
from synod.common.study.features import sizes_of, space_of
from synod.common.study.study import Study
from synod.party.count.marginals import count_marginals


def exact_counts(sets: Sequence[tuple[int, ...]], study: Study, columns: Sequence[Codes]) -> NDArray[np.int64]:
    """The exact counts of sets of features, table after table."""
    return np.concatenate(count_marginals(space_of(study).encode(columns), sizes_of(study), sets))


def noisy_counts(
    query: LocalMarginals, step: Step, study: Study, columns: Sequence[Codes], *, coins: Coins
) -> NDArray[np.int64]:
    """This party's counts with its own full noise.

    Guarantee: neighbours differ in one replaced row, which moves one count from a cell to another in each of m
    tables: L1 sensitivity 2m. Discrete Laplace noise of scale 2m/epsilon makes it epsilon-DP, epsilon being the
    step's cost.
    """
    counts = exact_counts(query.sets, study, columns)
    return counts + query.noise(step).sample(len(counts), coins=coins)
