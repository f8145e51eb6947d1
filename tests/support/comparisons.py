"""Small tables to compare, and slow twins that go through them row by row."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
from hypothesis import strategies as st

from synod.deploy.evaluate.tables import Table


def table_of(columns: Sequence[Sequence[int]], sizes: Sequence[int], nullable: Sequence[int] = ()) -> Table:
    """A table of codes; the attributes in `nullable` have a last code for a missing value."""
    names = tuple(f"a{index}" for index in range(len(sizes)))
    values = tuple(size - (index in nullable) for index, size in enumerate(sizes))
    arrays = [np.array(column, dtype=np.min_scalar_type(s - 1)) for column, s in zip(columns, sizes, strict=True)]
    return Table(names, tuple(sizes), values, tuple(arrays))


def draw_table(sizes: Sequence[int], rows: int, seed: int, nullable: Sequence[int] = ()) -> Table:
    rng = np.random.default_rng(seed)
    return table_of([rng.integers(0, size, rows).tolist() for size in sizes], sizes, nullable)


def shares_slowly(table: Table, attributes: Sequence[int]) -> dict[tuple[int, ...], Fraction]:
    rows = Counter(tuple(int(table.columns[i][row]) for i in attributes) for row in range(table.rows))
    cells = product(*(range(table.sizes[i]) for i in attributes))
    return {cell: Fraction(rows[cell], table.rows) for cell in cells}


@st.composite
def pairs_of_tables(draw: st.DrawFn) -> tuple[Table, Table]:
    """Two tables of one schema with row counts of their own; some attributes never take but one value."""
    sizes = draw(st.lists(st.sampled_from([2, 2, 2, 3, 5, 17]), min_size=1, max_size=5))
    nullable = draw(st.lists(st.integers(0, len(sizes) - 1), max_size=2))
    taken = [draw(st.sampled_from([size, 1])) for size in sizes]
    tables = []
    for rows in (draw(st.integers(1, 40)), draw(st.integers(1, 40))):
        rng = np.random.default_rng(draw(st.integers(0, 999)))
        tables.append(table_of([rng.integers(0, t, rows).tolist() for t in taken], sizes, nullable))
    return tables[0], tables[1]
