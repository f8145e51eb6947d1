"""The exact moments of a party's rows, chunk by chunk. They leave only as a part of an encrypted, noisy sum."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from synod.common.models.moments import MomentDesign, row_vectors
from synod.common.study.encoding import CodeColumn

CHUNK_ROWS = 16_384


def sum_moments(design: MomentDesign, columns: Sequence[CodeColumn]) -> NDArray[np.int64]:
    """The exact moments of a table, in integer units.

    A chunk's Gram matrix stays below 2**53 (16,384 rows of products below 2**22), so double arithmetic is exact
    in any order; memory is one chunk of vectors, whatever the table's length.
    """
    gram = np.zeros((design.width, design.width), dtype=np.int64)
    for start in range(0, len(columns[0]), CHUNK_ROWS):
        vectors = row_vectors(design, [column[start : start + CHUNK_ROWS] for column in columns])
        gram += (vectors.T @ vectors).astype(np.int64)
    return gram[design.asked()]
