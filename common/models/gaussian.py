"""The model that HPDP-DP publishes: a latent Gaussian with principal-component structure, and how rows are cut from it.

A row's latent vector is z = W s + sigma e, with s and e from the prior: never from real rows, as the paper has it
(docs/privacy.md, 8). A number is mean + spread * z, clipped to its range; two codes are cut at a threshold; more codes
are the place of the greatest z + offset. The model is public, so drawing from it costs nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synod.common.crypto.canonical import LARGEST_INTEGER, Json
from synod.common.models.moments import MomentDesign
from synod.common.runtime.errors import invalid
from synod.common.study.encoding import Codes

Floats = NDArray[np.float64]
Latent = NDArray[np.floating]
GRID = 10**9
DRAW_ROWS = 65_536
SCORED_ROWS = 512  # scores of so many rows stay in the processor's cache


@dataclass(frozen=True, slots=True, eq=False)
class GaussianModel:
    """`loadings` is W, one row for each column of the design after the constant; `noise` is sigma; `shift` holds a
    number's mean, a threshold or an offset, and `spread` a number's scale (0 elsewhere).
    """

    loadings: Floats
    noise: float
    shift: Floats
    spread: Floats

    def to_json(self) -> dict[str, Json]:
        """The model on a grid of 1e-9, so that both sides hold the same numbers."""
        return {
            "loadings": [_to_grid(row) for row in self.loadings],
            "noise": _to_grid(np.array([self.noise]))[0],
            "shift": _to_grid(self.shift),
            "spread": _to_grid(self.spread),
        }


def _to_grid(values: Floats) -> list[int]:
    return [int(value) for value in np.rint(values * GRID)]


def _from_grid(values: object) -> Floats:
    """Numbers that have a canonical form, so that what is parsed can be written and compared again."""
    grid = np.array(values, dtype=np.int64)
    if not ((grid >= -LARGEST_INTEGER) & (grid <= LARGEST_INTEGER)).all():
        raise ValueError("beyond what has a canonical form")
    numbers: Floats = grid / GRID
    return numbers


def read_model(data: Any) -> GaussianModel:
    """Reads what `to_json` wrote; anything else is refused."""
    try:
        loadings, shift, spread = (_from_grid(data[key]) for key in ("loadings", "shift", "spread"))
        noise = float(_from_grid([data["noise"]])[0])
    except (KeyError, TypeError, ValueError, OverflowError):
        raise invalid("the model is malformed.") from None
    if loadings.ndim != 2:
        raise invalid("the model is malformed.")
    return GaussianModel(loadings, noise, shift, spread)


def check_model(model: GaussianModel, design: MomentDesign) -> None:
    """Raises unless the model has the shapes that this design calls for."""
    width = design.width - 1
    fits = len(model.loadings) == width and 1 <= model.loadings.shape[1] <= max(width, 1)
    if not fits or model.shift.shape != (width,) or model.spread.shape != (width,) or model.noise < 0:
        raise invalid("the model does not fit the study's schema.")


def parse_model(data: object, design: MomentDesign) -> GaussianModel:
    """Reads what `to_json` wrote, for this design."""
    model = read_model(data)
    check_model(model, design)
    return model


def latent_rows(model: GaussianModel, rows: int, *, rng: np.random.Generator) -> Floats:
    """Latent vectors from the prior, each column scaled to variance one."""
    width, rank = model.loadings.shape
    scale = np.sqrt((model.loadings**2).sum(axis=1) + model.noise**2)
    latent = rng.standard_normal((rows, rank)) @ model.loadings.T
    latent += model.noise * rng.standard_normal((rows, width))
    return latent / np.where(scale > 0, scale, 1.0)


def cut_codes(design: MomentDesign, model: GaussianModel, latent: Latent) -> list[Codes]:
    """The codes of rows with these latent vectors, one array for each attribute."""
    columns: list[Codes] = [np.zeros(len(latent), dtype=coding.dtype) for coding in design.codings]
    for place, column in enumerate(design.signed):
        coding = design.codings[column.attribute]
        if column.role == "number":
            number = model.shift[place] + model.spread[place] * latent[:, place]
            levels = np.rint((np.clip(number, -0.5, 0.5) + 0.5) * coding.levels)
            columns[column.attribute][:] = levels
        elif column.role == "binary":
            columns[column.attribute][:] = latent[:, place] > model.shift[place]
        else:  # missing: comes after its number, and overrules it
            columns[column.attribute][latent[:, place] > model.shift[place]] = coding.null_code
    for block, span in design.block_slices():
        inner = slice(span.start - 1, span.stop - 1)
        columns[block.attribute][:] = _greatest(latent[:, inner], model.shift[inner])
    return columns


def _greatest(latent: Latent, shift: Floats) -> NDArray[np.intp]:
    """The place of the greatest score of each row, in the precision of the latent values."""
    found, offsets = np.empty(len(latent), dtype=np.intp), shift.astype(latent.dtype)
    for start in range(0, len(latent), SCORED_ROWS):
        part = slice(start, start + SCORED_ROWS)
        found[part] = (latent[part] + offsets).argmax(axis=1)
    return found


def draw_rows(design: MomentDesign, model: GaussianModel, rows: int, *, rng: np.random.Generator) -> list[Codes]:
    """`rows` synthetic rows as codes, drawn in chunks of bounded memory."""
    sizes = [min(DRAW_ROWS, rows - start) for start in range(0, rows, DRAW_ROWS)]
    parts = [cut_codes(design, model, latent_rows(model, size, rng=rng)) for size in sizes]
    return concatenate_columns(design, parts)


def concatenate_columns(design: MomentDesign, parts: Sequence[Sequence[Codes]]) -> list[Codes]:
    """Stacks tables of codes, in order."""
    return [
        np.concatenate([part[i] for part in parts] or [np.zeros(0, dtype=coding.dtype)])
        for i, coding in enumerate(design.codings)
    ]
