"""Units are counted by hashes and settled by names: equal to a dictionary of names, whatever falls together."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synod.common.privacy.coins import Coins
from synod.common.runtime.errors import SynodError
from synod.party.table import units as counting
from synod.party.table.units import NameHashes, UnitCounter

Names = Sequence[str | None]
KEY = bytes(range(32))


def count_slowly(batches: Sequence[Names], most_rows: int) -> tuple[int, int]:
    names = [name for batch in batches for name in batch]
    rows = Counter(name for name in names if name is not None)
    return sum(max(0, count - most_rows) for count in rows.values()), names.count(None)


def count(batches: Sequence[Names], most_rows: int, *, expected_rows: int = 0) -> tuple[int, int]:
    arrays = [pa.array(batch, pa.string()) for batch in batches]
    counter = UnitCounter(expected_rows, None, coins=Coins(KEY))
    for array in arrays:
        counter.add(array)
    return counter.count_beyond(most_rows, lambda: iter(arrays)), counter.missing


NAMES = st.one_of(
    st.none(), st.sampled_from(["a", "b", "a\0", "a\0\0\0\0", "\0", "é", "aaaa", "aaaab"]), st.text(max_size=9)
)
BATCHES = st.lists(st.lists(NAMES, max_size=10), max_size=5)


@settings(max_examples=200, deadline=None)
@given(BATCHES, st.integers(1, 4), st.integers(0, 40))
def test_rows_beyond_are_those_of_a_dictionary_of_names(batches: list[Names], most_rows: int, expected: int) -> None:
    assert count(batches, most_rows, expected_rows=expected) == count_slowly(batches, most_rows)


@pytest.mark.parametrize("values", [1, 3])
@settings(max_examples=100, deadline=None)
@given(batches=BATCHES, most_rows=st.integers(1, 4))
def test_units_that_fall_together_are_told_apart(values: int, batches: list[Names], most_rows: int) -> None:
    """With hashes of hardly any value, everything is settled by names."""

    def weak(_: NameHashes, names: pa.Array) -> counting.Words:
        return np.array([len(name) % values for name in names.to_pylist()], dtype=np.uint64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NameHashes, "of", weak)
        assert count(batches, most_rows) == count_slowly(batches, most_rows)


@pytest.mark.parametrize(("most_settled", "chunk_rows"), [(1, 1), (2, 3), (5, 2**20)])
def test_blocks_and_chunks_change_nothing(most_settled: int, chunk_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MOST_SETTLED", most_settled)
    monkeypatch.setattr(counting, "CHUNK_ROWS", chunk_rows)
    rng = np.random.default_rng(3)
    batches = [[f"p{number}" for number in rng.integers(0, 40, 50)] for _ in range(4)]
    for most_rows in (1, 3, 6, 20):
        assert count(batches, most_rows) == count_slowly(batches, most_rows)


def test_where_no_unit_repeats_nothing_is_read_again() -> None:
    counter = UnitCounter(3, None, coins=Coins(KEY))
    counter.add(pa.array(["a", "b", None]))

    def read_again() -> list[pa.Array]:
        raise AssertionError

    assert counter.count_beyond(1, read_again) == 0


def test_a_table_that_changes_between_the_readings_is_refused() -> None:
    counter = UnitCounter(3, None, coins=Coins(KEY))
    counter.add(pa.array(["a", "b", "a"]))
    with pytest.raises(SynodError, match="changed while it was read"):
        counter.count_beyond(1, lambda: [pa.array(["a", "b", "c"])])


def test_hashes_are_those_of_their_formula() -> None:
    names = ["", "a", "abcd", "abcde", "a\0", "\xe9\u4e2d", "x" * 41]
    keys = Coins(KEY).draw_words(2 * 13).reshape(-1, 2).tolist()

    def slow(name: str) -> int:
        data = name.encode()
        words = [int.from_bytes(data[place : place + 4], "little") for place in range(0, len(data), 4)]
        digits = [1, len(data), *words]
        sums = [sum(key[half] * digit for key, digit in zip(keys, digits, strict=False)) for half in (0, 1)]
        return ((sums[0] % 2**64 >> 32) << 32) | (sums[1] % 2**64 >> 32)

    whole = NameHashes(coins=Coins(KEY)).of(pa.array(names))
    assert whole.tolist() == [slow(name) for name in names]
    assert len(set(whole.tolist())) == len(names)
    assert NameHashes(coins=Coins(KEY)).of(pa.array(["y", *names])[1:]).tolist() == whole.tolist()


def test_hashes_are_the_same_in_whichever_batch_a_name_is() -> None:
    """A long name draws further keys; those of before stay."""
    hashes = NameHashes(coins=Coins(KEY))
    first = hashes.of(pa.array(["ab", "abcdef"])).tolist()
    hashes.of(pa.array(["z" * 500]))
    assert hashes.of(pa.array(["abcdef", "ab"])).tolist() == first[::-1]


def test_another_key_gives_other_hashes() -> None:
    names = pa.array(["a", "b"])
    assert set(NameHashes(coins=Coins(KEY)).of(names).tolist()).isdisjoint(NameHashes(coins=Coins(bytes(32))).of(names))
