"""The baseline of the page: what columns published independently of each other, at the same cost, would be like.

Guarantee: a function of the study and of the published rows, so it costs nothing.
"""

from dataclasses import dataclass
from itertools import combinations
from math import fsum

import numpy as np
from numpy.typing import NDArray

from synod.common.privacy.coins import Coins
from synod.common.study.encoding import Codes, binned_codings, to_bins
from synod.common.study.study import Study
from synod.curator.methods.base import Publication
from synod.curator.structure.columns import column_deviation

MOST_PAIRS = 300
MOST_ROWS = 100_000
MOST_CELLS = 1 << 20
Column = tuple[NDArray[np.int64], int]


@dataclass(frozen=True, slots=True)
class Dependence:
    """How far the published rows' tables of two columns are from those of independent columns: `missed` is the mean
    total variation distance over `pairs` of them, and `by_chance` what the draw of the rows alone makes of it.
    """

    missed: float
    by_chance: float
    pairs: int


@dataclass(frozen=True, slots=True)
class Baseline:
    """Columns published independently with the whole budget: `deviation` is the noise of a count of one value, in rows,
    and `dependence` what they would miss.
    """

    deviation: float
    dependence: Dependence


def measure_baseline(study: Study, publication: Publication) -> Baseline | None:
    """None where fewer than two columns have more than one bin: such a release has nothing to compare."""
    dependence, deviation = measure_dependence(study, publication), column_deviation(study)
    if dependence is None or deviation is None:
        return None
    return Baseline(deviation, dependence)


def measure_dependence(study: Study, publication: Publication) -> Dependence | None:
    """In the schema's bins; None where fewer than two columns have more than one of them."""
    columns = _read_columns(study, publication)
    if len(columns) < 2:
        return None
    pairs = list(combinations(range(len(columns)), 2))
    chosen = pairs[:: 1 + (len(pairs) - 1) // MOST_PAIRS]
    missed = fsum(distance_to_independence(columns[a], columns[b]) for a, b in chosen)
    shuffled = _shuffle(columns)
    by_chance = fsum(distance_to_independence(shuffled[a], columns[b]) for a, b in chosen)
    return Dependence(missed / len(chosen), by_chance / len(chosen), len(chosen))


def _read_columns(study: Study, publication: Publication) -> list[Column]:
    """The published columns of more than one bin; of very many rows, some at even distances."""
    step = 1 + (len(publication.columns[0]) - 1) // MOST_ROWS
    thinned: list[Codes] = [column[::step] for column in publication.columns]
    pairs = zip(to_bins(study, thinned), binned_codings(study), strict=True)
    return [(codes.astype(np.int64), coding.size) for codes, coding in pairs if coding.size > 1]


def _shuffle(columns: list[Column]) -> list[Column]:
    """Each column in an order of its own, the same on every page."""
    coins = Coins.public(0, "columns alone")
    return [(codes[np.argsort(coins.draw_words(len(codes)), kind="stable")], size) for codes, size in columns]


def distance_to_independence(left: Column, right: Column) -> float:
    """The total variation distance between the table of two columns and the product of its margins."""
    (first, height), (second, width) = left, right
    cells, rows = first * width + second, len(first)
    if height * width <= MOST_CELLS:
        table = (np.bincount(cells, minlength=height * width) / rows).reshape(height, width)
        return float(np.abs(table - np.outer(table.sum(axis=1), table.sum(axis=0))).sum() / 2)
    # Of a table that could not be held, the cells without a row together have what the others leave of the product.
    occurring, counts = np.unique(cells, return_counts=True)
    shares = [np.bincount(codes, minlength=size) / rows for codes, size in (left, right)]
    product = shares[0][occurring // width] * shares[1][occurring % width]
    return float(np.abs(counts / rows - product).sum() + 1 - product.sum()) / 2
