"""Groups: which values of a feature are counted together in tables of pairs, from its released one-way table.

A value whose count drowns in noise is of no use in a table of pairs: it is grouped with others, numbers with their
neighbours. The one-way table stays fine: rows of a group come back as values by their shares in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synod.common.study.levels import number_groups
from synod.curator.inference.tails import posterior_means
from synod.curator.network.tables import project_tables

Floats = NDArray[np.float64]
KEPT_DEVIATIONS = 2.0  # a smaller count is more noise than value
FEWEST_GROUPS = 2  # of numbers: with one, pairs would tell nothing


@dataclass(frozen=True, slots=True, eq=False)
class OneWay:
    """A released one-way table of a feature: the noisy count of each value, the deviation of the noise, and the values
    in their order where they have one; a missing value is not in the order.
    """

    counts: Floats
    deviation: float
    order: tuple[int, ...] | None = None


def group_values(one_way: OneWay, *, least: float) -> tuple[int, ...]:
    """The group of each value, numbered by first occurrence; each value its own where all are large enough.

    `least` is the mass in rows below which a group of numbers goes on growing.
    """
    parts = _join_rare(one_way) if one_way.order is None else _join_numbers(one_way, one_way.order, least)
    groups = np.empty(len(one_way.counts), dtype=np.int64)
    for part in parts:
        groups[part] = min(part)
    return number_groups(groups.tolist())


def _join_rare(one_way: OneWay) -> list[list[int]]:
    """All rare values together, each other by itself."""
    rare = one_way.counts < KEPT_DEVIATIONS * one_way.deviation
    if rare.sum() < 2 or rare.all():
        return [[value] for value in range(len(rare))]
    return [*([value] for value in np.flatnonzero(~rare).tolist()), np.flatnonzero(rare).tolist()]


def _join_numbers(one_way: OneWay, order: Sequence[int], least: float) -> list[list[int]]:
    """Neighbours together until each group has `least` rows and stands out of the noise on it; a missing value alone.

    The group that is furthest from it joins the smaller of its neighbours, so that a frequent number stays by itself.
    """
    parts = [[value] for value in order]
    masses = [float(one_way.counts[value]) for value in order]
    while len(parts) > FEWEST_GROUPS:
        needed = [max(least, KEPT_DEVIATIONS * one_way.deviation * len(part) ** 0.5) for part in parts]
        place = min(range(len(parts)), key=lambda at: masses[at] / needed[at])
        if masses[place] >= needed[place]:
            break
        beside = [side for side in (place - 1, place + 1) if 0 <= side < len(parts)]
        left = min(place, min(beside, key=masses.__getitem__))
        parts[left : left + 2] = [parts[left] + parts[left + 1]]
        masses[left : left + 2] = [masses[left] + masses[left + 1]]
    return parts + [[value] for value in range(len(one_way.counts)) if value not in order]


def estimate_shares(one_way: OneWay, rows: int) -> Floats:
    """The share of each value among all rows: large values as counted, rare ones by their posterior means."""
    rare = one_way.counts < KEPT_DEVIATIONS * one_way.deviation
    if rare.sum() < 2 or rare.all():
        return project_tables(one_way.counts, rows) / rows
    counts = one_way.counts + (rows - one_way.counts.sum()) / len(one_way.counts)
    shares, total = np.maximum(counts, 0.0), max(float(counts[rare].sum()), one_way.deviation / 2)
    means = posterior_means(counts[rare], one_way.deviation, total)
    shares[rare] = means / means.sum() * total
    scaled: Floats = shares / shares.sum()
    return scaled
