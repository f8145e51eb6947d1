"""Features: the papers' 52 bits of Adult, Gray neighbours one bit apart, and round trips in every encoding."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synod.common.study.encoding import Codes, codings_of
from synod.common.study.features import Feature, FeatureSpace, features_of, sizes_of, space_of
from synod.common.study.study import Study
from tests.support.studies import categorical, integer, make_study, real

ENCODINGS = ("binary", "gray", "vanilla")
# How many codes the attributes of Adult have, with 16 bins for a number.
ADULT = (16, 7, 16, 16, 16, 7, 14, 6, 5, 2, 16, 16, 16, 41, 2)


def study_of(encoding: str, schema: list[dict[str, Any]]) -> Study:
    return make_study(method={"name": "dp-subn", "encoding": encoding}, schema=schema)


def sized(sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    return [categorical(f"x{i}", size) for i, size in enumerate(sizes)]


def all_codes(study: Study) -> tuple[list[Codes], int]:
    """Columns in which each attribute takes each of its codes."""
    rows = max(coding.size for coding in codings_of(study))
    return [(np.arange(rows) % coding.size).astype(coding.dtype) for coding in codings_of(study)], rows


def test_adult_has_52_bits() -> None:
    assert sizes_of(study_of("binary", sized(ADULT))) == (2,) * 52
    assert sizes_of(study_of("gray", sized(ADULT))) == (2,) * 52
    assert sizes_of(study_of("vanilla", sized(ADULT))) == ADULT
    assert sizes_of(study_of("auto", sized(ADULT))) == ADULT


def test_a_space_is_its_codings_under_one_encoding() -> None:
    study = study_of("binary", MIXED)
    assert space_of(study) == FeatureSpace(codings_of(study), "binary")
    assert space_of(study).features == features_of(study)
    gray = FeatureSpace(codings_of(study), "gray")
    assert gray.features == features_of(study)
    columns, _ = all_codes(study)
    encoded = [space.encode(columns) for space in (space_of(study), gray)]
    assert not all(map(np.array_equal, *encoded))


def test_moments_methods_count_levels_as_they_are() -> None:
    study = make_study(schema=[integer("age", 0, 100), categorical("ward", 3)])
    assert space_of(study).encoding == "vanilla"
    assert sizes_of(study) == (257, 3)


def test_features_appear_in_the_schemas_order_highest_bit_first_and_constants_have_none() -> None:
    schema = [categorical("a", 5), categorical("b", 1), integer("c", 3, 3), categorical("d", 2), categorical("e", 1)]
    schema[4]["nullable"] = True
    bits = [Feature(0, 2, 2), Feature(0, 2, 1), Feature(0, 2, 0), Feature(3, 2, 0), Feature(4, 2, 0)]
    assert list(features_of(study_of("binary", schema))) == bits
    assert list(features_of(study_of("gray", schema))) == bits
    assert list(features_of(study_of("vanilla", schema))) == [Feature(0, 5), Feature(3, 2), Feature(4, 2)]


def test_bits_are_those_of_the_code() -> None:
    study = study_of("binary", [categorical("a", 6), categorical("b", 3)])
    a, b = np.array([5, 2], dtype=np.uint8), np.array([1, 2], dtype=np.uint8)
    encoded = np.array(space_of(study).encode([a, b])).T
    assert encoded.tolist() == [[1, 0, 1, 0, 1], [0, 1, 0, 1, 0]]


@pytest.mark.parametrize("size", [2, 3, 5, 8, 41, 300])
def test_gray_neighbours_differ_in_one_bit_and_binary_ones_do_not(size: int) -> None:
    def distances(encoding: str) -> set[int]:
        study = study_of(encoding, sized((size,)))
        columns, _ = all_codes(study)
        rows = np.array(space_of(study).encode(columns)).T.astype(int)
        assert len({tuple(row) for row in rows}) == size
        return {int(np.abs(one - other).sum()) for one, other in pairwise(rows)}

    assert distances("gray") == {1}
    assert (distances("binary") == {1}) == (size == 2)


MIXED = [
    categorical("sex", 2),
    categorical("one", 1),
    integer("age", 17, 90, nullable=True),
    integer("year", 2020, 2020),
    real("income", "0", "2.5", nullable=True),
    categorical("country", 41),
    categorical("ward", 300, nullable=True),
    categorical("gap", 1, nullable=True),
]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_code_comes_back_nullable_and_constant_attributes_too(encoding: str) -> None:
    study = study_of(encoding, MIXED)
    columns, rows = all_codes(study)
    features = space_of(study).encode(columns)
    assert len(features) == len(sizes_of(study))
    assert all(int(column.max()) == size - 1 for column, size in zip(features, sizes_of(study), strict=True))
    back = space_of(study).decode(features, rows)
    for before, after in zip(columns, back, strict=True):
        assert after.dtype == before.dtype
        assert np.array_equal(before, after)


@given(st.sampled_from(ENCODINGS), st.lists(st.integers(1, 70), min_size=1, max_size=5), st.integers(0, 2**32))
def test_round_trips(encoding: str, sizes: list[int], seed: int) -> None:
    study = study_of(encoding, sized((*sizes, 2)))
    rng = np.random.default_rng(seed)
    columns: list[Codes] = [rng.integers(0, c.size, 9).astype(c.dtype) for c in codings_of(study)]
    back = space_of(study).decode(space_of(study).encode(columns), 9)
    assert all(np.array_equal(one, other) for one, other in zip(columns, back, strict=True))


@pytest.mark.parametrize("encoding", ["binary", "gray"])
def test_valid_codes_are_the_rows_of_bits_that_encoding_gives(encoding: str) -> None:
    study = study_of(encoding, MIXED)
    codings = codings_of(study)
    found = space_of(study).valid_codes()
    # Of two, one, sixteen and a missing value, one, the same, 41, 301, and one with a missing value.
    assert list(found) == [2, 4, 5, 6]
    columns, _ = all_codes(study)
    encoded = space_of(study).encode(columns)
    for attribute, rows in found.items():
        bits = [encoded[i] for i, feature in enumerate(features_of(study)) if feature.attribute == attribute]
        by_code = np.array(bits).T[: codings[attribute].size]
        assert [tuple(row) for row in by_code.tolist()] == list(rows)


def test_vanilla_has_no_invalid_codes() -> None:
    assert space_of(study_of("vanilla", MIXED)).valid_codes() == {}
    assert space_of(study_of("binary", sized((2, 4, 8, 1)))).valid_codes() == {}


@pytest.mark.parametrize("encoding", ["binary", "gray"])
def test_an_invalid_code_is_brought_inside_the_domain(encoding: str) -> None:
    study = study_of(encoding, sized((5,)))
    bits = np.array([[code >> bit & 1 for code in range(8)] for bit in (2, 1, 0)], dtype=np.uint8)
    (codes,) = space_of(study).decode(list(bits), 8)
    assert set(codes.tolist()) == set(range(5))
