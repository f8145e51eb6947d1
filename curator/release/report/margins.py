"""One-way margins: what the synthetic rows have of each attribute, beside what was released about it.

A released number comes with a band of 2.12 standard deviations of its noise. For one discrete Laplace variable that
is the interval that covers with a chance of 95 %; sums of several have lighter tails, so it covers more often.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synod.common.models.moments import SignedColumn, unfold
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.moments import SumMoments, moment_design
from synod.common.study.attributes import DaysAttribute
from synod.common.study.encoding import Coding, codings_of, encode_numbers, level_numbers
from synod.common.study.features import features_of, space_of
from synod.common.study.schema import CategoricalAttribute, IntegerAttribute
from synod.common.study.study import Study
from synod.curator.methods.base import Publication
from synod.curator.network.evidence import Evidence
from synod.curator.release.report.wording import MISSING, describe_domain, find_spikes, name_bin, name_codes, name_runs

BAND = math.log(20) / math.sqrt(2)
LEAST_BINS_DRAWN = 13  # fewer show their shape as a list
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Reading:
    """A number of the synthetic rows, and the released one with half the width of its band where there is one."""

    label: str
    synthetic: float
    released: float | None = None
    band: float = 0.0

    @property
    def is_outside(self) -> bool:
        """Whether the synthetic rows are further off than the noise of the released number explains."""
        return self.released is not None and abs(self.synthetic - self.released) > self.band


@dataclass(frozen=True, slots=True)
class Gauge:
    """A released figure of a number, in its own unit, between its least and greatest value, with its band's ends."""

    label: str
    low: float
    high: float
    synthetic: float
    released: float
    band: tuple[float, float]

    @property
    def is_outside(self) -> bool:
        """Whether the synthetic rows' figure is outside of the band."""
        return not self.band[0] <= self.synthetic <= self.band[1]


@dataclass(frozen=True, slots=True)
class Margin:
    """What the page shows of one attribute.

    `shares` are of its categories, or of its bins and spikes in the order of the numbers; `histogram` are shares of
    bins with their spikes, as one drawing; `groups` are shares of parts of the codes, for attributes whose codes were
    counted bit by bit.
    """

    name: str
    domain: str
    shares: tuple[Reading, ...] = ()
    histogram: tuple[Reading, ...] = ()
    groups: tuple[Reading, ...] = ()
    gauges: tuple[Gauge, ...] = ()
    is_constant: bool = False

    @property
    def compared(self) -> list[Reading | Gauge]:
        """All that the rows have beside a released number."""
        readings = [one for one in (*self.shares, *self.groups) if one.released is not None]
        return [*readings, *self.gauges]


def read_margins(study: Study, publication: Publication) -> list[Margin]:
    """The margins of all attributes, in the schema's order."""
    counts = count_codes(study, publication)
    if publication.moments is not None:
        return list(_moment_margins(study, publication, counts))
    return list(_table_margins(study, Evidence(study, list(publication.tables)), counts))


def count_codes(study: Study, publication: Publication) -> list[NDArray[np.int64]]:
    """How often each code occurs in the synthetic rows, for each attribute."""
    pairs = zip(codings_of(study), publication.columns, strict=True)
    return [np.bincount(column, minlength=coding.size) for coding, column in pairs]


def constant_margin(coding: Coding) -> Margin:
    """An attribute whose public domain leaves nothing open."""
    return Margin(
        coding.attribute.name, describe_domain(coding), (Reading(name_codes(coding)[0], 1.0),), is_constant=True
    )


# Margins from pooled moments


def moment_deviation(study: Study, present: tuple[int, ...]) -> float:
    """The standard deviation of the noise of one entry of the Gram matrix, per row of those who were present."""
    query = SumMoments(present)
    terms = query.terms(plan_study(study).step("moments"), study)
    return math.sqrt(terms.variance) / (query.unit(study) * query.present_rows(study))


def _moment_margins(study: Study, publication: Publication, counts: Sequence[NDArray[np.int64]]) -> Iterator[Margin]:
    assert publication.moments is not None
    design, deviation = moment_design(study), moment_deviation(study, publication.present)
    gram = unfold(design, publication.moments, study.total_rows)
    signed = {(column.attribute, column.role): place for place, column in enumerate(design.signed, 1)}
    blocks = {block.attribute: span for block, span in design.block_slices()}
    for index, coding in enumerate(design.codings):
        if (index, "number") in signed:
            missing = signed.get((index, SignedColumn(index, "missing").role))
            yield _number_margin(coding, counts[index], gram, signed[index, "number"], missing, deviation)
        elif (index, "binary") in signed:
            share = 2 * float(gram[0, signed[index, "binary"]]) + 0.5
            yield _share_margin(coding, counts[index], [1 - share, share], [2 * deviation] * 2)
        elif index in blocks:
            shares = [float(share) for share in np.diag(gram)[blocks[index]]]
            yield _share_margin(coding, counts[index], shares, [deviation] * len(shares))
        else:
            yield constant_margin(coding)


def _share_margin(
    coding: Coding, counts: NDArray[np.int64], released: Sequence[float], deviations: Sequence[float]
) -> Margin:
    drawn = counts / max(1, int(counts.sum()))
    readings = tuple(
        Reading(label, float(share), value, BAND * deviation)
        for label, share, value, deviation in zip(name_codes(coding), drawn, released, deviations, strict=True)
    )
    return Margin(coding.attribute.name, describe_domain(coding), readings)


def _number_margin(
    coding: Coding, counts: NDArray[np.int64], gram: Floats, place: int, missing: int | None, deviation: float
) -> Margin:
    rows = max(1, int(counts.sum()))
    shares: tuple[Reading, ...] = ()
    if missing is not None:
        released = 2 * float(gram[0, missing]) + 0.5
        shares = (Reading(MISSING, int(counts[coding.null_code]) / rows, released, 2 * BAND * deviation),)
    gauges = (
        ()
        if _bends(coding)
        else _gauges(coding, counts, 2 * float(gram[0, place]), float(gram[place, place]), deviation)
    )
    histogram = tuple(
        Reading(label, share / rows)
        for label, share in zip(name_codes(coding), _bin_counts(coding, counts), strict=False)
    )
    return Margin(coding.attribute.name, describe_domain(coding), shares, histogram, gauges=gauges)


def _bends(coding: Coding) -> bool:
    """Whether moments are of something else than the number: of its place between edges, or of days."""
    return not isinstance(coding.attribute, CategoricalAttribute) and (
        bool(coding.attribute.edges) or isinstance(coding.attribute, DaysAttribute)
    )


def _bin_counts(coding: Coding, counts: NDArray[np.int64]) -> list[int]:
    """How many rows are in each of the schema's bins, from how many are at each level."""
    attribute = coding.attribute
    assert not isinstance(attribute, CategoricalAttribute)
    assert coding.levels is not None
    values = level_numbers(coding)
    if isinstance(attribute, IntegerAttribute):
        values = np.clip(np.rint(values), float(attribute.min), float(attribute.max))
    bins = encode_numbers(Coding(attribute, None), values)
    return [int(counts[: coding.levels + 1][bins == place].sum()) for place in range(attribute.bins)]


def _gauges(
    coding: Coding, counts: NDArray[np.int64], mean: float, square: float, deviation: float
) -> tuple[Gauge, Gauge]:
    """Mean and standard deviation; a missing value counts as the middle of the range on both sides.

    The noise of the variance, square - mean^2, is that of the square and, to first order, 2 mean times the mean's.
    """
    attribute = coding.attribute
    assert not isinstance(attribute, CategoricalAttribute)
    assert coding.levels is not None
    low, high = float(attribute.min), float(attribute.max)
    span, middle, rows = high - low, (low + high) / 2, max(1, int(counts.sum()))
    places = np.arange(coding.levels + 1) / coding.levels - 0.5
    drawn = counts[: coding.levels + 1]
    drawn_mean = float((drawn * places).sum()) / rows
    drawn_variance = float((drawn * places**2).sum()) / rows - drawn_mean**2
    variance = square - mean**2
    mean_band, variance_band = 2 * BAND * deviation, BAND * deviation * math.hypot(1, 4 * mean)
    ends = (mean - mean_band, mean + mean_band)
    spreads = [_root(v) * span for v in (variance - variance_band, variance, variance + variance_band, drawn_variance)]
    return (
        Gauge(
            "mean", low, high, middle + drawn_mean * span, middle + mean * span,
            (middle + ends[0] * span, middle + ends[1] * span),
        ),
        Gauge("standard deviation", 0.0, span / 2, spreads[3], spreads[1], (spreads[0], spreads[2])),
    )  # fmt: skip


def _root(variance: float) -> float:
    return math.sqrt(max(0.0, variance))


# Margins from tables


def _table_margins(study: Study, evidence: Evidence, counts: Sequence[NDArray[np.int64]]) -> Iterator[Margin]:
    features, codings = features_of(study), codings_of(study)
    values = space_of(study).encode([np.arange(coding.size, dtype=coding.dtype) for coding in codings])
    for index, coding in enumerate(codings):
        own = [i for i, feature in enumerate(features) if feature.attribute == index and not feature.level]
        if not own:
            yield constant_margin(coding)
            continue
        drawn = counts[index] / max(1, int(counts[index].sum()))
        cells = np.ravel_multi_index([values[i] for i in own], [features[i].size for i in own])
        shares = tuple(_read_table(evidence, tuple(own), name_codes(coding), cells, drawn))
        if len(own) == 1 or _says_something(shares):
            histogram = _outline(coding, drawn) if _has_many_bins(coding) else ()
            ordered = tuple(shares[code] for code in _order_codes(coding))
            yield Margin(coding.attribute.name, describe_domain(coding), ordered, histogram)
            continue
        shares = tuple(Reading(reading.label, reading.synthetic) for reading in shares)
        groups = tuple(_read_bit(evidence, coding, bit, values[bit], drawn) for bit in own)
        name, domain = coding.attribute.name, describe_domain(coding)
        if isinstance(coding.attribute, CategoricalAttribute):
            yield Margin(name, domain, shares, groups=groups)
        else:
            yield Margin(name, domain, shares[coding.attribute.bins :], _outline(coding, drawn), groups)


def _order_codes(coding: Coding) -> list[int]:
    """The codes as a list shows them: numbers in their order, a missing value last."""
    if isinstance(coding.attribute, CategoricalAttribute):
        return list(range(coding.size))
    return coding.in_order() + list(range(coding.value_codes, coding.size))


def _has_many_bins(coding: Coding) -> bool:
    """Whether a number has so many bins that a list of them shows no shape."""
    if isinstance(coding.attribute, CategoricalAttribute) or coding.is_constant:
        return False
    return coding.attribute.bins >= LEAST_BINS_DRAWN


def _outline(coding: Coding, drawn: Floats) -> tuple[Reading, ...]:
    """A number's shares by bin: a spike is a part of the bin that it lies in."""
    attribute = coding.attribute
    assert not isinstance(attribute, CategoricalAttribute)
    shares = drawn[: attribute.bins].copy()
    np.add.at(shares, find_spikes(coding), drawn[attribute.bins : coding.value_codes])
    whole_bins = Coding(attribute, None)
    return tuple(Reading(name_bin(whole_bins, place), float(share)) for place, share in enumerate(shares))


def _read_table(
    evidence: Evidence, features: tuple[int, ...], labels: Sequence[str], cells: NDArray[np.intp], drawn: Floats
) -> Iterator[Reading]:
    """The shares of all codes, with the released ones if all rows were counted by all features of the attribute."""
    table = evidence.counted(features)
    for label, cell, share in zip(labels, cells, drawn, strict=True):
        if table is None:
            yield Reading(label, float(share))
        else:
            band = math.ceil(BAND * math.sqrt(table.variances[cell])) / table.rows
            yield Reading(label, float(share), float(table.counts[cell]) / table.rows, band)


def _says_something(shares: Sequence[Reading]) -> bool:
    """Whether the codes of several bits were counted together, with a band below the share of an average code."""
    return shares[0].released is not None and shares[0].band < 1 / len(shares)


def _read_bit(evidence: Evidence, coding: Coding, bit: int, values: NDArray[np.integer], drawn: Floats) -> Reading:
    label = _shorten(name_runs(coding, np.flatnonzero(values).tolist()))
    (reading,) = _read_table(evidence, (bit,), [label], np.array([1]), np.array([drawn[values == 1].sum()]))
    return reading


def _shorten(names: Sequence[str], most: int = 3) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
