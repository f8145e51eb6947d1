"""A second way to condition a junction tree, exact: evidence in the tree itself, and elimination on it.

A model is its tree and its clique probabilities. Nothing here is approximate, and nothing reads rows.
"""

from collections.abc import Mapping, Sequence
from math import inf

import numpy as np

from synod.common.runtime.errors import invalid
from synod.curator.inference.junction import Attributes, JunctionTree, expand_table, reduce_table
from synod.curator.inference.propagation import Floats, divide_safely, propagate


def condition(tree: JunctionTree, tables: Sequence[Floats], evidence: Mapping[int, int]) -> list[Floats]:
    """The clique probabilities given that attributes have these codes.

    Raises:
        SynodError: an attribute or code does not exist, or the model gives the evidence no probability.
    """
    _check_evidence(tree, evidence)
    chances = [_given(tree, place, table) for place, table in enumerate(tables)]
    with np.errstate(divide="ignore"):
        potentials = [np.log(_keep_codes(tree, place, table, evidence)) for place, table in enumerate(chances)]
    log_total, conditioned = propagate(tree, potentials)
    if log_total == -inf:
        raise invalid("The model gives these values together no probability.", "Ask for fewer or other values.")
    return conditioned


def _check_evidence(tree: JunctionTree, evidence: Mapping[int, int]) -> None:
    for attribute, code in evidence.items():
        if not 0 <= attribute < len(tree.sizes) or not 0 <= code < tree.sizes[attribute]:
            raise invalid("The evidence names an attribute or a code that the model does not have.")


def _given(tree: JunctionTree, place: int, table: Floats) -> Floats:
    """A clique's probabilities given its separator; zero where the separator has none."""
    clique, separator = tree.cliques[place], tree.separators[place]
    known = expand_table(reduce_table(table, clique, separator), separator, clique)
    return divide_safely(table, np.broadcast_to(known, table.shape))


def _keep_codes(tree: JunctionTree, place: int, table: Floats, evidence: Mapping[int, int]) -> Floats:
    """The table with zeros wherever a code differs from the evidence."""
    for attribute in tree.cliques[place]:
        if attribute in evidence:
            kept = np.zeros(tree.sizes[attribute])
            kept[evidence[attribute]] = 1.0
            table = table * expand_table(kept, (attribute,), tree.cliques[place])
    return table


def marginal(tree: JunctionTree, tables: Sequence[Floats], attributes: Sequence[int]) -> Floats:
    """The joint probabilities of any attributes, one axis for each in the order given.

    The work and the result grow with the product of their sizes: a few attributes are meant.
    """
    wanted = tuple(sorted(set(attributes)))
    if len(wanted) != len(attributes) or not all(0 <= attribute < len(tree.sizes) for attribute in wanted):
        raise invalid("A marginal is over different attributes of the model.")
    axes, table = _collect(tree, tables, tree.order[0], wanted)
    return table.transpose([axes.index(attribute) for attribute in attributes])


def _below(tree: JunctionTree, place: int) -> set[int]:
    """The attributes of a clique and of all that hang on it."""
    held = set(tree.cliques[place])
    return held.union(*(_below(tree, child) for child in tree.children[place]))


def _collect(tree: JunctionTree, tables: Sequence[Floats], place: int, wanted: Attributes) -> tuple[Attributes, Floats]:
    """The probabilities of what is wanted in and below a clique given its separator, with the separator's axes.

    A branch that holds nothing more that is wanted sums to one and is not entered.
    """
    clique, separator = tree.cliques[place], tree.separators[place]
    entered = [child for child in tree.children[place] if set(wanted) & _below(tree, child) - set(clique)]
    needed = set(wanted).union(separator, *(tree.separators[child] for child in entered))
    axes = tuple(attribute for attribute in clique if attribute in needed)
    table = reduce_table(_given(tree, place, tables[place]), clique, axes)
    for child in entered:
        axes, table = _multiply(axes, table, *_collect(tree, tables, child, wanted))
    kept = tuple(attribute for attribute in axes if attribute in {*wanted, *separator})
    return kept, reduce_table(table, axes, kept)


def _multiply(axes: Attributes, table: Floats, others: Attributes, part: Floats) -> tuple[Attributes, Floats]:
    """The product of two tables over the union of their attributes, ascending."""
    union = tuple(sorted({*axes, *others}))
    ordered = table.transpose(np.argsort(axes)), part.transpose(np.argsort(others))
    return union, expand_table(ordered[0], axes, union) * expand_table(ordered[1], others, union)
