"""Released counts: equal to the true ones where there is no noise, and as deviant as their coefficients say."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from synod.common.models.moments import row_vectors
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.agreements import Agreements, SumAgreements, pack_signs
from synod.common.protocol.queries.moments import SumMoments, moment_design
from synod.common.study.encoding import codings_of
from synod.common.study.study import Study
from synod.curator.release.counts import Counted, ReleasedCounts
from tests.support.studies import binary, categorical, integer, make_study

FLAGS = make_study(
    method={"name": "adaptive"}, schema=[binary("a"), binary("b"), binary("c")], epsilon="2", rows=(40, 50, 60)
)
MIXED = make_study(
    method={"name": "hpdp-dp"},
    schema=[binary("a"), categorical("b", 3), integer("c", 0, 9, nullable=True), categorical("d", 4)],
    rows=(40, 50, 60),
)


def draw_codes(study: Study) -> list[NDArray[Any]]:
    rng = np.random.default_rng(4)
    return [rng.integers(0, coding.size, study.total_rows).astype(coding.dtype) for coding in codings_of(study)]


def true_counts(study: Study, columns: list[NDArray[Any]], attributes: list[int]) -> NDArray[np.int64]:
    sizes = [codings_of(study)[attribute].size for attribute in attributes]
    cells = np.ravel_multi_index([columns[attribute] for attribute in attributes], sizes)
    return np.bincount(cells, minlength=int(np.prod(sizes))).reshape(sizes)


def spread(study: Study, query: Any, label: str, exact: NDArray[np.int64], attributes: list[int]) -> Counted:
    """The counts of exact numbers; their deviations are those of numbers that each have noise of their own."""

    def count(numbers: NDArray[np.int64]) -> Counted:
        answers = ReleasedCounts(study, {label: query}, lambda _: query.split(numbers, study))
        found = answers.count(attributes)
        assert found is not None
        return found

    base = count(exact)
    moved = [count(exact + 1000 * (np.arange(len(exact)) == place)) for place in range(len(exact))]
    coefficients = np.array([(one.counts - base.counts) / 1000 for one in moved])
    deviation = query.terms(plan_study(study).step(label), study).variance ** 0.5
    assert np.allclose(base.deviations, deviation * np.sqrt((coefficients**2).sum(axis=0)))
    return base


@pytest.mark.parametrize("attributes", [[0], [1], [3], [0, 1], [1, 0], [3, 1], [1, 3]])
def test_moments_tell_counts_of_categories(attributes: list[int]) -> None:
    columns, design = draw_codes(MIXED), moment_design(MIXED)
    vectors = row_vectors(design, columns)
    exact = np.rint((vectors.T @ vectors)[design.asked()]).astype(np.int64)
    found = spread(MIXED, SumMoments(), "moments", exact, attributes)
    assert np.allclose(found.counts, true_counts(MIXED, columns, attributes))


@pytest.mark.parametrize("attributes", [[2], [0, 2], [0, 1, 3]])
def test_moments_tell_no_counts_of_numbers_nor_of_three_columns(attributes: list[int]) -> None:
    numbers = np.zeros(moment_design(MIXED).length, dtype=np.int64)
    assert ReleasedCounts(MIXED, {"moments": SumMoments()}, lambda _: numbers).count(attributes) is None


@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize("attributes", [[0], [2], [0, 1], [2, 0], [1, 2]])
def test_agreements_tell_pairs_of_two_values(attributes: list[int], flipped: bool) -> None:
    columns, signs = draw_codes(FLAGS), [np.array([-1, 1], dtype=np.int8)] * 3
    signs = [signs[0], -signs[1] if flipped else signs[1], signs[2]]
    query = SumAgreements((pack_signs(signs),), 2)
    signed = [own[column] for own, column in zip(signs, columns, strict=True)]
    pairs = [int((signed[a] == signed[b]).sum()) for a, b in ((0, 1), (0, 2), (1, 2))]
    answer = Agreements(np.array([2 * int(column.sum()) for column in columns]), np.array([pairs]))
    found = spread(FLAGS, query, "agreements", query.join(answer), attributes)
    assert np.allclose(found.counts, true_counts(FLAGS, columns, attributes))


def test_three_columns_are_not_told_by_agreements() -> None:
    query = SumAgreements((pack_signs([np.array([-1, 1], dtype=np.int8)] * 3),), 2)
    answer = Agreements(np.zeros(3, dtype=np.int64), np.zeros((1, 3), dtype=np.int64))
    assert ReleasedCounts(FLAGS, {"agreements": query}, lambda _: answer).count([0, 1, 2]) is None
