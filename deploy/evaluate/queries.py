"""Random range queries: how well counts of rows inside random boxes survive.

A query takes 1 to 4 attributes and an interval of each one's domain, in the schema's order of values, and asks for
the share of rows whose values lie in all of them. The DPCocGen paper takes all attributes at once; where there are
many, most such boxes are empty. A missing value lies in no interval.
"""

from dataclasses import dataclass

import numpy as np

from synod.deploy.evaluate.tables import Table

MOST_ATTRIBUTES = 4
SANITY_BOUND = 0.001


@dataclass(frozen=True, slots=True)
class Interval:
    """The codes of one attribute from `low` to `high`, both included."""

    attribute: int
    low: int
    high: int


Query = tuple[Interval, ...]


@dataclass(frozen=True, slots=True)
class QueryErrors:
    """Mean errors of answers that are shares of rows; the relative one is cut off below `sanity_bound`."""

    queries: int
    absolute: float
    relative: float
    sanity_bound: float


def draw_queries(table: Table, count: int, *, rng: np.random.Generator) -> list[Query]:
    """Queries over attributes drawn without repetition; an interval lies between two codes drawn uniformly."""
    return [_draw_query(table, rng=rng) for _ in range(count)]


def _draw_query(table: Table, *, rng: np.random.Generator) -> Query:
    size = int(rng.integers(1, min(MOST_ATTRIBUTES, len(table.values)) + 1))
    attributes = sorted(rng.choice(len(table.values), size, replace=False).tolist())
    ends = [sorted(rng.integers(0, table.values[attribute], 2).tolist()) for attribute in attributes]
    return tuple(Interval(attribute, low, high) for attribute, (low, high) in zip(attributes, ends, strict=True))


def answer_query(table: Table, query: Query) -> float:
    """The share of rows that lie in all intervals."""
    inside = np.ones(table.rows, dtype=bool)
    for interval in query:
        codes = table.columns[interval.attribute]
        inside &= (codes >= interval.low) & (codes <= interval.high)
    return float(inside.mean())


def measure_queries(real: Table, synthetic: Table, count: int, *, rng: np.random.Generator) -> QueryErrors:
    """The mean over queries of |synthetic - real|, and of the same divided by max(real, 0.001)."""
    queries = draw_queries(real, count, rng=rng)
    truth = np.array([answer_query(real, query) for query in queries])
    errors = np.abs(np.array([answer_query(synthetic, query) for query in queries]) - truth)
    relative = errors / np.maximum(truth, SANITY_BOUND)
    return QueryErrors(count, float(errors.mean()), float(relative.mean()), SANITY_BOUND)
