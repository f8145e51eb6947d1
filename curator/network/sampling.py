"""Sampling: synthetic rows from a network and its tables, all rows of a chunk at once.

Each feature is drawn after its parents from the conditional distribution that its table gives; a configuration of
parents without mass falls back to the feature's margin. Features that are the digits of one attribute's code can
be kept to the codes that exist. The tables are released, so rows are post-processing and free; the randomness
is public. Nothing here must ever read real rows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from synod.common.runtime.errors import invalid
from synod.common.study.encoding import Codes
from synod.curator.network.graph import Features, Network
from synod.curator.network.tables import Floats, count_cells, marginalize

# Which uniform decides what depends on it: with another value the same rng would give other rows.
CHUNK_ROWS = 2**16


class Uniforms(Protocol):
    """Public randomness: numpy's generators are such."""

    def random(self, size: int, /) -> Floats:
        """Numbers from 0 to 1, below 1."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Word:
    """Features that are the digits of one code, and which codes exist: `valid` is flat, in C order of the digits."""

    features: Features
    valid: NDArray[np.bool_]


def make_word(features: Features, codes: Sequence[Sequence[int]], sizes: Sequence[int]) -> Word:
    """The word whose valid codes are these rows of digits."""
    valid = np.zeros([sizes[feature] for feature in features], dtype=bool)
    valid[tuple(np.array(codes, dtype=np.intp).reshape(-1, len(features)).T)] = True
    return Word(features, valid.reshape(-1))


def sample_network(
    network: Network,
    tables: Sequence[Floats],
    sizes: Sequence[int],
    rows: int,
    *,
    rng: Uniforms,
    words: Sequence[Word] = (),
) -> list[Codes]:
    """`rows` independent rows, as one column of codes for each feature that the network places, by index.

    A parent that is a coarser level is looked up through the groups of the codes drawn; a feature is always drawn on
    its finest level.

    A digit of a word is drawn from its conditional distribution, restricted to the values for which some valid code
    still fits the digits already drawn. So P(row) is the product of P(x | parents) 1[x fits] / P(fits | parents,
    digits drawn): mass on codes that do not exist moves to codes that share the earlier digits, and the law of what
    was drawn before stays as it was. It is not the network's law given that all codes exist, which would reweigh
    earlier features by how well later words come out; both are the network's own law if no mass is misplaced.

    Args:
        network: places every base feature.
        tables: non-negative, in the order of the network's pairs, each over (feature, *parents).
        sizes: how many codes each feature has.
        rows: how many to draw.
        rng: public randomness.
        words: disjoint; each with a valid code.
    """
    steps = _compile(network, tables, sizes, words)
    drawn = sizes[: len(network.pairs)]
    columns: list[Codes] = [np.empty(rows, dtype=np.min_scalar_type(size - 1)) for size in drawn]
    for start in range(0, rows, CHUNK_ROWS):
        chunk = [column[start : start + CHUNK_ROWS] for column in columns]
        for step in steps:
            chunk[step.feature][:] = step.draw(chunk, rng=rng)
    return columns


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """How one feature is drawn.

    Attributes:
        groups: for each parent that is a coarser level, the group of each code of its base feature.
        drawn: the digits of its word that are drawn before it.
        classes: for each combination of those, which kind of restriction it makes; there are `kinds`.
        edges: for each (configuration of parents, kind), the cumulative distribution, filled up with
            infinity to a power of two.
    """

    feature: int
    parents: Features
    groups: dict[int, tuple[int, NDArray[np.intp]]]
    drawn: Features
    sizes: Sequence[int]
    classes: NDArray[np.intp]
    kinds: int
    edges: Floats

    def draw(self, columns: Sequence[Codes], *, rng: Uniforms) -> NDArray[np.intp]:
        """One value for each row."""
        uniforms = rng.random(len(columns[self.feature]))
        place = self._mix_codes(columns, self.parents, len(uniforms))
        if self.kinds > 1:
            place *= self.kinds
            place += self.classes[self._mix_codes(columns, self.drawn, len(uniforms))]
        return bisect_edges(self.edges, place, uniforms)

    def _mix_codes(self, columns: Sequence[Codes], features: Features, rows: int) -> NDArray[np.intp]:
        """Each row's cell in the table of `features`."""
        mixed = np.zeros(rows, dtype=np.intp)
        for feature in features:
            mixed *= self.sizes[feature]
            if feature in self.groups:
                base, groups = self.groups[feature]
                mixed += groups[columns[base]]
            else:
                mixed += columns[feature]
        return mixed


def _compile(network: Network, tables: Sequence[Floats], sizes: Sequence[int], words: Sequence[Word]) -> list[_Step]:
    levels = network.levels
    if sorted(network.features) != [i for i in range(len(sizes)) if levels.base(i) == i]:
        raise invalid("The network does not place exactly the features that have sizes.")
    owners = _find_owners(words, sizes)
    steps: list[_Step] = []
    for place, (pair, table) in enumerate(zip(network.pairs, tables, strict=True)):
        assert len(table) == count_cells(pair.family, sizes)
        word = owners.get(pair.feature)
        earlier = network.features[:place]
        drawn = tuple(feature for feature in earlier if word and feature in word.features)
        weights, classes = condition_tables(table, pair.feature, drawn, sizes, word)
        edges = cumulate(weights.reshape(-1, sizes[pair.feature]))
        coarse = [(parent, levels.base(parent)) for parent in pair.parents if levels.base(parent) != parent]
        groups = {parent: (base, levels.coarsen(base, parent, sizes[base])) for parent, base in coarse}
        steps.append(_Step(pair.feature, pair.parents, groups, drawn, sizes, classes, weights.shape[1], edges))
    return steps


def _find_owners(words: Sequence[Word], sizes: Sequence[int]) -> dict[int, Word]:
    owners: dict[int, Word] = {}
    for word in words:
        assert len(word.valid) == count_cells(word.features, sizes)
        if not word.valid.any():
            raise invalid("An attribute has no valid code.")
        if not owners.keys().isdisjoint(word.features):
            raise invalid("A feature is a digit of two attributes.")
        owners |= dict.fromkeys(word.features, word)
    return owners


def condition_tables(
    table: Floats, feature: int, drawn: Features, sizes: Sequence[int], word: Word | None
) -> tuple[Floats, NDArray[np.intp]]:
    """The weights of a feature's values for each configuration of its parents and each kind of restriction that the
    digits of its word make that are drawn before it, and which kind each combination of these makes.
    """
    allowed, classes = _restrictions(word, drawn, feature, sizes)
    return _condition(table.reshape(sizes[feature], -1).T, allowed), classes


def _restrictions(
    word: Word | None, drawn: Features, feature: int, sizes: Sequence[int]
) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """The different sets of values of `feature` that digits already drawn can leave, and which one each leaves."""
    if word is None:
        return np.ones((1, sizes[feature]), dtype=bool), np.zeros(1, dtype=np.intp)
    completions = marginalize(word.valid.astype(np.int64), word.features, sizes, (*drawn, feature))
    fits = completions.reshape(-1, sizes[feature]) > 0
    fits[~fits.any(axis=1)] = True  # digits that are never drawn
    allowed, classes = np.unique(fits, axis=0, return_inverse=True)
    return allowed, classes.reshape(-1)


def _condition(joint: Floats, allowed: NDArray[np.bool_]) -> Floats:
    """The weights of the values, (configurations, kinds, values): the joint's, else the margin's, else equal."""
    assert joint.min() >= 0
    weights = joint[:, None, :] * allowed
    margin = joint.sum(axis=0) * allowed
    margin = np.where(margin.any(axis=1, keepdims=True), margin, allowed)
    return np.where(weights.any(axis=2, keepdims=True), weights, margin)


def cumulate(weights: Floats) -> Floats:
    """The cumulative distribution of each row of weights, filled up with infinity to a power of two."""
    size = weights.shape[1]
    edges = np.full((len(weights), 2 ** math.ceil(math.log2(size))), np.inf)
    edges[:, :size] = np.cumsum(weights, axis=1)
    # From the last possible value on this is a number over itself: exactly 1, above every uniform.
    edges[:, :size] /= edges[:, size - 1 : size]
    return edges


def bisect_edges(edges: Floats, place: NDArray[np.intp], uniforms: Floats) -> NDArray[np.intp]:
    """One value for each row, by bisection with one uniform: the first whose cumulative chance is above it. `place`
    says by which distribution, and is overwritten.
    """
    width = edges.shape[-1]
    place *= width
    flat, reach = edges.reshape(-1), width // 2
    while reach:
        place += reach * (flat[place + (reach - 1)] <= uniforms)
        reach //= 2
    values: NDArray[np.intp] = place & (width - 1)
    return values
