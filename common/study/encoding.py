"""Codes: the small integers by which a table is stored, counted and drawn.

A categorical value is its position among the categories. A number is a level, the nearest of `levels + 1` evenly
spaced points of its public range, or, for methods that count cells, the bin that it lies in, or one of its spikes,
values that have codes of their own after those of the bins. A nullable attribute has one more code, the last, for a
missing value. A level or a spike comes back as the number it stands for; a bin comes back as a number drawn uniformly
from what is left of it without spikes. Where bins have edges, points are spaced evenly between each two edges, as many
in a bin as in any other. Dates and booleans are encoded as the attributes that `plain` makes of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from synod.common.privacy.coins import KEY_BYTES, Coins
from synod.common.study.attributes import plain
from synod.common.study.schema import CategoricalAttribute, IntegerAttribute, PlainAttribute, RealAttribute
from synod.common.study.study import Study

Codes = NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32]
Numeric = IntegerAttribute | RealAttribute


class CodeColumn(Protocol):
    """One column of codes that is read in slices of rows: an array, or what makes arrays when it is asked."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its codes."""

    def __len__(self) -> int:
        """How many rows there are."""

    def __getitem__(self, rows: slice, /) -> Any:
        """The codes of some rows, as an array."""

    def tolist(self) -> Any:
        """All codes."""


@dataclass(frozen=True, slots=True)
class Coding:
    """How one attribute's values become codes under a study: numbers as levels, or as bins where `levels` is None.

    `spikes` are the values that have codes of their own beside the bins.
    """

    attribute: PlainAttribute
    levels: int | None
    spikes: tuple[float, ...] = ()

    @property
    def value_codes(self) -> int:
        """How many codes stand for values."""
        if isinstance(self.attribute, CategoricalAttribute):
            return len(self.attribute.categories)
        if self.is_constant:
            return 1
        return self.attribute.bins + len(self.spikes) if self.levels is None else self.levels + 1

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

    def in_order(self) -> list[int]:
        """The codes of a number's values in the order of the numbers: a spike beside the bin that it lies in."""
        assert isinstance(self.attribute, Numeric)
        if self.levels is not None or self.is_constant:
            return list(range(self.value_codes))
        spikes = np.array(self.spikes)
        bins = _find_bins(self.attribute, spikes)
        sides = np.where(spikes < _middles(self, bins), -0.5, 0.5)
        keyed = [(float(code), code) for code in range(self.attribute.bins)]
        keyed += [(key, self.attribute.bins + place) for place, key in enumerate((bins + sides).tolist())]
        return [code for _, code in sorted(keyed)]


def codings_of(study: Study) -> tuple[Coding, ...]:
    """The codings of a study's schema, in its order."""
    levels = study.method.number_levels
    attributes = [plain(attribute) for attribute in study.attributes]
    return tuple(Coding(one, levels, _spikes_of(one) if levels is None else ()) for one in attributes)


def binned_codings(study: Study) -> tuple[Coding, ...]:
    """The codings of a study's schema with every number in its bin, whatever the method."""
    return tuple(Coding(plain(attribute), None) for attribute in study.attributes)


def to_bins(study: Study, columns: Sequence[Codes]) -> list[Codes]:
    """A study's own codes in the schema's bins, whatever the method."""
    pairs = zip(codings_of(study), binned_codings(study), columns, strict=True)
    return [_to_bins(coding, binned, codes) for coding, binned, codes in pairs]


def _to_bins(coding: Coding, binned: Coding, codes: Codes) -> Codes:
    """The bin of the number that each level or spike stands for; a missing value stays one."""
    if coding == binned or isinstance(coding.attribute, CategoricalAttribute):
        return codes
    every = np.arange(coding.value_codes).astype(coding.dtype)
    numbers = decode_numbers(coding, every, coins=Coins(bytes(KEY_BYTES)))  # where in its bin a number is, is no matter
    bins = encode_numbers(binned, numbers.astype(np.float64))
    return np.append(bins, binned.value_codes).astype(binned.dtype)[codes]


def _spikes_of(attribute: PlainAttribute) -> tuple[float, ...]:
    """The spikes of a number, but for the last of a bin that holds nothing else: that one has the bin for itself."""
    if isinstance(attribute, CategoricalAttribute) or attribute.min == attribute.max:
        return ()
    spikes = np.array([float(spike) for spike in attribute.spikes])
    if isinstance(attribute, RealAttribute):
        return tuple(spikes.tolist())
    bins = _find_bins(attribute, spikes)
    first, last = _bin_ends(attribute, bins)
    together = np.count_nonzero(bins[:, np.newaxis] == bins, axis=1)
    return tuple(spikes[(together <= last - first) | (spikes < last)].tolist())


def encode_numbers(coding: Coding, values: NDArray[np.float64]) -> Codes:
    """The nearest level of each number, or its spike or bin; the numbers lie within the attribute's bounds."""
    attribute = coding.attribute
    assert isinstance(attribute, Numeric)
    if coding.is_constant:
        return np.zeros(len(values), dtype=coding.dtype)
    if coding.levels is not None:
        return np.clip(np.rint(_find_places(attribute, coding.levels, values)), 0, coding.levels).astype(coding.dtype)
    codes = _find_bins(attribute, values).astype(coding.dtype)
    for place, spike in enumerate(coding.spikes):
        codes[values == spike] = attribute.bins + place
    return codes


def _find_places(attribute: Numeric, levels: int, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where each number lies among so many levels, not yet rounded to one."""
    if not attribute.edges:
        low, high = float(attribute.min), float(attribute.max)
        places: NDArray[np.float64] = (values - low) * (levels / (high - low))
        return places
    bins = _find_bins(attribute, values)
    first, width = _edges(attribute)[bins], _bin_widths(attribute)[bins]
    parts = np.divide(values - first, width, out=np.zeros(len(values)), where=width > 0)
    return (bins + parts) * levels / attribute.bins


def level_numbers(coding: Coding) -> NDArray[np.float64]:
    """The number at each level, not yet rounded to what the attribute can be."""
    attribute, levels = coding.attribute, coding.levels
    assert isinstance(attribute, Numeric)
    assert levels is not None
    low, high, places = float(attribute.min), float(attribute.max), np.arange(levels + 1, dtype=np.float64)
    if not attribute.edges:
        evenly: NDArray[np.float64] = low + places / levels * (high - low)
        return evenly
    places = places * attribute.bins / levels
    bins = np.minimum(places.astype(np.int64), attribute.bins - 1)
    between: NDArray[np.float64] = _edges(attribute)[bins] + (places - bins) * _bin_widths(attribute)[bins]
    return between


def _edges(attribute: Numeric) -> NDArray[np.float64]:
    return np.array([float(edge) for edge in attribute.edges])


def _bin_widths(attribute: Numeric) -> NDArray[np.float64]:
    """How far the last number of each bin is from its first; of a real number, the next bin's first."""
    return np.diff(_edges(attribute))


def _find_bins(attribute: Numeric, values: NDArray[np.float64]) -> NDArray[np.int64]:
    """The bin of each number. With edges nothing is computed: numbers are compared with them."""
    if attribute.edges:
        return np.searchsorted(_edges(attribute)[1:-1], values, side="right").astype(np.int64)
    # the division comes last, so that an integer at the edge of a bin is not rounded into the one before
    places = (values - float(attribute.min)) * attribute.bins / _width(attribute)
    return np.clip(places, 0, attribute.bins - 1).astype(np.int64)


def _width(attribute: Numeric) -> float:
    """How wide the range is that bins divide: an integer takes the room up to the next one."""
    return float(attribute.max) - float(attribute.min) + isinstance(attribute, IntegerAttribute)


def _middles(coding: Coding, bins: NDArray[np.int64]) -> NDArray[np.float64]:
    """The mean of what each bin stands for."""
    attribute = coding.attribute
    assert isinstance(attribute, Numeric)
    if isinstance(attribute, RealAttribute) and attribute.edges:
        return _edges(attribute)[bins] + _bin_widths(attribute)[bins] / 2
    if isinstance(attribute, RealAttribute):
        places = bins.astype(np.float64) + 0.5
        return float(attribute.min) + places * (_width(attribute) / attribute.bins)
    first, last = _bin_ends(attribute, bins)
    total, count = (last - first + 1) * (first + last) / 2, last - first + 1
    for spike, own in zip(coding.spikes, _find_bins(attribute, np.array(coding.spikes)).tolist(), strict=True):
        total, count = total - (bins == own) * spike, count - (bins == own)
    middles: NDArray[np.float64] = total / count
    return middles


def _bin_ends(attribute: Numeric, bins: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The first and the last integer of each bin."""
    if attribute.edges:
        starts = _edges(attribute)[:-1]
        return starts[bins], np.append(starts[1:] - 1, float(attribute.max))[bins]
    width, places = _width(attribute), bins.astype(np.float64)
    first = np.ceil(places * width / attribute.bins)
    last = np.ceil((places + 1) * width / attribute.bins) - 1
    return attribute.min + first, attribute.min + last


def decode_numbers(coding: Coding, codes: Codes, *, coins: Coins) -> NDArray[np.float64] | NDArray[np.int64]:
    """The numbers that codes stand for, integers for an integer attribute; a bin's is drawn uniformly in it.

    The coins are public randomness: whoever has their key draws the same numbers.
    """
    attribute = coding.attribute
    assert isinstance(attribute, Numeric)
    low, high = float(attribute.min), float(attribute.max)
    if coding.is_constant:
        numbers = np.full(len(codes), low)
    elif coding.levels is not None:
        numbers = level_numbers(coding)[codes]
    else:
        return _decode_bins(coding, codes, coins=coins)
    if isinstance(attribute, IntegerAttribute):
        whole: NDArray[np.int64] = np.clip(np.rint(numbers).astype(np.int64), attribute.min, attribute.max)
        return whole
    if attribute.edges:
        decimals = _bin_decimals(attribute, -(-(coding.levels or 1) // attribute.bins))
        rounded = _round(numbers, decimals[_find_bins(attribute, numbers)])
    else:
        rounded = _round(numbers, _decimals(attribute.min, attribute.max, coding.levels or 1))
    inside: NDArray[np.float64] = np.clip(rounded, low, high)
    return inside


def _decode_bins(coding: Coding, codes: Codes, *, coins: Coins) -> NDArray[np.float64] | NDArray[np.int64]:
    attribute = coding.attribute
    assert isinstance(attribute, Numeric)
    bins = np.minimum(codes.astype(np.int64), attribute.bins - 1)
    draw = _draw_integers if isinstance(attribute, IntegerAttribute) else _draw_reals
    drawn = draw(coding, bins, coins.draw_uniforms(len(codes)))
    for place, spike in enumerate(coding.spikes):
        drawn[codes == attribute.bins + place] = spike
    return drawn


def _draw_integers(coding: Coding, bins: NDArray[np.int64], uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
    """One of the integers of each bin that are no spikes, all alike."""
    attribute = coding.attribute
    assert isinstance(attribute, IntegerAttribute)
    first, last = _bin_ends(attribute, bins)
    spikes = [(spike, (first <= spike) & (spike <= last)) for spike in coding.spikes]
    count = last - first + 1 - sum(inside for _, inside in spikes)
    whole = first + np.minimum(np.floor(uniforms * count), count - 1)
    for spike, inside in spikes:
        whole += inside & (spike <= whole)
    return whole.astype(np.int64)


def _draw_reals(coding: Coding, bins: NDArray[np.int64], uniforms: NDArray[np.float64]) -> NDArray[np.float64]:
    """A rounded number of each bin; what would leave the bin, or be a spike, takes the next place towards its middle.

    A bin has 160 places or more, so it has room beside all spikes.
    """
    attribute = coding.attribute
    assert isinstance(attribute, RealAttribute)
    low, high = float(attribute.min), float(attribute.max)
    decimals: int | NDArray[np.int64]
    if attribute.edges:
        decimals = _bin_decimals(attribute, 16)[bins]
        exact = _edges(attribute)[bins] + uniforms * _bin_widths(attribute)[bins]
    else:
        decimals = _decimals(attribute.min, attribute.max, 16 * attribute.bins)
        exact = low + (bins + uniforms) * (_width(attribute) / attribute.bins)
    drawn = _round(exact, decimals)
    inwards = np.where(uniforms < 0.5, 1, -1) / _scale(decimals)
    for _ in range(len(coding.spikes) + 2):
        astray = (drawn < low) | (drawn > high) | (_find_bins(attribute, drawn) != bins)
        astray |= np.isin(drawn, coding.spikes)
        drawn = np.where(astray, _round(drawn + inwards, decimals), drawn)
    inside: NDArray[np.float64] = np.clip(drawn, low, high)
    return inside


def _round(numbers: NDArray[np.float64], decimals: int | NDArray[np.int64]) -> NDArray[np.float64]:
    """Rounded to so many decimals by three operations that every machine does alike; a library's own may change."""
    scale = _scale(decimals)
    rounded: NDArray[np.float64] = np.rint(numbers * scale) / scale
    return rounded


def _scale(decimals: int | NDArray[np.int64]) -> NDArray[np.float64]:
    """Ten to the power of each, by whole numbers."""
    each = np.asarray(decimals)
    powers = np.array([float(10**power) for power in range(int(each.max(initial=0)) + 1)])
    scale: NDArray[np.float64] = powers[each]
    return scale


def _bin_decimals(attribute: RealAttribute, levels: int) -> NDArray[np.int64]:
    """How many decimals tell so many levels of each bin apart."""
    return np.array([_decimals(low, high, levels) for low, high in pairwise(attribute.edges)])


def _decimals(low: Decimal, high: Decimal, levels: int) -> int:
    """Enough decimals to tell neighbouring levels apart, and one more."""
    step = (high - low) / levels
    return max(0, 1 - step.adjusted())
