"""Exact inference on a junction tree: from clique potentials to the probabilities of every clique.

Messages run from the leaves to the root and back (Lauritzen and Spiegelhalter 1988), on the way up in logarithms,
so that potentials of any size are safe; a cell whose potential is minus infinity has probability zero.
"""

from collections.abc import Sequence
from math import inf, log

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
    log_total = 0.0
    for place in reversed(tree.order):
        part, tables[place] = _normalize(_add_messages(tree, place, potentials[place], messages))
        log_total += part
        messages[place] = reduce_table(tables[place], tree.cliques[place], tree.separators[place])
    if log_total > -inf:
        for place in tree.order[1:]:
            _rescale(tree, place, tables, messages[place])
    return log_total, tables


def _add_messages(tree: JunctionTree, place: int, potential: Floats, messages: Sequence[Floats]) -> Floats:
    """A clique's potential with the logarithms of what its children sent."""
    total = potential
    with np.errstate(divide="ignore"):
        for child in tree.children[place]:
            total = total + expand_table(np.log(messages[child]), tree.separators[child], tree.cliques[place])
    return total


def _normalize(potential: Floats) -> tuple[float, Floats]:
    """The logarithm of the sum of exp(potential), and the table divided by that sum."""
    highest = float(potential.max())
    if highest == -inf:
        return -inf, np.zeros_like(potential)
    table = np.exp(potential - highest)
    total = float(table.sum())
    table /= total
    return highest + log(total), table


def _rescale(tree: JunctionTree, place: int, tables: list[Floats], sent: Floats) -> None:
    """Gives a clique the probabilities that its parent has for their separator."""
    parent = tree.parents[place]
    known = reduce_table(tables[parent], tree.cliques[parent], tree.separators[place])
    ratio = divide_safely(known, sent)
    tables[place] *= expand_table(ratio, tree.separators[place], tree.cliques[place])


def divide_safely(numerator: Floats, denominator: Floats) -> Floats:
    """The quotient, zero where the denominator is zero."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
