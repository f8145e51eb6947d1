"""Answers that travel in the clear, because they are private on their own: rows, counts and chosen parents.

Writing and reading stand side by side; reading checks everything that a sound answer must satisfy.
"""

import json
from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from synod.common.crypto.canonical import canonical_bytes
from synod.common.protocol.queries import ChooseParents, LocalMarginals, Synthesize, cells_of, share_rows
from synod.common.runtime.errors import check_failed
from synod.common.study.encoding import Codes, Coding, codings_of
from synod.common.study.features import sizes_of
from synod.common.study.study import Study

Choice = tuple[int, tuple[int, ...]]
CHOICE_BYTES = 16
LARGEST_DEGREE = 32


def write_rows(columns: Sequence[Codes]) -> bytes:
    """Rows as codes, column after column."""
    return b"".join(column.tobytes() for column in columns)


def read_rows(payload: bytes, codings: tuple[Coding, ...], rows: int) -> list[Codes]:
    """Reads rows; every code must be one of its attribute."""
    columns: list[Codes] = []
    start = 0
    for coding in codings:
        column = np.frombuffer(payload, dtype=coding.dtype, count=rows, offset=start)
        if rows and int(column.max()) >= coding.size:
            raise check_failed(f"a row has a code outside of {coding.attribute.name}'s domain.")
        columns.append(column)
        start += rows * coding.dtype.itemsize
    return columns


def write_counts(counts: NDArray[np.int64]) -> bytes:
    """Noisy counts, table after table."""
    return counts.astype("<i8").tobytes()


def read_counts(payload: bytes, cells: Sequence[int]) -> list[NDArray[np.int64]]:
    """Reads counts into one array for each table."""
    counts = np.frombuffer(payload, dtype="<i8").astype(np.int64)
    return np.split(counts, np.cumsum(cells)[:-1])


def write_choices(choices: Sequence[Choice]) -> bytes:
    """Chosen features with their parents, in the order of choosing."""
    return canonical_bytes([[feature, list(parents)] for feature, parents in choices])


def read_choices(payload: bytes, query: ChooseParents, study: Study) -> list[Choice]:
    """Reads choices; each must be one that the query allows at its turn."""
    try:
        choices = [(int(feature), tuple(int(p) for p in parents)) for feature, parents in json.loads(payload)]
    except (OverflowError, RecursionError, TypeError, ValueError):
        raise check_failed("an answer with chosen parents is malformed.") from None
    if len(choices) != query.count or write_choices(choices) != payload:
        raise check_failed("an answer with chosen parents is not the list that was asked for.")
    placed, candidates, sizes = set(query.placed), dict(query.candidates), sizes_of(study)
    for feature, parents in choices:
        if feature not in candidates:
            raise check_failed("an answer chooses a feature that was not open.")
        allowed = placed.intersection(candidates.pop(feature))
        if not _is_maximal(feature, parents, allowed, sizes, query.max_cells):
            raise check_failed("an answer chooses parents that were not among the candidates.")
        placed.add(feature)
    return choices


def _is_maximal(feature: int, parents: Sequence[int], allowed: set[int], sizes: Sequence[int], max_cells: int) -> bool:
    """Whether `maximal_sets` has these parents, without listing them all."""
    if list(parents) != sorted(allowed.intersection(parents)):
        return False
    cells = prod(sizes[i] for i in (feature, *parents))
    return (not parents or cells <= max_cells) and all(
        cells * sizes[i] > max_cells for i in allowed.difference(parents)
    )


def expected_bytes(query: Synthesize | LocalMarginals | ChooseParents, study: Study, party: str) -> range:
    """How long a sound answer may be."""
    match query:
        case Synthesize():
            row_bytes = sum(coding.dtype.itemsize for coding in codings_of(study))
            exact = share_rows(study)[study.index_of(party)] * row_bytes
        case LocalMarginals():
            exact = 8 * sum(cells_of(query.sets, study))
        case ChooseParents():
            return range(2, 2 + query.count * CHOICE_BYTES * (1 + LARGEST_DEGREE))
    return range(exact, exact + 1)


def check_answer(query: Synthesize | LocalMarginals | ChooseParents, payload: bytes, study: Study, party: str) -> None:
    """Raises unless the answer is sound."""
    match query:
        case Synthesize():
            read_rows(payload, codings_of(study), share_rows(study)[study.index_of(party)])
        case ChooseParents():
            read_choices(payload, query, study)
        case LocalMarginals():
            return  # noisy counts may be any integers
