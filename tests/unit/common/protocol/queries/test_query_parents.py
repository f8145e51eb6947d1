"""Drawn parents: every bad question and every answer that the question does not allow is refused."""

from copy import deepcopy
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synod.common.models.candidates import maximal_sets
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.base import check_within
from synod.common.protocol.queries.parents import SCORES, Choice, ChooseParents, list_choices
from synod.common.protocol.queries.parsing import AnyQuery, parse_query, query_digest, read_query
from synod.common.protocol.steps import Limit
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.features import sizes_of
from synod.v1 import query_pb2 as pb
from tests.support.queries import BITS, NETWORK, UNKNOWN_FIELD, refusal
from tests.support.studies import binary, categorical, integer, make_study

ASKED = ChooseParents(placed=(0, 2), candidates=((1, (0, 2, 3)), (3, ())), count=2, max_cells=24, score="R")
NO_CANDIDATES = "the query's candidates are not candidates among the study's features."


@given(
    st.sets(st.integers(0, 3), min_size=1, max_size=3),
    st.lists(st.sets(st.integers(0, 3)), min_size=3, max_size=3),
    st.integers(1, 2**53 - 1),
    st.sampled_from(["R", "I"]),
    st.data(),
)
def test_any_question_comes_back_from_both_forms(
    placed: set[int], parents: list[set[int]], max_cells: int, score: Any, data: st.DataObject
) -> None:
    rest = [feature for feature in range(4) if feature not in placed]
    candidates = tuple((feature, tuple(sorted(chosen))) for feature, chosen in zip(rest, parents, strict=False))
    count = data.draw(st.integers(1, len(rest)))
    query = ChooseParents(tuple(sorted(placed)), candidates, count, max_cells, score)
    assert read_query(query.to_json(), NETWORK) == query
    assert parse_query(pb.Query.FromString(query.to_proto().SerializeToString()), NETWORK) == query


@pytest.mark.parametrize("changes", [{"max_parents": 1}, {"max_parents": 65536}, {"ordered": True}])
def test_what_is_set_comes_back_and_what_is_not_leaves_no_trace(changes: dict[str, Any]) -> None:
    query = replace(ASKED, **changes)
    assert read_query(query.to_json(), NETWORK) == query
    assert parse_query(pb.Query.FromString(query.to_proto().SerializeToString()), NETWORK) == query
    assert query.to_json() == ASKED.to_json() | changes
    step = plan_study(BITS).step("initialize-north")
    assert query_digest(query, step, NETWORK) != query_digest(ASKED, step, NETWORK)


def test_an_ordered_question_may_list_features_in_any_order() -> None:
    turned = replace(ASKED, candidates=((3, (0, 1)), (1, (0, 2, 3))), ordered=True)
    assert parse_query(turned.to_proto(), NETWORK) == turned
    assert refusal(lambda: replace(turned, ordered=False).check(NETWORK)) == NO_CANDIDATES
    assert refusal(lambda: replace(turned, candidates=((3, ()), (3, ()))).check(NETWORK)) == NO_CANDIDATES


BAD_JSON: dict[str, dict[str, Any]] = {
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
    "no parents at all": {"max_parents": 0},
    "a negative number of parents": {"max_parents": -1},
    "too many parents": {"max_parents": 65537},
    "parents as text": {"max_parents": "2"},
    "any number of parents, spelled out": {"max_parents": None},
    "an order that is a number": {"ordered": 1},
    "no order, spelled out": {"ordered": False},
}


@pytest.mark.parametrize("changes", BAD_JSON.values(), ids=BAD_JSON.keys())
def test_bad_questions_are_refused(changes: dict[str, Any]) -> None:
    assert refusal(lambda: read_query(deepcopy(ASKED.to_json()) | changes, NETWORK))


def candidates_of(*candidates: tuple[int, list[int]]) -> list[pb.Candidates]:
    return [pb.Candidates(feature=feature, parents=parents) for feature, parents in candidates]


BAD_MESSAGES: dict[str, dict[str, Any]] = {
    "nothing placed": {"placed": []},
    "placed twice": {"placed": [0, 0]},
    "placed out of order": {"placed": [2, 0]},
    "placed beyond": {"placed": [0, 4]},
    "placed beyond any": {"placed": [0, 2**32 - 1]},
    "placed and open": {"placed": [0, 1, 2]},
    "none open": {"candidates": []},
    "open twice": {"candidates": candidates_of((1, [0]), (1, [2]))},
    "open out of order": {"candidates": candidates_of((3, [0]), (1, [0]))},
    "open beyond": {"candidates": candidates_of((1, [0]), (4, [0]))},
    "parents out of order": {"candidates": candidates_of((1, [2, 0]), (3, []))},
    "parents twice": {"candidates": candidates_of((1, [0, 0]), (3, []))},
    "parents beyond": {"candidates": candidates_of((1, [4]), (3, []))},
    "no draw": {"count": 0},
    "more draws than open": {"count": 3},
    "as many draws as there can be": {"count": 2**32 - 1},
    "no cells": {"max_cells": 0},
    "F for a feature that is not binary": {"score": pb.SCORE_F},
    "too many parents": {"max_parents": 65537},
}


def asked_with(**changes: Any) -> pb.Query:
    sound: dict[str, Any] = {
        "placed": [0, 2],
        "candidates": candidates_of((1, [0, 2, 3]), (3, [])),
        "count": 2,
        "max_cells": 24,
        "score": pb.SCORE_R,
    }
    return pb.Query(choose_parents=pb.ChooseParents(**{**sound, **changes}))


def test_the_sound_message_is_that_of_the_question() -> None:
    assert asked_with() == ASKED.to_proto()
    assert parse_query(asked_with(), NETWORK) == ASKED


@pytest.mark.parametrize("changes", BAD_MESSAGES.values(), ids=BAD_MESSAGES.keys())
def test_bad_questions_are_refused_on_the_wire(changes: dict[str, Any]) -> None:
    assert refusal(lambda: parse_query(asked_with(**changes), NETWORK)) == NO_CANDIDATES


@pytest.mark.parametrize("score", [pb.SCORE_UNSPECIFIED, 4, 99, -1, 2**31 - 1])
def test_a_score_that_has_no_meaning_is_refused(score: int) -> None:
    sentence = refusal(lambda: parse_query(asked_with(score=score), NETWORK))
    assert sentence == "the query is not one that this version answers."


def test_every_score_of_the_message_but_the_unspecified_is_a_score() -> None:
    assert set(SCORES.values()) == set(pb.Score.values()) - {pb.SCORE_UNSPECIFIED}


def test_f_is_for_binary_features() -> None:
    query = ChooseParents((0,), ((1, (0,)), (2, (0,))), 1, 4, "F")
    assert parse_query(query.to_proto(), BITS) == query
    # Features 0 and 3 are binary; parents may have any size.
    mixed = ChooseParents((1, 2), ((0, (1,)), (3, (1, 2))), 1, 24, "F")
    assert parse_query(mixed.to_proto(), NETWORK) == mixed


def test_the_size_is_the_draws_the_cells_and_the_longest_list_of_candidates() -> None:
    assert ASKED.size(NETWORK) == Limit(numbers=24, tables=2, cells=24, candidates=3, score="R")
    assert ASKED.open == (1, 3)


def test_each_draw_has_its_share_of_the_cost() -> None:
    step = plan_study(BITS).step("initialize-north")
    assert step.cost.epsilon == 1
    assert ASKED.epsilon_each(step, NETWORK) == Fraction(1, 2)
    law = ASKED.law(step, NETWORK)
    assert law == {
        "label": "initialize-north",
        "law": "permute-and-flip on the score R",
        "epsilon_each": "1/2",
        "protects": "any one row",
        "protects_against": "anyone",
    }


def test_another_question_has_another_hash() -> None:
    plan = plan_study(BITS)
    first, second = plan.step("correlations"), plan.step("parameters")
    bits = ChooseParents((0,), ((1, (0,)), (2, (0,))), 1, 4, "F")
    asked: list[tuple[AnyQuery, Any]] = [
        (bits, first),
        (bits, second),
        (ChooseParents((3,), ((1, (0,)), (2, (0,))), 1, 4, "F"), first),
        (ChooseParents((0, 3), ((1, (0,)), (2, (0,))), 1, 4, "F"), first),
        (ChooseParents((0,), ((1, (0,)),), 1, 4, "F"), first),
        (ChooseParents((0,), ((1, (0,)), (3, (0,))), 1, 4, "F"), first),
        (ChooseParents((0,), ((1, (0,)), (2, ())), 1, 4, "F"), first),
        (ChooseParents((0,), ((1, (0,)), (2, (0,))), 2, 4, "F"), first),
        (ChooseParents((0,), ((1, (0,)), (2, (0,))), 1, 8, "F"), first),
        (ChooseParents((0,), ((1, (0,)), (2, (0,))), 1, 4, "I"), first),
    ]
    assert len({query_digest(query, step, BITS) for query, step in asked}) == len(asked)
    assert query_digest(bits, first, BITS) == query_digest(bits, first, BITS)


# Answers

STUDY = make_study(method={"name": "dp-subn"}, schema=[categorical(f"x{i}", 2) for i in range(6)])
QUERY = ChooseParents(placed=(0, 2), candidates=((1, (0, 2, 3)), (3, (0, 1)), (4, ())), count=2, max_cells=4, score="F")
ALLOWED: list[list[Choice]] = [
    [(1, (0,)), (3, (1,))],  # a feature may be a parent once it is placed
    [(1, (0,)), (3, (0,))],
    [(1, (2,)), (3, (1,))],
    [(3, (0,)), (1, (3,))],
    [(4, ()), (1, (0,))],
]


@pytest.mark.parametrize("choices", ALLOWED)
def test_each_choice_that_the_query_allows_comes_back(choices: list[Choice]) -> None:
    payload = QUERY.write_answer(choices)
    assert QUERY.read_answer(payload, STUDY, "north") == choices
    assert len(payload) in QUERY.answer_bytes(STUDY, "north")


FORBIDDEN: dict[str, list[Choice]] = {
    "one too few": [(1, (0,))],
    "one too many": [(1, (0,)), (3, (0,)), (4, ())],
    "none": [],
    "a feature twice": [(1, (0,)), (1, (0,))],
    "a feature twice, without parents": [(1, (0,)), (1, ())],
    "a placed feature": [(0, ()), (1, (0,))],
    "a feature that was not asked about": [(5, ()), (1, (0,))],
    "a feature that does not exist": [(99, ()), (1, (0,))],
    "a feature beyond any": [(2**32 - 1, ()), (1, (0,))],
    "a parent that is not placed yet": [(1, (3,)), (3, (0,))],
    "a parent outside of the shortlist": [(1, (0,)), (3, (2,))],
    "a parent of its own": [(1, (1,)), (3, (0,))],
    "a parent that does not exist": [(1, (99,)), (3, (0,))],
    "more parents than cells allow": [(1, (0, 2)), (3, (0,))],
    "fewer parents than there is room for": [(1, ()), (3, (0,))],
    "a parent twice": [(1, (0, 0)), (3, (0,))],
}


@pytest.mark.parametrize("choices", FORBIDDEN.values(), ids=FORBIDDEN.keys())
def test_choices_that_the_query_does_not_allow_are_refused(choices: list[Choice]) -> None:
    payload = QUERY.write_answer(choices)
    sentence = refusal(lambda: QUERY.read_answer(payload, STUDY, "north"), Code.CHECK_FAILED)
    assert sentence.startswith("an answer ")


LEVELED = make_study(
    method={"name": "independent", "encoding": "hierarchical"},
    schema=[integer("a", 0, 7, bins=8), categorical("b", 3), categorical("c", 2), categorical("d", 2)],
)
COARSE = ChooseParents(placed=(0, 1), candidates=((2, (0, 1)), (3, (0, 1, 2))), count=2, max_cells=12, score="R")


def test_base_features_are_asked_about_only() -> None:
    assert sizes_of(LEVELED) == (8, 3, 2, 2, 4, 2)
    COARSE.check(LEVELED)
    for changed in (
        replace(COARSE, placed=(0, 4)),
        replace(COARSE, candidates=((2, (4,)), (3, (0,)))),
        replace(COARSE, candidates=((2, (0,)), (4, (0,)))),
    ):
        assert refusal(partial(changed.check, LEVELED)) == NO_CANDIDATES


LEVEL_CHOICES: dict[str, tuple[list[Choice], bool]] = {
    "the coarsest level beside another": ([(2, (5, 1)), (3, (4,))], True),
    "a finer level alone": ([(2, (4,)), (3, (5, 1))], True),
    "a level beside what was placed just before": ([(2, (4,)), (3, (5, 2))], True),
    "more parents than fit": ([(2, (4,)), (3, (5, 1, 2))], False),
    "a level that could be finer": ([(2, (5,)), (3, (4,))], False),
    "a level that does not fit": ([(2, (0,)), (3, (4,))], False),
    "room for another": ([(2, (1,)), (3, (4,))], False),
    "an attribute twice": ([(2, (4, 5)), (3, (4,))], False),
    "another order of parents": ([(2, (1, 5)), (3, (4,))], False),
    "a level of what was not offered": ([(2, (4,)), (3, (9,))], False),
}


@pytest.mark.parametrize(("choices", "is_allowed"), LEVEL_CHOICES.values(), ids=LEVEL_CHOICES.keys())
def test_levels_are_taken_where_nothing_finer_fits(choices: list[Choice], is_allowed: bool) -> None:
    payload = COARSE.write_answer(choices)
    if is_allowed:
        assert COARSE.read_answer(payload, LEVELED) == choices
    else:
        assert "not among" in refusal(lambda: COARSE.read_answer(payload, LEVELED), Code.CHECK_FAILED)


def test_a_limit_on_parents_is_kept() -> None:
    one = replace(COARSE, max_parents=1)
    kept: list[Choice] = [(2, (4,)), (3, (1,))]
    assert one.read_answer(one.write_answer(kept), LEVELED) == kept
    payload = one.write_answer([(2, (5, 1)), (3, (1,))])
    assert refusal(lambda: one.read_answer(payload, LEVELED), Code.CHECK_FAILED)


def test_draws_of_an_ordered_question_that_are_choices_share_epsilon() -> None:
    """With one parent at most, the first draw has one option, the second two, the third three: two are choices."""
    method, schema = {"name": "independent"}, [binary(f"x{i}") for i in range(4)]
    study = make_study(schema=schema, method=method, rows=(4000, 50, 60))
    step = plan_study(study).step("choose-north")
    query = ChooseParents((0,), ((1, (0,)), (2, (0, 1)), (3, (0, 1, 2))), 3, 4, "R", ordered=True)
    query.check(study)
    assert list_choices(query, study) == (False, True, True)
    assert query.epsilon_each(step, study) == step.cost.epsilon / 2
    assert replace(query, count=2).epsilon_each(step, study) == step.cost.epsilon
    assert replace(query, count=1).epsilon_each(step, study) == 0
    assert replace(query, ordered=False).epsilon_each(step, study) == step.cost.epsilon / 3


def test_an_ordered_answer_keeps_the_order() -> None:
    ordered = replace(COARSE, candidates=((3, (0, 1, 2)), (2, (0, 1))), ordered=True)
    kept: list[Choice] = [(3, (4,)), (2, (5, 1))]
    assert ordered.read_answer(ordered.write_answer(kept), LEVELED) == kept
    turned = ordered.write_answer(kept[::-1])
    assert "another order" in refusal(lambda: ordered.read_answer(turned, LEVELED), Code.CHECK_FAILED)
    fewer = replace(ordered, count=1)
    assert "another order" in refusal(
        lambda: fewer.read_answer(fewer.write_answer([(2, (4,))]), LEVELED), Code.CHECK_FAILED
    )


SOUND = QUERY.write_answer([(1, (0,)), (3, (1,))])


def choice(data: bytes) -> bytes:
    return bytes([0x0A, len(data)]) + data


SECOND = choice(b"\x08\x03\x12\x01\x01")
NOT_CHOICES = {
    "nothing": b"",
    "junk": b"\xff\xfe",
    "text": b"[[1,[0]],[3,[1]]]",
    "half of it": SOUND[:-1],
    "more than it": SOUND + b" ",
    "an unknown field": SOUND + UNKNOWN_FIELD,
    "an unknown field in a choice": choice(b"\x08\x01\x12\x01\x00" + UNKNOWN_FIELD) + SECOND,
    "parents one by one": choice(b"\x08\x01\x10\x00") + SECOND,
    "fields in another order": choice(b"\x12\x01\x00\x08\x01") + SECOND,
    "a feature twice in one choice": choice(b"\x08\x03\x08\x01\x12\x01\x00") + SECOND,
    "a feature in more bytes than it needs": choice(b"\x08\x81\x00\x12\x01\x00") + SECOND,
    "a feature below zero": choice(b"\x08" + b"\xff" * 9 + b"\x01\x12\x01\x00") + SECOND,
    "a feature beyond 32 bits": choice(b"\x08\x81\x80\x80\x80\x10\x12\x01\x00") + SECOND,
    "a feature as text": choice(b"\x0a\x011\x12\x01\x00") + SECOND,
    "much of nothing": b"\x0a\x00" * 100_000,
}


def test_the_bytes_above_are_made_as_the_answer_is() -> None:
    assert choice(b"\x08\x01\x12\x01\x00") + SECOND == SOUND


@pytest.mark.parametrize("payload", NOT_CHOICES.values(), ids=NOT_CHOICES.keys())
def test_bytes_that_are_not_the_one_written_form_are_refused(payload: bytes) -> None:
    assert refusal(lambda: QUERY.read_answer(payload, STUDY, "north"), Code.CHECK_FAILED)


def test_two_parents_are_taken_sorted_only() -> None:
    query = ChooseParents((0, 2), ((1, (0, 2)),), 1, 8, "F")
    assert query.read_answer(query.write_answer([(1, (0, 2))]), STUDY) == [(1, (0, 2))]
    unsorted = query.write_answer([(1, (2, 0))])
    assert "not among the candidates" in refusal(lambda: query.read_answer(unsorted, STUDY), Code.CHECK_FAILED)


def test_what_is_taken_is_what_maximal_sets_lists() -> None:
    schema = [categorical("a", 3), categorical("b", 2), categorical("c", 4), categorical("d", 2), categorical("e", 5)]
    study = make_study(method={"name": "dp-subn", "encoding": "vanilla"}, schema=schema)
    sets = [
        (),
        *[(i,) for i in (0, 1, 2, 4)],
        *[(i, j) for i in (0, 1, 2, 4) for j in (0, 1, 2, 4) if i < j],
        (0, 1, 2),
    ]
    for max_cells in (1, 5, 8, 12, 20, 24, 40, 100):
        query = ChooseParents((0, 1, 2, 4), ((3, (0, 1, 2, 4)),), 1, max_cells, "R")
        taken = set()
        for parents in sets:
            try:
                query.read_answer(query.write_answer([(3, parents)]), study)
                taken.add(parents)
            except SynodError:
                continue
        assert taken == set(sets) & set(maximal_sets(3, (0, 1, 2, 4), sizes_of(study), max_cells))


def test_lengths_are_known_before_bytes_are_taken() -> None:
    lengths = QUERY.answer_bytes(STUDY, "north")
    assert len(SOUND) in lengths
    assert 0 not in lengths
    assert 10_000 not in lengths


def test_the_longest_answer_has_an_allowed_length() -> None:
    """Every feature with as many parents as the largest table of all has room for, and with large indices."""
    features = 700
    wide = make_study(method={"name": "dp-subn"}, schema=[categorical(f"x{i}", 2) for i in range(features)])
    parents = tuple(range(features - 16, features - 1))
    placed = tuple(range(features - 16, features))
    candidates = tuple((feature, placed) for feature in range(features - 16))
    query = ChooseParents(placed, candidates, len(candidates), 1 << 16, "F")
    choices = [(feature, parents) for feature, _ in candidates]
    payload = query.write_answer(choices)
    assert query.read_answer(payload, wide, "north") == choices
    assert len(payload) in query.answer_bytes(wide, "north")


def test_a_question_with_more_options_than_the_study_allows_is_refused_before_they_are_listed() -> None:
    schema = [integer(f"x{i}", 0, 15) for i in range(30)]
    keys = {"name": "privbayes", "max_candidates": 100, "parameter_cells": 65_536}
    study = make_study(schema=schema, rows=(40_000, 40_000, 40_000), method=keys)
    step = next(step for step in plan_study(study).steps if step.phase == "structure")
    everything = tuple(range(30))
    full = tuple((feature, everything[:feature] + everything[feature + 1 :]) for feature in range(1, 30))
    query = ChooseParents((0,), full, step.limit.tables, step.limit.cells, "R")
    query.check(study)
    with pytest.raises(SynodError, match="has more options than the approved plan allows") as caught:
        check_within(query, step, study)
    assert caught.value.code is Code.REFUSED
    single = tuple((feature, (0,)) for feature in range(1, 30))
    check_within(replace(query, candidates=single), step, study)


@pytest.mark.parametrize("parents", [None, 3])
def test_a_question_with_more_parents_than_the_study_allows_is_refused(parents: int | None) -> None:
    """Candidates are many because parents are few: sets of any size of them would be too many to list."""
    keys = {"name": "privbayes", "degree": 2, "max_candidates": 4000, "parameter_cells": 64}
    study = make_study(schema=[categorical(f"x{i}", 2) for i in range(40)], rows=(9000, 9000, 9000), method=keys)
    step = next(step for step in plan_study(study).steps if step.phase == "structure")
    listed = tuple((x, tuple(y for y in range(40) if y != x)[: step.limit.candidates]) for x in range(1, 40))
    query = ChooseParents((0,), listed, step.limit.tables, step.limit.cells, "F", max_parents=2)
    check_within(query, step, study)
    with pytest.raises(SynodError, match="has more options than the approved plan allows"):
        check_within(replace(query, max_parents=parents), step, study)
