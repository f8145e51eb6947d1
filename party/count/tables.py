"""Counts of a study's features: exact ones, and one party's own with its noise. Pure.

Exact counts never leave this folder but through noise or a private choice.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from synod.common.privacy.coins import Coins
from synod.common.protocol.queries.marginals import LocalMarginals, Tables
from synod.common.protocol.queries.noise_runs import sample_runs
from synod.common.protocol.steps import Step
from synod.common.study.encoding import CodeColumn
from synod.common.study.study import Study
from synod.party.count.columns import feature_columns, group_codes
from synod.party.count.marginals import count_marginals


def exact_counts(query: Tables, study: Study, columns: Sequence[CodeColumn]) -> NDArray[np.int64]:
    """The exact counts of sets of features and groupings, table after table."""
    features = feature_columns(study, columns)
    grouped = [group_codes(features[one.feature], one.groups, one.size) for one in query.groupings]
    tables = count_marginals([*features, *grouped], query.entry_sizes(study), query.sets)
    return tables[0] if len(tables) == 1 else np.concatenate(tables)  # one table may have millions of cells


def noisy_counts(
    query: LocalMarginals, step: Step, study: Study, columns: Sequence[CodeColumn], *, coins: Coins
) -> NDArray[np.int64]:
    """This party's counts with its own full noise.

    Guarantee: neighbours differ in the replaced rows of one unit, each of which moves one count from a cell to another
    in each table. The noise of `LocalMarginals.runs` makes all of it cost the step's cost.
    """
    counts = exact_counts(query, study, columns)
    counts += sample_runs(query.runs(step, study), coins=coins)
    return counts
