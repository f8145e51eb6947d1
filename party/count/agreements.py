"""In how many rows the signs of two features agree, for all pairs at once. What it returns is private and exact, and
leaves the party only as a part of an encrypted, noisy sum.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from synod.common.protocol.queries.agreements import Agreements, SumAgreements, unpack_signs
from synod.common.study.encoding import CodeColumn
from synod.common.study.features import sizes_of
from synod.common.study.study import Study
from synod.party.count.columns import chunks_of, feature_columns

CHUNK_ROWS = 2**14


def count_agreements(query: SumAgreements, study: Study, columns: Sequence[CodeColumn]) -> NDArray[np.int64]:
    """The exact numbers that a query asks for, of one table of codes."""
    sizes, features = sizes_of(study), feature_columns(study, columns)
    two_valued = [index for index, size in enumerate(sizes) if size == 2] if query.ones else []
    ones = query.ones * _count_ones(features, two_valued)
    pairs = [_count_pairs(features, unpack_signs(split, sizes)) for split in query.splits]
    return query.join(Agreements(ones, np.array(pairs)))


def _count_ones(features: Sequence[CodeColumn], two_valued: Sequence[int]) -> NDArray[np.int64]:
    ones = np.zeros(len(two_valued), dtype=np.int64)
    for chunk in chunks_of(features, CHUNK_ROWS) if two_valued else ():
        ones += [int(np.count_nonzero(chunk[index])) for index in two_valued]
    return ones


def _count_pairs(features: Sequence[CodeColumn], signs: Sequence[NDArray[np.int8]]) -> NDArray[np.int64]:
    """One matrix product for each chunk of rows: of n rows with signs x and y, (n + sum of x y) / 2 agree.

    The sums stay below 2^24, so single precision is exact in any order. Memory: 64 KiB for each feature. Measured on 15
    and 50 features and 10^5 and 10^6 rows, it takes 0.76 to 0.93 of the time of popcounts over packed signs.
    """
    count, rows = len(features), len(features[0])
    values = [sign.astype(np.float32) for sign in signs]
    buffer = np.empty((count, min(rows, CHUNK_ROWS)), dtype=np.float32)
    products = np.zeros((count, count), dtype=np.int64)
    for start in range(0, rows, CHUNK_ROWS):
        chunk = buffer[:, : rows - start]
        for line, value, column in zip(chunk, values, features, strict=True):
            # Without a mode numpy looks for codes that are out of range, and takes twice as long; there are none.
            np.take(value, column[start : start + CHUNK_ROWS], out=line, mode="clip")
        products += (chunk @ chunk.T).astype(np.int64)
    return (rows + products[np.triu_indices(count, 1)]) // 2
