"""Histogram, the baseline of DPCocGen and of PrivBayes: one encrypted sum of the table of all attributes.

It keeps whatever the attributes tell together, for tables with few cells or many rows.
"""

from typing import ClassVar, Literal

from synod.common.methods.cells import CellsMethod
from synod.common.protocol.steps import Step
from synod.common.study.study import Study


class Histogram(CellsMethod):
    """All of the budget for one table of `attributes`, or of all of them."""

    name: Literal["histogram"]
    version: Literal[1] = 1
    allows_losses: ClassVar[bool] = True

    def plan(self, study: Study) -> tuple[Step, ...]:
        """One sum."""
        return (self.cells_step(study, "histogram", study.budget),)
