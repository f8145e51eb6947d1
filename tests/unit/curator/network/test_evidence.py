"""Evidence: tables of the same rows by their precision, tables of different parties as a sum, and what is not known."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from synod.common.privacy.noise import share_variance
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.marginals import SumMarginals, Weights
from synod.curator.methods.base import Released
from synod.curator.network.evidence import Evidence
from synod.curator.network.tables import mutual_information
from tests.support.studies import categorical, make_study

SIZES = (2, 3, 2, 4)
STUDY = make_study(
    schema=[categorical(f"x{i}", size) for i, size in enumerate(SIZES)],
    method={"name": "dp-subn", "encoding": "vanilla", "split": "paper"},
    rows=(100, 200, 700),
    epsilon="40",
)
PLAN = plan_study(STUDY)


def counts(seed: int, cells: int, total: int = 1000) -> NDArray[np.int64]:
    return np.random.default_rng(seed).multinomial(total, np.full(cells, 1 / cells)).astype(np.int64)


def known(table: Released | None) -> Released:
    assert table is not None
    return table


def test_the_plan_has_the_steps_that_the_tests_use() -> None:
    labels = {step.label for step in PLAN.steps}
    assert {"correlations", "update-north", "update-harbour", "update-valley", "parameters"} <= labels


def test_a_sum_has_the_variance_of_all_shares_and_a_partys_table_of_its_own() -> None:
    evidence = Evidence(STUDY)
    evidence.add_sum("correlations", ((0, 1), (2, 3)), [counts(1, 6), counts(2, 8)])
    evidence.add_local("update-harbour", ((0, 1),), [counts(3, 6, 200)])
    # Three shares of shape 1/2: one and a half full discrete Laplace variables.
    full = share_variance(shape=Fraction(1), scale=Fraction(4) / Fraction(10))
    assert [table.variance for table in evidence.tables[:2]] == pytest.approx([1.5 * full] * 2)
    assert [table.rows for table in evidence.tables] == [1000, 1000, 200]
    alone = share_variance(shape=Fraction(1), scale=2 / PLAN.step("update-harbour").cost.epsilon)
    assert evidence.tables[2].variance == pytest.approx(alone)


def test_a_sum_with_shares_and_weights_has_a_variance_for_each_cell() -> None:
    query = SumMarginals(((0, 1), (2, 3)), (), (1, 3), (Weights(1, (1, 2, 4)), None))
    evidence, step = Evidence(STUDY), PLAN.step("parameters")
    evidence.add_answer("parameters", query, [counts(1, 6), counts(2, 8)])
    first, second = evidence.tables
    assert isinstance(second.variance, float)
    assert np.array_equal(first.variances, query.cell_variances(step, STUDY)[0])
    assert first.mean_variance == pytest.approx(query.variances(step, STUDY)[0])
    margin = known(evidence.pooled((1,)))
    assert margin.variance == pytest.approx(2 * first.variances[:3]), "two cells of the table for each"


def test_cells_of_different_variances_are_averaged_one_by_one() -> None:
    one, other = counts(1, 6).astype(np.float64), counts(2, 6).astype(np.float64)
    variances = np.array([1.0, 2, 4, 8, 16, 32])
    evidence = Evidence(STUDY, [Released((0, 1), one, 1000, variances), Released((0, 1), other, 1000, 3.0)])
    pooled = known(evidence.pooled((0, 1)))
    assert pooled.counts == pytest.approx((one / variances + other / 3) / (1 / variances + 1 / 3))
    assert pooled.variance == pytest.approx(1 / (1 / variances + 1 / 3))


def test_tables_of_the_same_rows_are_averaged_by_their_precision() -> None:
    one, other = counts(1, 6), counts(2, 6)
    evidence = Evidence(
        STUDY,
        [Released((0, 1), one.astype(np.float64), 1000, 4.0), Released((0, 1), other.astype(np.float64), 1000, 1.0)],
    )
    pooled = known(evidence.pooled((0, 1)))
    assert np.allclose(pooled.counts, (one * 0.25 + other * 1.0) / 1.25)
    assert pooled.variance == pytest.approx(1 / 1.25)
    assert pooled.rows == 1000


def test_a_margin_has_the_noise_of_all_cells_that_it_adds_up() -> None:
    wide, narrow = counts(1, 12), counts(2, 6)
    evidence = Evidence(
        STUDY,
        [
            Released((0, 1, 2), wide.astype(np.float64), 1000, 1.0),
            Released((0, 1), narrow.astype(np.float64), 1000, 1.0),
        ],
    )
    margin = wide.reshape(6, 2).sum(axis=1)
    pooled = known(evidence.pooled((0, 1)))
    assert np.allclose(pooled.counts, (margin / 2 + narrow) / 1.5)
    assert pooled.variance == pytest.approx(1 / 1.5)


def test_the_table_comes_in_the_order_asked_for() -> None:
    table = counts(1, 12)
    evidence = Evidence(STUDY, [Released((0, 1, 2), table.astype(np.float64), 1000, 1.0)])
    pooled = known(evidence.pooled((2, 0)))
    assert np.allclose(pooled.counts, table.reshape(2, 3, 2).sum(axis=1).T.reshape(-1))
    assert pooled.features == (2, 0)


def test_the_tables_of_different_parties_add_up() -> None:
    evidence = Evidence(STUDY)
    tables = [counts(i, 6, rows) for i, rows in enumerate((100, 200, 700))]
    for name, table in zip(("north", "harbour", "valley"), tables, strict=True):
        evidence.add_local(f"update-{name}", ((0, 1),), [table])
    pooled = known(evidence.pooled((0, 1)))
    assert np.allclose(pooled.counts, tables[0] + tables[1] + tables[2])
    assert pooled.rows == 1000
    assert pooled.variance == pytest.approx(sum(table.variance for table in evidence.tables))


def test_what_some_parties_told_stands_for_all_rows_noise_and_all() -> None:
    evidence = Evidence(STUDY)
    north, harbour = counts(1, 6, 100), counts(2, 6, 200)
    evidence.add_local("update-north", ((0, 1),), [north])
    evidence.add_local("update-harbour", ((0, 1),), [harbour])
    pooled = known(evidence.pooled((0, 1)))
    assert np.allclose(pooled.counts, (north + harbour) * (1000 / 300))
    variances = [table.variance for table in evidence.tables]
    assert pooled.variance == pytest.approx(sum(variances) * (1000 / 300) ** 2)


def test_what_some_parties_told_is_no_count_of_all_rows() -> None:
    evidence = Evidence(STUDY)
    tables = [counts(i, 6, rows) for i, rows in enumerate((100, 200, 700))]
    for name, table in zip(("north", "harbour"), tables, strict=False):
        evidence.add_local(f"update-{name}", ((0, 1),), [table])
    assert evidence.counted((0, 1)) is None
    assert evidence.pooled((0, 1)) is not None
    evidence.add_local("update-valley", ((0, 1),), tables[2:])
    assert known(evidence.counted((0, 1))).counts == pytest.approx(sum(tables))
    assert evidence.counted((0, 2)) is None
    evidence.add_sum("correlations", ((0, 2),), [counts(5, 4)])
    evidence.add_local("update-north", ((0, 2),), [counts(6, 4, 100)])
    assert known(evidence.counted((0, 2))).counts == pytest.approx(counts(5, 4))


def test_a_party_with_two_tables_counts_once() -> None:
    """Both of its tables are of the same rows; else it would weigh twice as much as the others."""
    north = [np.array([60, 0, 0, 40, 0, 0] * 2), np.array([100, 0, 0, 0, 0, 0])]
    harbour = np.array([0, 0, 0, 0, 0, 200])
    valley = np.array([0, 0, 700, 0, 0, 0])
    evidence = Evidence(STUDY, [
        Released((0, 1, 2), north[0] // 2, 100, 2.0, "north"),
        Released((0, 1), north[1], 100, 1.0, "north"),
        Released((0, 1), harbour, 200, 1.0, "harbour"),
        Released((0, 1), valley, 700, 1.0, "valley"),
    ])  # fmt: skip
    pooled = known(evidence.pooled((0, 1)))
    margin = (north[0] // 2).reshape(6, 2).sum(axis=1)
    own = (margin / 4 + north[1]) / 1.25
    assert np.allclose(pooled.counts, own + harbour + valley)
    assert pooled.counts.sum() == pytest.approx(1000)
    assert pooled.variance == pytest.approx(1 / 1.25 + 1 + 1)


def test_the_evidence_of_one_party_is_about_its_rows() -> None:
    evidence = Evidence(STUDY, [Released((0, 1), counts(1, 6, 200).astype(np.float64), 200, 1.0, "harbour")], rows=200)
    assert evidence.all_rows == 200
    pooled = known(evidence.pooled((0,)))
    assert (pooled.rows, pooled.counts.sum()) == (200, 200)


def test_what_no_table_covers_is_not_known() -> None:
    evidence = Evidence(
        STUDY,
        [
            Released((0, 1), counts(1, 6).astype(np.float64), 1000, 1.0),
            Released((2,), counts(2, 2).astype(np.float64), 1000, 1.0),
        ],
    )
    assert evidence.pooled((1, 2)) is None
    assert evidence.score(1, (2,)) == -np.inf
    assert evidence.score(1, ()) == 0
    assert evidence.score(3, ()) == 0
    assert Evidence(STUDY).pooled((0,)) is None


def test_the_score_is_the_information_of_the_pooled_table() -> None:
    table = np.array([400, 50, 50, 50, 50, 400])
    evidence = Evidence(STUDY, [Released((0, 1), table, 1000, 1.0)])
    assert evidence.score(0, (1,)) == pytest.approx(float(mutual_information(table / 1000, 2)))
    assert evidence.score(1, (0,)) == pytest.approx(evidence.score(0, (1,)))
    independent = Evidence(STUDY, [Released((0, 2), np.array([250] * 4), 1000, 1.0)])
    assert independent.score(0, (2,)) == pytest.approx(0)


def test_a_few_parties_do_not_speak_for_all_where_a_table_counts_all_rows() -> None:
    whole, part = np.full(6, 1000 / 6), np.array([700.0, 0, 0, 0, 0, 0])
    tables = [Released((0, 1), whole, 1000, 1.0), Released((0, 1), part, 700, 1e-6, "valley")]
    assert known(Evidence(STUDY, tables).pooled((0, 1))).counts == pytest.approx(whole)
