"""How large tables may be: theta-usefulness (PrivBayes), from public numbers only, in exact arithmetic.

A table of m cells over n rows has n/m rows a cell on average; with `tables` of them asked at epsilon its noise has
scale 2 tables / epsilon, times the square root of `shares`, the noise shares' total variance in units of one full
share (K/(K-t) for an encrypted sum, K for K separate answers, each times the square of the rows that a unit of privacy
may have). It is theta-useful while the first is at least theta times the second. At rho the noise is Gaussian, with
sigma^2 = tables / rho; its scale here is sigma / sqrt 2, that of the Laplace law with the same variance.
"""

from decimal import Decimal
from fractions import Fraction

from synod.common.privacy.cost import Cost

LARGEST_TABLE = 1 << 16


def is_useful(cells: int, *, rows: int, cost: Cost, tables: int, theta: Decimal, shares: Fraction) -> bool:
    """Whether tables of `cells` cells are theta-useful; squared, so that no root is rounded."""
    least = (Fraction(theta) * cells) ** 2 * shares
    return rows**2 >= least * _squared_scale(cost, tables)


def _squared_scale(cost: Cost, tables: int) -> Fraction:
    """The square of the scale of a count's noise, where so many tables are asked at a cost of one kind."""
    assert (cost.epsilon == 0) != (cost.rho == 0)
    return tables / (2 * cost.rho) if cost.rho else (2 * tables / cost.epsilon) ** 2


def largest_table(
    sizes: tuple[int, ...],
    *,
    rows: int,
    cost: Cost,
    theta: Decimal,
    shares: Fraction,
    nested: bool,
    coarsest: tuple[int, ...] = (),
) -> int:
    """The most cells that a theta-useful table of a feature and its parents may have; 0 if none has any parent.

    For binary features that is 2^(k+1) with the largest such k: with `nested`, d - k tables are asked, because the
    first k follow from the next; else d. `coarsest` are the sizes of features as parents, where those are others.
    """
    d = len(sizes)
    if all(size == 2 for size in sizes):
        best = 0
        for k in range(1, min(d, LARGEST_TABLE.bit_length() - 1)):
            tables = d - k if nested else d
            if is_useful(2 ** (k + 1), rows=rows, cost=cost, tables=tables, theta=theta, shares=shares):
                best = 2 ** (k + 1)
        return best
    if d < 2:
        return 0
    low, high = 0, LARGEST_TABLE
    while low < high:
        middle = (low + high + 1) // 2
        useful = is_useful(middle, rows=rows, cost=cost, tables=d, theta=theta, shares=shares)
        low, high = (middle, high) if useful else (low, middle - 1)
    return low if low >= _smallest_family(sizes, coarsest or sizes) else 0


def _smallest_family(sizes: tuple[int, ...], parents: tuple[int, ...]) -> int:
    """The fewest cells of a feature with one other as its parent."""
    least = sorted(range(len(sizes)), key=lambda i: parents[i])[:2]
    return min(size * parents[least[least[0] == i]] for i, size in enumerate(sizes))
