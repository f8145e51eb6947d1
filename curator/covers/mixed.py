"""Covers of features of different sizes, by a search that puts a price on a view.

The objective views^2 * cost is locally cost + price * views with price = 2 cost / views. For each price of a ladder
the features, sorted by descending size, are covered as cheaply as the search can: the largest are paired with all
others, the rest follows a design (`designs.py`) whose groups are covered in turn, and of each block as many of its
largest features are peeled off into pairs as pays. The best of these covers by the real objective is kept. This is a
heuristic, but a deterministic one over public sizes: its sums are integers below 2^53, the same on every machine.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import comb, inf, prod

import numpy as np
from numpy.typing import NDArray

from synod.curator.covers.designs import Design, Places, Triples, list_transversals
from synod.curator.covers.search import View

Sizes = tuple[int, ...]
"""Numbers of codes, descending."""

Values = NDArray[np.float64]
"""For each price of the ladder: cost plus price times views."""

LADDER = tuple(2**step for step in range(1, 15))
STARTS = 8
LEAST_DESIGN = 6


def mixed_views(sizes: Sizes, max_cells: int) -> list[View]:
    """The views of the best cover found, as positions in the descending sizes; never worse than all pairs.

    Why never: the ladder has the price 2, the slope of the objective at all pairs, which are one of the chains; and
    since log(views^2 * cost) is concave, what is cheaper along the slope at a point is better than that point.
    """
    best = _best_of_ladder(sizes, max_cells, LADDER)
    price = 2 * sum_costs(best, sizes) / len(best)
    near = tuple(sorted({max(1, round(price * eighths / 8)) for eighths in (5, 6, 7, 8, 9, 10, 12)}))
    return min(best, _best_of_ladder(sizes, max_cells, near), key=lambda views: score(views, sizes))


def score(views: Sequence[View], sizes: Sizes) -> tuple[int, int]:
    """What is minimized: views^2 * cost, then views."""
    return len(views) ** 2 * sum_costs(views, sizes), len(views)


def sum_costs(views: Sequence[View], sizes: Sizes) -> int:
    """Over all pairs, the sum of the cells that add up to one 2-way cell."""
    return sum(view_cost([sizes[place] for place in view]) for view in views)


def view_cost(sizes: Sequence[int]) -> int:
    """Over the pairs of a view, the sum of the products of all other sizes."""
    cells, lines, cost = 1, 0, 0
    for size in sizes:
        cells, lines, cost = cells * size, lines * size + cells, cost * size + lines
    return cost


@dataclass(frozen=True, slots=True)
class Choice:
    """The value of the cheapest cover at each price, and its design; None is a chain (`chain_depth`)."""

    values: Values
    designs: tuple[Design | None, ...]


@dataclass(frozen=True, slots=True)
class PricedSearch:
    """Cheapest covers at each of the prices, by the sizes of the features."""

    max_cells: int
    prices: tuple[int, ...]
    found: dict[Sizes, Choice] = field(default_factory=dict)

    def choose(self, sizes: Sizes) -> Choice:
        """The cheapest cover: a chain, or a design."""
        if sizes not in self.found:
            chain = self.price_blocks(np.array([sizes]))
            best = Choice(chain, (None,) * len(self.prices))
            for design in list_designs(len(sizes)):
                best = self._cheaper(best, design, sizes)
            self.found[sizes] = best
        return self.found[sizes]

    def _cheaper(self, best: Choice, design: Design, sizes: Sizes) -> Choice:
        """The better of a choice and a design, price by price."""
        values = np.zeros(len(self.prices))
        array = np.array(sizes)
        for rows in group_blocks(design, len(sizes)):
            values += self.price_blocks(array[rows])
        for line in design.lines(len(sizes)):
            if len(line) > 1 and (values < best.values).any():
                values += self.choose(tuple(sizes[place] for place in line)).values
        better = values < best.values
        designs = tuple(design if new else old for new, old in zip(better, best.designs, strict=True))
        return Choice(np.minimum(values, best.values), designs)

    def price_blocks(self, rows: NDArray[np.intp]) -> Values:
        """The value of blocks of one width (a row of descending sizes each), each covered by its cheapest chain."""
        width, prices = rows.shape[1], np.array(self.prices, dtype=np.float64)
        best = np.full((len(rows), len(prices)), inf)
        cells, lines, cost = np.ones(len(rows)), np.zeros(len(rows)), np.zeros(len(rows))
        for kept in range(1, width + 1):
            size = rows[:, width - kept]
            cells, lines, cost = cells * size, lines * size + cells, cost * size + lines
            pairs = comb(width, 2) - comb(kept, 2)
            fits = (cells <= self.max_cells) | (kept == 2)
            if not fits.any() and kept > 2:
                break
            if kept > 1:
                np.minimum(best, np.where(fits, cost, inf)[:, None] + pairs + prices * (pairs + 1), out=best)
        return np.asarray(best.sum(axis=0))

    def lay(self, sizes: Sizes, features: Sequence[int], rung: int) -> Iterator[View]:
        """The views of the cheapest cover at one price."""
        design = self.choose(sizes).designs[rung]
        if design is None:
            yield from lay_chain(features, chain_depth(sizes, self.prices[rung], self.max_cells))
            return
        for part in design.parts(len(features)):
            yield from self.lay(tuple(sizes[place] for place in part), [features[place] for place in part], rung)


def _best_of_ladder(sizes: Sizes, max_cells: int, prices: tuple[int, ...]) -> list[View]:
    """The best cover by the real objective of those that are cheapest at some price."""
    search = PricedSearch(max_cells, prices)
    count = len(sizes)
    starts = range(0, count - 1, -(-count // STARTS))
    pairs = np.array([[comb(count, 2) - comb(count - start, 2)] for start in starts])
    values = pairs * (1 + np.array(prices)) + np.array([search.choose(sizes[start:]).values for start in starts])
    covers = []
    for rung, row in enumerate(np.argmin(values, axis=0)):
        peeled = list(lay_chain(range(count), starts[row]))[:-1]
        covers.append([*peeled, *search.lay(sizes[starts[row] :], range(starts[row], count), rung)])
    return min(covers, key=lambda views: score(views, sizes))


def lay_chain(features: Sequence[int], depth: int) -> Iterator[View]:
    """Each of the first `depth` features is paired with all that follow it; what is left is one view."""
    for place in range(depth):
        yield from ((features[place], other) for other in features[place + 1 :])
    yield tuple(features[depth:])


def chain_depth(sizes: Sizes, price: int, max_cells: int) -> int:
    """How many of the largest features to peel off so that pairs and the remaining view are cheapest."""
    count = len(sizes)

    def value(depth: int) -> float:
        kept, pairs = sizes[depth:], comb(count, 2) - comb(count - depth, 2)
        fits = prod(kept) <= max_cells or len(kept) == 2
        return view_cost(kept) + pairs + price * (pairs + 1) if fits else inf

    return min(range(count - 1), key=value)


def list_designs(count: int) -> Iterator[Design]:
    """The designs that are tried: triples, and transversals of three groups or more."""
    if count >= LEAST_DESIGN:
        yield Triples()
        yield from list_transversals(count, least_groups=3)


@lru_cache(maxsize=4096)
def group_blocks(design: Design, count: int) -> tuple[Places, ...]:
    """A design's blocks of two features or more, by their width."""
    places = design.blocks(count)
    widths = (places >= 0).sum(axis=1)
    chosen = [(width, places[widths == width]) for width in np.unique(widths) if width > 1]
    return tuple(rows[rows >= 0].reshape(-1, width) for width, rows in chosen)
