"""The reference draw against slow twins: one-hot blocks written out, and the fit in double precision as it was."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from synod.common.models.gaussian import GaussianModel, cut_codes
from synod.common.models.moments import MomentDesign, row_vectors, unfold
from synod.common.protocol.queries.moments import moment_design
from synod.common.study.encoding import codings_of
from synod.curator.inference import gaussian
from synod.curator.inference.gaussian import Targets, correlation_root, read_targets, start_margins
from synod.curator.inference.reference import CutRows, cut_correlation, cut_rows
from synod.party.count.moments import sum_moments
from tests.support.studies import binary, categorical, integer, make_study, real

Floats = NDArray[np.float64]
SCHEMAS: dict[str, list[dict[str, Any]]] = {
    "mixed": [integer("age", 0, 100), binary("sex"), real("pay", "0", "9", nullable=True), categorical("ward", 4)],
    "no block": [integer("age", 0, 100), binary("sex")],
    "blocks only": [categorical("ward", 3), categorical("town", 300), categorical("job", 5, nullable=True)],
}


def random_cut(schema: list[dict[str, Any]], rows: int = 700) -> tuple[MomentDesign, GaussianModel, Floats]:
    design, rng = moment_design(make_study(schema=schema)), np.random.default_rng(1)
    width = design.width - 1
    model = GaussianModel(np.zeros((width, 1)), 0.0, rng.normal(0, 0.3, width), np.full(width, 0.3))
    return design, model, rng.normal(size=(rows, width))


def write_out(design: MomentDesign, model: GaussianModel, latent: Floats) -> Floats:
    """Every column of the design, the one-hot blocks as zeros and ones."""
    return row_vectors(design, cut_codes(design, model, latent))[:, 1:] / (2.0 * design.unit)


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS.keys())
def test_moments_are_those_of_the_columns_written_out(schema: list[dict[str, Any]]) -> None:
    design, model, latent = random_cut(schema)
    vectors = write_out(design, model, latent)
    cut = cut_rows(design, model, latent)
    assert cut.rows == 700
    assert np.allclose(cut.mean, vectors.mean(axis=0), atol=1e-12)
    assert np.allclose(cut.deviation, vectors.std(axis=0), atol=1e-12)
    scaled = (vectors - vectors.mean(axis=0)) / np.maximum(vectors.std(axis=0), 1e-6)
    assert np.allclose(cut_correlation(design, cut), scaled.T @ scaled / 700, atol=1e-9)


def test_codes_are_the_places_of_the_greatest_scores() -> None:
    """Over more rows than are scored at once; single precision cuts the same rows but for near ties."""
    design, model, latent = random_cut(SCHEMAS["blocks only"], rows=1_100)
    codes = cut_codes(design, model, latent)
    for block, span in design.block_slices():
        inner = slice(span.start - 1, span.stop - 1)
        expected = (latent[:, inner] + model.shift[inner]).argmax(axis=1)
        assert (codes[block.attribute] == expected).all()
        single = cut_codes(design, model, latent.astype(np.float32))[block.attribute]
        assert (single == expected).mean() > 0.999


@pytest.mark.parametrize("seed", range(4))
def test_the_root_is_that_of_the_nearest_correlation(seed: int) -> None:
    matrix = np.random.default_rng(seed).normal(size=(7, 7))
    root = correlation_root((matrix + matrix.T) / 2)
    assert np.allclose(root @ root.T, nearest_slowly((matrix + matrix.T) / 2), atol=1e-9)


def nearest_slowly(matrix: Floats) -> Floats:
    clipped = np.clip(matrix, -gaussian.LARGEST_CORRELATION, gaussian.LARGEST_CORRELATION)
    np.fill_diagonal(clipped, 1.0)
    values, vectors = np.linalg.eigh(clipped)
    covariance = (vectors * np.maximum(values, 1e-12)) @ vectors.T
    deviation = np.sqrt(np.diag(covariance))
    correlation: Floats = covariance / np.outer(deviation, deviation)
    return correlation


# The whole iteration


def match_slowly(design: MomentDesign, targets: Targets, *, seed: int) -> Floats:
    """As the fit was: all columns written out, in double precision, a second decomposition for the draw."""
    correlation, width = targets.correlation, design.width - 1
    free = np.ones_like(correlation, dtype=bool)
    for _, span in design.block_slices():
        free[span.start - 1 : span.stop - 1, span.start - 1 : span.stop - 1] = False
    blank = GaussianModel(np.zeros((width, 1)), 0.0, np.zeros(width), np.zeros(width))
    model = start_margins(design, blank, targets)
    normals = np.random.default_rng(seed).standard_normal((gaussian.REFERENCE_ROWS, width))
    for _ in range(gaussian.COPULA_ROUNDS):
        values, vectors = gaussian._eigenpairs(correlation)  # the signs decide which rows the normals become
        rows = write_out(design, model, (normals * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)
        mean, deviation = rows.mean(axis=0), rows.std(axis=0)
        model = gaussian._step_margins(design, model, targets, CutRows(rows, (), mean, deviation))
        scaled = (rows - mean) / np.maximum(deviation, 1e-6)
        missing = np.where(free, targets.correlation - scaled.T @ scaled / len(rows), 0.0)
        correlation = nearest_slowly(correlation + missing)
    return correlation


def town_targets(towns: int, rows: int = 20_000, noise: float = 0.0) -> tuple[MomentDesign, Targets]:
    """Towns of very different size that drive a number, a small attribute and a sign."""
    schema = [integer("age", 0, 100), binary("sex"), categorical("ward", 4), categorical("town", towns)]
    study = make_study(schema=schema, rows=(rows, 5, 5))
    rng, weights = np.random.default_rng(21), 1 / np.arange(5, towns + 5)
    town = rng.choice(towns, rows, p=weights / weights.sum())
    drive = rng.normal(size=towns)[town]
    age = np.clip(128 + 40 * drive + 20 * rng.normal(size=rows), 0, 256)
    table = (np.rint(age), drive > rng.normal(size=rows), np.clip(np.rint(drive + 1.5), 0, 3), town)
    columns = [column.astype(coding.dtype) for column, coding in zip(table, codings_of(study), strict=True)]
    design = moment_design(study)
    moments = sum_moments(design, columns)
    moments = moments + np.rint(rng.laplace(0, noise * design.sensitivity, len(moments))).astype(np.int64)
    return design, read_targets(design, unfold(design, moments, rows), rows)


def distance(first: Floats, second: Floats) -> float:
    return float(np.sqrt(((first - second) ** 2).mean()))


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_the_fit_finds_the_correlations_that_its_slow_form_finds(noise: float) -> None:
    """As near to the slow form as that is to itself with other normals, and far nearer than to where both began."""
    design, targets = town_targets(40, noise=noise)
    slow, other = (match_slowly(design, targets, seed=seed) for seed in (1, 2))
    fast = gaussian._match_correlations(design, targets, seed=1)
    chance = distance(slow, other)
    assert distance(fast, slow) < 1.3 * chance
    assert distance(slow, targets.correlation) > 3 * chance
