"""Bit planes hold any codes in few bits, and every slice of rows comes back as it was."""

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from synod.party.table import planes as packing
from synod.party.table.planes import PlaneColumn, count_planes, write_planes
from synod.party.table.snapshot import digest_codes

Column = NDArray[np.unsignedinteger]


def kept(column: Column) -> PlaneColumn:
    file = io.BytesIO()
    write_planes(file, column)
    file.seek(0)
    return PlaneColumn(np.load(file), len(column))


@st.composite
def columns(draw: st.DrawFn) -> Column:
    size = draw(st.sampled_from([1, 2, 4]))
    largest = draw(st.integers(0, 256**size - 1))
    rows = draw(st.integers(1, 50))
    return np.array(draw(st.lists(st.integers(0, largest), min_size=rows, max_size=rows)), dtype=f"u{size}")


@settings(max_examples=200, deadline=None)
@given(columns(), st.integers(0, 60), st.integers(0, 60))
def test_any_slice_of_any_codes_comes_back(column: Column, start: int, stop: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "CHUNK_ROWS", 16)
        back = kept(column)
        assert back.dtype == column.dtype
        assert len(back) == len(column)
        assert back[start:stop].tolist() == column[start:stop].tolist()
        assert back[start:stop].dtype == column.dtype
        assert back.tolist() == column.tolist()
        assert digest_codes([back]) == digest_codes([column])


@pytest.mark.parametrize(
    ("code", "kind", "planes"),
    [(0, "u1", 1), (1, "u1", 1), (2, "u1", 2), (255, "u1", 8), (3, "u2", 9), (256, "u2", 9), (2**16, "u4", 17)],
)
def test_codes_take_no_more_planes_than_they_need(code: int, kind: str, planes: int) -> None:
    column: Column = np.array([0, code, 0], dtype=kind)
    assert count_planes(column) == planes
    assert kept(column).planes.shape == (planes, 1)


def test_a_digest_is_that_of_the_codes_in_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    column: Column = np.arange(1000, dtype=np.uint16)
    whole = digest_codes([column, column])
    monkeypatch.setattr(packing, "CHUNK_ROWS", 24)
    assert digest_codes([column, column]) == digest_codes([kept(column), column]) == whole
