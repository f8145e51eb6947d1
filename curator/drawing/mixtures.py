"""A union of the parties' own models as one: a row is of each with a chance in proportion to its share of the rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synod.common.study.encoding import Codes
from synod.curator.drawing.base import Allowed, Floats, RowModel
from synod.curator.drawing.discrete import impossible_conditions, share_out


@dataclass(frozen=True, slots=True, eq=False)
class Mixture(RowModel):
    """Models with their shares of the rows."""

    models: tuple[RowModel, ...]
    shares: tuple[float, ...]

    def draw(self, rows: int, allowed: Allowed, *, rng: np.random.Generator) -> list[Codes]:
        """Implements `RowModel.draw`: whose each row is, given the conditions, then the rows of each, shuffled.

        Guarantee: that of the models; exact given the conditions where each of them is.
        """
        chances = [model.chance(allowed) for model in self.models]
        known = [chance for chance in chances if chance is not None]
        if len(known) < len(chances):
            known, allowed = [1.0] * len(chances), [None] * len(allowed)
        weights = np.array([share * chance for share, chance in zip(self.shares, known, strict=True)])
        if not weights.any():
            raise impossible_conditions()
        counts = rng.multinomial(rows, share_out(weights)).tolist()
        parts = [model.draw(count, allowed, rng=rng) for model, count in zip(self.models, counts, strict=True) if count]
        order = rng.permutation(rows)
        return [np.concatenate(columns)[order] for columns in zip(*parts, strict=True)]

    def chance(self, allowed: Allowed) -> float | None:
        """Implements `RowModel.chance`."""
        chances = [model.chance(allowed) for model in self.models]
        known = [chance for chance in chances if chance is not None]
        return _average(known, self.shares) if len(known) == len(chances) else None

    def table(self, attributes: Sequence[int]) -> Floats | None:
        """Implements `RowModel.table`."""
        tables = [model.table(attributes) for model in self.models]
        known = [table for table in tables if table is not None]
        if len(known) < len(tables):
            return None
        weighted = [share * table for share, table in zip(self.shares, known, strict=True)]
        total: Floats = np.sum(weighted, axis=0) / sum(self.shares)
        return total


def _average(chances: Sequence[float], shares: Sequence[float]) -> float:
    return sum(share * chance for share, chance in zip(shares, chances, strict=True)) / sum(shares)
