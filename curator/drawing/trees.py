"""A published junction tree, or table of all cells, as a discrete model: groups down the tree, then values in them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from synod.common.crypto.canonical import Json
from synod.common.study.encoding import codings_of
from synod.common.study.features import features_of, sizes_of
from synod.common.study.study import Study
from synod.curator.drawing.base import Answers
from synod.curator.drawing.discrete import Column, DiscreteModel, Node, share_out
from synod.curator.drawing.elimination import Integers
from synod.curator.inference.junction import JunctionTree
from synod.curator.inference.synthesis import arrange_weights
from synod.curator.structure.cells import read_cells
from synod.curator.structure.model import check_attributes, hang_cliques, read_tree


def open_tree(study: Study, model: Json, answers: Answers) -> DiscreteModel:
    """The model of a release whose method publishes a junction tree.

    Raises:
        SynodError: the model is not sound, or not one of this study's attributes.
    """
    del answers
    published: Any = model
    tree, weights = read_tree(published)
    check_attributes(study, published)
    attributes = published["attributes"]
    groups = [own["groups"] for own in attributes]
    return _model_groups(study, tree, weights, groups, [np.array(own["weights"]) for own in attributes])


def open_cells(study: Study, model: Json, answers: Answers) -> DiscreteModel:
    """The model of a release whose method publishes one table of all attributes.

    Raises:
        SynodError: the model is not sound, or not one of this study's attributes.
    """
    del answers
    cells = read_cells(study, model)
    tree = hang_cliques(cells.sizes, (tuple(range(len(cells.sizes))),), (-1,))
    return _model_groups(study, tree, [cells.weights.reshape(cells.sizes)], cells.groups, cells.shares)


def _model_groups(
    study: Study,
    tree: JunctionTree,
    weights: Sequence[Integers],
    groups: Sequence[Sequence[int]],
    shares: Sequence[Integers],
) -> DiscreteModel:
    """A variable for the group of each attribute that varies, and after these one for its value where they differ."""
    nodes, drawn = list[Node](), set[int]()
    for place in tree.order:
        clique = tree.cliques[place]
        for attribute in [attribute for attribute in clique if attribute not in drawn]:
            known = tuple(other for other in clique if other in drawn)
            table = share_out(arrange_weights(tree, place, weights[place], known, attribute))
            shape = [*tree.shape(known), tree.sizes[attribute]]
            nodes.append(Node(attribute, known, table.reshape(shape)))
            drawn.add(attribute)
    sizes, value_of = list(tree.sizes), list(range(len(tree.sizes)))
    for attribute, own in enumerate(groups):
        if tree.sizes[attribute] < len(own):
            value_of[attribute] = len(sizes)
            nodes.append(Node(len(sizes), (attribute,), _share_groups(own, shares[attribute])))
            sizes.append(len(own))
        assert sizes[value_of[attribute]] == sizes_of(study)[attribute]
    return DiscreteModel(tuple(sizes), tuple(nodes), tuple(_columns(study, value_of)))


def _share_groups(groups: Sequence[int], weights: Integers) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The chance of each value, given each group."""
    inside = np.arange(max(groups) + 1)[:, None] == np.array(groups)
    own = inside * weights
    return share_out(np.where(own.any(axis=1, keepdims=True), own, inside))


def _columns(study: Study, value_of: Sequence[int]) -> list[Column]:
    codings = codings_of(study)
    columns = [Column((), np.zeros(1, dtype=np.int64), coding.dtype) for coding in codings]
    for place, feature in enumerate(features_of(study)):
        cells = np.arange(feature.size)  # groups of one value each are numbered as the values
        columns[feature.attribute] = Column((value_of[place],), cells, codings[feature.attribute].dtype)
    return columns
