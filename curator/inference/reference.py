"""The reference draw of HPDP-DP's fit: latent rows with given correlations, and the moments of rows cut from them.

The fit draws and cuts dozens of times. An attribute with hundreds of categories has as many latent columns, so this
module never writes a one-hot block out: a row has one code in it, and moments with it are sums by code. Latent values
are in single precision; they are only compared with cut points. Everything here is public randomness and released
moments, never rows.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synod.common.models.gaussian import GaussianModel, Latent, cut_codes
from synod.common.models.moments import MomentDesign, signed_vectors
from synod.common.study.encoding import Codes

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class CutRows:
    """Rows cut from latent vectors: `signed` columns less their mean, `codes` of each block; mean and deviation of
    every column of the design.
    """

    signed: Floats
    codes: tuple[Codes, ...]
    mean: Floats
    deviation: Floats

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.signed)


def cut_rows(design: MomentDesign, model: GaussianModel, latent: Latent) -> CutRows:
    """The rows of these latent vectors, with mean and deviation of each column."""
    columns = cut_codes(design, model, latent)
    signed = signed_vectors(design, columns) / (2.0 * design.unit)
    codes = tuple(columns[block.attribute] for block in design.blocks)
    shares = [_count(found, block.size) / len(latent) for found, block in zip(codes, design.blocks, strict=True)]
    mean = signed.mean(axis=0)
    signed -= mean
    share = np.concatenate([np.zeros(0), *shares])
    deviation = np.sqrt(np.concatenate([(signed**2).mean(axis=0), share * (1 - share)]))
    return CutRows(signed, codes, np.concatenate([mean, share]), deviation)


def cut_correlation(design: MomentDesign, cut: CutRows) -> Floats:
    """The correlation of the columns of rows that were cut."""
    centre = cut.mean.copy()
    centre[: len(design.signed)] = 0.0
    deviation = np.maximum(cut.deviation, 1e-6)
    correlation: Floats = (_second_moments(design, cut) - np.outer(centre, centre)) / np.outer(deviation, deviation)
    return correlation


def _second_moments(design: MomentDesign, cut: CutRows) -> Floats:
    """Means of products of two columns, the signed ones less their mean."""
    first, spans = len(design.signed), [slice(span.start - 1, span.stop - 1) for _, span in design.block_slices()]
    moments = np.diag(cut.mean)
    moments[:first, :first] = cut.signed.T @ cut.signed / cut.rows
    for place, span in enumerate(spans):
        size, codes = span.stop - span.start, cut.codes[place]
        sums = [_count(codes, size, column) for column in cut.signed.T]
        moments[:first, span] = np.reshape(sums, (first, size)) / cut.rows
        for other, wing in zip(cut.codes[:place], spans[:place], strict=True):
            pairs = _count(other.astype(np.int64) * size + codes, (wing.stop - wing.start) * size)
            moments[wing, span] = pairs.reshape(-1, size) / cut.rows
    return np.triu(moments) + np.triu(moments, 1).T


def _count(codes: NDArray[np.integer], size: int, weights: Floats | None = None) -> Floats:
    counts: Floats = np.bincount(codes, weights, minlength=size).astype(np.float64)
    return counts


def draw_normals(rows: int, width: int, *, seed: int) -> NDArray[np.float32]:
    """Independent normals, the same for all draws of a fit."""
    return np.random.default_rng(seed).standard_normal((rows, width)).astype(np.float32)
