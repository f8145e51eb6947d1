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
    table: NDArray[Cell], features: Sequence[int], sizes: Sequence[int], subset: Sequence[int]
) -> NDArray[Cell]:
    """The table of `subset`, in the order given, out of the table of `features`."""
    cube = table.reshape([sizes[feature] for feature in features])
    kept = [feature for feature in features if feature in subset]
    margin = cube.sum(axis=tuple(axis for axis, feature in enumerate(features) if feature not in subset))
    table_of_subset: NDArray[Cell] = margin.transpose([kept.index(feature) for feature in subset]).reshape(-1)
    return table_of_subset


def count_cells(features: Sequence[int], sizes: Sequence[int]) -> int:
    """How many cells the table of these features has."""
    return math.prod(sizes[feature] for feature in features)
