"""Independent, the papers' baseline: PrivBayes at each party, on its own rows; the union of the samples."""

from decimal import Decimal
from fractions import Fraction
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, model_validator

from synod.common.methods.networks import (
    Auto,
    Cells,
    NetworkMethod,
    check_cells,
    check_theta,
    coarsest_sizes,
    list_to_tuple,
    own_shares,
    resolved,
    tables_limit,
)
from synod.common.models.usefulness import largest_table
from synod.common.protocol.steps import QueryKind, Step
from synod.common.runtime.errors import invalid
from synod.common.study.features import base_count, base_sizes
from synod.common.study.schema import ExactDecimal
from synod.common.study.study import FeatureEncoding, Study


class Independent(NetworkMethod):
    """`beta` is the share of the budget for choosing parents; the rest is for tables.

    `table_cells` are the most cells of a table of each party's network, in the roster's order; `auto` takes what is
    theta-useful for the party's rows.
    """

    name: Literal["independent"]
    version: Literal[1] = 1
    allows_losses: ClassVar[bool] = True
    beta: ExactDecimal = Decimal("0.3")
    theta: ExactDecimal = Decimal(4)
    table_cells: Annotated[tuple[Cells, ...] | Auto, BeforeValidator(list_to_tuple)] = "auto"
    usual_encoding: ClassVar[FeatureEncoding] = "hierarchical"

    @model_validator(mode="after")
    def _check_beta(self) -> "Independent":
        if not 0 < self.beta < 1:
            raise ValueError("beta must be above 0 and below 1")
        check_theta(self.theta)
        return self

    def resolve(self, study: Study) -> Self:
        """Writes out encoding, score, and how large each party's tables may be."""
        settled = self.model_copy(update=self.common_keys(study))
        known = study.model_copy(update={"method": settled})
        useful = tuple(settled.useful_table(known, entry.rows) for entry in study.roster)
        cells = useful if self.table_cells == "auto" else self.table_cells
        if len(cells) != len(study.roster):
            raise invalid("`table_cells` must have one number for each party on the roster.")
        return settled.model_copy(update={"table_cells": tuple(check_cells(most, known) for most in cells)})

    def useful_table(self, study: Study, rows: int) -> int:
        """The most cells of a theta-useful table over so many rows; 0 if no table with a parent is."""
        return largest_table(
            base_sizes(study),
            rows=rows,
            cost=study.budget.share(1 - Fraction(self.beta)),
            theta=self.theta,
            shares=own_shares(study, 1),
            nested=True,
            coarsest=coarsest_sizes(study),
        )

    def plan(self, study: Study) -> tuple[Step, ...]:
        """For each party: parents where it can have any, then tables."""
        steps: list[Step] = []
        choosing = study.budget.share(self.beta)
        draws = base_count(study) - 1
        for entry, cells in zip(study.roster, resolved(self.table_cells), strict=True):
            own = (entry.name,)
            if cells:
                limit = self.choice_limit(study, cells, draws)
                kind = QueryKind.CHOOSE_PARENTS
                steps.append(Step(f"choose-{entry.name}", "choose", kind, own, choosing, limit))
            cost = study.budget - choosing if cells else study.budget
            limit, kind = tables_limit(study, cells), QueryKind.LOCAL_MARGINALS
            steps.append(Step(f"tables-{entry.name}", "tables", kind, own, cost, limit))
        return tuple(steps)
