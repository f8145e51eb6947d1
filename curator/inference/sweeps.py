"""Sweeps: exact inference for potentials that are sums of small tables, without keeping clique potentials.

The same result as `propagation`, for the fit, which needs only the marginals of the small tables: a clique's table
is made by one exponential of a few broadcast sums and read by a few sums; messages between cliques are small
tables like the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synod.curator.inference.junction import Attributes, JunctionTree
from synod.curator.inference.plans import Plan, Sum, make_plan, plan_sum

Floats = NDArray[np.float64]
# Where a clique sums to less than this for some cell of its separator, it is made again in a way that is safe.
SMALLEST_SUM = 1e-200


@dataclass(frozen=True, slots=True, eq=False)
class _Station:
    """One clique in a sweep.

    Attributes:
        place: its index in the tree.
        factors: which small tables live in it.
        children: the cliques hung on it; their separators follow the factors among the plan's sets.
        plan: from the clique to its factors and its children's separators.
        upward: the sum to its own separator, which is empty for the root.
        table: where its table is made, again at every sweep.
    """

    place: int
    factors: tuple[int, ...]
    children: tuple[int, ...]
    plan: Plan
    upward: Sum
    table: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Sweeper:
    """A tree made ready for many sweeps with factors over the same attributes.

    Attributes:
        factors: the attributes of each small table.
        ranks: the place of each attribute in the order of axes that all tables here have: by size, the largest
            last, because numpy's inner loops run over the last axis.
    """

    tree: JunctionTree
    ranks: tuple[int, ...]
    stations: tuple[_Station, ...]
    factors: tuple[Attributes, ...]

    def sweep(self, potentials: Sequence[Floats]) -> tuple[float, list[Floats]]:
        """The logarithm of the sum over all rows of exp(sum of potentials), and the factors' marginals.

        Both have the axes of `arrange`.
        """
        log_total, ratios = self._collect(potentials)
        marginals: list[Floats] = [np.empty(0)] * len(self.factors)
        for station in self.stations:
            found = self._distribute(station, ratios)
            for factor, marginal in zip(station.factors, found, strict=False):
                marginals[factor] = marginal
        return log_total, marginals

    def _collect(self, potentials: Sequence[Floats]) -> tuple[float, list[Floats]]:
        """Makes every table, leaves first; each table's sum on its separator."""
        logs: list[Floats] = [np.empty(0)] * len(self.stations)
        sums: list[Floats] = [np.empty(0)] * len(self.stations)
        for station in reversed(self.stations):
            parts = [potentials[factor] for factor in station.factors] + [logs[child] for child in station.children]
            shift, total = _make_table(station, station.plan.gather(parts))
            logs[station.place], sums[station.place] = np.log(total) + shift, total
        root = self.stations[0].place
        sums[root] = 1 / sums[root]
        return float(logs[root]), sums

    def _distribute(self, station: _Station, ratios: list[Floats]) -> list[Floats]:
        """The marginals of one clique, whose entry in `ratios` says by what its table must be multiplied; its
        children's entries, until now the sums of their tables, become the same for them.
        """
        ratio, scale = ratios[station.place], 1.0
        if ratio.ndim == 0:
            scale = float(ratio)
        else:
            np.multiply(station.table, ratio.reshape(station.upward.spread), out=station.table)
        found = station.plan.reduce(station.table, scale)
        for child, known in zip(station.children, found[len(station.factors) :], strict=True):
            ratios[child] = known / ratios[child]
        return found


def _make_table(station: _Station, parts: Sequence[Floats]) -> tuple[float | Floats, Floats]:
    """Makes a clique's table exp(sum of the parts - shift); the shift, and the table's sum on its separator.

    The shift is at first the sum of the parts' highest values, which no cell exceeds: it costs no pass. Where a sum
    comes near to underflow it is the highest value for each cell of the separator, and every sum is at least one.
    """
    table, shift = station.table, sum(float(part.max()) for part in parts)
    _add_up(table, parts, shift)
    np.exp(table, out=table)
    total = station.upward.run(table)
    if float(total.min()) >= SMALLEST_SUM:
        return shift, total
    _add_up(table, parts, 0.0)
    dropped = tuple(axis for axis, length in enumerate(station.upward.spread) if length == 1)
    highest = table.max(axis=dropped, keepdims=True)
    np.subtract(table, highest, out=table)
    np.exp(table, out=table)
    return highest.reshape(station.upward.result), station.upward.run(table)


def _add_up(table: Floats, parts: Sequence[Floats], shift: float) -> None:
    """The table becomes the broadcast sum of the parts less the shift."""
    first, *others = sorted(parts, key=lambda part: part.size) if parts else [np.zeros(1)]
    first = first - shift
    if not others:
        table[...] = first
        return
    np.add(first, others[0], out=table)
    for part in others[1:]:
        table += part


def make_sweeper(tree: JunctionTree, factors: Sequence[Attributes]) -> Sweeper:
    """A sweeper for small tables over these attributes, each of which must lie in a clique."""
    by_size = sorted(range(len(tree.sizes)), key=lambda attribute: (tree.sizes[attribute], attribute))
    ranks = tuple(int(rank) for rank in np.argsort(by_size))
    homes = [tree.home(attributes) for attributes in factors]
    stations = []
    for place in tree.order:
        held = tuple(factor for factor, home in enumerate(homes) if home == place)
        stations.append(_make_station(tree, ranks, place, held, factors))
    return Sweeper(tree, ranks, tuple(stations), tuple(factors))


def arrange(attributes: Sequence[int], ranks: Sequence[int]) -> Attributes:
    """Attributes in the order of the axes of a sweeper's tables."""
    return tuple(sorted(attributes, key=ranks.__getitem__))


def _make_station(
    tree: JunctionTree, ranks: Sequence[int], place: int, held: tuple[int, ...], factors: Sequence[Attributes]
) -> _Station:
    clique, children = arrange(tree.cliques[place], ranks), tree.children[place]
    wanted = [arrange(factors[factor], ranks) for factor in held]
    wanted += [arrange(tree.separators[child], ranks) for child in children]
    plan = make_plan(clique, wanted, tree.sizes)
    upward = plan_sum(clique, tree.separators[place], tree.sizes)
    return _Station(place, held, children, plan, upward, np.empty(tree.shape(clique)))
