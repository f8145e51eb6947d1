"""Fits HPDP-DP's Gaussian model to released moments: post-processing, so it costs nothing.

With `link: linear` the latent covariance is the released covariance, as in the paper. With `link: copula` latent
correlations are moved until rows that are cut from the model have the released correlations: cutting a Gaussian
into categories weakens them. Means, spreads and cut points are set in the same loop so that the margins hold.
"""

from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from synod.common.models.gaussian import GaussianModel, latent_rows
from synod.common.models.moments import MomentDesign
from synod.curator.inference.reference import CutRows, cut_correlation, cut_rows, draw_normals

Floats = NDArray[np.float64]
REFERENCE_ROWS = 16_384
LARGEST_CORRELATION = 0.98
MARGIN_ROUNDS = 12
COPULA_ROUNDS = 30


@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """What rows of the model should have: mean, standard deviation and correlation of each design column."""

    mean: Floats
    deviation: Floats
    correlation: Floats


@dataclass(frozen=True, slots=True)
class Kept:
    """Which components are kept: so many, or those that explain this share of the variance (c in the paper)."""

    contribution: float
    components: int | None = None

    def count(self, values: Floats) -> int:
        """How many of the components with these variances, largest first."""
        explained = np.cumsum(values) / values.sum()
        wanted = self.components or int(np.searchsorted(explained, self.contribution - 1e-12)) + 1
        return min(wanted, len(values))


def fit_model(
    design: MomentDesign, gram: Floats, rows: int, *, kept: Kept, link: str, rng: np.random.Generator
) -> GaussianModel:
    """The model whose rows have the moments of `gram`, with as many components as `kept` asks for.

    Args:
        design: the columns of the moments.
        gram: the noisy Gram matrix per row, from `unfold`.
        rows: the public number of rows, below whose resolution no margin is taken.
        kept: which components.
        link: "copula" or "linear".
        rng: public randomness; the model depends on it only through the reference draw.
    """
    targets = read_targets(design, gram, rows)
    latent = targets.correlation
    seed = int(rng.integers(2**63))
    if link == "copula":
        latent = _match_correlations(design, targets, seed=seed)
    loadings, noise = principal_components(latent, targets.deviation if link == "linear" else None, kept)
    width = design.width - 1
    model = GaussianModel(loadings, noise, np.zeros(width), np.zeros(width))
    return _match_margins(design, start_margins(design, model, targets), targets, seed=seed)


def read_targets(design: MomentDesign, gram: Floats, rows: int) -> Targets:
    """Means, deviations and correlations out of a noisy Gram matrix, each brought into its possible range."""
    mean = 2 * gram[0, 1:]
    smallest = 1 / (2 * rows)
    for place, _ in enumerate(design.signed):
        mean[place] = np.clip(mean[place], -0.5 + smallest, 0.5 - smallest)
    for _, span in design.block_slices():
        inner = slice(span.start - 1, span.stop - 1)
        mean[inner] = project_to_simplex(mean[inner], smallest)
    covariance = nearest_covariance(gram[1:, 1:] - np.outer(mean, mean))
    deviation = np.sqrt(np.diag(covariance))
    for place, column in enumerate(design.signed):
        limit = np.sqrt(0.25 - mean[place] ** 2)
        deviation[place] = np.clip(deviation[place], smallest, limit) if column.role == "number" else limit
    first_block = len(design.signed)
    deviation[first_block:] = np.sqrt(mean[first_block:] * (1 - mean[first_block:]))
    correlation = covariance / np.outer(deviation, deviation)
    return Targets(mean, deviation, nearest_correlation(correlation))


def project_to_simplex(values: Floats, smallest: float) -> Floats:
    """Norm-sub: subtract one constant and cut at zero so that the sum is one; then keep every share possible."""
    ordered = np.sort(values)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(values) + 1)
    kept = np.flatnonzero(ordered > excess)[-1]
    shares = np.maximum(np.maximum(values - excess[kept], 0), smallest)
    projected: Floats = shares / shares.sum()
    return projected


def nearest_covariance(matrix: Floats) -> Floats:
    """The nearest positive semidefinite matrix in Frobenius norm."""
    root = _covariance_root(matrix)
    nearest: Floats = root @ root.T
    return nearest


def _covariance_root(matrix: Floats) -> Floats:
    """R with R R' the nearest positive semidefinite matrix: eigenvectors by the roots of their eigenvalues."""
    values, vectors = _eigenpairs((matrix + matrix.T) / 2)
    root: Floats = vectors * np.sqrt(np.maximum(values, 1e-12))
    return root


def _eigenpairs(matrix: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues, ascending, and their vectors, each with the sign that makes its largest entry positive: a library is
    free to choose signs, and rows that are drawn along them would differ from machine to machine.
    """
    values, vectors = np.linalg.eigh(matrix)
    largest = np.argmax(np.round(np.abs(vectors), 6), axis=0)
    signs = np.where(vectors[largest, np.arange(len(values))] < 0, -1.0, 1.0)
    return values, vectors * signs


def nearest_correlation(matrix: Floats) -> Floats:
    """A positive semidefinite matrix with unit diagonal near `matrix`."""
    root = correlation_root(matrix)
    correlation: Floats = root @ root.T
    return correlation


def correlation_root(matrix: Floats) -> Floats:
    """R with R R' the nearest correlation: what makes rows of independent normals have it."""
    clipped = np.clip(matrix, -LARGEST_CORRELATION, LARGEST_CORRELATION)
    np.fill_diagonal(clipped, 1.0)
    root = _covariance_root(clipped)
    unit: Floats = root / np.linalg.norm(root, axis=1, keepdims=True)
    return unit


def principal_components(correlation: Floats, deviation: Floats | None, kept: Kept) -> tuple[Floats, float]:
    """W and sigma of probabilistic principal components (Tipping and Bishop): the leading eigenpairs, as many as are
    kept, and the mean of the rest as isotropic noise.
    """
    scale = np.ones(len(correlation)) if deviation is None else deviation
    values, vectors = _eigenpairs(correlation * np.outer(scale, scale))
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    rank = kept.count(values)
    variance = float(values[rank:].mean()) if rank < len(values) else 0.0
    loadings = vectors[:, :rank] * np.sqrt(np.maximum(values[:rank] - variance, 0.0))
    return loadings, float(np.sqrt(variance))


def start_margins(design: MomentDesign, model: GaussianModel, targets: Targets) -> GaussianModel:
    """First cut points: as if each column were a Gaussian with the released mean and deviation."""
    shift, spread = targets.mean.copy(), np.zeros_like(targets.mean)
    for place, column in enumerate(design.signed):
        if column.role == "number":
            spread[place] = targets.deviation[place]
        else:
            shift[place] = -_quantile(targets.mean[place] + 0.5)
    for _, span in design.block_slices():
        inner = slice(span.start - 1, span.stop - 1)
        shift[inner] = [_quantile(share) for share in targets.mean[inner]]
    return replace(model, shift=shift, spread=spread)


def _quantile(share: float) -> float:
    return NormalDist().inv_cdf(float(np.clip(share, 1e-12, 1 - 1e-12)))


def _step_margins(design: MomentDesign, model: GaussianModel, targets: Targets, cut: CutRows) -> GaussianModel:
    """Moves means, spreads and offsets towards the released margins, as far as the rows that were cut miss them."""
    mean, deviation = cut.mean, cut.deviation
    shift, spread = model.shift.copy(), model.spread.copy()
    for place, column in enumerate(design.signed):
        if column.role == "number":
            shift[place] += np.clip(targets.mean[place] - mean[place], -0.25, 0.25)
            ratio = targets.deviation[place] / max(deviation[place], 1e-6)
            spread[place] = np.clip(spread[place] * np.clip(ratio, 0.5, 2.0), 1e-6, 4.0)
    for _, span in design.block_slices():
        inner = slice(span.start - 1, span.stop - 1)
        floor = 1 / cut.rows
        shift[inner] += 0.5 * np.log((targets.mean[inner] + floor) / (mean[inner] + floor))
    return replace(model, shift=np.clip(shift, -40, 40), spread=spread)


def _match_margins(design: MomentDesign, model: GaussianModel, targets: Targets, *, seed: int) -> GaussianModel:
    latent = latent_rows(model, REFERENCE_ROWS, rng=np.random.default_rng(seed))
    for _ in range(MARGIN_ROUNDS):
        model = _step_margins(design, model, targets, cut_rows(design, model, latent))
    return model


def _match_correlations(design: MomentDesign, targets: Targets, *, seed: int) -> Floats:
    """Latent correlations under which rows cut from the model have the released correlations.

    A fixed-point iteration with common random numbers; correlations inside a one-hot block stay as they are.
    """
    root = correlation_root(targets.correlation)
    free = np.ones_like(root, dtype=bool)
    for _, span in design.block_slices():
        inner = slice(span.start - 1, span.stop - 1)
        free[inner, inner] = False
    width = len(root)
    model = start_margins(design, GaussianModel(np.zeros((width, 1)), 0.0, np.zeros(width), np.zeros(width)), targets)
    normals = draw_normals(REFERENCE_ROWS, width, seed=seed)
    for _ in range(COPULA_ROUNDS):
        cut = cut_rows(design, model, normals @ root.astype(np.float32).T)
        model = _step_margins(design, model, targets, cut)
        missing = np.where(free, targets.correlation - cut_correlation(design, cut), 0.0)
        root = correlation_root(root @ root.T + missing)
    correlation: Floats = root @ root.T
    return correlation
