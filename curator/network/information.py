"""How much columns tell about each other, as far as released tables of them say."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from synod.common.protocol.queries.marginals import SumMarginals
from synod.common.study.features import base_count, bases_of
from synod.common.study.study import Study
from synod.curator.network.graph import SCORE_DIGITS, Features
from synod.curator.network.tables import Floats, marginalize, mutual_information, project_tables

SEED, DRAWS = 1, 4  # of what noise makes up, which is the same for everybody who has the released tables


def measure_information(study: Study, views: SumMarginals, tables: Sequence[NDArray[np.int64]]) -> Floats:
    """The mutual information of each pair, out of the views that cover it, by their precision. Of a pair that was
    counted in groups it is that of the groups, which is at most that of the values.
    """
    sizes, bases = views.entry_sizes(study), bases_of(study)
    places = [bases[feature] for feature in views.entry_features(study)]
    margins: dict[Features, list[tuple[Floats, float]]] = {}
    for view, table in zip(views.sets, tables, strict=True):
        for pair in combinations(view, 2):
            counts = marginalize(table, view, sizes, pair)
            margins.setdefault(pair, []).append((counts.astype(np.float64), len(counts) / len(table)))
    information = np.zeros((base_count(study),) * 2)
    for (x, y), found in margins.items():
        whole = sum(precision for _, precision in found)
        counts = np.sum([counts * (precision / whole) for counts, precision in found], axis=0)
        value = float(mutual_information(project_tables(counts, study.total_rows), sizes[x]))
        information[places[x], places[y]] = information[places[y], places[x]] = value
    return information


def estimate_information(
    views: Sequence[Features],
    tables: Sequence[NDArray[np.int64]],
    sizes: Sequence[int],
    rows: int,
    variances: Sequence[float],
) -> Floats:
    """The same out of the one view that covers a pair, less what noise makes up. That grows with the cells of a pair:
    columns of many values would seem to tell most. `variances` are those of a cell of each view.
    """
    information, rng = np.zeros((len(sizes), len(sizes))), np.random.default_rng(SEED)
    for x, y, counts, view in _list_pairs(views, tables, sizes):
        shares = project_tables(counts, rows)
        cube = shares.reshape(sizes[x], -1) / rows
        added = variances[view] * (len(tables[view]) / len(counts))
        made_up = simulate_noise(cube.sum(axis=1), cube.sum(axis=0), rows, added, DRAWS, rng=rng)
        told = float(mutual_information(shares, sizes[x])) - float(made_up.mean())
        information[x, y] = information[y, x] = max(0.0, told)
    return information


def simulate_noise(
    first: Floats, second: Floats, rows: int, variance: float, draws: int, *, rng: np.random.Generator
) -> Floats:
    """The information that two independent columns of these shares seem to hold, in bits, when noise of this variance
    is on each count of them together; one number for each draw.
    """
    counts = rows * np.outer(first, second).reshape(-1)
    noise = rng.normal(0.0, variance**0.5, (draws, len(counts)))
    return mutual_information(project_tables(counts + noise, rows), len(first))


def _list_pairs(
    views: Sequence[Features], tables: Sequence[NDArray[np.int64]], sizes: Sequence[int]
) -> Iterator[tuple[int, int, NDArray[np.int64], int]]:
    """Each pair of features that a view has, with its counts and the place of the view."""
    for place, (view, table) in enumerate(zip(views, tables, strict=True)):
        for i, x in enumerate(view):
            for y in view[i + 1 :]:
                yield x, y, marginalize(table, view, sizes, (x, y)), place


def most_correlated(information: Floats, feature: int, others: Iterable[int], length: int) -> Features:
    """The `length` of these features of highest released information with this one; of equals, lower indices."""
    ranked = sorted((-round(float(information[feature, i]), SCORE_DIGITS), i) for i in others if i != feature)
    return tuple(sorted(i for _, i in ranked[:length]))
