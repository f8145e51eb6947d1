"""Canonical JSON against RFC 8785 and against Python's own parser."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synod.common.crypto.canonical import LARGEST_INTEGER, canonical_bytes, canonical_hash

TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-LARGEST_INTEGER, LARGEST_INTEGER) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def strict(value: Any) -> Any:
    """The value in a form where True is not 1 and order of keys does not count."""
    if isinstance(value, dict):
        return {key: strict(item) for key, item in value.items()}
    return [strict(item) for item in value] if isinstance(value, list) else (type(value).__name__, value)


@given(VALUES)
def test_reads_back_as_the_same_value(value: Any) -> None:
    assert strict(json.loads(canonical_bytes(value))) == strict(value)


@given(VALUES, VALUES)
def test_equal_bytes_mean_equal_values(one: Any, other: Any) -> None:
    assert (canonical_bytes(one) == canonical_bytes(other)) == (strict(one) == strict(other))


@given(st.dictionaries(TEXTS, st.integers(0, 9), max_size=6), st.randoms())
def test_order_of_keys_does_not_matter(value: dict[str, int], shuffler: Any) -> None:
    items = list(value.items())
    shuffler.shuffle(items)
    assert canonical_bytes(dict(items)) == canonical_bytes(value)


def test_keys_are_sorted_by_utf16_code_units_as_in_the_rfc() -> None:
    names = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\x80", "\u00f6"]
    found = list(json.loads(canonical_bytes(dict.fromkeys(names, 0))))
    assert found == ["\r", "1", "\x80", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]


@given(st.dictionaries(st.text(st.characters(codec="utf-8", min_codepoint=60), max_size=3), st.none(), max_size=6))
def test_keys_are_sorted_so_whatever_they_are(value: dict[str, None]) -> None:
    assert list(json.loads(canonical_bytes(value))) == sorted(value, key=lambda key: key.encode("utf-16-be"))


def test_strings_are_escaped_as_in_the_rfc() -> None:
    assert canonical_bytes('\u20ac$\x0f\nA\'B"\\"/\x7f') == b'"\xe2\x82\xac$\\u000f\\nA\'B\\"\\\\\\"/\x7f"'
    assert canonical_bytes("\b\t\f\r\x1f") == b'"\\b\\t\\f\\r\\u001f"'


def test_no_white_space_and_tuples_are_lists() -> None:
    assert canonical_bytes({"b": (1, -2), "a": [None, True, False]}) == b'{"a":[null,true,false],"b":[1,-2]}'


@pytest.mark.parametrize("value", [LARGEST_INTEGER, -LARGEST_INTEGER])
def test_integers_up_to_the_limit(value: int) -> None:
    assert canonical_bytes([value]) == f"[{value}]".encode()
    with pytest.raises(ValueError, match="no canonical form"):
        canonical_bytes([value + (1 if value > 0 else -1)])


@pytest.mark.parametrize("value", [0.5, float("nan"), b"ab", bytearray(b"ab"), {1, 2}, object()])
def test_other_types_are_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="has no canonical form"):
        canonical_bytes({"key": [value]})


def test_lone_surrogates_are_refused() -> None:
    for value in ("\ud800", {"\udfff": 1}):
        with pytest.raises(UnicodeEncodeError):
            canonical_bytes(value)


def test_hash_is_of_the_canonical_form() -> None:
    assert canonical_hash({"b": 1, "a": "x"}) == hashlib.sha256(b'{"a":"x","b":1}').digest()
