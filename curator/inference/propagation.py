"""Exact inference on a junction tree: from clique potentials to the probabilities of every clique.

Messages run from the leaves to the root and back (Lauritzen and Spiegelhalter 1988), on the way up in logarithms
for each cell of a separator, so that potentials of any size are safe; a cell whose potential is minus infinity has
probability zero.
"""

from collections.abc import Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

from synod.curator.inference.junction import JunctionTree, expand_table, reduce_table

Floats = NDArray[np.float64]


def propagate(tree: JunctionTree, potentials: Sequence[Floats]) -> tuple[float, list[Floats]]:
    """The logarithm of the sum over all rows of exp(sum of potentials), and each clique's probabilities.

    If the sum is zero, its logarithm is minus infinity and the tables are zero.
    """
    tables: list[Floats] = [np.empty(0)] * len(tree.cliques)
    messages: list[Floats] = [np.empty(0)] * len(tree.cliques)
    for place in reversed(tree.order):
        potential = potentials[place]
        for child in tree.children[place]:
            potential = potential + expand_table(messages[child], tree.separators[child], tree.cliques[place])
        messages[place], tables[place] = _condition(tree, place, potential)
    log_total = float(messages[tree.order[0]])
    if log_total == -inf:
        return log_total, [np.zeros_like(table) for table in tables]
    for place in tree.order[1:]:
        parent, separator = tree.parents[place], tree.separators[place]
        known = reduce_table(tables[parent], tree.cliques[parent], separator)
        tables[place] *= expand_table(known, separator, tree.cliques[place])
    return log_total, tables


def _condition(tree: JunctionTree, place: int, potential: Floats) -> tuple[Floats, Floats]:
    """The logarithm of the sum of exp(potential) for each cell of the separator, and the table given that cell."""
    clique, separator = tree.cliques[place], tree.separators[place]
    dropped = tuple(axis for axis, attribute in enumerate(clique) if attribute not in separator)
    highest = potential.max(axis=dropped, keepdims=True)
    highest[highest == -inf] = 0.0
    table = np.exp(potential - highest)
    total = table.sum(axis=dropped, keepdims=True)
    with np.errstate(divide="ignore"):
        message = np.log(total) + highest
    return message.reshape(tree.shape(separator)), divide_safely(table, np.broadcast_to(total, table.shape))


def divide_safely(numerator: Floats, denominator: Floats) -> Floats:
    """The quotient, zero where the denominator is zero."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
