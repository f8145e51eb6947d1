"""Features: what methods count. A feature is a grouping of one attribute's codes into few values.

`vanilla` takes each attribute as it is; `binary` splits it into the bits of its code, the highest first; `gray` into
the bits of its code's Gray code, in which neighbouring bins differ in one bit. Constant attributes have no feature.
`hierarchical` has each attribute as it is, the base features, and after all of them the coarser levels of each
attribute (common/study/levels.py), the finest first. Elsewhere every feature is a base feature.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from synod.common.study.encoding import Codes, Coding, codings_of
from synod.common.study.levels import coarser_levels
from synod.common.study.study import FeatureEncoding, Study


@dataclass(frozen=True, slots=True)
class Feature:
    """A column of small values: an attribute's code, one bit of it (`bit` counts from the lowest), or a coarser `level`
    of it, for which `groups` says the group of each code.
    """

    attribute: int
    size: int
    bit: int | None = None
    level: int = 0
    groups: tuple[int, ...] = ()


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
            if self.has_whole_codes:
                found.append(Feature(index, coding.size))
            else:
                found.extend(Feature(index, 2, bit) for bit in reversed(range(_bits(coding))))
        return (*found, *(self._coarser_features() if self.encoding == "hierarchical" else ()))

    @property
    def has_whole_codes(self) -> bool:
        """Whether base features are attributes as they are, and not bits."""
        return self.encoding in ("vanilla", "hierarchical")

    def _coarser_features(self) -> Iterator[Feature]:
        """The levels of all attributes but the base features, attribute by attribute."""
        for index, coding in enumerate(self.codings):
            for level, groups in enumerate(coarser_levels(coding), 1):
                yield Feature(index, max(groups) + 1, level=level, groups=groups)

    def encode(self, columns: Sequence[Codes]) -> list[Codes]:
        """The feature columns of a table of codes."""
        encoded: list[Codes] = []
        for feature in self.features:
            codes = columns[feature.attribute]
            if feature.level:
                encoded.append(np.array(feature.groups, dtype=np.min_scalar_type(feature.size - 1))[codes])
                continue
            if feature.bit is None:
                encoded.append(codes)
                continue
            shifted = codes ^ (codes >> 1) if self.encoding == "gray" else codes
            encoded.append(((shifted >> feature.bit) & 1).astype(np.uint8))
        return encoded

    def decode(self, features: Sequence[Codes], rows: int) -> list[Codes]:
        """The attributes' codes of feature columns; the inverse of `encode` where the code is a valid one. Coarser
        levels add nothing, and may be left out.
        """
        columns: list[NDArray[np.uint32]] = [np.zeros(rows, dtype=np.uint32) for _ in self.codings]
        bases = [feature for feature in self.features if not feature.level]
        for feature, values in zip(bases, features[: len(bases)], strict=True):
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
            if self.has_whole_codes or coding.size < 2 or coding.size == 1 << bits:
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
    """The features of a study, in the schema's order; coarser levels after all base features."""
    return space_of(study).features


def sizes_of(study: Study) -> tuple[int, ...]:
    """How many values each feature has."""
    return tuple(feature.size for feature in features_of(study))


def base_count(study: Study) -> int:
    """How many features are no coarser levels of others: d of the papers."""
    return sum(not feature.level for feature in features_of(study))


def base_sizes(study: Study) -> tuple[int, ...]:
    """How many values each base feature has."""
    return sizes_of(study)[: base_count(study)]


@lru_cache(maxsize=64)
def chains_of(study: Study) -> tuple[tuple[int, ...], ...]:
    """For each base feature its levels, itself first and the coarsest last; each level's index is above the finer
    one's.
    """
    features = features_of(study)
    coarser: dict[int, list[int]] = {}
    for index, feature in enumerate(features):
        if feature.level:
            coarser.setdefault(feature.attribute, []).append(index)
    return tuple(
        (index, *coarser.get(feature.attribute, ())) for index, feature in enumerate(features) if not feature.level
    )


@lru_cache(maxsize=64)
def bases_of(study: Study) -> tuple[int, ...]:
    """For each feature the base feature that it is, or is a coarser level of."""
    bases = dict.fromkeys(range(len(features_of(study))), 0)
    for base, chain in enumerate(chains_of(study)):
        bases |= dict.fromkeys(chain, base)
    return tuple(bases.values())
