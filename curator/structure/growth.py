"""Growth: which pairs a model holds when the agreements of all pairs are released and nothing more is to be asked."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from synod.curator.inference.junction import tree_cells
from synod.curator.structure.known import Known
from synod.curator.structure.selection import Pair

LEAST_RESIDUAL = 1.5  # in deviations of the noise
CAREFUL_TURNS, TURNS = 4, 7
MOST_TRIED = 2_000


def grow_pairs(known: Known, cells: int, iterations: int) -> tuple[Known, list[Pair]]:
    """Adds the pairs that the model misses most and fits it again, at first only a few at a time; then, where there is
    room, the pairs that depend on each other most, so that the model holds as many released numbers as it can.
    """
    pairs: list[Pair] = []
    for turn in range(TURNS):
        most = len(known.grouped.sizes) if turn < CAREFUL_TURNS else MOST_TRIED
        added = find_missed(known, pairs, most, cells)
        if not added and known.model is not None:
            break
        pairs += added
        known = known.fitted(pairs, iterations)
    return known, pairs + find_missed(replace(known, model=None), pairs, MOST_TRIED, cells)


def find_missed(known: Known, pairs: Sequence[Pair], most: int, cells: int) -> list[Pair]:
    """Of the pairs that are furthest from the model, or without one from independence, those that it has room for."""
    expected = known.expected()
    scores: dict[Pair, float] = {}
    for one in known.sums:
        if known.model is not None and known.model.tree.home(one.attributes) is not None:
            continue
        residual = float(one.values[0] - known.rows * (one.left[0] @ expected[one.attributes] @ one.right[0]))
        scores[one.attributes] = abs(residual) / float(np.mean(one.variance)) ** 0.5
    added: list[Pair] = []
    for pair in sorted(scores, key=lambda one: (-scores[one], one))[:most]:
        if scores[pair] > LEAST_RESIDUAL and tree_cells(known.grouped.sizes, [*pairs, *added, pair], cells) <= cells:
            added.append(pair)
    return added
