"""Agreements and grouped tables against loops over rows in plain Python."""

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synod.common.protocol.queries.agreements import SumAgreements, unpack_signs
from synod.common.protocol.queries.marginals import Grouping, LocalMarginals, Tables
from synod.common.study.encoding import Codes, codings_of
from synod.common.study.features import sizes_of, space_of
from synod.common.study.study import Study
from synod.party.count import agreements
from synod.party.count.agreements import count_agreements
from synod.party.count.tables import exact_counts
from tests.support.studies import categorical, make_study

SIZES = (2, 3, 2, 1, 5)


def make(*sizes: int, encoding: str = "vanilla", nullable: int | None = None, **changes: Any) -> Study:
    schema = [categorical(f"x{i}", size, nullable=i == nullable) for i, size in enumerate(sizes)]
    return make_study(schema=schema, method={"name": "dp-subn", "encoding": encoding}, **changes)


STUDIES = {
    "codes": make(*SIZES),
    "nullable": make(*SIZES, nullable=3),
    "bits": make(*SIZES, encoding="binary"),
    "Gray bits": make(*SIZES, encoding="gray"),
    "two": make(2, 2),
}


def draw_table(study: Study, rows: int, seed: int) -> list[Codes]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, coding.size, rows).astype(coding.dtype) for coding in codings_of(study)]


def draw_query(study: Study, splits: int, weight: int, seed: int) -> SumAgreements:
    rng = np.random.default_rng(seed)
    packed = tuple(np.packbits(rng.integers(0, 2, sum(sizes_of(study)))).tobytes() for _ in range(splits))
    return SumAgreements(packed, weight)


def rows_of(study: Study, columns: list[Codes]) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in space_of(study).encode(columns)), strict=True))


def count_slowly(query: SumAgreements, study: Study, columns: list[Codes]) -> list[int]:
    """One row after the other, one pair after the other."""
    rows, sizes = rows_of(study, columns), sizes_of(study)
    counts = []
    if query.ones:
        counts += [sum(query.ones for row in rows if row[i] == 1) for i, size in enumerate(sizes) if size == 2]
    for split in query.splits:
        signs = unpack_signs(split, sizes)
        for a, b in combinations(range(len(sizes)), 2):
            counts.append(sum(int(signs[a][row[a]]) == int(signs[b][row[b]]) for row in rows))
    return counts


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(STUDIES)),
    st.integers(0, 150),
    st.integers(1, 3),
    st.sampled_from([0, 1, 3, 64]),
    st.integers(0, 999),
)
def test_agreements_are_those_of_a_loop_over_rows(name: str, rows: int, splits: int, weight: int, seed: int) -> None:
    study = STUDIES[name]
    query, columns = draw_query(study, splits, weight, seed), draw_table(study, rows, seed)
    query.check(study)
    counted = count_agreements(query, study, columns)
    assert counted.tolist() == count_slowly(query, study, columns)
    assert counted.dtype == np.int64
    assert len(counted) == query.size(study).numbers


@pytest.mark.parametrize("chunk", [1, 7, 50, 99, 100, 101, 1000])
def test_chunks_change_nothing(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    study = STUDIES["nullable"]
    query, columns = draw_query(study, 2, 2, 1), draw_table(study, 100, 1)
    expected = count_slowly(query, study, columns)
    monkeypatch.setattr(agreements, "CHUNK_ROWS", chunk)
    assert count_agreements(query, study, columns).tolist() == expected


def test_no_row_is_lost_to_single_precision() -> None:
    """More rows than a float32 can count one by one, all alike, and one that differs."""
    rows = 2**24 + 3
    columns = [np.zeros(rows, dtype=np.uint8), np.zeros(rows, dtype=np.uint8)]
    columns[1][-1] = 1
    query = SumAgreements((b"\x50",), 3)
    assert count_agreements(query, STUDIES["two"], columns).tolist() == [0, 3, rows - 1]


def test_each_row_counts_in_its_own_way_in_all_sums() -> None:
    """Rows 2^k times: a pair, a split or a feature that is mixed up with another shows."""
    study = STUDIES["codes"]
    rows = [(0, 2, 1, 0, 4), (1, 0, 0, 0, 3), (1, 1, 1, 0, 0), (0, 0, 1, 0, 2)]
    repeated = [row for k, row in enumerate(rows) for _ in range(2**k)]
    columns: list[Codes] = [np.array(column, dtype=np.uint8) for column in zip(*repeated, strict=True)]
    query = draw_query(study, 3, 1, 3)
    counted = count_agreements(query, study, columns)
    assert counted.tolist() == count_slowly(query, study, columns)
    assert counted[:2].tolist() == [2 + 4, 1 + 4 + 8]
    assert len(set(counted.tolist())) > 6


# Grouped tables


def count_tables_slowly(query: Tables, study: Study, columns: list[Codes]) -> list[int]:
    rows, sizes = rows_of(study, columns), query.entry_sizes(study)
    wide = [(*row, *(one.groups[row[one.feature]] for one in query.groupings)) for row in rows]
    return [
        sum(tuple(row[entry] for entry in entries) == cell for row in wide)
        for entries in query.sets
        for cell in product(*(range(sizes[entry]) for entry in entries))
    ]


@st.composite
def grouped(draw: st.DrawFn) -> tuple[Study, LocalMarginals]:
    study = draw(st.sampled_from([STUDIES["codes"], STUDIES["nullable"]]))
    sizes, found = sizes_of(study), []
    for feature, size in enumerate(sizes):
        groups = draw(st.lists(st.integers(0, size - 1), min_size=size, max_size=size))
        numbers = {group: place for place, group in enumerate(dict.fromkeys(groups))}
        if len(numbers) > 1:
            found.append(Grouping(feature, tuple(numbers[group] for group in groups)))
    places = {one.feature: len(sizes) + place for place, one in enumerate(found)}
    features = st.sets(st.integers(0, len(sizes) - 1), min_size=1, max_size=3)
    sets = [
        tuple(places[f] if f in places and draw(st.booleans()) else f for f in sorted(one))
        for one in draw(st.lists(features, min_size=1, max_size=4))
    ]
    return study, LocalMarginals(tuple(sets), tuple(found))


@settings(max_examples=60, deadline=None)
@given(grouped(), st.integers(0, 120), st.integers(0, 999))
def test_grouped_tables_are_those_of_a_loop_over_rows(case: tuple[Study, LocalMarginals], rows: int, seed: int) -> None:
    study, query = case
    query.check(study)
    columns = draw_table(study, rows, seed)
    counted = exact_counts(query, study, columns)
    assert counted.tolist() == count_tables_slowly(query, study, columns)
    assert counted.dtype == np.int64


@pytest.mark.parametrize("groups", [255, 256, 257, 300])
def test_groups_have_a_type_that_holds_them(groups: int) -> None:
    study = make(300, 2)
    one = Grouping(0, tuple(min(value, groups - 1) for value in range(300)))
    query = LocalMarginals(((2,), (2, 1)), (one,))
    query.check(study)
    columns: list[Codes] = [np.arange(300, dtype=np.uint16), (np.arange(300) % 2).astype(np.uint8)]
    assert exact_counts(query, study, columns).tolist() == count_tables_slowly(query, study, columns)
