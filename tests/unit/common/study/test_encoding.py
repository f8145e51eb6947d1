"""Codes of values and back: round trips, missing values, constants, and never a value outside of its domain."""

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from synod.common.privacy.coins import Coins
from synod.common.study.encoding import Coding, codings_of, decode_numbers, encode_numbers
from tests.support.studies import categorical, integer, make_study, real

LEVELS = st.sampled_from([256, 512, 1024])
OPEN = categorical("open", 2)


def coding(attribute: dict[str, Any], levels: int = 256) -> Coding:
    return codings_of(make_study(schema=[attribute, OPEN], method={"name": "hpdp-dp", "levels": levels}))[0]


def codes_of(numeric: Coding) -> Any:
    return np.arange(numeric.value_codes).astype(numeric.dtype)


def decode(numeric: Coding, codes: Any, seed: int = 0) -> Any:
    return decode_numbers(numeric, codes, coins=Coins.public(seed, "values"))


@pytest.mark.parametrize(
    ("attribute", "value_codes", "size", "dtype", "constant"),
    [
        (categorical("a", 2), 2, 2, np.uint8, False),
        (categorical("a", 3, nullable=True), 3, 4, np.uint8, False),
        (categorical("a", 1), 1, 1, np.uint8, True),
        (categorical("a", 1, nullable=True), 1, 2, np.uint8, True),
        (categorical("a", 256), 256, 256, np.uint8, False),
        (categorical("a", 256, nullable=True), 256, 257, np.uint16, False),
        (integer("a", 0, 1), 257, 257, np.uint16, False),
        (integer("a", 0, 1, nullable=True), 257, 258, np.uint16, False),
        (integer("a", 7, 7), 1, 1, np.uint8, True),
        (integer("a", 7, 7, nullable=True), 1, 2, np.uint8, True),
        (real("a", "0", "1"), 257, 257, np.uint16, False),
    ],
)
def test_how_many_codes_there_are(
    attribute: dict[str, Any], value_codes: int, size: int, dtype: type, constant: bool
) -> None:
    found = coding(attribute)
    assert (found.value_codes, found.size, found.is_constant) == (value_codes, size, constant)
    assert found.dtype == dtype
    assert np.iinfo(found.dtype).max >= found.size - 1
    if attribute["nullable"]:
        assert found.null_code == size - 1 == value_codes
    else:
        with pytest.raises(AssertionError):
            _ = found.null_code


@given(st.integers(-(10**6), 10**6), st.integers(1, 256), LEVELS)
def test_integers_up_to_the_levels_come_back_exactly(low: int, width: int, levels: int) -> None:
    found = coding(integer("a", low, low + width), levels)
    values = np.arange(low, low + width + 1)
    decoded = decode(found, encode_numbers(found, values.astype(np.float64)))
    assert decoded.dtype == np.int64
    assert decoded.tolist() == values.tolist()


@given(st.integers(-(2**53) + 1, 2**53 - 1), st.integers(-(2**53) + 1, 2**53 - 1), LEVELS)
@example(-(2**53) + 1, 4, 256)
def test_decoded_integers_stay_in_their_domain_and_ends_are_exact(one: int, other: int, levels: int) -> None:
    low, high = min(one, other), max(one, other)
    found = coding(integer("a", low, high), levels)
    decoded = decode(found, codes_of(found))
    assert int(decoded[0]) == low
    assert high - int(decoded[-1]) <= (high - low > 2**53)  # beyond, a double cannot tell neighbours apart
    assert decoded.min() >= low
    assert decoded.max() <= high
    assert (np.diff(decoded) >= 0).all()


DECIMALS = st.decimals(-(10**6), 10**6, places=9) | st.decimals(-1, 1, places=20) | st.sampled_from([Decimal("1e25")])


@given(DECIMALS, DECIMALS, LEVELS)
def test_reals_stay_in_their_domain_and_levels_come_back(one: Decimal, other: Decimal, levels: int) -> None:
    low, high = min(one, other), max(one, other)
    if float(low) == float(high):
        return
    found = coding(real("a", str(low), str(high)), levels)
    decoded = decode(found, codes_of(found))
    assert decoded.dtype == np.float64
    assert decoded.min() >= float(low)
    assert decoded.max() <= float(high)
    if float(high - low) > 1e-9 * max(abs(float(low)), abs(float(high))):
        assert encode_numbers(found, decoded.astype(np.float64)).tolist() == list(range(levels + 1))


def test_a_bound_with_many_digits_is_not_rounded_out_of_the_domain() -> None:
    found = coding(real("a", "-0.123456789", "0.123456789"))
    decoded = decode(found, codes_of(found))
    assert (decoded[0], decoded[-1]) == (-0.123456789, 0.123456789)


def test_reals_are_rounded_to_what_a_level_can_tell() -> None:
    found = coding(real("a", "0", "2.56"))
    assert decode(found, codes_of(found))[:4].tolist() == [0.0, 0.01, 0.02, 0.03]
    wide = coding(real("a", "0", "256000"))
    assert decode(wide, codes_of(wide))[:3].tolist() == [0.0, 1000.0, 2000.0]


def test_the_nearest_level_is_taken() -> None:
    found = coding(integer("a", 0, 256))
    assert encode_numbers(found, np.array([0.0, 0.49, 0.51, 255.4, 255.6, 256.0])).tolist() == [0, 0, 1, 255, 256, 256]


@given(st.integers(-1000, 1000), st.booleans())
def test_constants(value: int, nullable: bool) -> None:
    found = coding(integer("a", value, value, nullable=nullable))
    codes = encode_numbers(found, np.full(3, float(value)))
    assert codes.tolist() == [0, 0, 0]
    assert decode(found, codes).tolist() == [value] * 3


def test_a_number_never_takes_the_code_of_a_missing_value() -> None:
    for attribute in (integer("a", 0, 9, nullable=True), real("a", "0", "9.1", nullable=True)):
        found = coding(attribute)
        high = float(attribute["max"])
        assert int(encode_numbers(found, np.array([high])).max()) == found.null_code - 1


def test_codings_follow_the_schema() -> None:
    study = make_study(method={"name": "hpdp-dp", "levels": 512})
    assert [c.attribute.name for c in codings_of(study)] == ["sex", "age", "income", "ward"]
    assert {c.levels for c in codings_of(study)} == {512}


# Bins


def binned(attribute: dict[str, Any]) -> Coding:
    return codings_of(make_study(schema=[attribute, OPEN], method={"name": "dp-subn"}))[0]


@pytest.mark.parametrize(
    ("attribute", "value_codes", "size", "constant"),
    [
        ({**integer("a", 0, 99), "bins": 10}, 10, 10, False),
        ({**integer("a", 0, 99, nullable=True), "bins": 10}, 10, 11, False),
        (integer("a", 0, 3), 4, 4, False),
        (integer("a", 0, 99), 16, 16, False),
        ({**real("a", "0", "1", nullable=True), "bins": 1}, 1, 2, False),
        ({**real("a", "0", "1"), "bins": 300}, 300, 300, False),
        (integer("a", 7, 7, nullable=True), 1, 2, True),
        (categorical("a", 3, nullable=True), 3, 4, False),
    ],
)
def test_how_many_bins_there_are(attribute: dict[str, Any], value_codes: int, size: int, constant: bool) -> None:
    found = binned(attribute)
    assert found.levels is None
    assert (found.value_codes, found.size, found.is_constant) == (value_codes, size, constant)
    assert np.iinfo(found.dtype).max >= size - 1


def test_a_bin_holds_what_lies_in_it() -> None:
    whole = binned({**integer("a", 0, 9), "bins": 4})  # 2.5 integers wide
    assert encode_numbers(whole, np.arange(10.0)).tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 3, 3]
    parts = binned({**real("a", "-1", "1"), "bins": 4})
    assert encode_numbers(parts, np.array([-1, -0.51, -0.5, -0.01, 0, 0.49, 0.5, 1])).tolist() == [
        0, 0, 1, 1, 2, 2, 3, 3,
    ]  # fmt: skip


@given(st.integers(-(10**6), 10**6), st.integers(1, 5000), st.integers(1, 200), st.integers(0, 99))
@example(0, 9, 4, 0)
def test_an_integer_drawn_for_a_bin_lies_in_it(low: int, width: int, bins: int, seed: int) -> None:
    found = binned({**integer("a", low, low + width), "bins": min(bins, width + 1)})
    codes = np.repeat(codes_of(found), 20)
    drawn = decode(found, codes, seed)
    assert drawn.dtype == np.int64
    assert low <= drawn.min() <= drawn.max() <= low + width
    assert encode_numbers(found, drawn.astype(np.float64)).tolist() == codes.tolist()


@given(DECIMALS, DECIMALS, st.integers(1, 200), st.integers(0, 99))
def test_a_real_drawn_for_a_bin_lies_in_it(one: Decimal, other: Decimal, bins: int, seed: int) -> None:
    low, high = min(one, other), max(one, other)
    if float(high - low) <= 1e-9 * max(abs(float(low)), abs(float(high))):
        return
    found = binned({**real("a", str(low), str(high)), "bins": bins})
    codes = np.repeat(codes_of(found), 20)
    drawn = decode(found, codes, seed)
    assert drawn.dtype == np.float64
    assert float(low) <= drawn.min() <= drawn.max() <= float(high)
    assert encode_numbers(found, drawn).tolist() == codes.tolist()


def test_a_bin_comes_back_as_all_that_lies_in_it() -> None:
    whole = binned({**integer("a", 0, 99), "bins": 10})
    drawn = decode(whole, np.full(2_000, 3, dtype=np.uint8))
    assert set(drawn.tolist()) == set(range(30, 40))
    parts = binned({**real("a", "0", "8"), "bins": 4})
    drawn = decode(parts, np.full(2_000, 1, dtype=np.uint8))
    assert np.histogram(drawn, bins=4, range=(2, 4))[0].min() > 400
    assert len(set(drawn.tolist())) > 100
    assert (decode(parts, np.full(2_000, 1, dtype=np.uint8), seed=1) != drawn).any()
