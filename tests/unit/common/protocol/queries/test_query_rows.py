"""Synthetic rows: shared out by proportion, from a model that fits, and answers of codes inside their domains."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synod.common.models.gaussian import GaussianModel
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.marginals import LocalMarginals
from synod.common.protocol.queries.moments import moment_design
from synod.common.protocol.queries.parsing import AnyQuery, parse_query, query_digest, read_query
from synod.common.protocol.queries.rows import Synthesize, share_rows, stack_rows
from synod.common.protocol.steps import Limit
from synod.common.runtime.errors import Code
from synod.common.study.encoding import Codes, codings_of
from synod.common.study.study import Study
from synod.v1 import query_pb2 as pb
from tests.support.queries import UNKNOWN_FIELD, refusal
from tests.support.studies import categorical, make_study

STUDY = make_study(rows=(1, 2, 4), epsilon="0.8")
WIDTH = moment_design(STUDY).width - 1


def some_model(study: Study = STUDY) -> GaussianModel:
    width = moment_design(study).width - 1
    return GaussianModel(np.eye(width)[:, :2], 0.5, np.linspace(-1, 1, width), np.full(width, 0.25))


MODEL = some_model()
QUERY = Synthesize(MODEL, (1, 2, 4))


# Shares


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=12), st.integers(1, 10**6))
def test_rows_are_shared_out_in_proportion(counts: list[int], rows: int) -> None:
    study = make_study(names=[f"p{i}" for i in range(len(counts))], rows=counts, output_rows=rows, collusion=0)
    shares = share_rows(study)
    assert sum(shares) == rows
    for share, count in zip(shares, counts, strict=True):
        assert abs(share - Fraction(rows * count, sum(counts))) < 1
    by_count = sorted(zip(counts, shares, strict=True))
    assert all(one[1] <= other[1] for one, other in pairwise(by_count) if one[0] < other[0])


def test_the_default_is_each_partys_own_count() -> None:
    assert share_rows(STUDY) == (1, 2, 4)


def test_ties_go_to_the_first() -> None:
    assert share_rows(make_study(rows=(5, 5, 5), output_rows=4)) == (2, 1, 1)
    assert share_rows(make_study(rows=(1, 1, 8), output_rows=1)) == (0, 0, 1)


# The question


def test_the_question_comes_back_from_both_forms() -> None:
    for again in (
        read_query(QUERY.to_json(), STUDY),
        parse_query(pb.Query.FromString(QUERY.to_proto().SerializeToString()), STUDY),
    ):
        assert isinstance(again, Synthesize)
        assert again.to_json() == QUERY.to_json()
        assert again.rows == (1, 2, 4)


@pytest.mark.parametrize(
    "rows", [(10**9,) * 3, (1, 2, 5), (2, 1, 4), (1, 2), (1, 2, 4, 0), (), (0, 0, 7), (2**53, 2, 4)]
)
def test_rows_come_from_the_study_and_not_from_the_question(rows: tuple[int, ...]) -> None:
    greedy = Synthesize(MODEL, rows)
    for form in (partial(read_query, greedy.to_json(), STUDY), partial(parse_query, greedy.to_proto(), STUDY)):
        assert refusal(form) == "the query's rows are not the parties' shares."


@pytest.mark.parametrize("rows", [None, 7, "124", ["1", "2", "4"], [1.0, 2.0, 4.0], [True, 2, 4], {"0": 1}])
def test_rows_that_are_no_list_of_integers_are_refused(rows: Any) -> None:
    assert refusal(lambda: read_query({**QUERY.to_json(), "rows": rows}, STUDY))


@pytest.mark.parametrize("model", [None, {}, [], {"loadings": 5}, 7, "model"])
def test_a_question_without_a_sound_model_is_refused(model: Any) -> None:
    data = {"kind": "synthesize", "model": model, "rows": [1, 2, 4]}
    assert refusal(lambda: read_query(data, STUDY)) == "the model is malformed."


def _without_model(message: pb.Synthesize) -> None:
    message.ClearField("model")


def _ragged(message: pb.Synthesize) -> None:
    message.model.loadings[1].values.append(1)


def _row_less(message: pb.Synthesize) -> None:
    del message.model.loadings[-1]


def _row_more(message: pb.Synthesize) -> None:
    message.model.loadings.append(message.model.loadings[0])


def _no_components(message: pb.Synthesize) -> None:
    for row in message.model.loadings:
        row.ClearField("values")


def _too_many_components(message: pb.Synthesize) -> None:
    for row in message.model.loadings:
        row.values.extend([1] * WIDTH)


def _negative_noise(message: pb.Synthesize) -> None:
    message.model.noise = -1


def _shift_less(message: pb.Synthesize) -> None:
    del message.model.shift[-1]


def _spread_more(message: pb.Synthesize) -> None:
    message.model.spread.append(0)


def _beyond(message: pb.Synthesize) -> None:
    message.model.shift[0] = 2**53


def _far_beyond(message: pb.Synthesize) -> None:
    message.model.noise = 2**63 - 1


def _below(message: pb.Synthesize) -> None:
    message.model.loadings[0].values[0] = -(2**63)


ALTERATIONS = [
    _without_model, _ragged, _row_less, _row_more, _no_components, _too_many_components, _negative_noise, _shift_less,
    _spread_more, _beyond, _far_beyond, _below,
]  # fmt: skip


@pytest.mark.parametrize("alter", ALTERATIONS, ids=lambda alter: alter.__name__.strip("_"))
def test_a_message_without_a_sound_model_is_refused(alter: Callable[[pb.Synthesize], None]) -> None:
    message = QUERY.to_proto()
    alter(message.synthesize)
    assert refusal(lambda: parse_query(message, STUDY)).startswith("the model ")


def test_a_question_has_no_size_and_no_law_because_it_costs_nothing() -> None:
    assert QUERY.size(STUDY) == Limit(numbers=0, tables=0)
    assert QUERY.law(plan_study(STUDY).step("rows"), STUDY) is None


def test_the_digest_changes_with_model_and_rows() -> None:
    nudge = np.zeros(WIDTH)
    nudge[3] = 1e-9
    others: list[AnyQuery] = [
        QUERY,
        Synthesize(MODEL, (1, 2, 5)),
        Synthesize(MODEL, (2, 1, 4)),
        Synthesize(replace(MODEL, noise=0.5 + 1e-9), QUERY.rows),
        Synthesize(replace(MODEL, shift=MODEL.shift + nudge), QUERY.rows),
        Synthesize(replace(MODEL, spread=MODEL.spread + nudge), QUERY.rows),
        Synthesize(replace(MODEL, loadings=MODEL.loadings + nudge[:, None]), QUERY.rows),
        Synthesize(replace(MODEL, loadings=MODEL.loadings[:, :1]), QUERY.rows),
        LocalMarginals(((0,),)),
    ]
    step = plan_study(STUDY).step("rows")
    assert len({query_digest(query, step, STUDY) for query in others}) == len(others)


# Answers

WIDE = make_study(schema=[categorical("a", 300), categorical("b", 3), categorical("c", 1)], rows=(1, 3, 200))
ANSWERED = Synthesize(some_model(WIDE), share_rows(WIDE))
COLUMNS: list[Codes] = [
    np.array([299, 0, 7], dtype=np.uint16),
    np.array([2, 1, 0], dtype=np.uint8),
    np.zeros(3, dtype=np.uint8),
]
SOUND = ANSWERED.write_answer(COLUMNS)


def test_rows_of_a_party_come_back() -> None:
    back = ANSWERED.read_answer(SOUND, WIDE, "harbour")
    for before, after in zip(COLUMNS, back, strict=True):
        assert after.dtype == before.dtype
        assert np.array_equal(after, before)
    assert pb.SyntheticRows.FromString(SOUND).columns[0] == bytes([299 % 256, 1, 0, 0, 7, 0])  # little-endian
    assert len(SOUND) in ANSWERED.answer_bytes(WIDE, "harbour")


def test_rows_of_the_roster_come_back_one_below_the_other() -> None:
    rng = np.random.default_rng(5)
    parts: list[list[Codes]] = [
        [rng.integers(0, coding.size, rows).astype(coding.dtype) for coding in codings_of(WIDE)]
        for rows in ANSWERED.rows
    ]
    for name, part in zip(WIDE.party_names, parts, strict=True):
        payload = ANSWERED.write_answer(part)
        assert len(payload) in ANSWERED.answer_bytes(WIDE, name)
        assert all(map(np.array_equal, ANSWERED.read_answer(payload, WIDE, name), part))
    stacked = stack_rows(parts)
    back = ANSWERED.read_answer(ANSWERED.write_answer(stacked), WIDE)
    assert all(map(np.array_equal, back, stacked))
    assert len(back[0]) == 204


def test_lengths_are_known_before_bytes_are_taken() -> None:
    lengths = ANSWERED.answer_bytes(WIDE, "harbour")
    assert 3 * (2 + 1 + 1) in lengths
    assert 3 * (2 + 1 + 1) - 1 not in lengths
    assert 100 not in lengths
    assert len(SOUND) not in ANSWERED.answer_bytes(WIDE, "valley")


def test_a_party_without_rows_answers_with_empty_columns() -> None:
    study = make_study(rows=(1, 1, 8), output_rows=1)
    query = Synthesize(some_model(study), share_rows(study))
    assert query.rows[0] == 0
    payload = query.write_answer([np.zeros(0, dtype=np.uint8)] * len(study.attributes))
    assert len(payload) in query.answer_bytes(study, "north")
    assert [len(column) for column in query.read_answer(payload, study, "north")] == [0] * len(study.attributes)


@pytest.mark.parametrize("name", ["north", "valley"])
def test_the_share_of_another_party_is_refused(name: str) -> None:
    sentence = refusal(lambda: ANSWERED.read_answer(SOUND, WIDE, name), Code.CHECK_FAILED)
    assert sentence == "an answer's column a has the wrong length."


@pytest.mark.parametrize(("column", "code", "name"), [(0, 300, "a"), (0, 2**16 - 1, "a"), (1, 3, "b"), (2, 1, "c")])
def test_a_code_outside_of_its_domain_is_refused(column: int, code: int, name: str) -> None:
    columns = [one.copy() for one in COLUMNS]
    columns[column][1] = code
    payload = ANSWERED.write_answer(columns)
    sentence = refusal(lambda: ANSWERED.read_answer(payload, WIDE, "harbour"), Code.CHECK_FAILED)
    assert sentence == f"a row has a code outside of {name}'s domain."


def columns_of(*columns: bytes) -> bytes:
    return pb.SyntheticRows(columns=columns).SerializeToString()


A, B, C = bytes(6), bytes(3), bytes(3)
NOT_ROWS = {
    "nothing": b"",
    "junk": b"\xff\xfe",
    "too few columns": columns_of(A, B),
    "too many columns": columns_of(A, B, C, C),
    "a row less": columns_of(A[:-2], B[:-1], C[:-1]),
    "a row more": columns_of(A + b"\0\0", B + b"\0", C + b"\0"),
    "half a code": columns_of(A[:-1], B, C),
    "codes that are too narrow": columns_of(A[:3], B, C),
    "codes that are too wide": columns_of(A, B + B, C),
    "an empty column": columns_of(A, b"", C),
    "half of it": SOUND[:-1],
    "more than it": SOUND + b"\0",
    "an unknown field": SOUND + UNKNOWN_FIELD,
    "a length in more bytes than it needs": b"\x0a\x86\x00" + A + columns_of(B, C),
}


@pytest.mark.parametrize("payload", NOT_ROWS.values(), ids=NOT_ROWS.keys())
def test_bytes_that_are_not_the_partys_rows_are_refused(payload: bytes) -> None:
    assert refusal(lambda: ANSWERED.read_answer(payload, WIDE, "harbour"), Code.CHECK_FAILED)


def test_the_rows_above_are_made_as_the_answer_is() -> None:
    assert ANSWERED.read_answer(columns_of(A, B, C), WIDE, "harbour")
