"""Codes: the small integers by which a table is stored, counted and drawn.

A categorical value is its position among the categories. A number is a level, the nearest of `levels + 1` evenly
spaced points of its public range, or, for methods that count cells, the bin that it lies in. A nullable attribute
has one more code, the last, for a missing value. A level comes back as the number it stands for; a bin comes back
as a number drawn uniformly in it.
"""

from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from synod.common.study.schema import Attribute, CategoricalAttribute, IntegerAttribute, RealAttribute
from synod.common.study.study import Study

Codes = NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Coding:
    """How one attribute's values become codes under a study: numbers as levels, or as bins where `levels` is None."""

    attribute: Attribute
    levels: int | None

    @property
    def value_codes(self) -> int:
        """How many codes stand for values."""
        if isinstance(self.attribute, CategoricalAttribute):
            return len(self.attribute.categories)
        if self.is_constant:
            return 1
        return self.attribute.bins if self.levels is None else self.levels + 1

    @property
    def size(self) -> int:
        """How many codes there are, the missing value's included."""
        return self.value_codes + self.attribute.nullable

    @property
    def null_code(self) -> int:
        """The code of a missing value; only a nullable attribute has one."""
        assert self.attribute.nullable
        return self.value_codes

    @property
    def is_constant(self) -> bool:
        """Whether the public domain has a single value."""
        if isinstance(self.attribute, CategoricalAttribute):
            return len(self.attribute.categories) == 1
        return self.attribute.min == self.attribute.max

    @property
    def dtype(self) -> np.dtype[np.unsignedinteger]:
        """The narrowest type that holds every code."""
        return np.dtype(np.min_scalar_type(self.size - 1))


def codings_of(study: Study) -> tuple[Coding, ...]:
    """The codings of a study's schema, in its order."""
    return tuple(Coding(attribute, study.method.number_levels) for attribute in study.attributes)


def binned_codings(study: Study) -> tuple[Coding, ...]:
    """The codings of a study's schema with every number in its bin, whatever the method."""
    return tuple(Coding(attribute, None) for attribute in study.attributes)


def encode_numbers(coding: Coding, values: NDArray[np.float64]) -> Codes:
    """The nearest level of each number, or its bin; the numbers lie within the attribute's bounds."""
    attribute = coding.attribute
    assert not isinstance(attribute, CategoricalAttribute)
    if coding.is_constant:
        return np.zeros(len(values), dtype=coding.dtype)
    low, width = float(attribute.min), _width(attribute)
    if coding.levels is not None:
        span = float(attribute.max) - low
        return np.clip(np.rint((values - low) * (coding.levels / span)), 0, coding.levels).astype(coding.dtype)
    # the division comes last, so that an integer at the edge of a bin is not rounded into the one before
    return np.clip((values - low) * attribute.bins / width, 0, attribute.bins - 1).astype(coding.dtype)


def _width(attribute: IntegerAttribute | RealAttribute) -> float:
    """How wide the range is that bins divide: an integer takes the room up to the next one."""
    return float(attribute.max) - float(attribute.min) + isinstance(attribute, IntegerAttribute)


def decode_numbers(
    coding: Coding, codes: Codes, *, rng: np.random.Generator
) -> NDArray[np.float64] | NDArray[np.int64]:
    """The numbers that codes stand for, integers for an integer attribute; a bin's is drawn uniformly in it."""
    attribute = coding.attribute
    assert not isinstance(attribute, CategoricalAttribute)
    low, high = float(attribute.min), float(attribute.max)
    if coding.is_constant:
        numbers = np.full(len(codes), low)
    elif coding.levels is not None:
        numbers = low + codes.astype(np.float64) / coding.levels * (high - low)
    else:
        numbers = low + (codes + rng.random(len(codes))) * (_width(attribute) / attribute.bins)
        return _inside_bin(coding, codes, numbers)
    if isinstance(attribute, IntegerAttribute):
        whole: NDArray[np.int64] = np.clip(np.rint(numbers).astype(np.int64), attribute.min, attribute.max)
        return whole
    rounded = np.round(numbers, _decimals(attribute.min, attribute.max, coding.levels or 1))
    inside: NDArray[np.float64] = np.clip(rounded, low, high)
    return inside


def _inside_bin(coding: Coding, codes: Codes, numbers: NDArray[np.float64]) -> NDArray[np.float64] | NDArray[np.int64]:
    """Rounds without leaving the bin: what would, takes the next place inside."""
    attribute = coding.attribute
    assert not isinstance(attribute, CategoricalAttribute)
    if isinstance(attribute, IntegerAttribute):
        width, places = _width(attribute), codes.astype(np.float64)
        first = np.ceil(places * width / attribute.bins)
        last = np.ceil((places + 1) * width / attribute.bins) - 1
        return (attribute.min + np.clip(np.floor(numbers - attribute.min), first, last)).astype(np.int64)
    decimals = _decimals(attribute.min, attribute.max, 16 * attribute.bins)
    rounded = np.round(numbers, decimals)
    astray = np.sign(codes.astype(np.int64) - encode_numbers(coding, rounded))
    moved = np.round(rounded + astray * 10.0**-decimals, decimals)
    inside: NDArray[np.float64] = np.clip(moved, float(attribute.min), float(attribute.max))
    return inside


def _decimals(low: Decimal, high: Decimal, levels: int) -> int:
    """Enough decimals to tell neighbouring levels apart, and one more."""
    step = (high - low) / levels
    return max(0, 1 - step.adjusted())
