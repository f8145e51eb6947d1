"""Every query, whatever its kind: both its forms read back, give the same Q, and hold nothing but the question."""

from dataclasses import asdict, replace
from functools import partial
from typing import Any

import pytest

from synod.common.crypto import packing
from synod.common.crypto.canonical import canonical_bytes
from synod.common.privacy.cost import Cost
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.base import check_within
from synod.common.protocol.queries.marginals import SumMarginals
from synod.common.protocol.queries.moments import SumMoments
from synod.common.protocol.queries.parsing import (
    QUERIES,
    AnyQuery,
    check_feasible,
    parse_query,
    query_digest,
    read_query,
)
from synod.common.protocol.steps import Limit, QueryKind
from synod.common.runtime.errors import Code
from synod.common.study.study import Study
from synod.v1 import query_pb2 as pb
from tests.support.keys import pinned
from tests.support.queries import BITS, EXAMPLES, MOMENTS, NETWORK, SCHEMA, refusal, step_of, with_unknown_fields
from tests.support.studies import make_roster, make_study

UNKNOWN = "the query is not one that this version answers."
every_query = pytest.mark.parametrize(("query", "study"), EXAMPLES.values(), ids=EXAMPLES.keys())


def test_every_kind_has_its_class_its_message_and_its_example() -> None:
    kinds = {kind.value for kind in QueryKind}
    assert {kind.value for kind in QUERIES} == kinds == set(EXAMPLES)
    assert {field.name.replace("_", "-") for field in pb.Query.DESCRIPTOR.oneofs_by_name["kind"].fields} == kinds
    assert all(query.kind is kind for kind, query in QUERIES.items())


# Both forms


@every_query
def test_queries_come_back_from_their_json(query: AnyQuery, study: Study) -> None:
    again = read_query(query.to_json(), study)
    assert type(again) is type(query)
    assert canonical_bytes(again.to_json()) == canonical_bytes(query.to_json())
    assert query.to_json()["kind"] == query.kind.value


@every_query
def test_queries_come_back_from_their_message(query: AnyQuery, study: Study) -> None:
    travelled = pb.Query.FromString(query.to_proto().SerializeToString())
    again = parse_query(travelled, study)
    assert type(again) is type(query)
    assert canonical_bytes(again.to_json()) == canonical_bytes(query.to_json())
    assert again.to_proto() == query.to_proto()
    assert travelled.WhichOneof("kind") == query.kind.value.replace("-", "_")


@every_query
def test_q_is_the_same_from_either_form(query: AnyQuery, study: Study) -> None:
    step = step_of(query, study)
    own = query_digest(query, step, study)
    assert query_digest(parse_query(query.to_proto(), study), step, study) == own
    assert query_digest(read_query(query.to_json(), study), step, study) == own
    assert len(own) == 32


@every_query
def test_q_does_not_depend_on_how_a_message_was_merged(query: AnyQuery, study: Study) -> None:
    """An empty message of the same kind before it changes nothing; parts are merged in the same way."""
    empty = pb.Query()
    getattr(empty, query.kind.value.replace("-", "_")).SetInParent()
    joined = pb.Query.FromString(empty.SerializeToString() + query.to_proto().SerializeToString())
    step = step_of(query, study)
    assert query_digest(parse_query(joined, study), step, study) == query_digest(query, step, study)


def test_q_does_not_depend_on_how_numbers_are_packed() -> None:
    """`features` one by one, as an older encoder would write them."""
    features = bytes([0x08, 0, 0x08, 1])
    sets = bytes([0x0A, len(features)]) + features
    unpacked = bytes([0x0A, len(sets)]) + sets
    query = SumMarginals(((0, 1),))
    assert unpacked != query.to_proto().SerializeToString()
    again = parse_query(pb.Query.FromString(unpacked), NETWORK)
    assert again == query


# What is refused


def test_a_message_of_no_kind_is_refused() -> None:
    for study in (NETWORK, BITS, MOMENTS):
        assert refusal(partial(parse_query, pb.Query(), study)) == UNKNOWN


def test_a_kind_that_this_version_does_not_have_is_refused() -> None:
    (unknown, *_) = with_unknown_fields(pb.Query())
    assert isinstance(unknown, pb.Query)
    assert refusal(lambda: parse_query(unknown, NETWORK)) == UNKNOWN


@every_query
def test_unknown_fields_are_refused_in_every_place(query: AnyQuery, study: Study) -> None:
    altered = list(with_unknown_fields(query.to_proto()))
    assert len(altered) >= 2
    for message in altered:
        assert isinstance(message, pb.Query)
        assert refusal(partial(parse_query, message, study)) == UNKNOWN


@every_query
def test_a_missing_key_is_refused(query: AnyQuery, study: Study) -> None:
    for key in query.to_json():
        data = {name: value for name, value in query.to_json().items() if name != key}
        sentence = refusal(partial(read_query, data, study))
        assert sentence == UNKNOWN


@pytest.mark.parametrize(
    "data",
    [
        None, 5, "sum-marginals", "sum-moments", [], {}, {"kind": "sum-rows"}, {"kind": ["sum-marginals"]},
        {"kind": None}, {"kind": 1}, {"kind": "local-marginals"}, {"kind": "SUM_MOMENTS"}, {"kind": {}},
    ],
)  # fmt: skip
def test_what_is_no_query_is_refused(data: Any) -> None:
    for study in (NETWORK, MOMENTS):
        assert refusal(partial(read_query, data, study)) == UNKNOWN


@pytest.mark.parametrize("kind", ["sum-moments", "synthesize"])
def test_queries_about_numbers_are_refused_where_numbers_are_binned(kind: str) -> None:
    query, _ = EXAMPLES[kind]
    for refused_form in (
        lambda: parse_query(query.to_proto(), NETWORK),
        lambda: read_query(query.to_json(), NETWORK),
    ):
        assert refusal(refused_form) == "the query is of another method than the study's."


@every_query
def test_a_query_of_another_method_is_never_of_a_planned_kind(query: AnyQuery, study: Study) -> None:
    other = MOMENTS if study is NETWORK else NETWORK
    for step in plan_study(other).steps:
        sentence = refusal(partial(check_within, query, step, other), Code.REFUSED)
        assert sentence == "the query is not of the kind that the plan calls for."


# Limits


@every_query
def test_a_query_is_within_a_limit_of_its_size_and_no_smaller_one(query: AnyQuery, study: Study) -> None:
    size = query.size(study)
    step = replace(step_of(query, study), limit=size)
    check_within(query, step, study)
    for part, number in counted(size).items():
        check_within(query, replace(step, limit=replace(size, **{part: number + 1})), study)
        if number:
            smaller = replace(step, limit=replace(size, **{part: number - 1}))
            sentence = refusal(partial(check_within, query, smaller, study), Code.REFUSED)
            assert sentence == "the query is larger than the approved plan allows."


def counted(size: Limit) -> dict[str, Any]:
    """Without parents and options, which only a query of parents has, and which are compared with the limit alone."""
    return {part: number for part, number in asdict(size).items() if part not in ("parents", "options", "score")}


@every_query
def test_a_query_asks_for_the_score_of_its_step(query: AnyQuery, study: Study) -> None:
    size = query.size(study)
    other = replace(step_of(query, study), limit=replace(size, score="I"))
    sentence = refusal(partial(check_within, query, other, study), Code.REFUSED)
    assert sentence == "the query asks for another score than the approved plan."


@every_query
def test_a_query_of_the_largest_size_is_no_longer_than_what_is_read(query: AnyQuery, study: Study) -> None:
    step = replace(step_of(query, study), limit=query.size(study))
    assert 0 < query.to_proto().ByteSize() <= type(query).message_bytes(step, study)


@every_query
def test_a_query_is_of_its_steps_kind(query: AnyQuery, study: Study) -> None:
    step = replace(step_of(query, study), limit=query.size(study))
    for kind in set(QueryKind) - {query.kind}:
        other = replace(step, kind=kind)
        sentence = refusal(partial(check_within, query, other, study), Code.REFUSED)
        assert sentence == "the query is not of the kind that the plan calls for."


def test_every_part_of_a_limit_is_the_size_of_some_query() -> None:
    sizes = [asdict(query.size(study)) for query, study in EXAMPLES.values()]
    found = {part for size in sizes for part, number in size.items() if number}
    assert found == set(asdict(Limit(0))) - {"parents", "options"}


# Q changes with every part of what an answer depends on


def changed_roster(index: int, **changes: Any) -> list[dict[str, Any]]:
    entries = make_roster(rows=(1, 2, 4))
    entries[index] |= changes
    return entries


BINDING: dict[str, dict[str, Any]] = {
    "no collusion": {"collusion": 0},
    "more collusion": {"collusion": 2},
    "a name": {"roster": changed_roster(0, name="east")},
    "a key": {"roster": changed_roster(1, key=pinned(99))},
    "a row": {"roster": changed_roster(2, rows=5)},
    "the order": {"roster": list(reversed(changed_roster(0)))},
    "fewer parties": {"roster": changed_roster(0)[:2]},
}


def digest(query: AnyQuery, label: str, **changes: Any) -> bytes:
    study = make_study(**{"rows": (1, 2, 4), "schema": SCHEMA, **changes})
    return query_digest(query, plan_study(study).step(label), study)


@pytest.mark.parametrize("changes", BINDING.values(), ids=BINDING.keys())
def test_q_changes_with_collusion_and_every_entry_of_the_roster(changes: dict[str, Any]) -> None:
    cells = {"parameter_cells": 4, "frontier_cells": 4}
    network: dict[str, Any] = {"method": {"name": "dp-subn", "encoding": "vanilla", **cells}}
    joint: dict[str, Any] = {"method": {**network["method"], "update": "joint"}}
    parents, _ = EXAMPLES["choose-parents"]
    local, _ = EXAMPLES["local-marginals"]
    rows, _ = EXAMPLES["synthesize"]
    asked: list[tuple[AnyQuery, str, dict[str, Any]]] = [
        (SumMoments(), "moments", {}),
        (rows, "rows", {}),
        (SumMarginals(((0, 1),)), "parameters", network),
        (SumMarginals(((0, 1),)), "update", joint),
        (parents, "initialize-harbour", network),
        (local, "update-harbour", network),
    ]
    for query, label, method in asked:
        assert digest(query, label, **method) == digest(query, label, **method)
        assert digest(query, label, **method, **changes) != digest(query, label, **method)


@every_query
def test_q_changes_with_the_steps_cost(query: AnyQuery, study: Study) -> None:
    step = step_of(query, study)
    dearer = replace(step, cost=step.cost + Cost.pure(study.epsilon))
    assert query_digest(query, dearer, study) != query_digest(query, step, study)


def test_no_two_kinds_have_the_same_q() -> None:
    step = plan_study(NETWORK).step("update-north")
    local, _ = EXAMPLES["local-marginals"]
    parents, _ = EXAMPLES["choose-parents"]
    asked = [local, parents, EXAMPLES["synthesize"][0]]
    assert len({query_digest(query, step, NETWORK) for query in asked}) == 3


# Whole studies


@pytest.mark.parametrize("study", [NETWORK, BITS, MOMENTS], ids=["network", "bits", "moments"])
def test_sound_studies_are_feasible(study: Study) -> None:
    check_feasible(study)


@pytest.mark.parametrize("method", ["hpdp-dp", "dp-subn", "dp-ccbn", "independent", "privbayes"])
@pytest.mark.parametrize("epsilon", ["1e-13", "1e-30"])
def test_too_little_epsilon_is_refused_before_anybody_approves(method: str, epsilon: str) -> None:
    study = make_study(schema=SCHEMA, roster=make_roster(), epsilon=epsilon, method={"name": method})
    assert refusal(lambda: check_feasible(study)) == "a step has too little of the study's epsilon for its sensitivity."


@pytest.mark.parametrize("study", [NETWORK, MOMENTS], ids=["network", "moments"])
def test_sums_that_do_not_fit_their_slots_are_refused_before_anybody_approves(
    monkeypatch: pytest.MonkeyPatch, study: Study
) -> None:
    monkeypatch.setattr(packing, "MAX_WIDTH_BITS", 10)
    assert "needs more than 10 bits with its noise" in refusal(partial(check_feasible, study))
