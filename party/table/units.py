"""How many rows each unit of privacy has, without its names being held: eight bytes a row, and none of a name.

Names are hashed under a key that is drawn for each reading, so nobody can prepare names that fall together. Units that
seem to have too many rows are looked at again by their names, in a second reading: what is refused is refused for its
names, and no two units are ever taken for one.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from synod.common.privacy.coins import Coins
from synod.common.runtime.errors import Code, SynodError
from synod.party.table.scratch import make_arrays

MOST_SETTLED = 2**20
CHUNK_ROWS = 2**20
WORD_BYTES = 4
Words = NDArray[np.uint64]
Reading = Callable[[], Iterable[pa.Array]]


class NameHashes:
    """Hashes of 64 bits: for two different names, chosen without the key, equal with a probability of 2^-64.

    They are two multilinear hashes of 32 bits each (Carter and Wegman): k0 + k1 length + the sum of k(i + 2) word(i),
    modulo 2^64, of which the upper half is taken; words have four bytes, the last one is filled with zeros.
    """

    def __init__(self, *, coins: Coins) -> None:
        self._coins = coins
        self._keys = np.empty((0, 2), dtype=np.uint64)

    def of(self, names: pa.Array) -> Words:
        """The hash of each name; there are no nulls among them."""
        if len(names) == 0:
            return np.empty(0, dtype=np.uint64)
        ends = np.frombuffer(names.buffers()[1], dtype=np.int32)[names.offset : names.offset + len(names) + 1]
        starts, lengths = ends[:-1].astype(np.int64), np.diff(ends).astype(np.int64)
        words = _word_at_each_byte(names.buffers()[2])
        keys = self._draw_keys(2 + -(-int(lengths.max(initial=0)) // WORD_BYTES))
        sums = keys[0] + keys[1] * lengths.astype(np.uint64)[:, np.newaxis]
        rows = np.arange(len(names))
        for place, key in enumerate(keys[2:]):
            rows = rows[lengths[rows] > WORD_BYTES * place]
            left = np.minimum(lengths[rows] - WORD_BYTES * place, WORD_BYTES)
            found = words[starts[rows] + WORD_BYTES * place] & _MASKS[left]
            sums[rows] += found.astype(np.uint64)[:, np.newaxis] * key
        halves = sums >> np.uint64(32)
        hashes: Words = halves[:, 0] << np.uint64(32) | halves[:, 1]
        return hashes

    def _draw_keys(self, count: int) -> Words:
        if count > len(self._keys):
            drawn = self._coins.draw_words(2 * (count - len(self._keys)))
            self._keys = np.concatenate([self._keys, drawn.reshape(-1, 2)])
        return self._keys[:count]


_MASKS = np.array([0, 0xFF, 0xFFFF, 0xFFFFFF, 0xFFFFFFFF], dtype=np.uint32)


def _word_at_each_byte(data: pa.Buffer | None) -> NDArray[np.uint32]:
    """The four bytes from each byte on, whatever follows the last ones."""
    assert sys.byteorder == "little"
    padded = np.append(np.frombuffer(data or b"", dtype=np.uint8), np.zeros(WORD_BYTES, dtype=np.uint8))
    return np.ndarray((len(padded) - WORD_BYTES + 1,), dtype=np.uint32, buffer=padded, strides=(1,))


class UnitCounter:
    """Rows of each unit, in memory or in a file of `scratch` that has no name."""

    def __init__(self, rows: int, scratch: Path | None, *, coins: Coins) -> None:
        self._hashes, self._scratch = NameHashes(coins=coins), scratch
        (self._found,) = make_arrays([np.dtype(np.uint64)], rows, scratch)
        self._count = 0
        self.missing = 0

    def add(self, names: pa.Array) -> None:
        """Takes the names of further rows; null is a row of no unit."""
        self.missing += names.null_count
        hashes = self._hashes.of(names.drop_null())
        if self._count + len(hashes) > len(self._found):
            (larger,) = make_arrays([np.dtype(np.uint64)], 2 * len(self._found) + len(hashes), self._scratch)
            larger[: self._count] = self._found[: self._count]
            self._found = larger
        self._found[self._count : self._count + len(hashes)] = hashes
        self._count += len(hashes)

    @property
    def arrays(self) -> tuple[Words, ...]:
        """What it holds for each row."""
        return (self._found,)

    def count_beyond(self, most_rows: int, read_again: Reading) -> int:
        """How many rows there are beyond what their units may have.

        Guarantee: it is 0 only if no unit has more than `most_rows` rows, and then always. Where there are very many
        rows beyond, and some units of them have been found by name, the others are counted by their hashes.
        """
        found = self._found[: self._count]
        found.sort()
        suspects = _repeated(found, most_rows)
        beyond = 0
        for start in range(0, len(suspects), MOST_SETTLED):
            some = suspects[start : start + MOST_SETTLED]
            sizes = np.searchsorted(found, some, side="right") - np.searchsorted(found, some)
            if beyond:
                beyond += int((sizes - most_rows).sum())
            else:
                beyond = self._settle(some, int(sizes.sum()), most_rows, read_again)
        return beyond

    def _settle(self, suspects: Words, expected: int, most_rows: int, read_again: Reading) -> int:
        """Rows beyond, by the names of all rows that have one of these hashes."""
        rows: Counter[str] = Counter()
        for names in read_again():
            present = names.drop_null()
            is_suspect = np.isin(self._hashes.of(present), suspects)
            counted = pc.value_counts(present.filter(pa.array(is_suspect)))
            rows.update(
                dict(zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True))
            )
        if rows.total() != expected:
            raise SynodError(
                Code.INVALID,
                "the table changed while it was read.",
                "Approve when nobody writes to it; nothing was spent.",
            )
        return sum(max(0, count - most_rows) for count in rows.values())


def _repeated(ordered: Words, most_rows: int) -> Words:
    """The hashes that more than so many rows have, each once."""
    parts = [ordered[:0], *_find_repeated(ordered, most_rows)]
    return np.unique(np.concatenate(parts))


def _find_repeated(ordered: Words, most_rows: int) -> Iterator[Words]:
    for start in range(0, len(ordered) - most_rows, CHUNK_ROWS):
        later = ordered[start + most_rows : start + most_rows + CHUNK_ROWS]
        first = ordered[start : start + len(later)]
        yield np.unique(first[first == later])
