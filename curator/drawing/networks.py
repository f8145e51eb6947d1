"""A published network as a discrete model: its own law, as sampling.py draws it, under any condition.

A parent that is a coarser level is a variable of its own that follows from the finer one. Where an attribute is split
into bits, a bit is kept to the values for which some code exists, as the published rows are.
"""

from collections.abc import Sequence

import numpy as np

from synod.common.crypto.canonical import Json
from synod.common.study.encoding import codings_of
from synod.common.study.features import features_of, sizes_of, space_of
from synod.common.study.study import Study
from synod.curator.drawing.base import Answers, Floats
from synod.curator.drawing.discrete import Column, DiscreteModel, Node, share_out
from synod.curator.network.evidence import words_of
from synod.curator.network.graph import Network
from synod.curator.network.published import read_model
from synod.curator.network.sampling import Word, condition_tables


def open_network(study: Study, model: Json, answers: Answers) -> DiscreteModel:
    """The model of a release whose method publishes one network with its tables.

    Raises:
        SynodError: the model is not sound, or not one of this study's features.
    """
    del answers
    network, tables = read_model(study, model)
    return model_network(study, network, tables)


def model_network(study: Study, network: Network, tables: Sequence[Floats]) -> DiscreteModel:
    """The discrete model of a network and its tables."""
    sizes, words = sizes_of(study), words_of(study)
    nodes, earlier = list[Node](), list[int]()
    for pair, table in zip(network.pairs, tables, strict=True):
        word = next((own for own in words if pair.feature in own.features), None)
        drawn = tuple(feature for feature in earlier if word and feature in word.features)
        nodes.append(_make_node(pair.feature, pair.parents, drawn, table, sizes, word))
        earlier.append(pair.feature)
        base_sizes = sizes[pair.feature]
        coarser = [level for level in network.levels.chain(pair.feature) if level != pair.feature]
        for level in coarser:
            groups = network.levels.coarsen(pair.feature, level, base_sizes)
            nodes.append(Node(level, (pair.feature,), np.eye(sizes[level])[groups]))
    return DiscreteModel(sizes, tuple(nodes), tuple(columns_of(study)))


def _make_node(
    feature: int,
    parents: tuple[int, ...],
    drawn: tuple[int, ...],
    table: Floats,
    sizes: Sequence[int],
    word: Word | None,
) -> Node:
    """The node of a feature, given its parents and the bits of the same code that are drawn before it."""
    weights, classes = condition_tables(table, feature, drawn, sizes, word)
    by_drawn = share_out(weights)[:, classes]  # a row for each configuration of parents, and of bits drawn before
    chances = by_drawn.reshape([*(sizes[one] for one in (*parents, *drawn)), sizes[feature]])
    for place, bit in enumerate(drawn):
        if bit in parents:  # one bit is not two: only where both are equal
            axis = len(parents) + place - sum(other in parents for other in drawn[:place])
            chances = np.moveaxis(np.diagonal(chances, axis1=parents.index(bit), axis2=axis), -1, parents.index(bit))
    return Node(feature, (*parents, *(bit for bit in drawn if bit not in parents)), chances)


def columns_of(study: Study) -> list[Column]:
    """Where each attribute is among the study's features; an attribute of one value is nowhere."""
    features, codings = features_of(study), codings_of(study)
    codes = space_of(study).encode([np.arange(coding.size, dtype=coding.dtype) for coding in codings])
    columns = []
    for index, coding in enumerate(codings):
        own = [i for i, feature in enumerate(features) if feature.attribute == index and not feature.level]
        cells = np.ravel_multi_index([codes[i] for i in own], [features[i].size for i in own]) if own else np.zeros(1)
        columns.append(Column(tuple(own), cells.astype(np.int64), coding.dtype))
    return columns
