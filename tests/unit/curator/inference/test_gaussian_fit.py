"""The fit against slow twins, and against a table that it must give back when there is (almost) no noise."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from synod.common.models.gaussian import draw_rows
from synod.common.models.moments import row_vectors, unfold
from synod.common.protocol.queries.moments import moment_design
from synod.common.study.encoding import Codes, codings_of
from synod.common.study.study import Study
from synod.curator.inference.gaussian import (
    LARGEST_CORRELATION,
    Kept,
    fit_model,
    nearest_correlation,
    nearest_covariance,
    principal_components,
    project_to_simplex,
    read_targets,
)
from synod.party.count.moments import sum_moments
from tests.support.studies import binary, categorical, integer, make_study, real

Floats = NDArray[np.float64]
numbers = st.floats(-3, 3, allow_nan=False, width=32)


# The simplex


def project_slowly(values: Floats) -> Floats:
    """Bisection for the constant that makes the positive parts add up to one."""
    low, high = values.min() - 1, values.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(values - middle, 0).sum() > 1 else (low, middle)
    projected: Floats = np.maximum(values - low, 0)
    return projected


@given(st.lists(numbers, min_size=1, max_size=9))
def test_the_projection_is_the_one_that_bisection_finds(values: list[float]) -> None:
    given_values = np.array(values)
    assert np.allclose(project_to_simplex(given_values, 0.0), project_slowly(given_values), atol=1e-6)


@given(st.lists(numbers, min_size=2, max_size=9))
def test_no_nearby_point_of_the_simplex_is_nearer(values: list[float]) -> None:
    target = np.array(values)
    found = project_to_simplex(target, 0.0)
    distance = ((found - target) ** 2).sum()
    for corner in np.eye(len(values)):
        for step in (0.001, 0.1, 1.0):
            other = (1 - step) * found + step * corner
            assert ((other - target) ** 2).sum() >= distance - 1e-9


def test_every_share_stays_possible() -> None:
    shares = project_to_simplex(np.array([0.9, 0.5, -0.4, -0.7]), 0.001)
    assert shares.sum() == pytest.approx(1)
    assert shares.min() > 0.0009
    assert shares[0] - shares[1] == pytest.approx(0.4, abs=0.01)


def test_shares_stay_as_they_are() -> None:
    shares = np.array([0.5, 0.3, 0.2])
    assert np.allclose(project_to_simplex(shares, 1e-9), shares)


# Matrices


def random_symmetric(seed: int, size: int) -> Floats:
    matrix: Floats = np.random.default_rng(seed).normal(size=(size, size))
    return (matrix + matrix.T) / 2


@pytest.mark.parametrize("size", [1, 2, 5, 8])
@pytest.mark.parametrize("seed", range(5))
def test_the_nearest_covariance_meets_the_conditions_of_the_nearest(seed: int, size: int) -> None:
    """Of all positive semidefinite matrices, X is nearest to A exactly if X - A is one too and orthogonal to X."""
    matrix = random_symmetric(seed, size)
    nearest = nearest_covariance(matrix)
    assert np.allclose(nearest, nearest.T)
    assert np.linalg.eigvalsh(nearest).min() > -1e-9
    assert np.linalg.eigvalsh(nearest - matrix).min() > -1e-9
    assert abs(float(((nearest - matrix) * nearest).sum())) < 1e-9


def test_a_covariance_is_its_own_nearest() -> None:
    factor = np.random.default_rng(1).normal(size=(5, 9))
    covariance = factor @ factor.T
    assert np.allclose(nearest_covariance(covariance), covariance)
    lopsided = covariance + np.triu(np.ones((5, 5)), 1) - np.tril(np.ones((5, 5)), -1)
    assert np.allclose(nearest_covariance(lopsided), covariance)


@pytest.mark.parametrize("seed", range(5))
def test_a_nearest_correlation_is_one(seed: int) -> None:
    correlation = nearest_correlation(3 * random_symmetric(seed, 6))
    assert np.allclose(np.diag(correlation), 1)
    assert np.linalg.eigvalsh(correlation).min() > -1e-9
    assert np.abs(correlation).max() <= 1 + 1e-9


def test_correlations_are_kept_below_the_largest() -> None:
    assert nearest_correlation(np.ones((2, 2)))[0, 1] == pytest.approx(LARGEST_CORRELATION)


# Principal components


def rotation(seed: int, size: int) -> Floats:
    orthogonal: Floats = np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))[0]
    return orthogonal


@pytest.mark.parametrize(
    ("contribution", "rank", "noise"), [(0.4, 1, 5 / 3), (0.5, 1, 5 / 3), (0.51, 2, 1.0), (0.8, 2, 1.0), (0.81, 3, 1.0)]
)
def test_components_are_as_many_as_explain_the_contribution(contribution: float, rank: int, noise: float) -> None:
    turn = rotation(3, 4)
    covariance = turn @ np.diag([5.0, 3.0, 1.0, 1.0]) @ turn.T
    loadings, sigma = principal_components(covariance, None, Kept(contribution))
    assert loadings.shape == (4, rank)
    assert sigma**2 == pytest.approx(noise)
    if rank == 2:
        assert np.allclose(loadings @ loadings.T + sigma**2 * np.eye(4), covariance)


@pytest.mark.parametrize(("asked", "rank"), [(1, 1), (2, 2), (4, 4), (40, 4)])
def test_components_are_as_many_as_are_asked_for(asked: int, rank: int) -> None:
    turn = rotation(3, 4)
    covariance = turn @ np.diag([5.0, 3.0, 1.0, 1.0]) @ turn.T
    loadings, _ = principal_components(covariance, None, Kept(0.5, asked))
    assert loadings.shape == (4, rank)


def test_components_are_those_of_the_singular_values_of_the_data() -> None:
    """On exact data: numpy's SVD of the centred rows, apart from the covariance."""
    rows = np.random.default_rng(4).normal(size=(500, 6)) @ np.random.default_rng(5).normal(size=(6, 6))
    centred = rows - rows.mean(axis=0)
    covariance = centred.T @ centred / len(rows)
    loadings, sigma = principal_components(covariance, None, Kept(0.9))
    _, singular, directions = np.linalg.svd(centred, full_matrices=False)
    variances = singular**2 / len(rows)
    rank = int(np.argmax(np.cumsum(variances) / variances.sum() >= 0.9)) + 1
    rest = variances[rank:].mean()
    assert loadings.shape == (6, rank)
    assert sigma**2 == pytest.approx(rest)
    expected = (directions[:rank].T * (variances[:rank] - rest)) @ directions[:rank]
    assert np.allclose(loadings @ loadings.T, expected)


def test_all_of_the_variance_leaves_no_noise() -> None:
    factor = np.random.default_rng(6).normal(size=(4, 4))
    covariance = factor @ factor.T
    deviation = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(deviation, deviation)
    loadings, sigma = principal_components(correlation, deviation, Kept(1.0))
    assert sigma == 0
    assert np.allclose(loadings @ loadings.T, covariance)


# The whole fit

MIXED: list[dict[str, Any]] = [
    integer("age", 0, 100),
    categorical("sex", ("F", "M")),
    real("income", "0", "100", nullable=True),
    categorical("ward", ("a", "b", "c", "d")),
]
ROWS = 20_000


def mixed_table(study: Study) -> list[Codes]:
    """Age drives income; sex drives the ward; income is missing for a tenth."""
    rng = np.random.default_rng(11)
    shared = rng.normal(size=ROWS)
    age = np.clip(40 + 15 * shared, 0, 100)
    income = np.clip(50 + 12 * (0.8 * shared + 0.6 * rng.normal(size=ROWS)), 0, 100)
    sex = rng.random(ROWS) < 0.3
    odds = np.where(sex[:, None], [0.6, 0.2, 0.15, 0.05], [0.1, 0.3, 0.4, 0.2])
    ward = (rng.random(ROWS)[:, None] > np.cumsum(odds, axis=1)).sum(axis=1)
    codings = codings_of(study)
    incomes = np.where(rng.random(ROWS) < 0.1, codings[2].null_code, np.rint(income * 2.56))
    columns = (np.rint(age * 2.56), sex, incomes, np.minimum(ward, 3))
    return [column.astype(coding.dtype) for column, coding in zip(columns, codings, strict=True)]


def fit_and_draw(study: Study, columns: list[Codes], link: str, rows: int = 40_000) -> list[Codes]:
    """Exact moments, as at an epsilon beyond all measure."""
    design, total = moment_design(study), len(columns[0])
    gram = unfold(design, sum_moments(design, columns), total)
    model = fit_model(design, gram, total, kept=Kept(0.99), link=link, rng=np.random.default_rng(1))
    return draw_rows(design, model, rows, rng=np.random.default_rng(2))


def vectors(study: Study, columns: list[Codes]) -> Floats:
    design = moment_design(study)
    return row_vectors(design, columns)[:, 1:] / (2.0 * design.unit)


def correlations(rows: Floats) -> Floats:
    matrix: Floats = np.asarray(np.corrcoef(rows.T))
    return matrix


@pytest.fixture(scope="module")
def mixed() -> tuple[Study, list[Codes], list[Codes]]:
    study = make_study(schema=MIXED, rows=(ROWS, 5, 5))
    table = mixed_table(study)
    return study, table, fit_and_draw(study, table, "copula")


def test_the_margins_come_back(mixed: tuple[Study, list[Codes], list[Codes]]) -> None:
    study, table, drawn = mixed
    real, synthetic = vectors(study, table), vectors(study, drawn)
    assert np.abs(real.mean(axis=0) - synthetic.mean(axis=0)).max() < 0.02
    number = real[:, 0].std()
    assert number == pytest.approx(synthetic[:, 0].std(), rel=0.05)


def test_the_correlations_come_back(mixed: tuple[Study, list[Codes], list[Codes]]) -> None:
    study, table, drawn = mixed
    real, synthetic = correlations(vectors(study, table)), correlations(vectors(study, drawn))
    assert real[0, 2] > 0.5, "the table has something to find"
    assert np.abs(real[0, 4:]).max() < 0.05
    assert np.abs(real - synthetic)[0, 2] < 0.05
    sex_and_ward = np.abs(real - synthetic)[1, 4:]
    assert np.abs(real[1, 4:]).max() > 0.3
    assert sex_and_ward.max() < 0.08


def test_skewed_margins_come_back() -> None:
    """Where a Gaussian's first guess is off: a number piled up at its bound, and one category far above the rest."""
    study = make_study(schema=[MIXED[0], MIXED[3]], rows=(ROWS, 5, 5))
    rng = np.random.default_rng(13)
    age = np.clip(rng.normal(-20, 40, ROWS), 0, 100)
    ward = rng.choice(4, ROWS, p=[0.85, 0.1, 0.04, 0.01])
    table: list[Codes] = [np.rint(age * 2.56).astype(np.uint16), ward.astype(np.uint8)]
    drawn = fit_and_draw(study, table, "copula")
    real, synthetic = vectors(study, table), vectors(study, drawn)
    assert np.abs(real.mean(axis=0) - synthetic.mean(axis=0)).max() < 0.01
    assert real[:, 0].std() == pytest.approx(synthetic[:, 0].std(), rel=0.05)


def test_the_fit_is_a_function_of_its_input() -> None:
    study = make_study(schema=MIXED, rows=(ROWS, 5, 5))
    design = moment_design(study)
    gram = unfold(design, sum_moments(design, mixed_table(study)), ROWS)
    models = [
        fit_model(design, gram.copy(), ROWS, kept=Kept(0.9), link="copula", rng=np.random.default_rng(seed)).to_json()
        for seed in (1, 1, 2)
    ]
    assert models[0] == models[1] != models[2]


def binary_table(study: Study) -> list[Codes]:
    rng = np.random.default_rng(12)
    latent = 0.9 * rng.normal(size=(ROWS, 1)) + 0.45 * rng.normal(size=(ROWS, 6))
    return [
        (latent[:, i] > cut).astype(coding.dtype)
        for i, (coding, cut) in enumerate(zip(codings_of(study), (-0.8, -0.3, 0.0, 0.2, 0.6, 1.0), strict=True))
    ]


def pair_distance(real: list[Codes], synthetic: list[Codes]) -> float:
    """The average total variation distance of two-way tables."""
    distances = []
    for i in range(len(real)):
        for j in range(i):
            tables = [np.bincount(2 * t[i].astype(int) + t[j], minlength=4) / len(t[0]) for t in (real, synthetic)]
            distances.append(np.abs(tables[0] - tables[1]).sum() / 2)
    return float(np.mean(distances))


def test_the_copula_beats_the_linear_link_on_binary_data() -> None:
    schema = [binary(f"b{i}") for i in range(6)]
    study = make_study(schema=schema, rows=(ROWS, 5, 5))
    table = binary_table(study)
    linear, copula = (pair_distance(table, fit_and_draw(study, table, link)) for link in ("linear", "copula"))
    assert copula < 0.01
    assert copula < linear / 3


def test_hopeless_moments_still_give_a_possible_model() -> None:
    """Noise far above the data: every target is brought into its range, and every code can be drawn."""
    study = make_study(schema=MIXED)
    design = moment_design(study)
    noise = np.random.default_rng(3).normal(0, 5 * 4 * design.unit**2 * 150, design.length).astype(np.int64)
    gram = unfold(design, noise, 150)
    targets = read_targets(design, gram.copy(), 150)
    assert np.abs(targets.mean).max() <= 1
    assert targets.deviation.min() > 0
    for _, span in design.block_slices():
        assert targets.mean[span.start - 1 : span.stop - 1].sum() == pytest.approx(1)
    model = fit_model(design, gram, 150, kept=Kept(0.9), link="copula", rng=np.random.default_rng(1))
    drawn = draw_rows(design, model, 2_000, rng=np.random.default_rng(2))
    for coding, column in zip(codings_of(study), drawn, strict=True):
        assert int(column.max()) < coding.size
    assert np.isfinite(model.loadings).all()
