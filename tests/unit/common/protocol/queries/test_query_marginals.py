"""Counts of sets of features: which sets are sound, their terms and sizes, and answers with a count for each cell."""

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synod.common.privacy.laws import LaplaceLaw
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.base import NoiseRun, check_within
from synod.common.protocol.queries.marginals import LocalMarginals, SumMarginals, cells_of
from synod.common.protocol.queries.parsing import AnyQuery, parse_query, query_digest, read_query
from synod.common.protocol.steps import Limit, QueryKind
from synod.common.runtime.errors import Code
from synod.v1 import query_pb2 as pb
from tests.support.queries import BITS, NETWORK, ROSTER, SCHEMA, UNKNOWN_FIELD, refusal, step_of
from tests.support.studies import categorical, make_study

KINDS = [QueryKind.SUM_MARGINALS, QueryKind.LOCAL_MARGINALS]
SETS = ((0, 1, 3), (2,))
NOT_SETS = "the query's sets are not sets of the study's features."


@given(st.lists(st.sets(st.integers(0, 3), min_size=1), min_size=1, max_size=5))
def test_any_sets_come_back_from_both_forms(sets: list[set[int]]) -> None:
    asked = tuple(tuple(sorted(features)) for features in sets)
    for query in (SumMarginals(asked), LocalMarginals(asked)):
        assert read_query(query.to_json(), NETWORK) == query
        assert parse_query(pb.Query.FromString(query.to_proto().SerializeToString()), NETWORK) == query


BAD_JSON: dict[str, Any] = {
    "none": [],
    "an empty one": [[]],
    "an empty one among others": [[0], []],
    "no list": 5,
    "nothing": None,
    "a mapping": {"0": [1]},
    "a flat list": [0, 1],
    "texts": [["0"]],
    "a text": ["01"],
    "fractions": [[0.0, 1.0]],
    "truth": [[False, True]],
    "a feature twice": [[1, 1]],
    "out of order": [[1, 0]],
    "below zero": [[-1, 0]],
    "beyond the last": [[0, 4]],
    "beyond any": [[10**30]],
    "nested": [[[0]]],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sets", BAD_JSON.values(), ids=BAD_JSON.keys())
def test_bad_sets_are_refused(kind: QueryKind, sets: Any) -> None:
    assert refusal(lambda: read_query({"kind": kind.value, "sets": sets}, NETWORK))


BAD_MESSAGES: dict[str, list[list[int]]] = {
    "an empty one": [[]],
    "an empty one among others": [[0], []],
    "a feature twice": [[1, 1]],
    "out of order": [[1, 0]],
    "the second out of order": [[0, 1], [3, 2]],
    "beyond the last": [[0, 4]],
    "beyond any": [[2**32 - 1]],
}


@pytest.mark.parametrize("sets", BAD_MESSAGES.values(), ids=BAD_MESSAGES.keys())
def test_bad_sets_are_refused_on_the_wire(sets: list[list[int]]) -> None:
    messages = [pb.FeatureSet(features=features) for features in sets]
    for message in (
        pb.Query(sum_marginals=pb.SumMarginals(sets=messages)),
        pb.Query(local_marginals=pb.LocalMarginals(sets=messages)),
    ):
        assert refusal(partial(parse_query, message, NETWORK)) == NOT_SETS


def test_a_query_for_no_table_is_refused_on_the_wire() -> None:
    for message in (
        pb.Query(sum_marginals=pb.SumMarginals()),
        pb.Query(local_marginals=pb.LocalMarginals()),
    ):
        assert refusal(partial(parse_query, message, NETWORK)) == "the query asks for no table."


def test_which_features_there_are_follows_from_the_study() -> None:
    query = SumMarginals(((4, 5),))
    assert parse_query(query.to_proto(), BITS) == query
    assert refusal(partial(parse_query, query.to_proto(), NETWORK)) == NOT_SETS
    assert refusal(partial(parse_query, SumMarginals(((6,),)).to_proto(), BITS)) == NOT_SETS


# Sizes


def test_cells_are_products_of_sizes() -> None:
    assert cells_of(((0, 1, 3), (2,), (0, 1, 2, 3)), NETWORK) == [12, 4, 48]
    assert cells_of(SETS, BITS) == [8, 2]


@pytest.mark.parametrize("query", [SumMarginals((*SETS, (2,))), LocalMarginals((*SETS, (2,)))])
def test_the_size_is_all_cells_all_tables_and_the_largest_table(query: AnyQuery) -> None:
    assert query.size(NETWORK) == Limit(numbers=20, tables=3, cells=12)
    assert query.size(BITS) == Limit(numbers=12, tables=3, cells=8)


def test_a_table_beyond_any_memory_is_refused_by_its_number() -> None:
    wide = make_study(schema=[categorical(f"x{i}", 2) for i in range(300)], method={"name": "dp-subn"})
    query = SumMarginals((tuple(range(300)),))
    assert query.size(wide) == Limit(numbers=2**300, tables=1, cells=2**300)
    (step,) = plan_study(wide).steps
    assert "larger than the approved plan allows" in refusal(lambda: check_within(query, step, wide), Code.REFUSED)


# Terms


def test_sensitivity_grows_with_the_number_of_sets() -> None:
    step = plan_study(BITS).step("correlations")
    epsilon = step.cost.epsilon
    assert epsilon == Fraction(5, 2)
    for sets in (((0,),), ((0, 1), (2, 3)), ((0, 1), (0, 1), (0, 1))):
        terms, cells = SumMarginals(sets).terms(step, BITS), sum(cells_of(sets, BITS))
        scale = 2 * len(sets) / epsilon
        assert terms.runs == (NoiseRun(cells, LaplaceLaw(2, scale, 2, 1)),)
        assert (terms.length, terms.low, terms.high) == (cells, 0, 1200)
        assert terms.noise_bound == terms.runs[0].law.bound(terms.length)
        assert LocalMarginals(sets).runs(step, BITS) == (NoiseRun(cells, LaplaceLaw(2, scale, 1, 0)),)


def test_terms_are_of_the_steps_kind() -> None:
    with pytest.raises(AssertionError):
        SumMarginals(SETS).terms(plan_study(NETWORK).step("update-north"), NETWORK)


def test_too_little_epsilon_is_refused() -> None:
    poor = make_study(schema=SCHEMA, roster=ROSTER, epsilon="1e-13", method={"name": "dp-subn"})
    (step,) = plan_study(poor).steps
    assert "too little of the study's epsilon" in refusal(lambda: LocalMarginals(((0,),)).runs(step, poor))
    assert "too little of the study's epsilon" in refusal(lambda: SumMarginals(((0,),)).terms(step, poor))


def test_another_question_has_another_hash() -> None:
    plan = plan_study(BITS)
    first, second = plan.step("correlations"), plan.step("parameters")
    asked: list[tuple[AnyQuery, Any]] = [
        (SumMarginals(((0, 1),)), first),
        (SumMarginals(((0, 2),)), first),
        (SumMarginals(((0, 1), (2,))), first),
        (SumMarginals(((2,), (0, 1))), first),
        (SumMarginals(((0, 1), (0, 1))), first),
        (SumMarginals(((0,), (1,))), first),
        (SumMarginals(((0, 1),)), second),
        (LocalMarginals(((0, 1),)), first),
        (LocalMarginals(((0, 2),)), first),
        (LocalMarginals(((0, 1), (2,))), first),
        (LocalMarginals(((2,), (0, 1))), first),
        (LocalMarginals(((0, 1),)), second),
    ]
    assert len({query_digest(query, step, BITS) for query, step in asked}) == len(asked)


def test_the_hash_of_a_sum_changes_with_how_it_is_packed() -> None:
    """The same sets of the same features; other lengths, ranges and key sizes pack otherwise."""
    query = SumMarginals(((0, 1),))
    others: list[dict[str, Any]] = [
        {},
        {"key_bits": 3072},
        {"schema": [categorical("a0", 2), categorical("a1", 5), *SCHEMA[2:]]},
        {"epsilon": "9"},
    ]
    digests = set()
    for changes in others:
        method = {"name": "dp-subn", "encoding": "vanilla", "parameter_cells": 24, "frontier_cells": 24}
        study = make_study(**{"schema": SCHEMA, "roster": ROSTER, "epsilon": "10", "method": method, **changes})
        digests.add(query_digest(query, plan_study(study).step("parameters"), study))
    assert len(digests) == len(others)


# Answers

LOCAL, SUM = LocalMarginals(((0, 1), (2,))), SumMarginals(((0, 1), (2,)))
CELLS = 6 + 4
COUNTS = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=CELLS, max_size=CELLS)


@given(COUNTS)
def test_counts_come_back_table_by_table_whatever_they_are(counts: list[int]) -> None:
    tables = [np.array(counts[:6]), np.array(counts[6:])]
    for query in (LOCAL, SUM):
        payload = query.write_answer(tables)
        back = query.read_answer(payload, NETWORK)
        assert [table.tolist() for table in back] == [counts[:6], counts[6:]]
        assert all(table.dtype == np.int64 for table in back)
    assert len(LOCAL.write_answer(tables)) in LOCAL.answer_bytes(NETWORK, "north")


@pytest.mark.parametrize("count", [0, -(2**63)])
def test_the_shortest_and_the_longest_answers_have_an_allowed_length(count: int) -> None:
    for cells, sets in ((2, ((0,),)), (48 * 40, ((0, 1, 2, 3),) * 40)):
        query = LocalMarginals(sets)
        payload = query.write_answer([np.full(cells, count, dtype=np.int64)])
        assert len(payload) in query.answer_bytes(NETWORK, "north")
        assert query.read_answer(payload, NETWORK, "north")
    assert 0 not in LOCAL.answer_bytes(NETWORK, "north")
    assert 10_000 not in LOCAL.answer_bytes(NETWORK, "north")


def counts_of(length: int) -> bytes:
    return pb.NoisyCounts(counts=range(length)).SerializeToString()


@pytest.mark.parametrize("length", [0, 1, CELLS - 1, CELLS + 1, 2 * CELLS])
def test_another_number_of_counts_is_refused(length: int) -> None:
    sentence = refusal(lambda: LOCAL.read_answer(counts_of(length), NETWORK, "north"), Code.CHECK_FAILED)
    assert sentence == "an answer does not have one count for each cell."


SOUND = counts_of(CELLS)
NOT_COUNTS = {
    "junk": b"\xff" * 12,
    "text": b"[0,1,2,3,4,5,6,7,8,9]",
    "half of it": SOUND[:-1],
    "more than it": SOUND + b"\x00",
    "an unknown field": SOUND + UNKNOWN_FIELD,
    "counts one by one": b"".join(bytes([0x08, 2 * i]) for i in range(CELLS)),
    "counts in two pieces": counts_of(5) + pb.NoisyCounts(counts=range(5, CELLS)).SerializeToString(),
    "a count in more bytes than it needs": bytes([0x0A, CELLS + 1, 0x80, 0x00, *(2 * i for i in range(1, CELLS))]),
    "counts as fractions": bytes([0x0A, 8 * CELLS]) + np.arange(CELLS, dtype="<f8").tobytes(),
}


@pytest.mark.parametrize("payload", NOT_COUNTS.values(), ids=NOT_COUNTS.keys())
def test_bytes_that_are_not_the_one_written_form_are_refused(payload: bytes) -> None:
    assert payload != SOUND
    assert refusal(lambda: LOCAL.read_answer(payload, NETWORK, "north"), Code.CHECK_FAILED)


def test_stored_sums_of_another_length_are_refused() -> None:
    sound = SUM.write_answer([np.arange(6), np.arange(4)])
    assert len(sound) == 8 * CELLS
    for payload in (b"", sound[:-1], sound + b"\0", sound[:-8], sound + bytes(8), SOUND):
        sentence = refusal(partial(SUM.read_answer, payload, NETWORK), Code.CHECK_FAILED)
        assert sentence == "the stored sums are not as many as were asked for."


def test_sums_are_split_and_joined_again() -> None:
    sums = np.arange(CELLS)
    tables = SUM.split(sums, NETWORK)
    assert [len(table) for table in tables] == [6, 4]
    assert np.array_equal(SUM.join(tables), sums)


# Laws


def test_laws_say_whom_they_protect_against() -> None:
    step = step_of(LOCAL, NETWORK)
    law = LOCAL.law(step, NETWORK)
    assert law is not None
    assert law["label"] == step.label
    own = {"numbers": 10, "law": "discrete Laplace", "scale": str(4 / step.cost.epsilon), "sensitivity": "2"}
    assert (law["runs"], law["protects_against"]) == ([own], "anyone")
    step = step_of(SUM, NETWORK)
    law = SUM.law(step, NETWORK)
    assert law is not None
    (run,) = SUM.terms(step, NETWORK).runs
    assert law["runs"] == [run.to_json()]
    assert (run.law.to_json()["scale"], run.law.to_json()["r"]) == (str(4 / step.cost.epsilon), "1")
    assert law["protects_against"] == "anyone, and the curator together with up to 1 of 2 parties"
