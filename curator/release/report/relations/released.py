"""What was released about two columns together, as one number of a kind for all methods, beside the synthetic rows'.

Each column is cut in two sides. The number is how much more often a row is on the same side of both columns than on
different ones, which is between -1 and 1, less what independent columns of these shares would have: 0 where the columns
have nothing to do with each other. It is a sum of released counts with signs, so its noise has a known deviation.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synod.common.models.moments import unfold
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.agreements import SumAgreements, unpack_signs
from synod.common.protocol.queries.marginals import SumMarginals
from synod.common.protocol.queries.moments import SumMoments, moment_design
from synod.common.protocol.queries.parsing import AnyQuery
from synod.common.study.encoding import codings_of
from synod.common.study.features import features_of, sizes_of, space_of
from synod.common.study.schema import CategoricalAttribute
from synod.common.study.study import Study
from synod.curator.methods.base import Publication
from synod.curator.release.report.margins import BAND, moment_deviation

Floats = NDArray[np.float64]
Pair = tuple[int, int]
MOST_ROWS = 200_000
BINARY = "binary"


@dataclass(frozen=True, slots=True)
class Relation:
    """Two columns, by their places in the schema: the synthetic rows' number, and the released one with half the width
    of its band where there is one.
    """

    pair: Pair
    synthetic: float
    released: float | None = None
    band: float = 0.0

    @property
    def is_outside(self) -> bool:
        """Whether the synthetic rows are further off than the noise of the released number explains."""
        return self.released is not None and abs(self.synthetic - self.released) > self.band


@dataclass(frozen=True, slots=True, eq=False)
class _Sides:
    """The side, -1 or 1, of every value of a feature, and of every synthetic row."""

    values: Floats
    rows: Floats

    @property
    def mean(self) -> float:
        return float(self.rows.mean())


def read_relations(
    study: Study, publication: Publication, queries: Mapping[str, AnyQuery], answers: Mapping[str, Any]
) -> list[Relation]:
    """For each two columns that vary the released number with the narrowest band; the synthetic one alone where nothing
    of all parties was released about them.
    """
    codes = _synthetic_codes(study, publication)
    found: dict[Pair, Relation] = {}
    for label, query in queries.items():
        if label not in answers:
            continue
        if isinstance(query, SumAgreements):
            relations = _of_agreements(study, label, query, answers[label], codes)
        elif isinstance(query, SumMarginals):
            relations = _of_tables(study, label, query, answers[label], codes)
        elif isinstance(query, SumMoments):
            relations = _of_moments(study, query, answers[label], codes)
        else:
            continue
        for relation in relations:
            held = found.get(relation.pair)
            if held is None or relation.band < held.band:
                found[relation.pair] = relation
    features = _first_features(study)
    sides = {column: _halve(codes[feature], sizes_of(study)[feature]) for column, feature in features.items()}
    alone = (Relation(pair, _product(sides[pair[0]], sides[pair[1]])) for pair in combinations(features, 2))
    return [found.get(relation.pair, relation) for relation in alone]


def _synthetic_codes(study: Study, publication: Publication) -> list[NDArray[np.int64]]:
    """The features of the synthetic rows; of very many rows, of some at even distances."""
    step = 1 + (len(publication.columns[0]) - 1) // MOST_ROWS
    return [codes.astype(np.int64) for codes in space_of(study).encode([own[::step] for own in publication.columns])]


def _first_features(study: Study) -> dict[int, int]:
    """The first feature of each column that varies."""
    found: dict[int, int] = {}
    for place, feature in enumerate(features_of(study)):
        if not feature.level:
            found.setdefault(feature.attribute, place)
    return found


def _halve(codes: NDArray[np.int64], size: int) -> _Sides:
    """Sides of about half of the synthetic rows each, cut in the order of the codes."""
    shares = np.bincount(codes, minlength=size) / max(1, len(codes))
    before = np.concatenate([[0.0], np.cumsum(shares)[:-1]])
    cut = int(np.argmin(np.abs(np.round(before[1:] - 0.5, 9)))) + 1
    return _take_sides(np.where(np.arange(size) < cut, -1.0, 1.0), codes)


def _take_sides(values: Floats, codes: NDArray[np.int64]) -> _Sides:
    return _Sides(values, values[codes])


def _product(left: _Sides, right: _Sides) -> float:
    """The synthetic rows' number."""
    return float((left.rows * right.rows).mean()) - left.mean * right.mean


def _relate(pair: Pair, left: _Sides, right: _Sides, released: float, deviation: float) -> Relation:
    """The released mean of the products of sides; what independent columns would have comes from the synthetic shares
    on both sides of the comparison, so that it leaves the difference as it is.
    """
    return Relation(pair, _product(left, right), released - left.mean * right.mean, BAND * deviation)


def _of_agreements(
    study: Study, label: str, query: SumAgreements, answer: Any, codes: list[NDArray[np.int64]]
) -> Iterator[Relation]:
    """A number for each pair of features and split; of several bits or splits that which tells the most."""
    rows, sizes, features = study.total_rows, sizes_of(study), features_of(study)
    sums = query.estimate(answer, study).pairs
    deviation = 2 * math.sqrt(query.variance(plan_study(study).step(label), study)) * query.scale(study) / rows
    best: dict[Pair, Relation] = {}
    for place, split in enumerate(query.splits):
        signs = unpack_signs(split, sizes)
        sides = [_take_sides(own.astype(np.float64), column) for own, column in zip(signs, codes, strict=True)]
        for number, (a, b) in enumerate(combinations(range(len(sizes)), 2)):
            pair = features[a].attribute, features[b].attribute
            if pair[0] != pair[1]:
                mean = 2 * float(sums[place, number]) / rows - 1
                _keep_strongest(best, _relate(pair, sides[a], sides[b], mean, deviation))
    yield from best.values()


def _of_tables(
    study: Study, label: str, query: SumMarginals, answer: Any, codes: list[NDArray[np.int64]]
) -> Iterator[Relation]:
    """A number for each two features of different columns that one table counts; of several bits the strongest."""
    rows, features = study.total_rows, features_of(study)
    own, sizes = query.entry_features(study), query.entry_sizes(study)
    groups = _groups_of(study, query)
    variances = query.variances(plan_study(study).step(label), study)
    best: dict[Pair, Relation] = {}
    for entries, counts, variance in zip(query.sets, query.estimate(answer, study), variances, strict=True):
        if len(entries) < 2:
            continue
        table = np.asarray(counts, dtype=np.float64).reshape([sizes[entry] for entry in entries])
        deviation = math.sqrt(table.size * variance) * query.scale(study) / rows
        for x, y in combinations(range(len(entries)), 2):
            pair = features[own[entries[x]]].attribute, features[own[entries[y]]].attribute
            if pair[0] == pair[1]:
                continue
            left, right = (_halve(groups[e][codes[own[e]]], sizes[e]) for e in (entries[x], entries[y]))
            others = tuple(axis for axis in range(len(entries)) if axis not in (x, y))
            mean = float(left.values @ table.sum(axis=others) @ right.values) / rows
            relation = _relate(pair, left, right, mean, deviation)
            flipped = Relation((pair[1], pair[0]), relation.synthetic, relation.released, relation.band)
            _keep_strongest(best, relation if pair[0] < pair[1] else flipped)
    yield from best.values()


def _of_moments(study: Study, query: SumMoments, answer: Any, codes: list[NDArray[np.int64]]) -> Iterator[Relation]:
    """A number for each two columns of categories, whose counts together are among the moments. Of a number the moments
    have means of products, which do not tell how many rows lie on which side of a cut.
    """
    design, deviation = moment_design(study), moment_deviation(study, query.present)
    gram = unfold(design, answer, study.total_rows)
    spans = {one.attribute: slice(place, place + 1) for place, one in enumerate(design.signed, 1) if one.role == BINARY}
    spans |= {block.attribute: span for block, span in design.block_slices()}
    first = _first_features(study)
    sides = {column: _halve(codes[first[column]], sizes_of(study)[first[column]]) for column in sorted(spans)}
    # A column of two values is one half or minus one half there, one of more values a one in the place of its value.
    weights = {column: own.values if len(own.values) > 2 else np.array([2.0]) for column, own in sides.items()}
    for pair in combinations(sides, 2):
        left, right = (weights[column] for column in pair)
        mean = float(left @ gram[spans[pair[0]], spans[pair[1]]] @ right)
        noise = deviation * float(np.linalg.norm(left) * np.linalg.norm(right))
        yield _relate(pair, sides[pair[0]], sides[pair[1]], mean, noise)


def _groups_of(study: Study, query: SumMarginals) -> list[NDArray[np.int64]]:
    """The group of every value of the feature of each entry of a query."""
    plain = [np.arange(size) for size in sizes_of(study)]
    return [*plain, *(np.array(grouping.groups) for grouping in query.groupings)]


def _keep_strongest(best: dict[Pair, Relation], relation: Relation) -> None:
    """By the synthetic rows' number: the largest of several noisy ones would be large by noise."""
    held = best.get(relation.pair)
    if held is None or round(abs(relation.synthetic), 9) > round(abs(held.synthetic), 9):
        best[relation.pair] = relation


def is_ordered(study: Study, place: int) -> bool:
    """Whether a column's values have an order, so that the sign of a relation means something."""
    return not isinstance(codings_of(study)[place].attribute, CategoricalAttribute)
