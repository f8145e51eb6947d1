"""What a published model offers to whoever draws more rows from it, or asks what it says of some columns.

A model is released, so all of this is post-processing and costs nothing; the randomness is public.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from synod.common.study.encoding import Codes

Floats = NDArray[np.float64]
Allowed = Sequence[NDArray[np.bool_] | None]
"""For each attribute which of its codes a row may have; None where it may have any."""
Answers = Callable[[str], Any]
"""The released answer to the query of a round, by the round's label."""


class RowModel(Protocol):
    """A published model that independent rows can be drawn from."""

    def draw(self, rows: int, allowed: Allowed, *, rng: np.random.Generator) -> list[Codes]:
        """`rows` independent rows as codes, a column for each attribute.

        Guarantee: those of the rows that have allowed codes only are independent draws of the model's law given that.
        Where the model can be conditioned, all rows are such; elsewhere rows come without the condition, and whoever
        draws keeps those that satisfy it.

        Raises:
            SynodError: the model gives no row that is allowed any chance.
        """
        ...

    def chance(self, allowed: Allowed) -> float | None:
        """The chance that a row has allowed codes only; None where that would take too much memory to compute."""
        ...

    def table(self, attributes: Sequence[int]) -> Floats | None:
        """The chance of each combination of the codes of these attributes, an axis for each; None where that would
        take too much memory to compute.
        """
        ...
