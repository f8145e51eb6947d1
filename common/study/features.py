"""Features: what network methods count. A feature is a grouping of one attribute's codes into few values.

`vanilla` takes each attribute as it is; `binary` splits it into the bits of its code, the highest first; `gray` into
the bits of its code's Gray code, in which neighbouring bins differ in one bit. Constant attributes have no feature.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from synod.common.methods.base import HpdpDp
from synod.common.study.encoding import Codes, Coding, codings_of
from synod.common.study.study import Study


@dataclass(frozen=True, slots=True)
class Feature:
    """A column of small values: an attribute's code, or one bit of it (`bit` counts from the lowest)."""

    attribute: int
    size: int
    bit: int | None = None


@lru_cache(maxsize=64)
def features_of(study: Study) -> tuple[Feature, ...]:
    """The features of a study's schema, in its order."""
    assert not isinstance(study.method, HpdpDp)
    features: list[Feature] = []
    for index, coding in enumerate(codings_of(study)):
        if coding.size < 2:
            continue
        if study.method.resolved_encoding == "vanilla":
            features.append(Feature(index, coding.size))
        else:
            features.extend(Feature(index, 2, bit) for bit in reversed(range(_bits(coding))))
    return tuple(features)


def sizes_of(study: Study) -> tuple[int, ...]:
    """How many values each feature has."""
    return tuple(feature.size for feature in features_of(study))


def _bits(coding: Coding) -> int:
    return (coding.size - 1).bit_length()


def encode_features(study: Study, columns: Sequence[Codes]) -> list[Codes]:
    """The feature columns of a table of codes."""
    assert not isinstance(study.method, HpdpDp)
    is_gray = study.method.resolved_encoding == "gray"
    encoded: list[Codes] = []
    for feature in features_of(study):
        codes = columns[feature.attribute]
        if feature.bit is None:
            encoded.append(codes)
            continue
        shifted = codes ^ (codes >> 1) if is_gray else codes
        encoded.append(((shifted >> feature.bit) & 1).astype(np.uint8))
    return encoded


def decode_features(study: Study, features: Sequence[Codes], rows: int) -> list[Codes]:
    """The attributes' codes of feature columns; the inverse of `encode_features` where the code is a valid one."""
    assert not isinstance(study.method, HpdpDp)
    codings = codings_of(study)
    columns: list[NDArray[np.uint32]] = [np.zeros(rows, dtype=np.uint32) for _ in codings]
    for feature, values in zip(features_of(study), features, strict=True):
        shift = 0 if feature.bit is None else feature.bit
        columns[feature.attribute] |= values.astype(np.uint32) << np.uint32(shift)
    if study.method.resolved_encoding == "gray":
        columns = [_from_gray(column) for column in columns]
    return [np.minimum(c, coding.size - 1).astype(coding.dtype) for coding, c in zip(codings, columns, strict=True)]


def _from_gray(codes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    for shift in (1, 2, 4, 8, 16):
        codes = codes ^ (codes >> np.uint32(shift))
    return codes


def valid_codes(study: Study) -> dict[int, tuple[tuple[int, ...], ...]]:
    """For each attribute that is split into bits and does not use all codes: its valid rows of bits, in order."""
    assert not isinstance(study.method, HpdpDp)
    is_gray = study.method.resolved_encoding == "gray"
    found: dict[int, tuple[tuple[int, ...], ...]] = {}
    for index, coding in enumerate(codings_of(study)):
        bits = _bits(coding)
        if study.method.resolved_encoding == "vanilla" or coding.size < 2 or coding.size == 1 << bits:
            continue
        codes = [code ^ (code >> 1) if is_gray else code for code in range(coding.size)]
        found[index] = tuple(tuple(code >> bit & 1 for bit in reversed(range(bits))) for code in codes)
    return found
