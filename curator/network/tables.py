"""Tables: what a released marginal is turned into before anything is read off it.

A table is flat, in C order of its feature tuple; several of one shape are stacked along leading axes. All of
this is post-processing of released counts with public totals: it costs nothing, and it
must never be given exact counts whose results are then published.
"""

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from synod.curator.network.levels import PLAIN, Levels

Floats = NDArray[np.float64]
Cell = TypeVar("Cell", np.int64, np.float64)


def project_tables(tables: NDArray[Cell], total: float) -> Floats:
    """The nearest non-negative tables with this total: subtract one constant from each and cut at zero (norm-sub)."""
    assert total >= 0
    ordered = np.sort(tables.astype(np.float64), axis=-1)[..., ::-1]
    excess = (np.cumsum(ordered, axis=-1) - total) / np.arange(1, tables.shape[-1] + 1)
    kept = np.maximum(1, (ordered > excess).sum(axis=-1, keepdims=True))
    return np.maximum(0.0, tables - np.take_along_axis(excess, kept - 1, axis=-1))


def project_unequal(counts: Floats, variances: Floats, total: float) -> Floats:
    """The non-negative numbers with this total that are nearest to the counts, each in deviations of its own noise:
    subtract a multiple of the variances and cut at zero. With equal variances it is `project_tables`.
    """
    assert total >= 0
    order = np.argsort(-counts / variances, kind="stable")
    excess = (np.cumsum(counts[order]) - total) / np.cumsum(variances[order])
    kept = max(1, int(((counts / variances)[order] > excess).sum()))
    projected: Floats = np.maximum(0.0, counts - excess[kept - 1] * variances)
    return projected


def clip_table(table: Floats, total: float) -> Floats:
    """Negative counts set to zero and the rest scaled to the total, as PrivBayes prints it: biased towards rare cells.
    Without any positive count, all are equal.
    """
    positive: Floats = np.maximum(0.0, table)
    positive = positive if positive.any() else np.ones_like(table)
    return positive * (total / float(positive.sum()))


def mutual_information(tables: Floats, size: int) -> Floats:
    """The mutual information, in bits, of a table's first feature, of `size` codes, with all the others together.

    For non-negative tables of any positive total, or of none, which hold no information.
    """
    totals = tables.sum(axis=-1, keepdims=True)
    joint = (tables / np.where(totals > 0, totals, 1.0)).reshape(*tables.shape[:-1], size, -1)
    entropies = _entropy(joint.sum(axis=-1)) + _entropy(joint.sum(axis=-2))
    return np.maximum(0.0, entropies - _entropy(joint.reshape(tables.shape)))


def _entropy(chances: Floats) -> Floats:
    logs = np.log2(chances, where=chances > 0, out=np.zeros_like(chances))
    return np.asarray(-(chances * logs).sum(axis=-1))


def marginalize(
    table: NDArray[Cell],
    features: Sequence[int],
    sizes: Sequence[int],
    subset: Sequence[int],
    levels: Levels = PLAIN,
) -> NDArray[Cell]:
    """The table of `subset`, in the order given, out of the table of `features`, which has each of its features or a
    finer level of it.
    """
    sources = {levels.source(features, wanted): wanted for wanted in subset}
    cube = table.reshape([sizes[feature] for feature in features])
    margin = cube.sum(axis=tuple(axis for axis, feature in enumerate(features) if feature not in sources))
    kept = [feature for feature in features if feature in sources]
    for axis, feature in enumerate(kept):
        if sources[feature] != feature:
            groups = levels.coarsen(feature, sources[feature], sizes[feature])
            margin = fold_axis(margin, axis, groups, sizes[sources[feature]])
    order = [sources[feature] for feature in kept]
    table_of_subset: NDArray[Cell] = margin.transpose([order.index(feature) for feature in subset]).reshape(-1)
    return table_of_subset


def fold_axis(cube: NDArray[Cell], axis: int, groups: NDArray[np.intp], size: int) -> NDArray[Cell]:
    """A table in which the codes of one axis are added up by their groups, of which there are `size`."""
    indicators = (groups == np.arange(size)[:, None]).astype(cube.dtype)
    folded: NDArray[Cell] = np.tensordot(indicators, cube, axes=(1, axis))
    return np.moveaxis(folded, 0, axis)


def count_cells(features: Sequence[int], sizes: Sequence[int]) -> int:
    """How many cells the table of these features has."""
    return math.prod(sizes[feature] for feature in features)
