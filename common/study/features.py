"""Features: what methods count. A feature is a grouping of one attribute's codes into few values.

`vanilla` takes each attribute as it is; `binary` splits it into the bits of its code, the highest first; `gray` into
the bits of its code's Gray code, in which neighbouring bins differ in one bit. Constant attributes have no feature.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from synod.common.study.encoding import Codes, Coding, codings_of
from synod.common.study.study import FeatureEncoding, Study


@dataclass(frozen=True, slots=True)
class Feature:
    """A column of small values: an attribute's code, or one bit of it (`bit` counts from the lowest)."""

    attribute: int
    size: int
    bit: int | None = None


@dataclass(frozen=True, slots=True)
class FeatureSpace:
    """All features of a schema under one encoding, and the way from an attribute's codes to them and back."""

    codings: tuple[Coding, ...]
    encoding: FeatureEncoding

    @property
    def features(self) -> tuple[Feature, ...]:
        """The features, in the schema's order."""
        found: list[Feature] = []
        for index, coding in enumerate(self.codings):
            if coding.size < 2:
                continue
            if self.encoding == "vanilla":
                found.append(Feature(index, coding.size))
            else:
                found.extend(Feature(index, 2, bit) for bit in reversed(range(_bits(coding))))
        return tuple(found)

    def encode(self, columns: Sequence[Codes]) -> list[Codes]:
        """The feature columns of a table of codes."""
        encoded: list[Codes] = []
        for feature in self.features:
            codes = columns[feature.attribute]
            if feature.bit is None:
                encoded.append(codes)
                continue
            shifted = codes ^ (codes >> 1) if self.encoding == "gray" else codes
            encoded.append(((shifted >> feature.bit) & 1).astype(np.uint8))
        return encoded

    def decode(self, features: Sequence[Codes], rows: int) -> list[Codes]:
        """The attributes' codes of feature columns; the inverse of `encode` where the code is a valid one."""
        columns: list[NDArray[np.uint32]] = [np.zeros(rows, dtype=np.uint32) for _ in self.codings]
        for feature, values in zip(self.features, features, strict=True):
            shift = 0 if feature.bit is None else feature.bit
            columns[feature.attribute] |= values.astype(np.uint32) << np.uint32(shift)
        if self.encoding == "gray":
            columns = [_from_gray(column) for column in columns]
        pairs = zip(self.codings, columns, strict=True)
        return [np.minimum(codes, coding.size - 1).astype(coding.dtype) for coding, codes in pairs]

    def valid_codes(self) -> dict[int, tuple[tuple[int, ...], ...]]:
        """For each attribute that is split into bits and does not use all codes: its valid rows of bits, in order."""
        found: dict[int, tuple[tuple[int, ...], ...]] = {}
        for index, coding in enumerate(self.codings):
            bits = _bits(coding)
            if self.encoding == "vanilla" or coding.size < 2 or coding.size == 1 << bits:
                continue
            codes = [code ^ (code >> 1) if self.encoding == "gray" else code for code in range(coding.size)]
            found[index] = tuple(tuple(code >> bit & 1 for bit in reversed(range(bits))) for code in codes)
        return found


def _bits(coding: Coding) -> int:
    return (coding.size - 1).bit_length()


def _from_gray(codes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    for shift in (1, 2, 4, 8, 16):
        codes = codes ^ (codes >> np.uint32(shift))
    return codes


def space_of(study: Study) -> FeatureSpace:
    """The features of a study's schema under its method's encoding."""
    return FeatureSpace(codings_of(study), study.method.feature_encoding)


@lru_cache(maxsize=64)
def features_of(study: Study) -> tuple[Feature, ...]:
    """The features of a study, in the schema's order."""
    return space_of(study).features


def sizes_of(study: Study) -> tuple[int, ...]:
    """How many values each feature has."""
    return tuple(feature.size for feature in features_of(study))
