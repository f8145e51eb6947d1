"""The queries about features: their JSON form, every bad form that is refused, their terms and their limits."""

from copy import deepcopy
from fractions import Fraction
from typing import Any

import pytest

from synod.common.crypto.canonical import canonical_bytes
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries import check_answerable, local_scale, sum_terms
from synod.common.protocol.queries.base import Query
from synod.common.protocol.queries.marginals import LocalMarginals, SumMarginals, cells_of
from synod.common.protocol.queries.moments import SumMoments, moment_design
from synod.common.protocol.queries.parents import ChooseParents
from synod.common.protocol.queries.parsing import parse_query, query_digest
from synod.common.protocol.steps import QueryKind
from synod.common.runtime.errors import Code, SynodError
from tests.support.studies import categorical, make_roster, make_study

SCHEMA = [categorical("a", 2), categorical("b", 3), categorical("c", 4), categorical("d", 2)]
ROSTER = make_roster(("north", "harbour"), (400, 800))
STUDY = make_study(schema=SCHEMA, roster=ROSTER, epsilon="10", method={"name": "dp-subn", "encoding": "vanilla"})
BITS = make_study(
    schema=SCHEMA, roster=ROSTER, epsilon="10", method={"name": "dp-subn", "split": ["0.25", "0.1", "0.25", "0.4"]}
)
CHOICE = ChooseParents(placed=(0, 2), candidates=((1, (0, 2, 3)), (3, ())), count=2, max_cells=24, score="R")
QUERIES: list[Query] = [SumMarginals(((0, 1, 3), (2,))), LocalMarginals(((1, 2), (1, 2), (0,))), CHOICE]


@pytest.mark.parametrize("query", QUERIES)
def test_queries_come_back_from_their_json(query: Query) -> None:
    assert parse_query(query.to_json(), STUDY) == query
    assert canonical_bytes(parse_query(query.to_json(), STUDY).to_json()) == canonical_bytes(query.to_json())


BAD_SETS: dict[str, Any] = {
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


@pytest.mark.parametrize("kind", [QueryKind.SUM_MARGINALS, QueryKind.LOCAL_MARGINALS])
@pytest.mark.parametrize("sets", BAD_SETS.values(), ids=BAD_SETS.keys())
def test_bad_sets_are_refused(kind: QueryKind, sets: Any) -> None:
    with pytest.raises(SynodError) as caught:
        parse_query({"kind": kind.value, "sets": sets}, STUDY)
    assert caught.value.code is Code.INVALID


BAD_CHOICES: dict[str, dict[str, Any]] = {
    "nothing placed": {"placed": []},
    "placed twice": {"placed": [0, 0]},
    "placed out of order": {"placed": [2, 0]},
    "placed beyond": {"placed": [0, 4]},
    "placed and open": {"placed": [0, 1, 2]},
    "placed is no list": {"placed": 0},
    "none open": {"candidates": []},
    "open twice": {"candidates": [[1, [0]], [1, [2]]]},
    "open out of order": {"candidates": [[3, [0]], [1, [0]]]},
    "open beyond": {"candidates": [[1, [0]], [4, [0]]]},
    "open below zero": {"candidates": [[-1, [0]], [1, [0]]]},
    "candidates without parents": {"candidates": [[1], [3]]},
    "candidates that are no pairs": {"candidates": [1, 3]},
    "candidates as a mapping": {"candidates": {"1": [0], "3": []}},
    "parents out of order": {"candidates": [[1, [2, 0]], [3, []]]},
    "parents twice": {"candidates": [[1, [0, 0]], [3, []]]},
    "parents beyond": {"candidates": [[1, [4]], [3, []]]},
    "parents below zero": {"candidates": [[1, [-1]], [3, []]]},
    "parents as texts": {"candidates": [[1, ["0"]], [3, []]]},
    "no draw": {"count": 0},
    "a negative draw": {"count": -1},
    "more draws than open": {"count": 3},
    "a fraction of a draw": {"count": 1.0},
    "a true draw": {"count": True},
    "no cells": {"max_cells": 0},
    "cells as text": {"max_cells": "24"},
    "another score": {"score": "Z"},
    "an unresolved score": {"score": "auto"},
    "a score that is no text": {"score": ["R"]},
    "F for a feature that is not binary": {"score": "F"},
}


@pytest.mark.parametrize("changes", BAD_CHOICES.values(), ids=BAD_CHOICES.keys())
def test_bad_choices_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(SynodError) as caught:
        parse_query(deepcopy(CHOICE.to_json()) | changes, STUDY)
    assert caught.value.code is Code.INVALID


@pytest.mark.parametrize("query", QUERIES)
def test_a_missing_key_is_refused(query: Query) -> None:
    for key in query.to_json():
        data = {name: value for name, value in query.to_json().items() if name != key}
        with pytest.raises(SynodError, match="not one that this version answers"):
            parse_query(data, STUDY)


@pytest.mark.parametrize("data", [None, 5, "sum-marginals", [], {}, {"kind": "sum-rows"}, {"kind": ["sum-marginals"]}])
def test_what_is_no_query_is_refused(data: Any) -> None:
    with pytest.raises(SynodError, match="not one that this version answers"):
        parse_query(data, STUDY)


def test_f_is_for_binary_features() -> None:
    query = ChooseParents((0,), ((1, (0,)), (2, (0,))), 1, 4, "F")
    assert parse_query(query.to_json(), BITS) == query
    # In STUDY features 0 and 3 are binary; parents may have any size.
    mixed = ChooseParents((1, 2), ((0, (1,)), (3, (1, 2))), 1, 24, "F")
    assert parse_query(mixed.to_json(), STUDY) == mixed


@pytest.mark.parametrize("query", QUERIES)
def test_queries_of_another_method_are_refused(query: Query) -> None:
    with pytest.raises(SynodError, match="of another method"):
        parse_query(query.to_json(), make_study(schema=SCHEMA))
    with pytest.raises(SynodError, match="of another method"):
        parse_query(SumMoments().to_json(), STUDY)


def test_cells_are_products_of_sizes() -> None:
    assert cells_of(((0, 1, 3), (2,), (0, 1, 2, 3)), STUDY) == [12, 4, 48]
    assert cells_of(((0, 1, 3), (2,)), BITS) == [8, 2]


def test_each_limit_holds_to_the_number() -> None:
    hpdp = make_study(schema=SCHEMA)
    for query, study, numbers in (
        (SumMarginals(((0, 1, 3), (2,))), STUDY, 16),
        (LocalMarginals(((0, 1, 3), (2,), (2,))), STUDY, 20),
        (CHOICE, STUDY, 24),
        (SumMoments(), hpdp, moment_design(hpdp).length),
    ):
        check_answerable(query, study, numbers)
        with pytest.raises(SynodError, match=f"asks for {numbers} numbers; `max_cells` is {numbers - 1}") as caught:
            check_answerable(query, study, numbers - 1)
        assert caught.value.code is Code.REFUSED


def test_a_table_beyond_any_memory_is_refused_by_its_number() -> None:
    wide = make_study(schema=[categorical(f"x{i}", 2) for i in range(300)], method={"name": "dp-subn"})
    with pytest.raises(SynodError, match=f"asks for {2**300} numbers"):
        check_answerable(SumMarginals((tuple(range(300)),)), wide, 10_000_000)


def test_sensitivity_grows_with_the_number_of_sets() -> None:
    step = plan_study(BITS).step("correlations")
    epsilon = step.cost.epsilon
    assert epsilon == Fraction(5, 2)
    for sets in (((0,),), ((0, 1), (2, 3)), ((0, 1), (0, 1), (0, 1))):
        terms = sum_terms(SumMarginals(sets), step, BITS)
        assert terms.sensitivity == 2 * len(sets)
        assert terms.scale == 2 * len(sets) / epsilon
        assert terms.shape == Fraction(1, 2 - 1)
        assert (terms.length, terms.low, terms.high) == (sum(cells_of(sets, BITS)), 0, 1200)
        assert local_scale(LocalMarginals(sets), step) == terms.scale


def test_too_little_epsilon_is_refused() -> None:
    poor = make_study(schema=SCHEMA, roster=ROSTER, epsilon="1e-13", method={"name": "dp-subn"})
    (step,) = plan_study(poor).steps
    with pytest.raises(SynodError, match="too little epsilon"):
        local_scale(LocalMarginals(((0,),)), step)
    with pytest.raises(SynodError, match="too little epsilon"):
        sum_terms(SumMarginals(((0,),)), step, poor)


def test_another_question_has_another_hash() -> None:
    plan = plan_study(BITS)
    first, second = plan.step("correlations"), plan.step("parameters")
    bits = ChooseParents((0,), ((1, (0,)), (2, (0,))), 1, 4, "F")
    asked: list[tuple[Query, Any]] = [
        (SumMarginals(((0, 1),)), first),
        (SumMarginals(((0, 2),)), first),
        (SumMarginals(((0, 1), (2,))), first),
        (SumMarginals(((2,), (0, 1))), first),
        (SumMarginals(((0, 1),)), second),
        (LocalMarginals(((0, 1),)), first),
        (bits, first),
        (ChooseParents((0,), ((1, (0,)), (2, ())), 1, 4, "F"), first),
        (ChooseParents((0,), ((1, (0,)), (2, (0,))), 2, 4, "F"), first),
        (ChooseParents((0,), ((1, (0,)), (2, (0,))), 1, 8, "F"), first),
        (ChooseParents((0,), ((1, (0,)), (2, (0,))), 1, 4, "I"), first),
    ]
    assert len({query_digest(query, step, BITS) for query, step in asked}) == len(asked)
    assert query_digest(bits, first, BITS) == query_digest(bits, first, BITS)
