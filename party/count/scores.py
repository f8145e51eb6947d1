"""Scores of attribute-parent pairs as integers, for many candidates at once, with their sensitivities.

PrivBayes ranks a pair (X, Pi) by F (section 4.3), R (5.3) or mutual information I (4.2). All three are taken here
from exact counts and in integer units, so that a choice (party/count/choice.py) never depends on a rounding that a
neighbouring table might not share. n is the number of rows of one party, which is public. Scores are private: they
leave a party only through a choice.

F: 2 n F = -min over splits of (n - 2 K0)+ + (n - 2 K1)+, X binary, see party/count/splits.py.
R: 2 n^2 R = sum over cells of |n c(x, pi) - c(x) c(pi)|.
I: 1024 n I = sum of h(c(x, pi)) - sum of h(c(x)) - sum of h(c(pi)) + h(n), h(c) = 1024 c log2 c as an integer.
"""

from functools import lru_cache

import gmpy2
import numpy as np
from numpy.typing import NDArray

from synod.common.models.candidates import Score
from synod.party.count.splits import least_shortfalls

Ints = NDArray[np.int64]

BITS_GRID = 1024
BLOCK_CELLS = 2**20
MOST_ROWS = 2**30
MOST_TERMS = 2**20
_PRECISION = 128
# Float64 finds 1024 c log2 c within a few parts in 2^52, even if log2 is 8 units in the last place off.
_RELATIVE_MARGIN = 1e-14


def score_tables(kind: Score, tables: Ints) -> Ints:
    """One score for each of `tables`, of shape (candidates, size of X, size of Pi), all of the same n rows.

    Memory beyond the result: a few times a block of 2^20 cells, what party/count/splits.py needs for F, and 8 MiB
    for I.
    """
    if not len(tables):
        return np.empty(0, dtype=np.int64)
    rows = int(tables[0].sum())
    assert rows < MOST_ROWS
    step = max(1, BLOCK_CELLS // tables[0].size)
    score = {"F": _score_f, "R": _score_r, "I": _score_i}[kind]
    return np.concatenate([score(tables[i : i + step], rows) for i in range(0, len(tables), step)])


def score_sensitivity(kind: Score, rows: int, binary: bool) -> int:
    """By how much the integer score of one candidate can change when one of `rows` rows is replaced.

    `binary` says that each candidate's X has two values, or its Pi has.

    Guarantee: an upper bound for every pair of tables that differ in one row, by these proofs.

    F: 2. F is -1/2 of the L1 distance, in probabilities, to the nearest maximum joint distribution. A replaced row
    moves the table by at most 2/n in L1, hence F by at most 1/n. By Lemma 4.3 such a distribution has mass 1/2 at
    X = 0 and at X = 1 and one x for each pi; the nearest for a given split is at distance 2 ((1/2 - K0/n)+ +
    (1/2 - K1/n)+). A split that gives all cells to one side stands for no such distribution, but never wins: with
    K1 = c(X=1) and m >= 2 cells, moving one cell to K0 does not raise the shortfall. If K1 < n/2, there is a cell
    with more zeros than ones. Else the shortfall was n, and the mean over cells of 2 (c(0,pi) - c(1,pi)) + 2 K1 is
    2n/m + 2 K1 (1 - 2/m) >= n, so some cell leaves at most n. A single cell (no parents) always scores -n.

    R: 4 (n-1) if binary, else 6 (n-1); PrivBayes has 6 n + 4. Let the row go from (x, pi) to (x', pi') and D be the
    change of n c(u, v) - c(u) c(v). If x = x', D has +-(n - c(x)) in row x and +-c(u) in the others: 4 (n - c(x)) in
    L1. Likewise if pi = pi'. Otherwise each row of D adds up to zero, so its L1 norm is twice its positive part. Row
    x' is positive at most at pi' and pi, with n - c(pi') - c(x') - 1 and c(x') + 1 - c(pi); each alone and both
    together are at most n - 1, because c(pi) >= 1. Row x is row x' of the way back. The others have 2 c(u) each,
    at most 2 (n-1) in all, and there are none if X is binary; Pi and X are alike.

    I: 1024 n times Lemma 4.1, rounded up, plus 6: at most two cells, two c(x) and two c(pi) change, and h is off by
    at most 1/2 before and after.
    """
    if kind == "F":
        return 2
    if kind == "R":
        return max(1, (4 if binary else 6) * (rows - 1))
    return _information_spread(rows, binary) + 6


def _score_f(tables: Ints, rows: int) -> Ints:
    assert tables.shape[1] == 2
    return -least_shortfalls(tables[:, 0], tables[:, 1], rows)


def _score_r(tables: Ints, rows: int) -> Ints:
    products = tables.sum(axis=2)[:, :, None] * tables.sum(axis=1)[:, None, :]
    scores: Ints = np.abs(rows * tables - products).sum(axis=(1, 2))
    return scores


def _score_i(tables: Ints, rows: int) -> Ints:
    scores: Ints = _weigh(tables, rows).sum(axis=(1, 2)) + _weigh(np.array([rows]), rows)
    for margins in (tables.sum(axis=2), tables.sum(axis=1)):
        scores -= _weigh(margins, rows).sum(axis=1)
    return scores


def _weigh(counts: Ints, rows: int) -> Ints:
    """The terms of counts of n rows: looked up, where a table of all of them is small."""
    return _information_terms(rows)[counts] if rows <= MOST_TERMS else _round_terms(counts)


@lru_cache(maxsize=4)
def _information_terms(rows: int) -> Ints:
    """The terms of all counts up to n."""
    return _round_terms(np.arange(rows + 1))


def _round_terms(counts: Ints) -> Ints:
    """1024 c log2 c to the nearest integer for each count c, the same on every machine.

    Float64 decides unless it is too close to a half; MPFR, correctly rounded to 128 bits, decides then.
    """
    reals = BITS_GRID * counts * np.log2(np.maximum(1, counts))
    terms = np.rint(reals).astype(np.int64)
    is_open = np.abs(reals - np.floor(reals) - 0.5) <= _RELATIVE_MARGIN * reals
    if is_open.any():
        terms[is_open] = [_information_term(count) for count in counts[is_open].tolist()]
    return terms


def _information_term(count: int) -> int:
    with gmpy2.context(precision=_PRECISION):
        return int(gmpy2.rint(BITS_GRID * count * gmpy2.log2(gmpy2.mpfr(max(1, count)))))


def _information_spread(rows: int, binary: bool) -> int:
    """1024 n times the sensitivity of I in bits (PrivBayes, Lemma 4.1), rounded up at every operation."""
    if rows < 2:
        return 0
    with gmpy2.context(precision=_PRECISION, round=gmpy2.RoundUp):
        n = gmpy2.mpfr(rows)
        if binary:
            spread = gmpy2.log2(n) + (n - 1) * gmpy2.log2(n / (n - 1))
        else:
            spread = 2 * gmpy2.log2((n + 1) / 2) + (n - 1) * gmpy2.log2((n + 1) / (n - 1))
        return int(gmpy2.ceil(BITS_GRID * spread))
