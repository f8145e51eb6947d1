"""Spikes: numbers with codes of their own. They come back exactly, and no bin comes back as one of them."""

import json
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from synod.common.crypto.canonical import canonical_bytes
from synod.common.privacy.coins import Coins
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.attributes import plain, varies
from synod.common.study.encoding import Coding, binned_codings, codings_of, decode_numbers, encode_numbers
from synod.common.study.features import sizes_of
from synod.common.study.schema import MOST_SPIKES
from synod.common.study.study import Study, known_methods, parse_study
from synod.curator.release.files import decode_column
from tests.support.studies import categorical, integer, make_study, real, study_document

OPEN = categorical("open", 2)
DRAWS = 8
COUNTING_BINS = sorted(set(known_methods()) - {"hpdp-dp"})


def coding(attribute: dict[str, Any], method: str = "dp-subn") -> Coding:
    return codings_of(make_study(schema=[attribute, OPEN], method={"name": method}))[0]


def decode(numeric: Coding, codes: Any, seed: int = 0) -> Any:
    return decode_numbers(numeric, codes, coins=Coins.public(seed, "values"))


def encode(numeric: Coding, values: Any) -> list[int]:
    codes: list[int] = encode_numbers(numeric, np.array([float(value) for value in values])).tolist()
    return codes


def all_codes(numeric: Coding) -> Any:
    return np.repeat(np.arange(numeric.value_codes), DRAWS).astype(numeric.dtype)


# Codes


def test_each_spike_has_a_code_after_the_bins() -> None:
    found = coding(integer("a", 0, 99, bins=10, spikes=[0, 50, 55, 99], nullable=True))
    assert (found.value_codes, found.size, found.null_code) == (14, 15, 14)
    assert encode(found, [0, 1, 49, 50, 51, 55, 59, 98, 99]) == [10, 0, 4, 11, 5, 12, 5, 9, 13]
    parts = coding(real("a", "-1", "1", bins=4, spikes=["-1", "0", "0.3", "1"]))
    assert encode(parts, [-1, -0.9, -0.5, 0, 0.1, 0.3, 0.5, 1]) == [4, 0, 1, 5, 2, 6, 3, 7]


def test_a_spike_alone_in_its_bin_has_no_further_code() -> None:
    assert coding(integer("a", 0, 9, bins=10, spikes=[0, 4, 9])).spikes == ()
    mixed = coding(integer("a", 0, 4, bins=4, spikes=[0, 3, 4]))  # bins {0, 1}, {2}, {3}, {4}
    assert mixed.spikes == (0,)
    assert mixed.value_codes == 5
    assert encode(mixed, range(5)) == [4, 0, 1, 2, 3]


@pytest.mark.parametrize(
    ("spikes", "kept"), [([5, 6, 7], (5, 6)), ([6, 7], (6, 7)), ([5, 7], (5, 7)), ([4, 5, 6, 7, 8, 9], (5, 6, 8))]
)
def test_a_bin_of_spikes_alone_stands_for_the_last_of_them(spikes: list[int], kept: tuple[int, ...]) -> None:
    """The bins of -1 to 10 by four are {-1, 0, 1}, {2, 3, 4}, {5, 6, 7} and {8, 9, 10}."""
    found = coding(integer("a", -1, 10, bins=4, spikes=spikes))
    assert tuple(spike for spike in found.spikes if spike not in (4, 9)) == kept
    codes = encode(found, range(-1, 11))
    assert set(codes) == set(range(found.value_codes)), "no code without a value"
    assert len(set(codes[6:9])) == min(len(kept) + 1, 3)


def test_a_range_of_two_values_that_are_both_spikes() -> None:
    found = coding(integer("a", 0, 1, bins=1, spikes=[0, 1]))
    assert found.value_codes == 2
    codes = encode(found, [0, 1, 1, 0])
    assert decode(found, np.array(codes, dtype=found.dtype)).tolist() == [0, 1, 1, 0]


def test_a_constant_has_no_spikes() -> None:
    found = coding(integer("a", 7, 7, spikes=[7], nullable=True))
    assert (found.spikes, found.value_codes, found.size) == ((), 1, 2)


def test_numbers_in_their_bins_have_no_spikes() -> None:
    study = make_study(schema=[integer("a", 0, 99, bins=10, spikes=[0]), OPEN], method={"name": "dp-subn"})
    assert binned_codings(study)[0].size == 10


# There and back


@st.composite
def integers(draw: st.DrawFn) -> dict[str, Any]:
    low = draw(st.integers(-(10**6), 10**6))
    high = low + draw(st.integers(1, 60) | st.integers(1, 2**40))
    bins = min(draw(st.integers(1, 1_024)), high - low + 1)
    near = st.sampled_from([0, 1, 2]).map(lambda step: min(low + step, high)) | st.sampled_from([low, high])
    edges = st.integers(0, bins).map(lambda place: min(low + -(-place * (high - low + 1) // bins), high))
    spikes = draw(st.sets(near | edges | st.integers(low, high), max_size=MOST_SPIKES))
    return integer("a", low, high, bins=bins, spikes=sorted(spikes), nullable=draw(st.booleans()))


def full_bins(low: int, high: int, bins: int, spikes: list[int]) -> dict[str, Any]:
    return integer("a", low, high, bins=bins, spikes=spikes)


@given(integers(), st.integers(0, 99))
@example(full_bins(0, 11, 4, [4, 5]), 0)  # two spikes side by side at the end of {3, 4, 5}
@example(full_bins(-1, 126, 64, [-1, 0, 126]), 0)  # a bin {-1, 0} of spikes alone
@example(full_bins(0, 9, 1, [0, 1, 2, 3, 4, 6, 7, 8, 9]), 0)  # nothing but 5 is left of the bin
def test_integers_with_spikes(attribute: dict[str, Any], seed: int) -> None:
    found = coding(attribute)
    codes = all_codes(found)
    drawn = decode(found, codes, seed)
    assert drawn.dtype == np.int64
    assert attribute["min"] <= drawn.min() <= drawn.max() <= attribute["max"]
    assert encode(found, drawn) == codes.tolist(), "a bin neither left its bounds nor became a spike"
    spikes = encode(found, attribute["spikes"])
    assert decode(found, np.array(spikes, dtype=found.dtype), seed).tolist() == attribute["spikes"]


BOUNDS = st.decimals(-(10**6), 10**6, places=9) | st.decimals(-1, 1, places=14) | st.sampled_from([Decimal("1e25")])


@st.composite
def reals(draw: st.DrawFn) -> dict[str, Any]:
    low, high = sorted((draw(BOUNDS), draw(BOUNDS)))
    assume(float(high - low) > 1e-8 * max(abs(float(low)), abs(float(high))))
    bins = draw(st.integers(1, 1_024))
    edges = st.integers(0, bins).map(lambda place: low + place * (high - low) / bins)
    inside = st.integers(0, 10**6).map(lambda part: low + part * (high - low) / 10**6)
    wanted = draw(st.lists(edges | inside | st.sampled_from([low, high]), max_size=MOST_SPIKES))
    rounded = {float(spike): spike for spike in wanted if low <= spike <= high}
    spikes = [format(rounded[spike], "f") for spike in sorted(rounded)]
    return real("a", str(low), str(high), bins=bins, spikes=spikes, nullable=draw(st.booleans()))


@given(reals(), st.integers(0, 99))
@example(real("a", "0", "1", bins=1, spikes=["0", "1"]), 0)
@example(real("a", "0", "0.123456789", bins=1024, spikes=["0", "0.123456789"]), 0)
def test_reals_with_spikes(attribute: dict[str, Any], seed: int) -> None:
    found = coding(attribute)
    codes = all_codes(found)
    drawn = decode(found, codes, seed)
    assert drawn.dtype == np.float64
    assert float(attribute["min"]) <= drawn.min() <= drawn.max() <= float(attribute["max"])
    assert encode(found, drawn) == codes.tolist(), "a bin neither left its bounds nor became a spike"
    spikes = encode(found, attribute["spikes"])
    assert decode(found, np.array(spikes, dtype=found.dtype), seed).tolist() == list(map(float, attribute["spikes"]))


def test_a_bin_of_reals_never_becomes_a_bound_that_is_a_spike() -> None:
    """Rounding reaches a bound once in some hundred draws, and clipping more often where a bound has many digits."""
    for high in ("1", "0.123456789"):
        found = coding(real("a", "0", high, bins=2, spikes=["0", high]))
        drawn = decode(found, np.tile(np.array([0, 1], dtype=found.dtype), 20_000))
        assert 0 < drawn.min() < drawn.max() < float(high)


def test_what_is_left_of_a_bin_of_integers_comes_back_evenly() -> None:
    found = coding(integer("a", 0, 9, bins=1, spikes=[3, 4, 9]))
    counts = np.bincount(decode(found, np.zeros(14_000, dtype=found.dtype)), minlength=10)
    assert np.flatnonzero(counts).tolist() == [0, 1, 2, 5, 6, 7, 8]
    assert np.abs(counts[counts > 0] - 2_000).max() < 6 * 2_000**0.5


@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize("kind", ["integer", "real"])
def test_the_shares_of_minimum_and_maximum_survive(kind: str, nullable: bool) -> None:
    """Of 3,000 rows 40 % are at the minimum, 10 % at the maximum, and a few just beside them."""
    attribute = (integer("a", 0, 99_999) if kind == "integer" else real("a", "0", "99999")) | {"nullable": nullable}
    found = coding(attribute, "adaptive")
    middle = np.linspace(1, 99_998, 1_500).round()
    values = np.concatenate([np.zeros(1_200), np.full(300, 99_999.0), middle])
    for binned, shares in ((found, True), (Coding(found.attribute, None), False)):
        column = decode_column(binned, encode_numbers(binned, values), coins=Coins.public(3, "values")).to_pylist()
        assert (column.count(0) == 1_200) == shares
        assert (column.count(99_999) == 300) == shares
        assert None not in column
    if nullable:
        codes = np.full(5, found.null_code, dtype=found.dtype)
        assert decode_column(found, codes, coins=Coins.public(3, "values")).to_pylist() == [None] * 5


def test_numbers_are_what_they_were() -> None:
    """Whoever changes how numbers are drawn in bins makes every older release fail to verify."""
    whole = coding(integer("a", 0, 99, bins=4, spikes=[0, 50, 51]))
    assert decode(whole, np.arange(7, dtype=whole.dtype), seed=7).tolist() == [16, 45, 71, 84, 0, 50, 51]
    parts = coding(real("a", "-1", "1", bins=4, spikes=["0"]))
    assert decode(parts, np.arange(5, dtype=parts.dtype), seed=7).tolist() == [-0.679, -0.095, 0.426, 0.688, 0.0]


# In order


@given(integers())
@example(full_bins(-1, 10, 4, [5, 6, 7]))
@example(full_bins(-1, 10, 4, [6, 7]))
def test_codes_in_order_are_those_of_ascending_integers(attribute: dict[str, Any]) -> None:
    found = coding(attribute)
    order = found.in_order()
    assert sorted(order) == list(range(found.value_codes))
    check_order(found, order)


@given(reals())
@example(real("a", "0", "1", bins=10, spikes=["0", "0.3", "0.7", "1"]))
def test_codes_in_order_are_those_of_ascending_reals(attribute: dict[str, Any]) -> None:
    found = coding(attribute)
    order = found.in_order()
    assert sorted(order) == list(range(found.value_codes))
    check_order(found, order)


def check_order(found: Coding, order: list[int]) -> None:
    """Bins and spikes ascend each by themselves, and no spike is further than its own bin."""
    bins = found.attribute.bins  # type: ignore[union-attr]
    assert [code for code in order if code < bins] == list(range(bins))
    assert [code for code in order if code >= bins] == list(range(bins, found.value_codes))
    own = encode(Coding(found.attribute, None), found.spikes)
    for place, home in enumerate(own):
        code, at = bins + place, order.index(home)
        between = order[min(at, order.index(code)) : max(at, order.index(code)) + 1]
        assert {one for one in between if one < bins} == {home}
        assert {own[one - bins] for one in between if one >= bins} == {home}, "only spikes of the same bin between"


def test_order_by_hand() -> None:
    whole = coding(integer("a", -1, 10, bins=4, spikes=[-1, 4, 6, 7, 8]))
    assert whole.in_order() == [4, 0, 1, 5, 2, 6, 7, 8, 3]
    parts = coding(real("a", "0", "1", bins=10, spikes=["0", "0.3", "1"]))
    assert parts.in_order() == [10, 0, 1, 2, 11, 3, 4, 5, 6, 7, 8, 9, 12]
    assert coding(integer("a", 5, 5), "dp-subn").in_order() == [0]


# The schema


@pytest.mark.parametrize("attribute", [integer("a", 0, 9), real("a", "0", "9")], ids=["integer", "real"])
@pytest.mark.parametrize(
    ("spikes", "rule"),
    [
        ([-1], "between min and max"),
        ([0, 10], "between min and max"),
        ([3, 2], "in ascending order"),
        ([3, 3], "each once"),
        (list(range(10)) * 2, "more than 16 spikes"),
        (5, "valid list"),
        ("5", "valid list"),
        ([None], ""),
        (["x"], ""),
        ([True], ""),
    ],
)
def test_spikes_that_are_refused(attribute: dict[str, Any], spikes: Any, rule: str) -> None:
    with pytest.raises(SynodError) as caught:
        make_study(schema=[{**attribute, "spikes": spikes}, OPEN], method={"name": "adaptive"})
    assert caught.value.code is Code.INVALID
    assert rule in caught.value.sentence
    assert "schema.0" in caught.value.sentence
    assert "\n" not in str(caught.value)


def test_reals_that_no_double_tells_apart_are_one_spike() -> None:
    with pytest.raises(SynodError, match="each once"):
        make_study(schema=[real("a", "0", "1", spikes=["0.1", "0.1000000000000000000001"])], method={"name": "dp-subn"})


def test_spikes_are_written_canonically() -> None:
    schema = [integer("a", -5, 500, spikes=[-5, 0]), real("b", "-1.50", "2", spikes=["-1.50", "0.0", "1e0"]), OPEN]
    study = make_study(schema=schema, method={"name": "adaptive"})
    document: Any = json.loads(canonical_bytes(study.to_json()))
    assert document["schema"][0]["spikes"] == [-5, 0]
    assert document["schema"][1]["spikes"] == ["-1.5", "0", "1"]
    again = parse_study(document, "the approved study")
    assert again == study
    assert again.resolve().digest() == study.digest()
    plain = make_study(schema=[{**schema[0], "spikes": [-5]}, *schema[1:]], method={"name": "adaptive"})
    assert plain.digest() != study.digest()


@pytest.mark.parametrize("bins", [1_024, 1_000])
def test_many_bins(bins: int) -> None:
    whole = coding(integer("a", 0, 99_999, bins=bins, spikes=[0, 99_999]))
    assert whole.size == bins + 2
    assert whole.dtype == np.uint16
    assert encode(whole, [0, 1, 99_998, 99_999]) == [bins, 0, bins - 1, bins + 1]


@pytest.mark.parametrize("attribute", [integer("a", 0, 9, bins=1), real("a", "0", "9", bins=1)])
@pytest.mark.parametrize(("spikes", "is_open"), [([], False), ([0], True)])
def test_one_bin_varies_if_it_has_spikes(attribute: dict[str, Any], spikes: list[int], is_open: bool) -> None:
    schema = [{**attribute, "spikes": spikes}, OPEN]
    study = make_study(schema=schema, method={"name": "dp-subn", "encoding": "vanilla"})
    assert varies(study.attributes[0], binned=True) is is_open
    assert len(sizes_of(study)) == 1 + is_open


# Defaults of the method


def attributes_of(study: Study) -> list[tuple[int, list[str]]]:
    return [(a.bins, list(map(str, a.spikes))) for a in map(plain, study.attributes) if a.type != "categorical"]


NUMBERS = [
    integer("age", 0, 120),
    integer("stays", 0, 9),
    integer("year", 2020, 2020),
    integer("debt", -500, 500),
    real("pay", "0", "9.5"),
    real("gain", "-1.5", "2.5"),
    real("written", "0", "9", bins=7, spikes=[]),
    integer("half", 0, 99, bins=5),
    integer("other half", 0, 99, spikes=[50]),
    OPEN,
]


def test_adaptive_counts_numbers_finely_and_the_usual_values_by_themselves() -> None:
    assert attributes_of(make_study(schema=NUMBERS, method={"name": "adaptive"})) == [
        (121, ["0", "120"]),
        (10, ["0", "9"]),
        (1, []),
        (64, ["-500", "0", "500"]),
        (64, ["0", "9.5"]),
        (64, ["-1.5", "0", "2.5"]),
        (7, []),
        (5, ["0", "99"]),
        (100, ["50"]),
    ]


@pytest.mark.parametrize("method", sorted(set(known_methods()) - {"adaptive"}))
def test_other_methods_keep_their_defaults(method: str) -> None:
    written = [attribute for attribute in NUMBERS if attribute["name"] != "other half"]
    found = attributes_of(make_study(schema=written, method={"name": method}))
    assert [bins for bins, _ in found] == [16, 10, 1, 16, 16, 16, 7, 5]
    assert all(spikes == [] for _, spikes in found)


@pytest.mark.parametrize("attribute", NUMBERS, ids=lambda attribute: attribute["name"])
def test_what_a_method_assumes_is_written_out_once(attribute: dict[str, Any]) -> None:
    method = known_methods()["adaptive"]
    completed = method.complete_attribute(attribute)
    assert {key: completed[key] for key in attribute} == attribute
    assert method.complete_attribute(completed) == completed
    study = make_study(schema=[attribute, categorical("b", 3)], method={"name": "adaptive"})
    assert study.resolve() == study
    assert parse_study(study.to_json(), "again").resolve().digest() == study.digest()


@pytest.mark.parametrize(
    ("attribute", "where"),
    [
        ({"name": "a", "type": "integer", "min": "x", "max": 9}, "min"),
        ({"name": "a", "type": "integer", "min": 0}, "max"),
        ({"name": "a", "type": "integer", "min": 9, "max": 0}, "min is above max"),
        ({"name": "a", "type": "real", "min": "nan", "max": "1"}, "min"),
        ({"name": "a", "type": "real", "min": "1", "max": "1"}, "min must be below max"),
        ({"name": "a", "type": "real", "min": None, "max": []}, "min"),
        ({"name": "a", "type": ["integer"], "min": 0, "max": 1}, "type"),
        ({"type": "integer", "min": 0, "max": 1}, "name"),
        ("age", "a mapping of keys"),
        (None, "a mapping of keys"),
    ],
)
def test_a_broken_attribute_is_refused_for_what_is_broken(attribute: Any, where: str) -> None:
    with pytest.raises(SynodError) as caught:
        parse_study(study_document(schema=[attribute, OPEN], method={"name": "adaptive"}), "the sample")
    assert caught.value.code is Code.INVALID
    assert where in caught.value.sentence
    assert "spikes" not in caught.value.sentence


# Methods that do not count bins


def test_a_method_with_levels_refuses_spikes() -> None:
    schema = [OPEN, integer("age", 0, 99, spikes=[0])]
    with pytest.raises(SynodError) as caught:
        make_study(schema=schema, method={"name": "hpdp-dp"})
    assert caught.value.code is Code.INVALID
    assert "age has spikes, but hpdp-dp does not count bins" in caught.value.sentence
    assert caught.value.hint == "Remove `spikes`, or choose another method."
    make_study(schema=[OPEN, integer("age", 0, 99, spikes=[])], method={"name": "hpdp-dp"})


@pytest.mark.parametrize("method", COUNTING_BINS)
def test_any_method_that_counts_bins_takes_spikes(method: str) -> None:
    found = coding(integer("a", 0, 99, bins=10, spikes=[0, 50]), method)
    assert found.value_codes == 12
