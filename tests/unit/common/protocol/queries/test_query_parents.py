"""Answers in the clear: what is written is read back, and each malformed answer is refused."""

import json
from typing import Any

import numpy as np
import pytest
from synod.common.protocol.answers import (
    check_answer,
    expected_bytes,
    read_choices,
    read_counts,
    read_rows,
    write_choices,
    write_counts,
    write_rows,
)

from synod.common.crypto.canonical import canonical_bytes
from synod.common.models.candidates import maximal_sets
from synod.common.protocol.queries.marginals import LocalMarginals
from synod.common.protocol.queries.parents import ChooseParents
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.encoding import Codes, codings_of
from synod.common.study.features import sizes_of
from tests.support.studies import categorical, make_study

SCHEMA = [categorical(f"x{i}", 2) for i in range(6)]
STUDY = make_study(method={"name": "dp-subn"}, schema=SCHEMA)
QUERY = ChooseParents(placed=(0, 2), candidates=((1, (0, 2, 3)), (3, (0, 1)), (4, ())), count=2, max_cells=4, score="F")


def test_rows_counts_and_choices_come_back() -> None:
    study = make_study(schema=[categorical("a", 300), categorical("b", 3)])
    columns: list[Codes] = [np.array([299, 0, 7], dtype=np.uint16), np.array([2, 1, 0], dtype=np.uint8)]
    back = read_rows(write_rows(columns), codings_of(study), 3)
    assert all(np.array_equal(one, other) for one, other in zip(columns, back, strict=True))

    counts = np.array([-5, 2**40, 0, 1, -(2**40), 3], dtype=np.int64)
    tables = read_counts(write_counts(counts), [2, 4])
    assert [table.tolist() for table in tables] == [[-5, 2**40], [0, 1, -(2**40), 3]]

    choices = [(1, (0,)), (3, (1,))]
    assert read_choices(write_choices(choices), QUERY, STUDY) == choices


def test_a_code_outside_of_its_domain_is_refused() -> None:
    study = make_study(schema=[categorical("a", 2), categorical("b", 3)])
    payload = write_rows([np.array([1, 0], dtype=np.uint8), np.array([2, 3], dtype=np.uint8)])
    with pytest.raises(SynodError, match="outside of b's domain"):
        read_rows(payload, codings_of(study), 2)


@pytest.mark.parametrize(
    "choices",
    [
        [(1, (0,)), (3, (0,))],
        [(1, (2,)), (3, (1,))],  # a feature may be a parent once it is placed
        [(3, (0,)), (1, (3,))],
        [(4, ()), (1, (0,))],
    ],
)
def test_each_choice_that_the_query_allows_is_taken(choices: list[tuple[int, tuple[int, ...]]]) -> None:
    assert read_choices(write_choices(choices), QUERY, STUDY) == choices


BAD_CHOICES: dict[str, Any] = {
    "no list": {"1": [0]},
    "a number": 7,
    "nothing": None,
    "no pairs": [1, 3],
    "a triple": [[1, [0], 2], [3, [0]]],
    "no parents": [[1], [3, [0]]],
    "parents that are no list": [[1, 0], [3, [0]]],
    "texts": [["1", ["0"]], [3, [0]]],
    "truth": [[True, [0]], [3, [0]]],
    "fractions": [[1.0, [0]], [3, [0]]],
    "one too few": [[1, [0]]],
    "one too many": [[1, [0]], [3, [0]], [4, []]],
    "none": [],
    "a feature twice": [[1, [0]], [1, [0]]],
    "a feature twice, without parents": [[1, [0]], [1, []]],
    "a placed feature": [[0, []], [1, [0]]],
    "a feature that was not asked about": [[5, []], [1, [0]]],
    "a feature that does not exist": [[99, []], [1, [0]]],
    "a feature below zero": [[-1, []], [1, [0]]],
    "a parent that is not placed yet": [[1, [3]], [3, [0]]],
    "a parent outside of the shortlist": [[1, [0]], [3, [2]]],
    "a parent of its own": [[1, [1]], [3, [0]]],
    "a parent that does not exist": [[1, [99]], [3, [0]]],
    "more parents than cells allow": [[1, [0, 2]], [3, [0]]],
    "fewer parents than there is room for": [[1, []], [3, [0]]],
    "a parent twice": [[1, [0, 0]], [3, [0]]],
}


@pytest.mark.parametrize("data", BAD_CHOICES.values(), ids=BAD_CHOICES.keys())
def test_choices_that_the_query_does_not_allow_are_refused(data: Any) -> None:
    with pytest.raises(SynodError) as caught:
        read_choices(json.dumps(data, separators=(",", ":")).encode(), QUERY, STUDY)
    assert caught.value.code is Code.CHECK_FAILED


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xff\xfe",
        b"[[1,[0]],[3,[0]]",
        b"[[1,[0]],[3,[0]]] ",
        b"[[1, [0]], [3, [0]]]",
        b"[[1e400,[0]],[3,[0]]]",
        b"[[NaN,[0]],[3,[0]]]",
        b"[[1,[0]],[3,[" + b"9" * 5000 + b"]]]",
        b"[" * 200_000,
    ],
)
def test_bytes_that_are_not_the_canonical_answer_are_refused(payload: bytes) -> None:
    with pytest.raises(SynodError) as caught:
        read_choices(payload, QUERY, STUDY)
    assert caught.value.code is Code.CHECK_FAILED


def test_two_parents_are_taken_sorted_only() -> None:
    query = ChooseParents((0, 2), ((1, (0, 2)),), 1, 8, "F")
    assert read_choices(b"[[1,[0,2]]]", query, STUDY) == [(1, (0, 2))]
    with pytest.raises(SynodError, match="not among the candidates"):
        read_choices(b"[[1,[2,0]]]", query, STUDY)


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
                read_choices(canonical_bytes([[3, list(parents)]]), query, study)
                taken.add(parents)
            except SynodError:
                continue
        assert taken == set(sets) & set(maximal_sets(3, (0, 1, 2, 4), sizes_of(study), max_cells))


def test_lengths_are_known_before_bytes_are_taken() -> None:
    counts = LocalMarginals(((0, 1), (2,)))
    assert list(expected_bytes(counts, STUDY, "north")) == [8 * (4 + 2)]
    lengths = expected_bytes(QUERY, STUDY, "north")
    assert len(write_choices([(1, (0,)), (3, (1,))])) in lengths
    assert len(write_choices([])) in lengths
    assert 10_000 not in lengths


def test_counts_may_be_any_integers_but_choices_are_checked() -> None:
    check_answer(LocalMarginals(((0,),)), write_counts(np.array([-(2**62), 2**62])), STUDY, "north")
    check_answer(QUERY, write_choices([(1, (0,)), (3, (0,))]), STUDY, "north")
    with pytest.raises(SynodError):
        check_answer(QUERY, write_choices([(1, (0,))]), STUDY, "north")
