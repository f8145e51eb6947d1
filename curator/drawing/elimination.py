"""Elimination: sums of products of tables, one variable at a time, and draws from the law that they describe.

Variables are eliminated in the order that keeps tables small; drawing goes through them backwards. Both are exact up to
the rounding of floats.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from synod.curator.network.sampling import bisect_edges, cumulate

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
MOST_CELLS = 1 << 24  # of all tables of one elimination together: 128 MiB


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """A non-negative table over variables, an axis for each."""

    variables: tuple[int, ...]
    values: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Bucket:
    """One variable as it was eliminated: its weights, given each configuration of those eliminated later; the
    variable's axis is the last.
    """

    variable: int
    given: tuple[int, ...]
    weights: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Elimination:
    """The buckets in the order of elimination, and the product that is left over the kept variables, as one table and
    its logarithmic scale.
    """

    buckets: tuple[Bucket, ...]
    left: Floats
    log_scale: float


def eliminate(factors: Sequence[Factor], sizes: Sequence[int], kept: Sequence[int] = ()) -> Elimination | None:
    """Sums a product of factors over all variables but the kept ones, whose order is that of the table that is left;
    None where the tables would have more than `MOST_CELLS` cells together.
    """
    open_factors = list(factors)
    remaining = {variable for factor in factors for variable in factor.variables} - set(kept)
    buckets, cells, log_scale = list[Bucket](), prod(sizes[variable] for variable in kept), 0.0
    while remaining:
        variable = min(remaining, key=lambda one: (_joined_cells(open_factors, sizes, one), one))
        cells += _joined_cells(open_factors, sizes, variable)
        if cells > MOST_CELLS:
            return None
        touched = [factor for factor in open_factors if variable in factor.variables]
        given = tuple(sorted({other for factor in touched for other in factor.variables} - {variable}))
        weights = multiply(touched, sizes, (*given, variable))
        message = weights.sum(axis=-1)
        largest = float(message.max())
        if largest > 0:
            message, log_scale = message / largest, log_scale + float(np.log(largest))
        buckets.append(Bucket(variable, given, weights))
        open_factors = [factor for factor in open_factors if variable not in factor.variables]
        open_factors.append(Factor(given, message))
        remaining.remove(variable)
    return Elimination(tuple(buckets), multiply(open_factors, sizes, tuple(kept)), log_scale)


def _joined_cells(factors: Sequence[Factor], sizes: Sequence[int], variable: int) -> int:
    joined = {other for factor in factors if variable in factor.variables for other in factor.variables}
    return prod(sizes[other] for other in joined)


def multiply(factors: Sequence[Factor], sizes: Sequence[int], variables: tuple[int, ...]) -> Floats:
    """The product of factors as a table over variables that hold all of theirs."""
    product = np.ones([sizes[variable] for variable in variables])
    for factor in factors:
        order = sorted(range(len(factor.variables)), key=lambda axis: variables.index(factor.variables[axis]))
        shape = [sizes[variable] if variable in factor.variables else 1 for variable in variables]
        product *= factor.values.transpose(order).reshape(shape)
    return product


def draw_variable(
    columns: Sequence[Integers],
    given: Sequence[int],
    weights: Floats,
    sizes: Sequence[int],
    rows: int,
    *,
    rng: np.random.Generator,
) -> Integers:
    """A value of one variable for each row, given the columns of others. No row has a configuration without weight."""
    table = weights.reshape(-1, weights.shape[-1])
    edges = cumulate(np.where(table.any(axis=1, keepdims=True), table, 1.0))
    places = np.zeros(rows, dtype=np.intp)
    for variable in given:
        places = places * sizes[variable] + columns[variable]
    return bisect_edges(edges, places, rng.random(rows)).astype(np.int64)


def ancestors(parents: Sequence[Sequence[int]], of: Collection[int]) -> set[int]:
    """These variables and all that they depend on; `parents` has those of each variable."""
    found, waiting = set[int](), list(of)
    while waiting:
        variable = waiting.pop()
        if variable not in found:
            found.add(variable)
            waiting.extend(parents[variable])
    return found
