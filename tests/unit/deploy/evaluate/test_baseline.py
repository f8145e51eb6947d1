"""Columns alone: noise of the study's law on each column, rows that keep its shares, and nothing between columns."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from synod.common.privacy.coins import Coins
from synod.common.privacy.laws import TABLE, noise_for
from synod.common.study.study import Study, parse_study
from synod.curator.structure.columns import column_laws, whole_budget
from synod.deploy.evaluate.baseline import draw_baselines, draw_column, measure_columns, publish_columns
from synod.deploy.evaluate.marginals import measure_marginals
from synod.deploy.evaluate.tables import Table, fill_columns, make_table
from tests.support.keys import seeded
from tests.support.laws import OFF_BY, accepts, accepts_gaussian
from tests.support.studies import categorical, integer, make_study, study_document

SCHEMA = [categorical("a", 4), categorical("b", 4), integer("one", 1, 1), categorical("c", 4)]
ROWS = (400, 500, 600)
DRAWS = 500


def study_of(**changes: Any) -> Study:
    return make_study(schema=SCHEMA, rows=ROWS, **changes)


def real_table(study: Study, rows: int = 1_500, seed: int = 0) -> Table:
    """The same column three times, and a constant."""
    column = np.minimum(*np.random.default_rng(seed).integers(0, 4, (2, rows))).astype(np.uint8)
    return make_table(study, [column, column, np.zeros(rows, dtype=np.uint8), column])


def noise_of(study: Study, total: int = 1_500) -> NDArray[np.int64]:
    """What is added to the counts, over many draws."""
    real = real_table(study)
    true = np.concatenate([np.bincount(column, minlength=4) for column in real.columns]) * total / real.rows
    coins = seeded(3)
    drawn = [measure_columns(study, real, total, coins=coins) for _ in range(DRAWS)]
    noisy = np.stack([np.concatenate([one.counts for one in tables]) for tables in drawn])
    return np.rint(noisy - true).astype(np.int64).ravel()


def test_pure_noise_is_the_law_of_a_third_of_the_budget_in_shares() -> None:
    """Three columns of one size: the scale is 2 over epsilon/3, and three shares of which two are enough."""
    noise, scale = noise_of(study_of()), Fraction(6)
    assert accepts(noise, scale, Fraction(3, 2))
    for factor in OFF_BY:
        assert not accepts(noise, scale * factor, Fraction(3, 2))
    assert not accepts(noise, scale), "one party's noise would be less"


def test_gaussian_noise_is_the_law_of_a_third_of_rho_in_shares() -> None:
    study = study_of(epsilon="0.5", delta="1e-9")
    noise = noise_of(study)
    law = noise_for(study.budget, TABLE, part=Fraction(1, 3), parties=3, threshold=1, rows_per_unit=1)
    square = law.nominal_variance / 3
    assert accepts_gaussian(noise, square, shares=3)
    for factor in OFF_BY:
        assert not accepts_gaussian(noise, square * factor, shares=3)


def test_the_noise_is_that_of_the_rosters_rows_whatever_is_looked_at() -> None:
    """A party that looks at its own rows alone would else see more noise than a release of all rows has."""
    noise = noise_of(study_of(), total=4_500)
    assert accepts(noise, Fraction(6), Fraction(3, 2))


def test_shares_are_kept_and_relations_are_not() -> None:
    study = study_of(epsilon="1000")
    real = real_table(study)
    table = publish_columns(study, real, 3_000, coins=seeded(1), rng=np.random.default_rng(1))
    assert (table.names, table.sizes, table.values, table.rows) == (("a", "b", "c"), (4, 4, 4), (4, 4, 4), 3_000)
    one, two = (measure_marginals(real, table, order, rng=np.random.default_rng(0)) for order in (1, 2))
    assert one.total_variation.max() < 0.002
    shares = np.bincount(real.columns[0], minlength=4) / real.rows
    lost = (1 - np.square(shares).sum()) * np.ones(3)
    assert two.total_variation == pytest.approx(lost, abs=0.05), "equal columns agree by chance only"
    assert [column.tolist() for column in fill_columns(study, table)][2] == [0] * 3_000


def test_without_a_roster_there_is_one_party_and_rho_follows_from_delta() -> None:
    document = study_document(roster=None, schema=SCHEMA, epsilon="0.5", delta="1e-9")
    study = parse_study(document, "test")
    resolved = study_of(epsilon="0.5", delta="1e-9")
    assert study.rho is None
    assert whole_budget(study) == resolved.budget
    laws = column_laws(study)
    assert laws == (noise_for(resolved.budget, TABLE, part=Fraction(1, 3), rows_per_unit=1),) * 3
    real = real_table(study, rows=90)
    table = publish_columns(study, real, 10, coins=seeded(1), rng=np.random.default_rng(1))
    assert table.rows == 10


def test_a_baseline_is_the_same_in_every_run() -> None:
    study = study_of()
    first, again = (draw_baselines(study, real_table(study), 200) for _ in range(2))
    assert [[c.tolist() for c in t.columns] for t in first] == [[c.tolist() for c in t.columns] for t in again]
    assert first[0].columns[0].tolist() != first[1].columns[0].tolist()


@pytest.mark.parametrize("rows", [1, 7, 1_000])
def test_a_drawn_column_has_what_is_expected_to_within_one(rows: int) -> None:
    shares, rng = np.array([0.0, 0.25, 1 / 3, 1e-4, 1 - 0.25 - 1 / 3 - 1e-4]), np.random.default_rng(1)
    counts = np.array([np.bincount(draw_column(shares, rows, rng=rng), minlength=5) for _ in range(400)])
    assert (counts.sum(axis=1) == rows).all()
    assert (np.abs(counts - shares * rows) < 1).all()
    assert counts.mean(axis=0) == pytest.approx(shares * rows, abs=0.1)
    assert (counts[:, 0] == 0).all()


def test_a_single_row_and_all_noise_still_give_a_table() -> None:
    study = make_study(schema=[categorical("a", 2), categorical("b", 9)], names=("x",), rows=(1,), collusion=0)
    real = make_table(study, [np.zeros(1, dtype=np.uint8)] * 2)
    for seed in range(20):
        table = publish_columns(study, real, 5, coins=Coins(bytes([seed] * 32)), rng=np.random.default_rng(seed))
        assert table.rows == 5
        assert all(int(column.max()) < size for column, size in zip(table.columns, table.sizes, strict=True))
