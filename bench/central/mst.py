"""MST, central: McKenna, Miklau and Sheldon, "Winning the NIST contest", 2021.

A third of rho for one-way tables, a third for a spanning tree whose edges are chosen one after the other by the
exponential mechanism, a third for the tables of its edges. A pair's score is the L1 distance of its table from the
product of its one-way tables. Values with a noisy count below three deviations are taken together before pairs are
looked at, and come back evenly.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from bench.central.place import Floats, Integers, Place, base_of, draw, fit_measured
from synod.curator.inference.measurements import Measurement

Pair = tuple[int, int]
STAGES = 3
KEPT_DEVIATIONS = 3.0
ITERATIONS = 1_000


def publish_mst(place: Place) -> list[Integers]:
    """As many rows as there are, in the columns' own codes."""
    features, part = len(place.sizes), place.rho / STAGES
    ones = [place.measure((feature,), part / features) for feature in range(features)]
    groups = [group_rare(one) for one in ones]
    grouped = group_columns(place, groups)
    taken = [add_up(one, own) for one, own in zip(ones, groups, strict=True)]
    base = base_of(taken, place.rows)
    pairs = span_pairs(grouped, base, part)
    measured = [*taken, *(grouped.measure(pair, part / (features - 1)) for pair in pairs)]
    place.spent = grouped.spent
    model = fit_measured(grouped.sizes, place.rows, measured, base, iterations=ITERATIONS)
    columns = draw(model.tree, model.tables, place.rows, rng=place.rng)
    return [ungroup(column, own, rng=place.rng) for column, own in zip(columns, groups, strict=True)]


def group_rare(one: Measurement) -> Integers:
    """The group of each value: its own, or the last one for all rare values."""
    rare = one.values < KEPT_DEVIATIONS * float(np.mean(one.variance)) ** 0.5
    if rare.sum() < 2 or rare.all():
        return np.arange(len(rare))
    return np.where(rare, (~rare).sum(), np.cumsum(~rare) - 1)


def group_columns(place: Place, groups: Sequence[Integers]) -> Place:
    """The same rows with values taken together, and the same account."""
    columns = [own[column] for column, own in zip(place.columns, groups, strict=True)]
    return replace(place, columns=columns, sizes=tuple(int(own.max()) + 1 for own in groups), _counted={})


def add_up(one: Measurement, groups: Integers) -> Measurement:
    """A noisy one-way table of groups."""
    counts = np.bincount(groups, weights=one.values).astype(np.float64)
    members = np.bincount(groups).astype(np.float64)
    return Measurement(one.attributes, counts, one.variance * members)


def span_pairs(place: Place, base: Sequence[Floats], rho: float) -> list[Pair]:
    """A spanning tree for rho, each edge by a private choice among the pairs that join two parts of it.

    Guarantee: one row moves a table, and so its L1 distance from a fixed one, by at most `absolute`.
    """
    features = len(place.sizes)
    scores = {
        (a, b): float(np.abs(place.count((a, b)) - place.rows * np.outer(base[a], base[b])).sum())
        for a, b in combinations(range(features), 2)
    }
    parts, chosen = list(range(features)), list[Pair]()
    for _ in range(features - 1):
        joining = {(a, b): score for (a, b), score in scores.items() if parts[a] != parts[b]}
        pair = place.choose(joining, place.neighbours.absolute, rho / (features - 1))
        chosen.append(pair)
        parts = [parts[pair[0]] if part == parts[pair[1]] else part for part in parts]
    return chosen


def ungroup(column: Integers, groups: Integers, *, rng: np.random.Generator) -> Integers:
    """Values of drawn groups: any value of a group is as likely as another."""
    values = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups)
    starts = np.cumsum(sizes) - sizes
    drawn: Integers = values[starts[column] + rng.integers(0, sizes[column])]
    return drawn
