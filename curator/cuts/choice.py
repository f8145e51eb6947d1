"""The choice of a cut: nodes are split one after the other, those first whose parts tell the classes apart best.

Pure post-processing of released tables of an attribute with the class: it costs nothing, and must never be given exact
counts whose cut is then published.
"""

import heapq
import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from synod.common.models.trees import Tree, children_of, codes_of
from synod.common.study.levels import number_groups

Floats = NDArray[np.float64]
Groups = tuple[int, ...]
DIGITS = 6  # of a score: what floats differ in on another machine decides nothing
Candidate = tuple[float, int, int, int]


def score_split(parts: Sequence[Sequence[int]], table: Floats) -> float:
    """Max: how many rows have the most frequent class of their part. `table` has a row for each code, a column for each
    class.

    Guarantee: of counts, replacing one row changes it by at most 1: the row that leaves lowers one part's largest class
    by at most 1 and raises none, and the row that comes does the reverse. Nothing here relies on it: tables are noisy.
    """
    return round(math.fsum(float(table[list(codes)].sum(axis=0).max()) for codes in parts), DIGITS)


def choose_cuts(
    trees: Mapping[int, Tree], tables: Mapping[int, Floats], *, specializations: int, most_parts: int
) -> dict[int, Groups]:
    """For each attribute the part of each code, after at most so many splits: each takes the node of the largest score
    among those that keep the product of all attributes' parts within `most_parts`; ties go to the first attribute, then
    to the first code.
    """
    cuts: dict[int, list[Tree]] = {attribute: [tree] for attribute, tree in trees.items()}
    nodes: list[Tree] = []
    waiting: list[Candidate] = []

    def offer(attribute: int, tree: Tree) -> None:
        children = children_of(tree)
        if children:
            nodes.append(tree)
            score = score_split([codes_of(child) for child in children], tables[attribute])
            heapq.heappush(waiting, (-score, attribute, codes_of(tree)[0], len(nodes) - 1))

    for attribute, tree in trees.items():
        offer(attribute, tree)
    parts, done = 1, 0
    while waiting and done < specializations:
        _, attribute, _, place = heapq.heappop(waiting)
        cut, node = cuts[attribute], nodes[place]
        children = children_of(node)
        grown = parts // len(cut) * (len(cut) + len(children) - 1)
        if grown > most_parts:
            continue  # for good: with more parts elsewhere it would be larger still
        cut.remove(node)
        cut.extend(children)
        parts, done = grown, done + 1
        for child in children:
            offer(attribute, child)
    return {attribute: number_parts([codes_of(tree) for tree in cut]) for attribute, cut in cuts.items()}


def number_parts(parts: Sequence[Sequence[int]]) -> Groups:
    """The part of each code, parts numbered by first occurrence."""
    owners = {code: place for place, codes in enumerate(parts) for code in codes}
    return number_groups([owners[code] for code in range(len(owners))])
