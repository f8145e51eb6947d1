"""Counts by packed bits and by codes, against a dictionary of rows."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synod.party.count import bits as bitcount
from synod.party.count import marginals as counting
from synod.party.count.marginals import Column, PackedTable, count_marginals


def count_slowly(columns: Sequence[Column], sizes: Sequence[int], features: tuple[int, ...]) -> list[int]:
    """One row after the other."""
    seen = Counter(tuple(int(columns[feature][row]) for feature in features) for row in range(len(columns[0])))
    return [seen[cell] for cell in product(*(range(sizes[feature]) for feature in features))]


def draw_codes(seed: int, rows: int, sizes: Sequence[int]) -> list[Column]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, size, rows).astype(np.uint16 if size > 256 else np.uint8) for size in sizes]


def check(columns: Sequence[Column], sizes: Sequence[int], sets: Sequence[tuple[int, ...]]) -> None:
    tables = count_marginals(columns, sizes, sets)
    assert [table.tolist() for table in tables] == [count_slowly(columns, sizes, features) for features in sets]
    assert all(table.dtype == np.int64 for table in tables)


@pytest.mark.parametrize("rows", [1, 7, 8, 63, 64, 65, 513])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_all_sets_of_binary_features(rows: int, size: int) -> None:
    check(draw_codes(rows, rows, [2] * 7), [2] * 7, list(combinations(range(7), size)))


@st.composite
def tables_and_sets(draw: st.DrawFn) -> tuple[int, int, list[int], list[tuple[int, ...]]]:
    sizes = draw(st.lists(st.sampled_from([1, 2, 2, 2, 3, 17, 256, 300]), min_size=1, max_size=9))
    one_set = st.lists(st.integers(0, len(sizes) - 1), unique=True, max_size=3).map(tuple)
    return draw(st.integers(0, 999)), draw(st.integers(1, 200)), sizes, draw(st.lists(one_set, max_size=12))


@settings(max_examples=60, deadline=None)
@given(tables_and_sets())
def test_any_sets_of_any_features(case: tuple[int, int, list[int], list[tuple[int, ...]]]) -> None:
    seed, rows, sizes, sets = case
    if sizes.count(300) + sizes.count(256) > 1:
        sets = sets[:2]
    check(draw_codes(seed, rows, sizes), sizes, sets)


def test_wide_binary_sets_go_by_codes() -> None:
    columns = draw_codes(3, 400, [2] * 12)
    check(columns, [2] * 12, [tuple(range(9)), tuple(range(11, 0, -1)), tuple(range(8)), (11, 3)])


@pytest.mark.parametrize(("dense_factor", "buffer_rows"), [(8, 128), (0, 4), (10**9, 1)])
def test_chunks_blocks_and_buffers_change_nothing(
    dense_factor: int, buffer_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns, sizes = draw_codes(5, 3000, [2] * 9 + [3, 5]), [2] * 9 + [3, 5]
    monkeypatch.setattr(bitcount, "CHUNK_BYTES", 64)
    monkeypatch.setattr(bitcount, "BUFFER_ROWS", buffer_rows)
    monkeypatch.setattr(bitcount, "DENSE_FACTOR", dense_factor)
    monkeypatch.setattr(counting, "BLOCK_CELLS", 160)
    monkeypatch.setattr(counting, "CHUNK_ROWS", 701)
    monkeypatch.setattr(counting, "PACKED_ROWS", 1024)
    monkeypatch.setattr(counting, "SLICE_ROWS", 104)
    check(columns, sizes, [*combinations(range(9), 4), (9, 10), (0, 10, 3), (10,)])


@pytest.mark.parametrize("bincount", [0, 24, 10**9])
@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_packing_and_bincounts_count_alike(size: int, bincount: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever is taken for being faster."""
    monkeypatch.setattr(counting, "BINCOUNT", bincount)
    columns, rng = draw_codes(size, 700, [2] * 20), np.random.default_rng(size)
    check(columns, [2] * 20, [tuple(rng.permutation(20)[:size].tolist()) for _ in range(5)])


def test_views_are_bincounts_and_tables_that_share_conjunctions_are_packed() -> None:
    rng = np.random.default_rng(1)
    assert not counting._is_worth_packing([tuple(rng.permutation(62)[:8].tolist()) for _ in range(57)])
    assert counting._is_worth_packing(list(combinations(range(20), 4)))
    assert counting._is_worth_packing([(0, 1)])


@pytest.mark.parametrize("sizes", [[256], [1, 256], [256, 1], [16, 16], [1, 1], [257], [2, 128], [65536], [300, 300]])
def test_codes_at_the_ends_of_their_types(sizes: list[int]) -> None:
    """Every cell once, and the last one twice."""
    cells = int(np.prod(sizes))
    cell = np.append(np.arange(cells), cells - 1)
    columns: list[Column] = [digits.astype(np.uint16) for digits in np.unravel_index(cell, sizes)]
    (table,) = count_marginals(columns, sizes, [tuple(range(len(sizes)))])
    assert table.tolist() == [1] * (cells - 1) + [2]


def test_no_sixteen_bit_count_overflows() -> None:
    rows = 3 * 64 * 1016 + 5
    columns = [np.ones(rows, dtype=np.uint8), np.ones(rows, dtype=np.uint8)]
    assert [table.tolist() for table in count_marginals(columns, [2, 2], [(0, 1)])] == [[0, 0, 0, rows]]


def test_sets_may_repeat_and_come_in_any_order() -> None:
    columns = draw_codes(8, 300, [2] * 6)
    for sets in ([(5, 0, 3), (0, 3, 5), (5, 0, 3), (4, 2, 1), (1, 2, 4)], [(0, 1), (0, 1), (0, 3), (1, 2)]):
        tables = PackedTable(columns).count_tables(np.array(sets))
        assert tables.tolist() == [count_slowly(columns, [2] * 6, features) for features in sets]


def test_no_rows_and_no_sets() -> None:
    empty = [np.empty(0, dtype=np.uint8)] * 3
    assert [table.tolist() for table in count_marginals(empty, [2, 2, 3], [(0, 1), (2,), ()])] == [
        [0] * 4,
        [0] * 3,
        [0],
    ]
    assert count_marginals(draw_codes(0, 5, [2, 2]), [2, 2], []) == []
    assert PackedTable(draw_codes(0, 5, [2, 2])).count_tables(np.empty((0, 2), dtype=np.intp)).shape == (0, 4)
