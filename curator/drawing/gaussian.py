"""A published Gaussian model: rows are cut from latent vectors, so a condition is met by chance alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synod.common.crypto.canonical import Json
from synod.common.models.gaussian import GaussianModel, draw_rows, parse_model
from synod.common.models.moments import MomentDesign
from synod.common.protocol.queries.moments import moment_design
from synod.common.study.encoding import Codes
from synod.common.study.study import Study
from synod.curator.drawing.base import Allowed, Answers, Floats, RowModel


def open_gaussian(study: Study, model: Json, answers: Answers) -> RowModel:
    """The model of a release whose method publishes a latent Gaussian.

    Raises:
        SynodError: the model is not sound, or not one of this study's attributes.
    """
    del answers
    design = moment_design(study)
    return LatentModel(design, parse_model(model, design))


@dataclass(frozen=True, slots=True, eq=False)
class LatentModel(RowModel):
    """A latent Gaussian and the design that cuts rows from it."""

    design: MomentDesign
    model: GaussianModel

    def draw(self, rows: int, allowed: Allowed, *, rng: np.random.Generator) -> list[Codes]:
        """Implements `RowModel.draw`: rows of the model, whatever is allowed."""
        del allowed
        return draw_rows(self.design, self.model, rows, rng=rng)

    def chance(self, allowed: Allowed) -> float | None:
        """Implements `RowModel.chance`: an integral of a Gaussian over many dimensions, which is not computed."""
        return 1.0 if all(own is None for own in allowed) else None

    def table(self, attributes: Sequence[int]) -> Floats | None:
        """Implements `RowModel.table`: not computed either."""
        del attributes
        return None
