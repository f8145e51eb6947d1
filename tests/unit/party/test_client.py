"""What a party reads of the curator's streams: whole messages, and no more than the plan allows."""

import pytest

from synod.common.protocol.parts import split_message
from synod.common.protocol.queries.marginals import SumMarginals
from synod.common.runtime.errors import Code, SynodError
from synod.party.client import PART_BYTES, _merge
from synod.v1 import party_pb2 as pb

QUERY = pb.SignedQuery(
    query=SumMarginals(tuple((i, i + 1) for i in range(5_000))).to_proto(), signature=bytes(range(64))
)


def test_a_query_in_parts_is_read_whole() -> None:
    parts = list(split_message(QUERY, 1_000))
    assert len(parts) > 10
    assert _merge(parts, QUERY.ByteSize()) == QUERY


def test_a_query_that_is_too_long_is_not_read_to_its_end() -> None:
    read = 0

    def endless() -> object:
        nonlocal read
        while True:
            read += 1
            yield QUERY

    with pytest.raises(SynodError, match="longer than any that the approved plan allows") as caught:
        _merge(endless(), 3 * QUERY.ByteSize())  # type: ignore[arg-type]
    assert caught.value.code is Code.CHECK_FAILED
    assert read == 4 + PART_BYTES // QUERY.ByteSize()


def test_parts_without_content_end_too() -> None:
    empty = type(QUERY)()
    with pytest.raises(SynodError, match="longer than any"):
        _merge((empty for _ in range(10**6)), 100)
