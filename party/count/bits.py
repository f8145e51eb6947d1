"""Conjunctions: in how many rows all of some binary features are one, 64 rows a word.

Whoever asks for the tables of many sets asks for the same conjunctions again and again, so each distinct one is
counted once. Those that share all features but the last are one block of ANDs; a popcount follows when the buffer
is full. Nothing here loops over rows or single conjunctions, and nothing rounds. A conjunction of k features is
coded as a number of k digits in the base of the number of features, its digits ascending.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

# The ones of a chunk fit in 16 bits, and the chunks of a few dozen features in a core's second-level cache.
CHUNK_BYTES = 8 * 1016
BUFFER_ROWS = 128
# A table of all possible codes is worth its memory if it is at most so many times longer than the codes asked.
DENSE_FACTOR = 8

Codes = NDArray[np.int64]
Places = NDArray[np.intp]
Bits = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class _Run:
    """Conjunctions that begin with the features `stem`. The i-th of `heads` comes next in those from `starts[i]`
    to `stops[i]`, and the features `tails[i]` end them.
    """

    stem: Places
    heads: Places
    starts: list[int]
    stops: list[int]
    tails: list[slice | Places]


class Conjunctions:
    """Counts over packed features, one row of `bits` each, whose length is a multiple of eight bytes.

    Memory: a copy of the bits and 8 KiB for each of max(128, features) conjunctions; a call takes 2^k + 4 k words
    for each of its codes.
    """

    def __init__(self, bits: Bits, rows: int) -> None:
        assert rows < 2**31
        self._rows = rows
        self._base = len(bits)
        self._bits = np.concatenate([bits, np.full_like(bits[:1], 255)])
        self._ands = np.empty((max(BUFFER_ROWS, len(bits)), min(CHUNK_BYTES, bits.shape[1])), dtype=np.uint8)

    def count(self, codes: Codes, size: int) -> NDArray[np.int32]:
        """A column for each of the ascending, distinct `codes`, and a row for each mask of its `size` digits, the
        first digit being the mask's highest bit: how many rows have the masked features.

        All but the full mask are taken from the distinct conjunctions of one feature less.
        """
        counts = np.full((2**size, len(codes)), self._rows, dtype=np.int32)
        if size == 0:
            return counts
        digits = decode(codes, size, self._base)
        shorter = [encode(np.delete(digits, size - 1 - bit, axis=0), self._base) for bit in range(size)]
        distinct, places = _locate(shorter, self._base ** (size - 1))
        below = self.count(distinct, size - 1)
        for mask in range(2**size - 1):
            bit = (~mask & (mask + 1)).bit_length() - 1
            np.take(below[_squeeze(mask, bit)], places[bit], out=counts[mask], mode="clip")
        counts[-1] = self._count_ones(digits)
        return counts

    def _count_ones(self, digits: Places) -> NDArray[np.int64]:
        """How many rows have the features of each column of `digits`, chunk by chunk of rows."""
        counts = np.zeros(digits.shape[1], dtype=np.int64)
        always = np.full((1, digits.shape[1]), self._base)
        runs = _find_runs(np.concatenate([always, digits]))
        for start in range(0, self._bits.shape[1], CHUNK_BYTES):
            self._add_chunk(self._bits[:, start : start + CHUNK_BYTES], runs, counts)
        return counts

    def _add_chunk(self, bits: Bits, runs: list[_Run], counts: NDArray[np.int64]) -> None:
        """Fill the buffer with the ANDs of one head after the other; count it when the next would not fit."""
        ands, done = self._ands.reshape(-1)[: len(self._ands) * bits.shape[1]].reshape(-1, bits.shape[1]), 0
        for run in runs:
            heads = bits[run.heads] & np.bitwise_and.reduce(bits[run.stem], axis=0)
            for head, start, stop, tails in zip(heads, run.starts, run.stops, run.tails, strict=True):
                if stop - done > len(ands):
                    counts[done:start] += _popcount(ands[: start - done])
                    done = start
                np.bitwise_and(bits[tails], head, out=ands[start - done : stop - done])
        counts[done:] += _popcount(ands[: len(counts) - done])


def encode(digits: Places, base: int) -> Codes:
    """The code of each column of digits, the first being the highest."""
    codes = np.zeros(digits.shape[1], dtype=np.int64)
    for digit in digits:
        codes *= base
        codes += digit
    return codes


def decode(codes: Codes, size: int, base: int) -> Places:
    """The digits of each code."""
    digits = np.empty((size, len(codes)), dtype=np.intp)
    for digit in digits[::-1]:
        codes, digit[:] = np.divmod(codes, base)
    return digits


def distinct_codes(codes: Codes) -> Codes:
    """The different codes, ascending; sorting beats the hashing of np.unique several times."""
    if (codes[1:] > codes[:-1]).all():
        return codes
    ordered = np.sort(codes)
    different: Codes = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    return different


def _locate(parts: list[Codes], limit: int) -> tuple[Codes, list[Places]]:
    """The different codes of all parts, ascending, and where among them each part's codes are."""
    if limit > DENSE_FACTOR * sum(map(len, parts)):
        distinct = distinct_codes(np.concatenate(parts))
        return distinct, [np.searchsorted(distinct, part) for part in parts]
    places = np.zeros(limit, dtype=np.intp)
    for part in parts:
        places[part] = 1
    distinct = np.flatnonzero(places)
    places[distinct] = np.arange(len(distinct))
    return distinct, [places[part] for part in parts]


def _squeeze(mask: int, bit: int) -> int:
    """The mask with one of its bits taken out."""
    return mask >> (bit + 1) << bit | mask & ((1 << bit) - 1)


def _popcount(ands: Bits) -> NDArray[np.uint16]:
    """The ones of each row."""
    ones: NDArray[np.uint16] = np.bitwise_count(ands.view(np.uint64)).sum(axis=1, dtype=np.uint16)
    return ones


def _find_runs(digits: Places) -> list[_Run]:
    """Group the ascending columns by all digits but the last, and these groups by all but the last two."""
    changes = digits[:-1, 1:] != digits[:-1, :-1]
    starts = np.append(0, np.flatnonzero(changes.any(axis=0)) + 1)
    stops = np.append(starts[1:], digits.shape[1])
    edges = [0, *(np.flatnonzero(changes[:-1].any(axis=0)[starts[1:] - 1]) + 1).tolist(), len(starts)]
    heads, tails = digits[-2, starts], _find_tails(digits[-1], starts, stops)
    lows, highs = starts.tolist(), stops.tolist()
    return [_Run(digits[:-2, lows[i]], heads[i:j], lows[i:j], highs[i:j], tails[i:j]) for i, j in pairwise(edges)]


def _find_tails(lasts: Places, starts: Places, stops: Places) -> list[slice | Places]:
    """The last features of each group: a slice where they follow each other, because a slice is not copied."""
    spans = zip(starts.tolist(), stops.tolist(), lasts[starts].tolist(), lasts[stops - 1].tolist(), strict=True)
    return [
        slice(first, last + 1) if last - first == stop - start - 1 else lasts[start:stop]
        for start, stop, first, last in spans
    ]
