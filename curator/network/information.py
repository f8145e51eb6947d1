"""How much columns tell about each other, as far as released tables of them say."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from synod.curator.network.graph import SCORE_DIGITS, Features
from synod.curator.network.tables import Floats, marginalize, mutual_information, project_tables

SEED, DRAWS = 1, 4  # of what noise makes up, which is the same for everybody who has the released tables


def measure_information(
    views: Sequence[Features], tables: Sequence[NDArray[np.int64]], sizes: Sequence[int], rows: int
) -> Floats:
    """The mutual information of each pair of features, in bits, out of the view that covers it."""
    information = np.zeros((len(sizes), len(sizes)))
    for x, y, counts, _ in _list_pairs(views, tables, sizes):
        shares = project_tables(counts, rows)
        information[x, y] = information[y, x] = float(mutual_information(shares, sizes[x]))
    return information


def estimate_information(
    views: Sequence[Features],
    tables: Sequence[NDArray[np.int64]],
    sizes: Sequence[int],
    rows: int,
    variances: Sequence[float],
) -> Floats:
    """The same less what the noise makes up, which grows with the cells of a pair: without that, columns of many values
    would seem to tell most. `variances` are those of a cell of each view.
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
