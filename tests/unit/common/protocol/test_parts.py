"""Large messages in parts: each small enough, and their merge in order is the message."""

import numpy as np
import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from synod.common.models.gaussian import GaussianModel
from synod.common.protocol.parts import split_message
from synod.common.protocol.queries.agreements import SumAgreements
from synod.common.protocol.queries.marginals import LocalMarginals, SumMarginals
from synod.common.protocol.queries.moments import SumMoments, moment_design
from synod.common.protocol.queries.parents import ChooseParents
from synod.common.protocol.queries.parsing import AnyQuery, parse_query
from synod.common.protocol.queries.rows import Synthesize, share_rows
from synod.common.study.study import Study
from synod.v1 import query_pb2 as pb
from tests.support.queries import EXAMPLES
from tests.support.studies import categorical, make_study

FEATURES = 400
WIDE = make_study(schema=[categorical(f"x{i}", 2) for i in range(FEATURES)], method={"name": "dp-subn"})
NUMBERS = make_study(schema=[categorical(f"x{i}", 4) for i in range(60)])


def wide_model(study: Study) -> GaussianModel:
    width = moment_design(study).width - 1
    rng = np.random.default_rng(3)
    return GaussianModel(rng.normal(size=(width, 20)), 0.5, rng.normal(size=width), np.zeros(width))


PAIRS = tuple((i, j) for i in range(FEATURES) for j in range(i + 1, FEATURES))
LARGE: dict[str, tuple[AnyQuery, Study]] = {
    "many small sets": (SumMarginals(PAIRS), WIDE),
    "few large sets": (LocalMarginals((tuple(range(FEATURES)),) * 300), WIDE),
    "a set among many": (LocalMarginals((*PAIRS[:2000], tuple(range(FEATURES)), *PAIRS[2000:4000])), WIDE),
    "many candidates": (
        ChooseParents((0, 1), tuple((i, tuple(range(i))) for i in range(2, FEATURES)), 300, 4096, "F"),
        WIDE,
    ),
    "many placed": (ChooseParents(tuple(range(FEATURES - 1)), ((FEATURES - 1, (0,)),), 1, 4096, "F"), WIDE),
    "a model": (Synthesize(wide_model(NUMBERS), share_rows(NUMBERS)), NUMBERS),
    "moments": (SumMoments(), NUMBERS),
    "many splits": (SumAgreements((bytes(-(-2 * FEATURES // 8)),) * 64, 1), WIDE),
}


def merge(parts: list[pb.Query]) -> pb.Query:
    """As a reader does it: what travelled, part after part."""
    whole = pb.Query()
    for part in parts:
        whole.MergeFromString(part.SerializeToString())
    return whole


@pytest.mark.parametrize("most_bytes", [1_200, 10_000, 1 << 20])
@pytest.mark.parametrize(("query", "study"), LARGE.values(), ids=LARGE.keys())
def test_parts_of_large_queries_are_small_and_merge_to_the_query(
    query: AnyQuery, study: Study, most_bytes: int
) -> None:
    message = query.to_proto()
    parts = list(split_message(message, most_bytes))
    assert all(part.ByteSize() <= most_bytes for part in parts)
    assert (len(parts) == 1) == (message.ByteSize() <= most_bytes)
    assert {part.WhichOneof("kind") for part in parts} == {message.WhichOneof("kind")}
    whole = merge(parts)
    assert whole == message
    assert whole.SerializeToString(deterministic=True) == message.SerializeToString(deterministic=True)
    assert parse_query(whole, study).to_json() == query.to_json()


def test_the_large_queries_are_large() -> None:
    sizes = {name: query.to_proto().ByteSize() for name, (query, _) in LARGE.items()}
    assert sum(size > 100_000 for size in sizes.values()) >= 3
    assert {query.kind for query, _ in LARGE.values()} == {query.kind for query, _ in EXAMPLES.values()}


@pytest.mark.parametrize(("query", "study"), EXAMPLES.values(), ids=EXAMPLES.keys())
def test_a_small_message_is_one_part(query: AnyQuery, study: Study) -> None:
    del study
    message = query.to_proto()
    assert list(split_message(message, message.ByteSize())) == [message]


@pytest.mark.parametrize(("query", "study"), EXAMPLES.values(), ids=EXAMPLES.keys())
@pytest.mark.parametrize("most_bytes", [0, 1, 7, 20])
def test_where_single_entries_are_too_large_the_parts_still_merge(
    query: AnyQuery, study: Study, most_bytes: int
) -> None:
    del study
    message = query.to_proto()
    before = message.SerializeToString(deterministic=True)
    assert merge(list(split_message(message, most_bytes))) == message
    assert message.SerializeToString(deterministic=True) == before


@given(
    st.lists(st.lists(st.integers(0, 2**32 - 1), max_size=12), max_size=12),
    st.lists(st.integers(0, 2**32 - 1), max_size=12),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**64 - 1),
    st.integers(0, 200),
)
def test_any_message_merges_back(
    parents: list[list[int]], placed: list[int], count: int, max_cells: int, most_bytes: int
) -> None:
    candidates = [pb.Candidates(feature=i, parents=one) for i, one in enumerate(parents)]
    asked = pb.ChooseParents(placed=placed, candidates=candidates, count=count, max_cells=max_cells, score=pb.SCORE_I)
    message = pb.Query(choose_parents=asked)
    parts = list(split_message(message, most_bytes))
    assert merge(parts) == message
    assert all(part.ByteSize() <= most_bytes or is_single(part) for part in parts)


def is_single(message: Message) -> bool:
    """Whether no repeated field of the message, or of those that are no entry of one, has a second entry."""
    return all(
        len(value) < 2 if field.is_repeated else field.message_type is None or is_single(value)
        for field, value in message.ListFields()
    )
