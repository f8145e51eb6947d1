"""Bins of unequal width: edges are the same on every machine, codes follow from them alone, and values come back."""

from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synod.common.privacy.coins import KEY_BYTES, Coins
from synod.common.runtime.errors import SynodError
from synod.common.study.edges import log_edges, whole_log_edges
from synod.common.study.encoding import Coding, codings_of, decode_numbers, encode_numbers, level_numbers
from synod.common.study.schema import IntegerAttribute, RealAttribute
from synod.common.study.study import parse_study
from tests.support.studies import make_study, study_document

INCOME = {"name": "income", "type": "real", "min": "0.5", "max": 100_000, "bins": 8, "transform": "log"}
VISITS = {"name": "visits", "type": "integer", "min": 0, "max": 100, "bins": 8, "transform": "log"}


def whole(**keys: Any) -> IntegerAttribute:
    return IntegerAttribute.model_validate({"name": "x", "type": "integer", **keys})


def real(**keys: Any) -> RealAttribute:
    return RealAttribute.model_validate({"name": "x", "type": "real", **keys})


def test_edges_of_a_logarithm_are_written_out() -> None:
    """Fixed numbers: these decide codes, so they may never change."""
    study = make_study(schema=(INCOME, VISITS))
    document: Any = study.to_json()
    income, visits = document["schema"]
    assert income["edges"] == [
        "0.5",
        "2.29932",
        "10.5737",
        "48.6246",
        "223.607",
        "1028.29",
        "4728.71",
        "21745.6",
        "100000",
    ]
    assert visits["edges"] == [0, 1, 2, 5, 9, 17, 31, 56, 100]
    assert "transform" not in income
    assert parse_study(study.to_json(), "again").digest() == study.digest()


def test_a_study_without_edges_does_not_mention_them() -> None:
    document: Any = make_study().to_json()
    assert all("edges" not in attribute for attribute in document["schema"])


@pytest.mark.parametrize("precision", [5, 9, 200])
def test_the_context_of_whoever_computes_is_no_matter(precision: int) -> None:
    usual = log_edges(Decimal("0.5"), Decimal(100_000), 8), whole_log_edges(-3, 10**6, 50)
    with localcontext(Context(prec=precision, rounding="ROUND_UP")):
        assert (log_edges(Decimal("0.5"), Decimal(100_000), 8), whole_log_edges(-3, 10**6, 50)) == usual


@given(st.integers(-50, 50), st.integers(1, 10**6), st.integers(1, 40))
def test_edges_of_whole_numbers_leave_no_bin_empty(low: int, span: int, bins: int) -> None:
    bins = min(bins, span + 1)
    attribute = whole(min=low, max=low + span, bins=bins, transform="log")
    starts = attribute.edges[:-1]
    assert len(starts) == bins
    assert all(a < b for a, b in pairwise(starts))
    assert starts[-1] <= low + span == attribute.edges[-1]


@given(st.data())
def test_codes_are_those_of_a_plain_search(data: st.DataObject) -> None:
    """The slow twin compares fractions one edge after the other."""
    inner = data.draw(st.lists(st.integers(-999, 999), min_size=1, max_size=12, unique=True))
    edges = [-1000, *sorted(inner), 1000]
    values = data.draw(st.lists(st.integers(-1000, 1000), min_size=1, max_size=30))
    scaled = [Decimal(edge) / 8 for edge in edges]
    for attribute, factor in ((whole(edges=edges), 1), (real(edges=[str(edge) for edge in scaled]), 8)):
        codes = encode_numbers(Coding(attribute, None), np.array(values, dtype=np.float64) / factor)
        exact = [Fraction(edge) for edge in attribute.edges[1:-1]]
        assert codes.tolist() == [sum(Fraction(value, factor) >= edge for edge in exact) for value in values]


@pytest.mark.parametrize(
    "attribute",
    [
        whole(edges=[0, 1, 5, 20, 100, 100]),
        whole(min=0, max=10**6, bins=20, transform="log"),
        whole(edges=[-7, -2, 0, 40], spikes=[-7, 0, 3, 40]),
        real(edges=["0", "0.001", "0.1", "7", "90000"]),
        real(min="0.01", max="1000000", bins=30, transform="log", spikes=["0.01", "5"]),
    ],
)
def test_a_drawn_value_lies_in_its_bin(attribute: IntegerAttribute | RealAttribute) -> None:
    coding = Coding(attribute, None, tuple(float(spike) for spike in attribute.spikes))
    codes = np.tile(np.arange(coding.size), 500).astype(coding.dtype)
    drawn = decode_numbers(coding, codes, coins=Coins(bytes(KEY_BYTES)))
    assert encode_numbers(coding, drawn.astype(np.float64)).tolist() == codes.tolist()
    assert len(np.unique(drawn)) > coding.size or attribute.max < 200, "values are drawn from all of a bin"


def test_drawn_values_have_as_many_digits_as_their_bin_needs() -> None:
    attribute = real(edges=["0", "0.001", "90000"])
    drawn = decode_numbers(Coding(attribute, None), np.array([0, 1] * 50, np.uint8), coins=Coins(bytes(KEY_BYTES)))
    assert all(value == round(value) for value in drawn[1::2].tolist())
    assert all(0 < value < 0.001 for value in drawn[::2].tolist() if value)


def test_levels_are_spread_over_bins_alike() -> None:
    """A method that counts no bins sees a logarithm, too: half of its levels lie below the middle edge."""
    coding = Coding(real(min=1, max=10_000, bins=4, transform="log"), 256)
    levels = level_numbers(coding)
    assert levels[[0, 64, 128, 192, 256]].tolist() == [1, 10, 100, 1000, 10_000]
    assert encode_numbers(coding, levels).tolist() == list(range(257))


def test_a_last_bin_of_one_number_is_reached() -> None:
    coding = Coding(whole(edges=[0, 5, 5]), None)
    assert encode_numbers(coding, np.array([0.0, 4.0, 5.0])).tolist() == [0, 0, 1]


REFUSED = {
    "not ascending": ({"edges": [0, 5, 4, 9]}, "ascend"),
    "one edge": ({"edges": [0]}, "two numbers or more"),
    "not from min": ({"edges": [0, 5], "min": 1}, "begin at min"),
    "not so many bins": ({"edges": [0, 5], "bins": 3}, "one edge more than bins"),
    "both": ({"edges": [0, 5], "transform": "log"}, "both edges and a transform"),
    "another transform": ({"min": 0, "max": 9, "transform": "root"}, "`log` only"),
    "too many bins": ({"min": 0, "max": 3, "bins": 5, "transform": "log"}, "more bins than values"),
}


@pytest.mark.parametrize(("keys", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_what_are_no_edges_is_refused(keys: dict[str, Any], why: str) -> None:
    document = study_document(schema=({"name": "x", "type": "integer", **keys},))
    with pytest.raises(SynodError, match=why):
        parse_study(document, "the test's study")


def test_a_logarithm_of_a_short_range_around_0_is_refused() -> None:
    document = study_document(schema=({"name": "x", "type": "real", "min": 0, "max": 1, "transform": "log"},))
    with pytest.raises(SynodError, match="wider than 1"):
        parse_study(document, "the test's study")


def test_adaptive_counts_edges_as_they_are() -> None:
    study = make_study(method={"name": "adaptive"}, schema=({**VISITS, "bins": 8}, INCOME), delta="1e-9")
    assert [coding.attribute.bins for coding in codings_of(study)] == [8, 8]  # type: ignore[union-attr]
    study = make_study(
        method={"name": "adaptive"}, delta="1e-9", schema=({"name": "x", "type": "integer", "edges": [0, 3, 9]},)
    )
    assert codings_of(study)[0].spikes == (0.0, 9.0)
