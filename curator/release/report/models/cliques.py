"""The section about a junction tree: which columns were counted together, and how strongly the model joins them."""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synod.common.study.features import features_of
from synod.common.study.study import Study
from synod.curator.inference.junction import JunctionTree
from synod.curator.inference.pairs import pair_tables
from synod.curator.methods.base import CountError, ModelSection, Publication
from synod.curator.release.report.charts import bar, chart_row, chart_table, draw_strip
from synod.curator.release.report.markup import Html, join, outside, tag
from synod.curator.release.report.wording import plural, whole
from synod.curator.structure.model import read_tree

MOST_PAIRS = 200
COUNTED = "values together, of columns that were counted together,"
ONE_COLUMN = "Only one column varies, so there is nothing to join: the model is that column's table."
NO_PAIRS = "No two columns were counted together: they are published as if they were independent."
Floats = NDArray[np.float64]


def describe_cliques(study: Study, publication: Publication) -> ModelSection:
    """The counted pairs, the strongest first, and the tables that the model is made of."""
    tree, weights = read_tree(publication.model)
    counted = _counted_pairs(publication.model)
    names = [study.attributes[feature.attribute].name for feature in features_of(study)]
    if not counted:
        return ModelSection("Which columns the model joins", tag("p", NO_PAIRS if len(names) > 1 else ONE_COLUMN))
    tables = pair_tables(tree, [own / own.sum() for own in weights])
    words = _describe_tree(tree, len(counted))
    strengths = sorted(((_strength(tables[pair]), pair) for pair in counted), reverse=True)
    rows = [_show_pair(names, pair, strength) for strength, pair in strengths[:MOST_PAIRS]]
    chart = chart_table("Counted pairs, the strongest first", ("a full bar is 1", "Cramér's V"), rows, "pair")
    return ModelSection("Which columns the model joins", join([tag("p", words), chart]))


def _describe_tree(tree: JunctionTree, counted: int) -> str:
    every, largest = math.comb(len(tree.sizes), 2), max(len(clique) for clique in tree.cliques)
    words = (
        f"{plural(counted, 'pair')} of {whole(every)} {'was' if counted == 1 else 'were'} counted together. The model "
        f"joins {'it' if counted == 1 else 'them'} in {plural(len(tree.cliques), 'table')} of up to "
        f"{plural(largest, 'column')}, with {whole(tree.cells)} cells in all."
    )
    if counted < every:
        words += " Columns that were not counted together are joined only through others."
    return words


def _show_pair(names: Sequence[str], pair: tuple[int, int], strength: float) -> Html:
    label = join([outside(names[pair[0]]), Html(" with "), outside(names[pair[1]])])
    return chart_row(label, draw_strip(bar(0, strength)), f"{strength:.2f}")


def _strength(table: Floats) -> float:
    """Cramér's V: 0 for independent columns, 1 where one tells the other."""
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    squares = np.divide((table - expected) ** 2, expected, out=np.zeros_like(table), where=expected > 0)
    return math.sqrt(float(squares.sum()) / max(1, min(table.shape) - 1))


def clique_error(study: Study, publication: Publication) -> CountError:
    """The noise on a cell of the pairs that were counted."""
    pairs = _counted_pairs(publication.model)
    every = math.comb(len(features_of(study)), 2)
    if not pairs:
        return CountError(None, every, 0, COUNTED, NO_PAIRS)
    variances = [deviation**2 for deviation in pairs.values()]
    return CountError(math.sqrt(math.fsum(variances) / len(variances)), every, len(pairs), COUNTED)


def _counted_pairs(model: Any) -> dict[tuple[int, int], float]:
    """Each counted pair, with the deviation of the noise on a cell; of two counts the better one's."""
    found: dict[tuple[int, int], float] = {}
    for table in model["tables"]:
        for pair in combinations(table["attributes"], 2):
            found[pair] = min(found.get(pair, math.inf), float(table["deviation"]))
    return found
