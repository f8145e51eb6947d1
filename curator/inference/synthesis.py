"""Synthesis: rows from a model, with nearly no sampling error, and the same rows for ever.

Attributes are drawn down the tree. The rows that agree on what an attribute depends on form a group; how many rows
of a group take each code is rounded from the model, what was rounded off is carried to the next group, and the
codes are dealt evenly along the group's rows in the order of all that was drawn before.

The rows are a function of integers alone: integer weights and a key stream. Sums are integer sums, floats occur
only in single IEEE operations on single numbers, sorts are stable sorts of integers. So any machine and any
version of numpy gives the same rows. Whatever changes here changes them: a test holds a small draw.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from synod.common.privacy.coins import Coins
from synod.curator.inference.junction import Attributes, JunctionTree, reduce_table
from synod.curator.inference.propagation import Floats

Integers = NDArray[np.int64]
WEIGHT_BITS = 40
# Shares of a row are counted in units of 2^-32.
FRACTION_BITS = 32
ROW = 1 << FRACTION_BITS
# What chance adds to a fraction before the largest are rounded up: at most 20/256 of a row.
CHANCE, CHANCE_BITS = 20, 8
NEVER = -(1 << 40)
# Groups are rounded side by side in runs of at most this many; each run carries its own remainders.
LONGEST_RUN = 256


def integer_weights(tables: Sequence[Floats]) -> list[Integers]:
    """Probabilities as integers, in units of 2^-40: what a release holds and rows are drawn from."""
    return [np.rint(table * float(1 << WEIGHT_BITS)).astype(np.int64) for table in tables]


def draw_rows(tree: JunctionTree, weights: Sequence[Integers], count: int, *, coins: Coins) -> Integers:
    """`count` rows, one column for each attribute.

    Words are drawn from the coins as follows: for each attribute in the order of the tree, for each place in the
    runs, for each run that has a group there, one word for each code; at last one word for each row, by which the
    rows are shuffled.

    Args:
        tree: the cliques.
        weights: for each clique a non-negative integer for each cell, in sum below 2^62; only their ratios count.
        count: how many rows, below 2^31.
        coins: public randomness.
    """
    assert all(table.dtype == np.int64 and table.min() >= 0 for table in weights)
    columns = np.zeros((len(tree.sizes), count), dtype=np.int64)
    sorting = _Sorting(np.arange(count), np.zeros(count, dtype=np.int64))
    drawn: set[int] = set()
    for place in tree.order:
        clique = tree.cliques[place]
        for attribute in [attribute for attribute in clique if attribute not in drawn]:
            known = tuple(other for other in clique if other in drawn)
            chances = arrange_weights(tree, place, weights[place], known, attribute)
            columns[attribute] = _draw_column(tree, columns, sorting, known, chances, coins=coins)
            sorting = sorting.refine(columns[attribute], tree.sizes[attribute])
            drawn.add(attribute)
    return columns.T[np.argsort(coins.draw_words(count), kind="stable")]


@dataclass(frozen=True, slots=True, eq=False)
class _Sorting:
    """Rows in the order of the codes drawn so far, first drawn first.

    Attributes:
        rows: the rows in that order.
        classes: for each, how many different rows come before it.
    """

    rows: Integers
    classes: Integers

    def refine(self, column: Integers, size: int) -> "_Sorting":
        """The order with one more attribute."""
        if len(self.rows) == 0 or self.classes[-1] == len(self.rows) - 1:
            return self
        keys = self.classes * size + column[self.rows]
        moved = np.argsort(keys, kind="stable")
        ordered = keys[moved]
        classes = np.concatenate([[0], np.cumsum(ordered[1:] != ordered[:-1])])
        return _Sorting(self.rows[moved], classes)


def arrange_weights(tree: JunctionTree, place: int, weights: Integers, known: Attributes, attribute: int) -> Integers:
    """One row of weights for each configuration of the known attributes; the margin where a row has none."""
    joined = tuple(sorted((*known, attribute)))
    table = np.moveaxis(reduce_table(weights, tree.cliques[place], joined), joined.index(attribute), -1)
    table = table.reshape(-1, tree.sizes[attribute])
    margin = table.sum(axis=0)
    assert margin.any()
    return np.where(table.any(axis=1, keepdims=True), table, margin)


def _draw_column(
    tree: JunctionTree, columns: Integers, sorting: _Sorting, known: Attributes, chances: Integers, *, coins: Coins
) -> Integers:
    """The codes of one attribute for all rows."""
    configurations = np.zeros(columns.shape[1], dtype=np.int64)
    for attribute in known:
        configurations = configurations * tree.sizes[attribute] + columns[attribute]
    keys = configurations[sorting.rows].astype(np.min_scalar_type(prod(tree.shape(known))))
    moved = np.argsort(keys, kind="stable")
    ordered = keys[moved].astype(np.int64)
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(ordered)])
    lengths = np.diff(np.append(starts, len(ordered)))
    column = np.empty_like(configurations)
    column[sorting.rows[moved]] = _deal(list(_round_groups(chances, ordered[starts], lengths, coins=coins)))
    return column


@dataclass(frozen=True, slots=True, eq=False)
class _Hands:
    """Codes to deal: how many rows of which group take which code, and where in the group the first lies."""

    groups: Integers
    codes: Integers
    counts: Integers
    offsets: Integers


def _deal(hands: Sequence[_Hands]) -> Integers:
    """The codes of all rows, group after group: copy i of c copies lies at (i + offset) / c of its group."""
    if not hands:
        return np.zeros(0, dtype=np.int64)
    groups, codes, counts, offsets = (
        np.concatenate([getattr(hand, name) for hand in hands]) for name in ("groups", "codes", "counts", "offsets")
    )
    firsts = np.cumsum(counts) - counts
    copies = np.arange(int(counts.sum())) - np.repeat(firsts, counts)
    places = ((copies << FRACTION_BITS) + np.repeat(offsets, counts)) // np.repeat(counts, counts)
    keys = (np.repeat(groups, counts) << FRACTION_BITS) + places
    return np.repeat(codes, counts)[np.argsort(keys, kind="stable")]


def _round_groups(chances: Integers, configurations: Integers, lengths: Integers, *, coins: Coins) -> Iterator[_Hands]:
    """How many rows of each group take each code, all runs side by side, one group of each at a time."""
    runs = -(-len(lengths) // LONGEST_RUN)
    places = -(-len(lengths) // max(runs, 1))
    carried = np.zeros((runs, chances.shape[1]), dtype=np.int64)
    for place in range(places):
        groups = np.arange(place, len(lengths), places)
        weights, rows = chances[configurations[groups]], lengths[groups]
        words = coins.draw_words(weights.size).reshape(weights.shape)
        remainders = carried[: len(groups)]
        targets = _scale(weights, rows)
        counts = _round(targets + remainders, weights > 0, rows, (words >> np.uint64(32)).astype(np.int64))
        np.clip(remainders + targets - (counts << FRACTION_BITS), -ROW, ROW, out=remainders)
        run, code = np.nonzero(counts)
        offsets = (words[run, code] & np.uint64(ROW - 1)).astype(np.int64)
        yield _Hands(groups[run], code, counts[run, code], offsets)


def _scale(weights: Integers, rows: Integers) -> Integers:
    """Each code's share of each group's rows, in units of 2^-32 rows."""
    shares = weights / weights.sum(axis=1, keepdims=True)
    scaled: Integers = np.rint(shares * rows[:, np.newaxis] * float(ROW)).astype(np.int64)
    return scaled


def _round(targets: Integers, possible: NDArray[np.bool_], rows: Integers, chance: Integers) -> Integers:
    """Whole numbers near the targets that add up to the rows of each group; codes without weight get none.

    Targets are at most one row away from shares that add up to the rows. So fewer than two for each possible code
    are missing after rounding down, and at most one for each code that has some is too many.
    """
    wanted = np.where(possible, targets, 0)
    counts = np.maximum(wanted >> FRACTION_BITS, 0)
    fractions = wanted - (counts << FRACTION_BITS)
    missing = (rows - counts.sum(axis=1))[:, np.newaxis]
    ranks = _rank(-np.where(possible, fractions + (chance * CHANCE >> CHANCE_BITS), NEVER))
    open_to = possible.sum(axis=1, keepdims=True)
    rounded: Integers = counts + (ranks < np.minimum(missing, open_to)) + (ranks < missing - open_to)
    if (missing < 0).any():
        rounded -= _rank(np.where(counts > 0, fractions, -NEVER)) < -missing
    return rounded


def _rank(keys: Integers) -> Integers:
    """The place of each key in its row, smallest first, ties by column."""
    ranks = np.empty_like(keys)
    places = np.broadcast_to(np.arange(keys.shape[1]), keys.shape)
    np.put_along_axis(ranks, np.argsort(keys, axis=1, kind="stable"), places, axis=1)
    return ranks
