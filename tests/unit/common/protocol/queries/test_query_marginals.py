"""Counts of sets of features: which sets are sound, their terms and sizes, and answers with a count for each cell."""

from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import combinations, product
from math import prod
from typing import Any

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from synod.common.privacy.cost import Cost
from synod.common.privacy.laws import TABLE, GaussianLaw, LaplaceLaw, NoiseLaw
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.base import _noisiest, check_within
from synod.common.protocol.queries.marginals import (
    LARGEST_SHARE,
    LARGEST_WEIGHT,
    Grouping,
    LocalMarginals,
    Sets,
    SumMarginals,
    Tables,
    Weights,
    cells_of,
)
from synod.common.protocol.queries.noise_runs import NoiseRun, sample_runs
from synod.common.protocol.queries.parsing import AnyQuery, parse_query, query_digest, read_query
from synod.common.protocol.steps import Limit, QueryKind, Step
from synod.common.runtime.errors import Code, SynodError
from synod.v1 import query_pb2 as pb
from tests.support.keys import seeded
from tests.support.queries import BITS, NETWORK, ROSTER, SCHEMA, SIZES, UNKNOWN_FIELD, refusal, step_of
from tests.support.studies import categorical, make_study

VANILLA = {"name": "dp-subn", "encoding": "vanilla"}
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
    assert (run.laws[0].to_json()["scale"], run.laws[0].to_json()["r"]) == (str(4 / step.cost.epsilon), "1")
    assert law["protects_against"] == "anyone, and the curator together with up to 1 of 2 parties"


# Groupings

GROUPED = SumMarginals(
    ((0, 4), (1, 5), (2,), (4, 5)), (Grouping(1, (0, 1, 0)), Grouping(2, (0, 1, 1, 2))), (1, 2, 3, 4)
)
"""Features of sizes 2, 3, 4 and 2; the entries 4 and 5 have two and three groups."""


@st.composite
def groupings(draw: st.DrawFn, sizes: tuple[int, ...] = SIZES) -> tuple[Grouping, ...]:
    found = []
    for feature in sorted(draw(st.sets(st.integers(0, len(sizes) - 1)))):
        groups = draw(st.lists(st.integers(0, sizes[feature] - 1), min_size=sizes[feature], max_size=sizes[feature]))
        numbers = {group: place for place, group in enumerate(dict.fromkeys(groups))}
        if len(numbers) > 1:
            found.append(Grouping(feature, tuple(numbers[group] for group in groups)))
    return tuple(found)


@st.composite
def grouped_tables(draw: st.DrawFn) -> LocalMarginals:
    """Any sets of features, each as it is or grouped, with any shares or none."""
    used = draw(groupings())
    places = {one.feature: len(SIZES) + place for place, one in enumerate(used)}
    sets = [
        tuple(places[f] if f in places and draw(st.booleans()) else f for f in sorted(features))
        for features in draw(st.lists(st.sets(st.integers(0, 3), min_size=1), min_size=1, max_size=5))
    ]
    share = st.integers(1, LARGEST_SHARE)
    shares = draw(st.one_of(st.just([]), st.lists(share, min_size=len(sets), max_size=len(sets))))
    return LocalMarginals(tuple(sets), used, tuple(shares))


@given(grouped_tables())
def test_any_groupings_and_shares_come_back_from_both_forms(local: LocalMarginals) -> None:
    for query in (local, SumMarginals(local.sets, local.groupings, local.shares)):
        assert read_query(query.to_json(), NETWORK) == query
        assert parse_query(pb.Query.FromString(query.to_proto().SerializeToString()), NETWORK) == query
        step = replace(step_of(query, NETWORK), limit=query.size(NETWORK))
        assert query.to_proto().ByteSize() <= type(query).message_bytes(step, NETWORK)


def test_the_longest_message_is_read() -> None:
    """Many features, groupings of all of them, shares of the most digits, weights of all values."""
    wide = make_study(schema=[categorical(f"x{i}", 300) for i in range(40)], method=VANILLA)
    used = tuple(Grouping(i, tuple(range(300))) for i in range(40))
    sets = tuple((40 + i, 40 + i + 1, 40 + i + 2) for i in range(38)) * 20
    weights = tuple(Weights(entries[-1], (LARGEST_WEIGHT,) * 300) for entries in sets)
    shares = (LARGEST_SHARE,) * len(sets)
    for query in (SumMarginals(sets, used, shares, weights), LocalMarginals(sets, used, (), weights)):
        query.check(wide)
        step = replace(step_of(query, wide), limit=query.size(wide))
        assert query.to_proto().ByteSize() <= type(query).message_bytes(step, wide) < 2 * query.to_proto().ByteSize()


def test_the_canonical_form_leaves_out_what_is_empty() -> None:
    assert SumMarginals(((0,),)).to_json() == {"kind": "sum-marginals", "sets": [[0]]}
    assert GROUPED.to_json() == {
        "kind": "sum-marginals",
        "sets": [[0, 4], [1, 5], [2], [4, 5]],
        "groupings": [[1, [0, 1, 0]], [2, [0, 1, 1, 2]]],
        "shares": [1, 2, 3, 4],
    }
    for key in ("groupings", "shares"):
        assert refusal(partial(read_query, {"kind": "sum-marginals", "sets": [[0]], key: []}, NETWORK))


NOT_GROUPINGS = "the query's groupings are not groupings of the study's features."
NOT_SHARES = "the query's shares are not one for each table."
BROKEN: dict[str, tuple[Sets, list[tuple[int, tuple[int, ...]]], tuple[int, ...], str]] = {
    "1 a feature that there is not": (((0,),), [(4, (0, 1))], (), NOT_GROUPINGS),
    "1 a feature beyond any": (((0,),), [(2**32 - 1, (0, 1))], (), NOT_GROUPINGS),
    "1 too few values": (((0,),), [(1, (0, 1))], (), NOT_GROUPINGS),
    "1 too many values": (((0,),), [(1, (0, 1, 0, 1))], (), NOT_GROUPINGS),
    "1 no values": (((0,),), [(1, ())], (), NOT_GROUPINGS),
    "1 one group": (((0,),), [(1, (0, 0, 0))], (), NOT_GROUPINGS),
    "1 a group that is not used": (((0,),), [(1, (0, 2, 2))], (), NOT_GROUPINGS),
    "1 not numbered by first occurrence": (((0,),), [(1, (1, 0, 0))], (), NOT_GROUPINGS),
    "1 a group beyond any": (((0,),), [(1, (0, 2**32 - 1, 1))], (), NOT_GROUPINGS),
    "1 a feature twice": (((0,),), [(1, (0, 1, 1)), (1, (0, 1, 0))], (), NOT_GROUPINGS),
    "1 the same twice": (((0,),), [(1, (0, 1, 1)), (1, (0, 1, 1))], (), NOT_GROUPINGS),
    "1 out of order": (((0,),), [(2, (0, 1, 1, 1)), (1, (0, 1, 1))], (), NOT_GROUPINGS),
    "2 a grouping that there is not": (((0, 5),), [(1, (0, 1, 1))], (), NOT_SETS),
    "2 a feature and its groups": (((1, 4),), [(1, (0, 1, 1))], (), NOT_SETS),
    "2 a grouping twice": (((4, 4),), [(1, (0, 1, 1))], (), NOT_SETS),
    "2 a grouping before an earlier feature": (((4, 0),), [(1, (0, 1, 1))], (), NOT_SETS),
    "2 in the order of entries and not of features": (((2, 4),), [(1, (0, 1, 1))], (), NOT_SETS),
    "3 too few shares": (((0,), (1,)), [], (1,), NOT_SHARES),
    "3 too many shares": (((0,),), [], (1, 1), NOT_SHARES),
    "3 a share of nothing": (((0,), (1,)), [], (1, 0), NOT_SHARES),
    "3 too large a share": (((0,), (1,)), [], (1, 2**20 + 1), NOT_SHARES),
}


@pytest.mark.parametrize(("sets", "used", "shares", "sentence"), BROKEN.values(), ids=BROKEN.keys())
def test_each_check_broken_once(
    sets: Sets, used: list[tuple[int, tuple[int, ...]]], shares: tuple[int, ...], sentence: str
) -> None:
    for kind in (SumMarginals, LocalMarginals):
        query = kind(sets, tuple(Grouping(*one) for one in used), shares)
        assert refusal(partial(query.check, NETWORK)) == sentence
        assert refusal(partial(read_query, query.to_json(), NETWORK)) == sentence
        assert refusal(partial(parse_query, query.to_proto(), NETWORK)) == sentence


def test_bits_have_no_groups() -> None:
    query = SumMarginals(((6,),), (Grouping(0, (0, 1)),))
    assert refusal(partial(parse_query, query.to_proto(), BITS)) == (
        "the query groups the values of features that are bits or levels."
    )


BAD_PARTS: dict[str, dict[str, Any]] = {
    "a group below zero": {"groupings": [[1, [0, -1, -1]]]},
    "a feature below zero": {"groupings": [[-3, [0, 1, 1]]]},
    "a group as truth": {"groupings": [[1, [False, True, True]]]},
    "a group as a fraction": {"groupings": [[1, [0.0, 1.0, 1.0]]]},
    "a group beyond any": {"groupings": [[1, [0, 10**400, 1]]]},
    "a grouping of three": {"groupings": [[1, [0, 1, 1], 0]]},
    "a grouping of one": {"groupings": [[1]]},
    "a flat grouping": {"groupings": [1, 0, 1, 1]},
    "a mapping": {"groupings": {"1": [0, 1, 1]}},
    "no groupings": {"groupings": None},
    "a share below zero": {"shares": [-1]},
    "a share as truth": {"shares": [True]},
    "a share as a text": {"shares": ["1"]},
    "a share beyond any": {"shares": [10**400]},
    "shares as a number": {"shares": 1},
    "no shares": {"shares": None},
    "no tables with weights": {"weights": []},
    "none for the only table": {"weights": [None]},
    "weights of nothing": {"weights": [[]]},
    "weights without an entry": {"weights": [[[1, 2]]]},
    "weights and more": {"weights": [[0, [1, 2], 3]]},
    "weights as truth": {"weights": [[0, [True, True]]]},
    "weights as fractions": {"weights": [[0, [1.0, 2.0]]]},
    "weights below zero": {"weights": [[0, [-1, 2]]]},
    "weights of an entry below zero": {"weights": [[-4, [1, 2]]]},
    "weights of an entry as truth": {"weights": [[False, [1, 2]]]},
    "flat weights": {"weights": [0, 1, 2]},
    "weights as a mapping": {"weights": {"0": [1, 2]}},
    "no weights": {"weights": None},
    "one key more": {"margins": []},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", BAD_PARTS.values(), ids=BAD_PARTS.keys())
def test_bad_groupings_and_shares_are_refused(kind: QueryKind, change: dict[str, Any]) -> None:
    data = {"kind": kind.value, "sets": [[0]]}
    assert read_query(data, NETWORK)
    assert refusal(partial(read_query, {**data, **change}, NETWORK))


def test_cells_are_products_of_groups() -> None:
    GROUPED.check(NETWORK)
    assert GROUPED.cells(NETWORK) == [4, 9, 4, 6]
    assert GROUPED.size(NETWORK) == Limit(numbers=23, tables=4, cells=9)
    assert GROUPED.entry_features(NETWORK) == (0, 1, 2, 3, 1, 2)
    assert [len(table) for table in GROUPED.split(np.arange(23), NETWORK)] == [4, 9, 4, 6]


def place_of(query: Tables, entries: tuple[int, ...], row: tuple[int, ...]) -> tuple[int, ...]:
    """The slow twin: in which cell of a table a row lies."""
    grouped = [one.groups[row[one.feature]] for one in query.groupings]
    return tuple([*row, *grouped][entry] for entry in entries)


@settings(max_examples=40, deadline=None)
@given(grouped_tables())
def test_no_two_rows_differ_by_more_than_two_in_a_table(query: LocalMarginals) -> None:
    """Brute force over all pairs of rows: two cells of a table change by 1, or none; and some two rows reach it."""
    rows = list(product(*(range(size) for size in SIZES)))
    for entries in query.sets:
        cells = [place_of(query, entries, row) for row in rows]
        assert len(set(cells)) == prod(query.entry_sizes(NETWORK)[entry] for entry in entries)
        changes = {2 * (a != b) for a, b in combinations(cells, 2)}
        assert max(changes) == TABLE.absolute == TABLE.squared == 2


# Shares


def laws_of(query: SumMarginals | LocalMarginals, step: Step) -> list[NoiseLaw]:
    """The law of each integer, in order."""
    return [run.laws[0] for run in query.runs(step, NETWORK) for _ in range(run.numbers)]


def costs_of(query: SumMarginals | LocalMarginals, step: Step) -> list[Fraction]:
    """What each table costs by the noise on its cells, each of which must have the same: 2 / scale, or 2 / (2 s^2 m)
    where m shares of parameter s^2 protect.
    """
    laws, costs, start = laws_of(query, step), [], 0
    for cells in query.cells(NETWORK):
        (law,) = set(laws[start : start + cells])
        start += cells
        if isinstance(law, LaplaceLaw):
            costs.append(2 / law.scale)
        else:
            assert isinstance(law, GaussianLaw)
            costs.append(2 / (2 * law.square * (law.parties - law.threshold)))
    assert start == len(laws) == query.size(NETWORK).numbers
    return costs


@given(grouped_tables(), st.booleans(), st.fractions(Fraction(1, 1000), 10))
def test_the_parts_of_all_tables_cost_what_the_step_costs(
    local: LocalMarginals, is_sum: bool, budget: Fraction
) -> None:
    query = SumMarginals(local.sets, local.groupings, local.shares) if is_sum else local
    shares = query.shares or (1,) * len(query.sets)
    whole = sum(shares)
    if max(shares) / min(shares) > 1000:
        return
    step = replace(step_of(query, NETWORK), cost=Cost.pure(budget))
    assert costs_of(query, step) == [budget * share / whole for share in shares]
    assert sum(costs_of(query, step)) == budget
    step = replace(step, cost=Cost.concentrated(budget))
    costs = costs_of(query, step)
    assert sum(costs) < budget
    for cost, share in zip(costs, shares, strict=True):
        assert cost < budget * share / whole


def test_rho_is_used_up_but_for_rounding() -> None:
    step = replace(step_of(GROUPED, NETWORK), cost=Cost.concentrated(Fraction(1, 100)))
    for cost, share in zip(costs_of(GROUPED, step), (1, 2, 3, 4), strict=True):
        assert Fraction(share, 1000) * Fraction(999, 1000) < cost < Fraction(share, 1000)


@given(grouped_tables())
def test_equal_shares_are_no_shares(local: LocalMarginals) -> None:
    for cost in (Cost.pure(Fraction(1)), Cost.concentrated(Fraction(1, 7))):
        for kind in (SumMarginals, LocalMarginals):
            none = kind(local.sets, local.groupings)
            step = replace(step_of(none, NETWORK), cost=cost)
            for share in (1, 5):
                even = kind(local.sets, local.groupings, (share,) * len(local.sets))
                assert even.runs(step, NETWORK) == none.runs(step, NETWORK)
            assert len(none.runs(step, NETWORK)) == 1


def test_a_table_with_a_larger_share_has_less_noise() -> None:
    step = step_of(GROUPED, NETWORK)
    assert [run.numbers for run in GROUPED.runs(step, NETWORK)] == [4, 9, 4, 6]
    variances = GROUPED.variances(step, NETWORK)
    assert variances == sorted(variances, reverse=True)
    assert variances == [law.laws[0].variance for law in GROUPED.runs(step, NETWORK)]
    terms = GROUPED.terms(step, NETWORK)
    assert terms.noise_bound == max(run.laws[0].bound(23) for run in terms.runs) == terms.runs[0].laws[0].bound(23)
    assert terms.variance == pytest.approx(np.average(variances, weights=[4, 9, 4, 6]))
    local = LocalMarginals(GROUPED.sets, GROUPED.groupings, GROUPED.shares)
    step = step_of(local, NETWORK)
    assert local.variances(step, NETWORK) == [run.laws[0].variance for run in local.runs(step, NETWORK)]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.fractions(Fraction(1, 100), 10**6), min_size=2, max_size=6), st.integers(1, 5), st.integers(0, 4))
def test_the_noisiest_law_bounds_all(scales: list[Fraction], parties: int, threshold: int) -> None:
    """So a sum of a thousand laws needs one bound, and not a thousand."""
    threshold = min(threshold, parties - 1)
    pure = [LaplaceLaw(2, scale, parties, threshold) for scale in scales]
    rho = [GaussianLaw(2, scale + 8, parties, threshold) for scale in scales]
    for laws in (pure, rho):
        bounds = [law.bound(1000) for law in laws]
        assert max(law.bound(1000) for law in _noisiest(laws)) == max(bounds)


def test_runs_of_noise_are_drawn_each_by_its_law() -> None:
    runs = [NoiseRun(4000, LaplaceLaw(2, scale, 1, 0)) for scale in (Fraction(1), Fraction(30), Fraction(5))]
    drawn = np.split(sample_runs(runs, coins=seeded(1)), [4000, 8000])
    for noise, run in zip(drawn, runs, strict=True):
        assert noise.var() / run.law.variance == pytest.approx(1, abs=0.25)


def test_shares_and_groupings_change_the_hash() -> None:
    sets, used = ((0, 4), (2,)), (Grouping(1, (0, 1, 0)),)
    step = step_of(GROUPED, NETWORK)
    asked = [
        SumMarginals(sets, used),
        SumMarginals(sets, used, (1, 1)),
        SumMarginals(sets, used, (1, 2)),
        SumMarginals(sets, used, (2, 1)),
        SumMarginals(sets, (Grouping(1, (0, 1, 1)),)),
        SumMarginals(sets, (*used, Grouping(2, (0, 0, 0, 1)))),
        SumMarginals(((0, 1), (2,)), used),
        SumMarginals(((0, 1), (2,))),
    ]
    assert len({query_digest(query, step, NETWORK) for query in asked}) == len(asked)


def test_many_tables_have_their_parts_at_once() -> None:
    """Linear in the number of tables: quadratic work would take minutes."""
    tables = Tables(((0,),) * 100_000, (), tuple(range(1, 100_001)))
    assert sum(tables.parts()[:10]) == Fraction(55, 100_000 * 100_001 // 2)


@settings(max_examples=200)
@given(st.binary(max_size=40), st.booleans())
def test_any_bytes_are_a_query_or_refused(payload: bytes, is_sum: bool) -> None:
    message = pb.Query()
    part = message.sum_marginals if is_sum else message.local_marginals
    part.SetInParent()
    try:
        part.MergeFromString(payload)
    except DecodeError:
        return
    try:
        query = parse_query(message, NETWORK)
    except SynodError:
        return
    assert query.to_proto().SerializeToString() == message.SerializeToString()
