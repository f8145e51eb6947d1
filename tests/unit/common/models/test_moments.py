"""Moments against slow twins: the sensitivity by brute force over all rows, the sums by Python loops.

The twins are written from methods.md, HPDP-DP, steps 1 and 2, in exact fractions; nothing in them comes from
common/models/moments.py.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from synod.common.models.moments import MomentDesign, design_moments, row_vectors, unfold
from synod.common.study.attributes import plain
from synod.common.study.encoding import Codes, Coding
from synod.common.study.study import Study
from synod.party.count import moments as moments_module
from synod.party.count.moments import sum_moments
from tests.support.studies import binary, categorical, integer, make_study, real

HALF = Fraction(1, 2)


def codings(schema: Sequence[dict[str, Any]], levels: int) -> tuple[Coding, ...]:
    named = [{**attribute, "name": f"a{i}"} for i, attribute in enumerate(schema)]
    study: Study = make_study(schema=named)
    return tuple(Coding(plain(attribute), levels) for attribute in study.attributes)


def number() -> dict[str, Any]:
    return integer("x", 0, 9)


def nullable_number() -> dict[str, Any]:
    return real("x", "0", "1.5", nullable=True)


def block(size: int) -> dict[str, Any]:
    return categorical("x", size)


def slow_moments(coded: Sequence[Coding], row: Sequence[int]) -> list[Fraction]:
    """One row's moments in real units, in the order of the Gram matrix's upper triangle."""
    signed: list[tuple[Fraction, bool]] = [(HALF, False)]
    one_hot: list[tuple[int, int]] = []
    for index, (coding, code) in enumerate(zip(coded, row, strict=True)):
        if coding.attribute.is_numeric and not coding.is_constant:
            assert coding.levels is not None
            is_missing = coding.attribute.nullable and code == coding.levels + 1
            signed.append((Fraction(0) if is_missing else Fraction(code, coding.levels) - HALF, True))
            if coding.attribute.nullable:
                signed.append((HALF if is_missing else -HALF, False))
        elif coding.size == 2:
            signed.append((HALF if code else -HALF, False))
        elif coding.size > 2:
            one_hot.extend((index, int(code == other)) for other in range(coding.size))
    found: list[Fraction] = []
    for i, (value, has_square) in enumerate(signed):
        if has_square:
            found.append(value * value)
        found.extend(value * other for other, _ in signed[i + 1 :])
        if i > 0:
            found.extend(value * hot for _, hot in one_hot)
    for i, (owner, hot) in enumerate(one_hot):
        found.append(Fraction(hot))
        found.extend(Fraction(hot * other) for other_owner, other in one_hot[i + 1 :] if other_owner != owner)
    return found


def all_rows(coded: Sequence[Coding]) -> list[tuple[int, ...]]:
    return list(product(*(range(coding.size) for coding in coded)))


def columns_of(coded: Sequence[Coding], rows: Sequence[Sequence[int]]) -> list[Codes]:
    return [np.array([row[i] for row in rows], dtype=coding.dtype) for i, coding in enumerate(coded)]


def largest_distances(design: MomentDesign, coded: Sequence[Coding]) -> tuple[int, int]:
    """The largest L1 and squared L2 distance between the moments of two rows, over all pairs of possible rows."""
    vectors = np.array([sum_moments(design, columns_of(coded, [row])) for row in all_rows(coded)])
    changes = [np.abs(vectors - vector) for vector in vectors]
    absolute = max(int(change.sum(axis=1).max()) for change in changes)
    return absolute, max(int(np.square(change).sum(axis=1).max()) for change in changes)


SHAPES: list[tuple[list[dict[str, Any]], int]] = [
    *(([binary("x")] * count, 1) for count in range(1, 8)),
    ([number()], 2),
    ([number()], 3),
    ([number()], 8),
    ([number()] * 2, 4),
    ([number()] * 3, 4),
    ([nullable_number()], 4),
    ([nullable_number()] * 2, 4),
    ([nullable_number(), number()], 4),
    ([block(3)], 1),
    ([block(5)], 1),
    ([block(3)] * 2, 1),
    ([block(3)] * 4, 1),
    ([categorical("x", 2, nullable=True)] * 2, 1),
    ([binary("x"), block(3)], 1),
    ([binary("x")] * 3 + [block(3)] * 2, 1),
    ([number(), block(3)], 4),
    ([number(), binary("x")], 4),
    ([number()] * 2 + [binary("x")] * 2, 4),
    ([nullable_number(), binary("x"), block(3)], 4),
    ([number(), nullable_number(), binary("x"), block(3)], 2),
    ([block(4), number(), binary("x"), block(3), number()], 2),
    ([integer("x", 5, 5), binary("x"), categorical("x", 1)], 1),
    ([integer("x", 5, 5, nullable=True), number(), categorical("x", 1, nullable=True)], 4),
]


@pytest.mark.parametrize(("schema", "levels"), SHAPES)
def test_no_two_rows_are_further_apart_than_the_sensitivity(schema: list[dict[str, Any]], levels: int) -> None:
    coded = codings(schema, levels)
    design = design_moments(coded)
    absolute, squared = largest_distances(design, coded)
    assert 0 < absolute <= design.sensitivity
    assert 0 < squared <= design.squared_sensitivity
    if design.numbers == 0:
        assert absolute == design.sensitivity
        if not (design.blocks and design.signed):
            assert squared == design.squared_sensitivity


KINDS = st.one_of(
    st.just(binary("x")),
    st.just(number()),
    st.just(nullable_number()),
    st.builds(block, st.integers(3, 4)),
    st.just(categorical("x", 2, nullable=True)),
    st.just(integer("x", 1, 1, nullable=True)),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(KINDS, min_size=1, max_size=5), st.integers(1, 5))
def test_random_schemas_keep_to_the_sensitivity(schema: list[dict[str, Any]], levels: int) -> None:
    coded = codings(schema, levels)
    while len(all_rows(coded)) > 400:
        coded = coded[1:]
    design = design_moments(coded)
    absolute, squared = largest_distances(design, coded)
    assert absolute <= design.sensitivity
    assert squared <= design.squared_sensitivity


def test_sensitivity_in_numbers() -> None:
    """In units of 1 / (4 L^2): 36 for NLTCS, as methods.md has it, and the formulas term by term."""
    nltcs = design_moments(codings([binary("x")] * 16, 256))
    assert (nltcs.unit, nltcs.sensitivity, nltcs.squared_sensitivity) == (1, 4 * 36, 16 * 18)
    for blocks, numbers, signs in product(range(4), range(4), range(4)):
        if blocks + numbers + signs == 0:
            continue
        design = design_moments(codings([block(3)] * blocks + [number()] * numbers + [binary("x")] * signs, 256))
        s = numbers + signs
        hot, flips = 2 * blocks + blocks * (blocks - 1) + blocks * s, (s + 1) ** 2 // 4
        absolute = hot + Fraction(flips, 2) + Fraction(numbers, 4)
        squared = hot + Fraction(flips, 4) + Fraction(numbers, 16)
        assert Fraction(design.sensitivity, 4 * design.unit**2) == absolute
        assert Fraction(design.squared_sensitivity, (4 * design.unit**2) ** 2) == squared
        assert design.unit == (256 if numbers else 1)


@settings(max_examples=80, deadline=None)
@given(st.lists(KINDS, min_size=1, max_size=4), st.sampled_from([1, 2, 5, 256, 1024]), st.data())
@example([number(), nullable_number(), binary("x"), block(3)], 256, None)
def test_sums_equal_the_slow_twin(schema: list[dict[str, Any]], levels: int, data: st.DataObject | None) -> None:
    coded = codings(schema, levels)
    design = design_moments(coded)
    if data is None:
        rows = [(0, 257, 1, 2), (256, 0, 0, 0), (100, 7, 1, 1)]
    else:
        any_row = st.tuples(*(st.integers(0, coding.size - 1) for coding in coded))
        rows = data.draw(st.lists(any_row, min_size=1, max_size=5))
    moments = sum_moments(design, columns_of(coded, rows))
    expected = [sum(column) for column in zip(*(slow_moments(coded, row) for row in rows), strict=True)]
    scale = 4 * design.unit**2
    assert moments.dtype == np.int64
    assert [Fraction(int(moment), scale) for moment in moments] == expected
    assert design.length == len(expected) == int(design.asked().sum())
    low, high = design.bounds(len(rows))
    assert low <= moments.min()
    assert moments.max() <= high


def test_bounds_are_reached() -> None:
    mixed = codings([number(), block(3)], 256)
    design = design_moments(mixed)
    low, high = design.bounds(5)
    reached = sum_moments(design, columns_of(mixed, [(0, 1)] * 5))
    assert (int(reached.min()), int(reached.max())) == (low, high)
    signs = codings([binary("x")] * 2, 256)
    design = design_moments(signs)
    assert sum_moments(design, columns_of(signs, [(0, 1)] * 5)).tolist() == [-5, 5, -5]
    assert design.bounds(5) == (-5, 5)


def random_table(coded: Sequence[Coding], rows: int) -> list[Codes]:
    rng = np.random.default_rng(7)
    return [rng.integers(0, coding.size, rows).astype(coding.dtype) for coding in coded]


@pytest.mark.parametrize("chunk", [1, 7, 1000, 4096])
def test_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    coded = codings([number(), nullable_number(), binary("x"), block(3)], 1024)
    design, table = design_moments(coded), random_table(coded, 1001)
    whole = sum_moments(design, table)
    monkeypatch.setattr(moments_module, "CHUNK_ROWS", chunk)
    assert np.array_equal(sum_moments(design, table), whole)


def test_sums_of_parts_add_up() -> None:
    coded = codings([number(), nullable_number(), block(4)], 512)
    design, table = design_moments(coded), random_table(coded, 500)
    parts = [sum_moments(design, [c[:123] for c in table]), sum_moments(design, [c[123:] for c in table])]
    assert np.array_equal(parts[0] + parts[1], sum_moments(design, table))


def test_the_largest_sums_of_a_chunk_are_exact() -> None:
    coded = codings([number(), block(3)], 1024)
    rows = moments_module.CHUNK_ROWS + 1
    table: list[Codes] = [np.full(rows, 1024, dtype=np.uint16), np.full(rows, 2, dtype=np.uint8)]
    moments = sum_moments(design_moments(coded), table)
    assert moments.max() == 4 * 1024**2 * rows


def real_gram(design: MomentDesign, table: Sequence[Codes]) -> NDArray[np.float64]:
    vectors = row_vectors(design, table) / (2.0 * design.unit)
    gram: NDArray[np.float64] = vectors.T @ vectors / len(vectors)
    return gram


@pytest.mark.parametrize(
    "schema",
    [
        [binary("x")] * 3,
        [number()] * 2,
        [nullable_number(), binary("x"), block(3), block(4)],
        [block(3)],
        [nullable_number()],
    ],
)
def test_unfolding_gives_the_whole_gram_matrix_back(schema: list[dict[str, Any]]) -> None:
    coded = codings(schema, 256)
    design, table = design_moments(coded), random_table(coded, 301)
    unfolded = unfold(design, sum_moments(design, table), 301)
    assert unfolded.shape == (design.width, design.width)
    np.testing.assert_allclose(unfolded, real_gram(design, table), atol=1e-12)


def test_absurd_schemas_are_counted_without_their_matrix() -> None:
    design = design_moments(codings([block(65_000), block(65_000), number(), binary("x")], 256))
    assert design.length == 3 + 1 + 130_000 * 3 + 65_000**2
