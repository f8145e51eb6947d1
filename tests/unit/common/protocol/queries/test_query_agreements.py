"""Agreements of pairs: sensitivities by brute force over all pairs of rows, both forms, and each check broken once."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import combinations, product
from math import comb
from typing import Any

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from synod.common.privacy.cost import Cost
from synod.common.privacy.laws import GaussianLaw, LaplaceLaw, Sensitivity
from synod.common.protocol.queries import agreements
from synod.common.protocol.queries.agreements import (
    LARGEST_WEIGHT,
    MOST_SPLITS,
    SumAgreements,
    pack_signs,
    unpack_signs,
)
from synod.common.protocol.queries.base import check_within
from synod.common.protocol.queries.noise_runs import NoiseRun
from synod.common.protocol.queries.parsing import parse_query, query_digest, read_query
from synod.common.protocol.steps import Limit, Step
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.features import sizes_of
from synod.common.study.study import Study
from synod.v1 import query_pb2 as pb
from tests.support.queries import BITS, NETWORK, refusal, step_of
from tests.support.studies import Attribute, binary, categorical, make_study

UNKNOWN = "the query is not one that this version answers."
NO_SIGNS = "the query's splits are not one sign for each value of each feature."
Split = list[list[int]]


def study_of(*attributes: Attribute, encoding: str = "vanilla", **changes: Any) -> Study:
    named = [{**attribute, "name": f"x{i}"} for i, attribute in enumerate(attributes)]
    return make_study(schema=named, method={"name": "dp-subn", "encoding": encoding}, **changes)


TWO, THREE, FOUR = binary("x"), categorical("x", 3), categorical("x", 4)
NULLABLE = categorical("x", 2, nullable=True)
"""Two categories and a missing value: three codes."""
ONE_OR_MISSING = categorical("x", 1, nullable=True)
"""One category and a missing value: two codes."""
CONSTANT = categorical("x", 1)
"""No feature."""
STUDIES = {
    "two bits": study_of(TWO, TWO),
    "four bits": study_of(TWO, TWO, TWO, TWO),
    "five bits": study_of(*[TWO] * 5),
    "no bits": study_of(THREE, FOUR, THREE),
    "mixed": study_of(TWO, THREE, TWO, FOUR),
    "mixed, one bit": study_of(THREE, TWO, THREE, THREE),
    "nullable": study_of(TWO, NULLABLE, ONE_OR_MISSING, CONSTANT, TWO),
    "bits of codes": study_of(TWO, FOUR, THREE, encoding="binary"),
}
SIZES = {
    "two bits": (2, 2),
    "four bits": (2, 2, 2, 2),
    "five bits": (2,) * 5,
    "no bits": (3, 4, 3),
    "mixed": (2, 3, 2, 4),
    "mixed, one bit": (3, 2, 3, 3),
    "nullable": (2, 3, 2, 2),
    "bits of codes": (2, 2, 2, 2, 2),
}


@pytest.mark.parametrize("name", STUDIES)
def test_which_features_there_are(name: str) -> None:
    """A missing value is a value, and a constant attribute has no feature."""
    assert sizes_of(STUDIES[name]) == SIZES[name]


# Sensitivity


def pack(splits: list[Split]) -> tuple[bytes, ...]:
    return tuple(pack_signs([np.array(signs, dtype=np.int8) for signs in split]) for split in splits)


def count_row(row: tuple[int, ...], sizes: tuple[int, ...], splits: list[Split], weight: int) -> list[int]:
    """The slow twin: what one row adds to each number."""
    ones = [weight * value for value, size in zip(row, sizes, strict=True) if size == 2] if weight else []
    signs = [[split[feature][value] for feature, value in enumerate(row)] for split in splits]
    return ones + [int(a == b) for one in signs for a, b in combinations(one, 2)]


def true_sensitivity(sizes: tuple[int, ...], splits: list[Split], weight: int) -> Sensitivity:
    """Brute force over all pairs of rows."""
    rows = product(*(range(size) for size in sizes))
    vectors = np.array([count_row(row, sizes, splits, weight) for row in rows])
    absolute = squared = 0
    for vector in vectors:
        changes = np.abs(vectors - vector)
        absolute = max(absolute, int(changes.sum(axis=1).max()))
        squared = max(squared, int((changes**2).sum(axis=1).max()))
    return Sensitivity(absolute, squared)


def random_splits(sizes: tuple[int, ...], count: int, rng: np.random.Generator) -> list[Split]:
    return [[(2 * rng.integers(0, 2, size) - 1).tolist() for size in sizes] for _ in range(count)]


def opposite_splits(sizes: tuple[int, ...], count: int, rng: np.random.Generator) -> list[Split]:
    """Value 0 against all others, by a sign that changes from split to split and from feature to feature."""
    signs = [[2 * int(rng.integers(0, 2)) - 1 for _ in sizes] for _ in range(count)]
    return [[[s] + [-s] * (size - 1) for s, size in zip(one, sizes, strict=True)] for one in signs]


def constant_splits(sizes: tuple[int, ...], count: int, rng: np.random.Generator) -> list[Split]:
    """Signs that tell nothing, in the last split."""
    return [*opposite_splits(sizes, count - 1, rng), [[1] * size for size in sizes]]


def shared_splits(sizes: tuple[int, ...], count: int, rng: np.random.Generator) -> list[Split]:
    """The first feature's values share a sign in the first split; all other signs are opposite."""
    first, *others = opposite_splits(sizes, count, rng)
    return [[[1] * sizes[0], *first[1:]], *others]


SPLITS = {"random": random_splits, "opposite": opposite_splits, "constant": constant_splits, "shared": shared_splits}


def cases() -> Iterator[tuple[Study, list[Split], int]]:
    rng = np.random.default_rng(5)
    for name, count, make, weight in product(STUDIES, (1, 2, 3), SPLITS, (0, 1, 2, 3)):
        if weight and 2 not in SIZES[name]:
            continue
        for _ in range(4 if make == "random" else 1):
            yield STUDIES[name], SPLITS[make](SIZES[name], count, rng), weight


CASES = list(cases())


def find_violations() -> int:
    """How many of the cases state less than the truth."""
    wrong = 0
    for study, splits, weight in CASES:
        query = SumAgreements(pack(splits), weight)
        stated, true = query.sensitivity(study), true_sensitivity(sizes_of(study), splits, weight)
        wrong += stated.absolute < true.absolute or stated.squared < true.squared
    return wrong


def test_no_two_rows_differ_by_more_than_the_sensitivity() -> None:
    assert len(CASES) > 400
    for study, splits, weight in CASES:
        SumAgreements(pack(splits), weight).check(study)
    assert find_violations() == 0


@pytest.mark.parametrize("weight", [0, 1, 2, 3])
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("name", STUDIES)
def test_where_all_signs_are_opposite_some_two_rows_reach_it(name: str, count: int, weight: int) -> None:
    splits = opposite_splits(SIZES[name], count, np.random.default_rng(count))
    if weight and 2 not in SIZES[name]:
        return
    stated = SumAgreements(pack(splits), weight).sensitivity(STUDIES[name])
    assert stated == true_sensitivity(SIZES[name], splits, weight)


@pytest.fixture
def fresh() -> Iterator[None]:
    """No sensitivity that was computed before, or by a formula that a test put in."""
    agreements._sensitivity.cache_clear()
    yield
    agreements._sensitivity.cache_clear()


@pytest.mark.usefixtures("fresh")
def test_a_party_that_believed_signs_to_be_opposite_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreements, "_tells_apart", lambda query, sizes: bool(query.ones))
    assert find_violations() > 10


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(
    "most",
    [
        lambda flipped, features, two_valued: flipped * (features - flipped),
        lambda flipped, features, two_valued: features**2 // 4 - 1,
    ],
)
def test_a_formula_that_forgets_other_features_or_is_one_too_low_would_be_found(
    most: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agreements, "_most_products", most)
    assert find_violations() > 10


def test_two_bits_whose_values_share_a_sign() -> None:
    """The truth is 3; with opposite signs it is 2, and whoever took the formula for those would add too little."""
    splits: list[Split] = [[[1, 1], [1, -1]]]
    assert true_sensitivity((2, 2), splits, 1) == Sensitivity(3, 3)
    assert SumAgreements(pack(splits), 1).sensitivity(STUDIES["two bits"]) == Sensitivity(3, 3)
    opposite: list[Split] = [[[1, -1], [1, -1]]]
    assert SumAgreements(pack(opposite), 1).sensitivity(STUDIES["two bits"]) == Sensitivity(2, 2)


def test_sixteen_bits_at_weight_two() -> None:
    """By symmetry only the number of flipped bits counts."""
    study, sizes = study_of(*[TWO] * 16), (2,) * 16
    splits: list[Split] = [[[-1, 1]] * 16]
    assert SumAgreements(pack(splits), 2).sensitivity(study) == Sensitivity(absolute=81, squared=100)
    zeros = np.array(count_row((0,) * 16, sizes, splits, 2))
    changes = [np.array(count_row((1,) * k + (0,) * (16 - k), sizes, splits, 2)) - zeros for k in range(17)]
    assert max(int(np.abs(change).sum()) for change in changes) == 81
    assert max(int((change**2).sum()) for change in changes) == 100


def test_one_shared_sign_among_many_is_seen_wherever_it_is() -> None:
    study, sizes = STUDIES["four bits"], SIZES["four bits"]
    opposite = opposite_splits(sizes, 3, np.random.default_rng(0))
    assert SumAgreements(pack(opposite), 2).sensitivity(study) == Sensitivity(2 * 2 + 3 * 4, 3 * 4 + 3 * 3)
    for place, feature in product(range(3), range(4)):
        splits = [[list(signs) for signs in split] for split in opposite]
        splits[place][feature] = [-1, -1]
        stated = SumAgreements(pack(splits), 2).sensitivity(study)
        assert stated == Sensitivity(4 * 2 + 3 * 4, 4 * 4 + 3 * 4)


@given(st.integers(2, 40), st.integers(0, 40), st.integers(1, 64), st.integers(1, 64))
def test_splits_that_tell_nothing_apart_have_the_largest_sensitivity(d: int, b: int, r: int, weight: int) -> None:
    """So `check_room` looks at the worst that a query of a step can need."""
    b = min(b, d)
    flips = [(k, r * agreements._most_products(k, d, b)) for k in range(b + 1)]
    assert max(k * weight + most for k, most in flips) <= b * weight + r * (d * d // 4)
    assert max(k * weight**2 + most for k, most in flips) <= b * weight**2 + r * (d * d // 4)


# Both forms


@st.composite
def queries(draw: st.DrawFn) -> tuple[SumAgreements, Study]:
    study = draw(st.sampled_from([NETWORK, BITS, *STUDIES.values()]))
    sizes = sizes_of(study)
    signs = st.lists(st.booleans(), min_size=sum(sizes), max_size=sum(sizes))
    splits = draw(st.lists(signs, min_size=1, max_size=4))
    weight = draw(st.integers(0, LARGEST_WEIGHT)) if 2 in sizes else 0
    return SumAgreements(tuple(np.packbits(split).tobytes() for split in splits), weight), study


@given(queries())
def test_any_query_comes_back_from_both_forms(case: tuple[SumAgreements, Study]) -> None:
    query, study = case
    assert read_query(query.to_json(), study) == query
    assert parse_query(pb.Query.FromString(query.to_proto().SerializeToString()), study) == query
    step = replace(step_of(query, study), limit=query.size(study))
    assert query.to_proto().ByteSize() <= SumAgreements.message_bytes(step, study)
    check_within(query, step, study)


@given(queries())
def test_signs_are_packed_and_unpacked_again(case: tuple[SumAgreements, Study]) -> None:
    query, study = case
    sizes = sizes_of(study)
    for split in query.splits:
        signs = unpack_signs(split, sizes)
        assert tuple(map(len, signs)) == sizes
        assert {int(sign) for one in signs for sign in one} <= {-1, 1}
        assert pack_signs(signs) == split


def test_bits_are_in_the_order_of_the_values_highest_first() -> None:
    """Sizes 2, 3, 4 and 2: eleven bits, and five that are 0."""
    signs = [[1, -1], [-1, 1, -1], [1, -1, -1, -1], [1, -1]]
    (split,) = pack([signs])
    assert split == bytes([0b10_010_100, 0b0_10_00000])
    assert [one.tolist() for one in unpack_signs(split, (2, 3, 4, 2))] == signs
    query = SumAgreements((split,), 3)
    assert query.to_json() == {"kind": "sum-agreements", "splits": ["9440"], "ones": 3}
    assert query.to_proto() == pb.Query(sum_agreements=pb.SumAgreements(splits=[split], ones=3))


@settings(max_examples=300)
@given(st.binary(max_size=40))
def test_any_bytes_are_a_query_or_refused(payload: bytes) -> None:
    """Whatever is in the message's place: never another exception, and never a query that reads otherwise."""
    message = pb.Query()
    message.sum_agreements.SetInParent()
    try:
        message.sum_agreements.MergeFromString(payload)
    except DecodeError:
        return
    try:
        query = parse_query(message, NETWORK)
    except SynodError:
        return
    assert query.to_proto().SerializeToString() == message.SerializeToString()


@given(
    st.lists(st.one_of(st.binary(max_size=4), st.binary(min_size=2, max_size=2)), max_size=70),
    st.integers(0, 2**32 - 1),
)
def test_any_splits_and_weights_are_a_query_or_refused(splits: list[bytes], weight: int) -> None:
    message = pb.Query(sum_agreements=pb.SumAgreements(splits=splits, ones=weight))
    sound = 1 <= len(splits) <= 64 and all(len(s) == 2 and s[1] % 32 == 0 for s in splits) and weight <= 64
    if sound:
        assert parse_query(message, NETWORK) == SumAgreements(tuple(splits), weight)
    else:
        assert refusal(partial(parse_query, message, NETWORK))


# Each check broken once

SPLIT = b"\x94\x40"
BROKEN: dict[str, tuple[SumAgreements, Study, str]] = {
    "1 one feature": (
        SumAgreements((b"\x40",)),
        study_of(TWO, CONSTANT),
        "the query asks whether features agree, and the study has fewer than two.",
    ),
    "2 no split": (SumAgreements(()), NETWORK, "the query's splits are too many, or there are none."),
    "2 no split but ones": (SumAgreements((), 1), NETWORK, "the query's splits are too many, or there are none."),
    "2 too many": (SumAgreements((SPLIT,) * 65), NETWORK, "the query's splits are too many, or there are none."),
    "3 an empty one": (SumAgreements((b"",)), NETWORK, NO_SIGNS),
    "3 an empty one among others": (SumAgreements((SPLIT, b"")), NETWORK, NO_SIGNS),
    "3 a byte less": (SumAgreements((b"\x94",)), NETWORK, NO_SIGNS),
    "3 a byte more": (SumAgreements((b"\x94\x40\x00",)), NETWORK, NO_SIGNS),
    "3 a first bit beyond the last": (SumAgreements((b"\x94\x50",)), NETWORK, NO_SIGNS),
    "3 a last bit beyond the last": (SumAgreements((b"\x94\x41",)), NETWORK, NO_SIGNS),
    "4 too heavy": (
        SumAgreements((SPLIT,), 65),
        NETWORK,
        "the query's counts of ones are not of features with two values.",
    ),
    "4 no feature with two values": (
        SumAgreements((b"\x00\x00",), 1),
        STUDIES["no bits"],
        "the query's counts of ones are not of features with two values.",
    ),
}


@pytest.mark.parametrize(("query", "study", "sentence"), BROKEN.values(), ids=BROKEN.keys())
def test_each_check_broken_once(query: SumAgreements, study: Study, sentence: str) -> None:
    assert refusal(partial(query.check, study)) == sentence
    assert refusal(partial(read_query, query.to_json(), study)) == sentence
    assert refusal(partial(parse_query, query.to_proto(), study)) == sentence


def test_the_limits_themselves_are_sound() -> None:
    SumAgreements((SPLIT,) * MOST_SPLITS, LARGEST_WEIGHT).check(NETWORK)
    SumAgreements((bytes(2),)).check(STUDIES["no bits"])
    SumAgreements((b"\xff\xe0",)).check(NETWORK)


def test_a_split_of_whole_bytes_has_no_bits_to_spare() -> None:
    study = study_of(*[TWO] * 4)
    SumAgreements((b"\xff",)).check(study)
    assert refusal(partial(SumAgreements((b"\xff\x00",)).check, study)) == NO_SIGNS


SOUND = {"kind": "sum-agreements", "splits": ["9440"], "ones": 1}
BAD_JSON: dict[str, dict[str, Any]] = {
    "capitals": {"splits": ["94E0"]},
    "white space": {"splits": ["94 40"]},
    "half a byte": {"splits": ["9440a"]},
    "no digits": {"splits": ["94g0"]},
    "bytes": {"splits": [b"\x94\x40"]},
    "numbers": {"splits": [9440]},
    "a text": {"splits": "9440"},
    "a mapping": {"splits": {"9440": 1}},
    "nothing": {"splits": None},
    "a nested list": {"splits": [["9440"]]},
    "a weight below zero": {"ones": -1},
    "a weight beyond any": {"ones": 10**400},
    "a weight as a text": {"ones": "1"},
    "a weight as a fraction": {"ones": 1.0},
    "a weight as truth": {"ones": True},
    "no weight": {"ones": None},
    "one key more": {"shares": []},
}


@pytest.mark.parametrize("change", BAD_JSON.values(), ids=BAD_JSON.keys())
def test_other_spellings_are_refused(change: dict[str, Any]) -> None:
    assert read_query(SOUND, NETWORK) == SumAgreements((SPLIT,), 1)
    assert refusal(partial(read_query, {**SOUND, **change}, NETWORK))


def test_a_key_beyond_any_depth_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    assert refusal(partial(read_query, {**SOUND, "more": deep}, NETWORK)) == UNKNOWN


# Sizes, terms and answers

QUERY = SumAgreements((SPLIT, b"\x00\x00"), 2)


def step_for(query: SumAgreements, study: Study, cost: Cost) -> Step:
    return replace(step_of(query, study), cost=cost, limit=query.size(study))


def test_the_size_is_a_number_for_each_pair_and_split_and_for_each_counted_feature() -> None:
    assert QUERY.size(NETWORK) == Limit(numbers=2 * comb(4, 2) + 2, tables=2, cells=2)
    assert SumAgreements(QUERY.splits).size(NETWORK) == Limit(numbers=2 * comb(4, 2), tables=2, cells=2)


def test_terms_follow_from_study_step_and_question() -> None:
    stated = QUERY.sensitivity(NETWORK)
    assert stated == Sensitivity(2 * 2 + 2 * 4, 2 * 4 + 2 * 4)
    epsilon, rho = Fraction(3, 10), Fraction(1, 100)
    terms = QUERY.terms(step_for(QUERY, NETWORK, Cost.pure(epsilon)), NETWORK)
    law = LaplaceLaw(stated.absolute, stated.absolute / epsilon, 2, 1)
    assert terms.runs == (NoiseRun(14, law),)
    assert (terms.low, terms.high, terms.noise_bound) == (0, 2 * 1200, law.bound(14))
    step = step_for(QUERY, NETWORK, Cost.concentrated(rho))
    (run,) = QUERY.terms(step, NETWORK).runs
    assert isinstance(run.laws[0], GaussianLaw)
    assert run.laws[0].sensitivity == stated.squared
    assert 0 <= rho - Fraction(stated.squared) / (2 * run.laws[0].square) < Fraction(1, 10**6)
    assert QUERY.variance(step, NETWORK) == run.laws[0].variance
    assert SumAgreements(QUERY.splits).bounds(NETWORK) == (0, 1200)
    assert QUERY.unit(NETWORK) == 1


def test_another_question_has_another_hash() -> None:
    asked = [
        QUERY,
        SumAgreements(QUERY.splits[::-1], 2),
        SumAgreements(QUERY.splits, 3),
        SumAgreements(QUERY.splits),
        SumAgreements(QUERY.splits[:1], 2),
        SumAgreements((*QUERY.splits, SPLIT), 2),
        SumAgreements((SPLIT, b"\x00\x20"), 2),
    ]
    step = replace(step_of(QUERY, NETWORK), limit=Limit(100, 10, 2))
    assert len({query_digest(query, step, NETWORK) for query in asked}) == len(asked)
    dearer = replace(step, cost=Cost.concentrated(Fraction(1)))
    assert query_digest(QUERY, dearer, NETWORK) != query_digest(QUERY, step, NETWORK)


SUMS = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=14, max_size=14)


@given(SUMS)
def test_sums_are_split_joined_and_stored(sums: list[int]) -> None:
    vector: NDArray[np.int64] = np.array(sums, dtype=np.int64)
    answer = QUERY.split(vector, NETWORK)
    assert (answer.ones.tolist(), answer.pairs.tolist()) == (sums[:2], [sums[2:8], sums[8:]])
    assert QUERY.join(answer).tolist() == sums
    again = QUERY.read_answer(QUERY.write_answer(answer), NETWORK)
    assert QUERY.join(again).tolist() == sums
    bare = SumAgreements(QUERY.splits).split(vector[:12], NETWORK)
    assert (bare.ones.tolist(), bare.pairs.shape) == ([], (2, 6))


def test_stored_sums_of_another_length_are_refused() -> None:
    for length in (0, 13, 15):
        assert refusal(partial(QUERY.read_answer, bytes(8 * length), NETWORK), Code.CHECK_FAILED)


# Room


def test_a_study_without_two_features_is_refused_before_anybody_approves() -> None:
    for study in (study_of(TWO, CONSTANT), study_of(THREE)):
        step = replace(step_of(QUERY, NETWORK), limit=Limit(1, 1, 2))
        assert "fewer than two" in refusal(partial(SumAgreements.check_room, step, study))


def test_a_step_with_more_splits_than_a_query_may_have_is_refused() -> None:
    step = replace(step_of(QUERY, NETWORK), limit=Limit(10**6, MOST_SPLITS + 1, 2))
    assert "too many" in refusal(partial(SumAgreements.check_room, step, NETWORK))
    SumAgreements.check_room(replace(step, limit=Limit(10**6, MOST_SPLITS, 2)), NETWORK)


@pytest.mark.parametrize("cost", [Cost.pure(Fraction(1, 10**13)), Cost.concentrated(Fraction(1, 2**41))])
def test_too_little_budget_is_refused_before_anybody_approves(cost: Cost) -> None:
    step = step_for(QUERY, NETWORK, cost)
    assert "too little" in refusal(partial(SumAgreements.check_room, step, NETWORK))


def test_the_message_of_many_splits_is_read_and_no_more_than_a_few_bytes_beyond() -> None:
    wide = study_of(*[categorical("x", 200)] * 40)
    query = SumAgreements((bytes(1000),) * MOST_SPLITS)
    query.check(wide)
    step = replace(step_of(query, wide), limit=query.size(wide))
    length = query.to_proto().ByteSize()
    assert length <= SumAgreements.message_bytes(step, wide) < 1.05 * length
