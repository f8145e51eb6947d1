"""PrivBayes (Zhang, Cormode, Procopiuc, Srivastava, Xiao 2017): a Bayesian network, over one party or many.

The parties draw the network in turn, each from its own rows, or the curator grows it from encrypted sums over pairs of
features; its tables are counted in one encrypted sum. With one party and turns this is the paper's method.
"""

from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, Literal, Self

from pydantic import model_validator

from synod.common.methods.networks import (
    Auto,
    Cells,
    DegreeMethod,
    check_cells,
    check_theta,
    most_parents,
    resolved,
    share_draws,
    tables_limit,
    useful_sum_table,
    views_limit,
)
from synod.common.privacy.cost import Cost
from synod.common.protocol.steps import QueryKind, Step
from synod.common.runtime.errors import invalid
from synod.common.study.schema import ExactDecimal
from synod.common.study.study import FeatureEncoding, Study

VIEW_CELLS = 4096  # the most cells of a table over several pairs; a rule of version 1, as the plan's limits are


class PrivBayes(DegreeMethod):
    """`beta` is the share of the budget for the network; the rest is for its tables.

    `parameter_cells` is the most cells of a table; `auto` takes what is theta-useful. `degree` is the most parents of a
    feature; null leaves that to the cells. With 0 in either place no feature can have a parent, and only single
    features are counted. `structure` says who chooses them: the parties in turns, or the curator from pooled tables of
    all pairs of features, by their mutual information. `tables` says what is done about
    negative counts: `project` makes tables agree and cuts below zero without bias, `clip` cuts and rescales each as
    printed.
    """

    name: Literal["privbayes"]
    version: Literal[1] = 1
    allows_losses: ClassVar[bool] = True
    beta: ExactDecimal = Decimal("0.3")
    theta: ExactDecimal = Decimal(4)
    structure: Literal["turns", "pooled"] = "turns"
    tables: Literal["project", "clip"] = "project"
    parameter_cells: Cells | Auto = "auto"
    usual_encoding: ClassVar[FeatureEncoding] = "hierarchical"

    @model_validator(mode="after")
    def _check_beta(self) -> "PrivBayes":
        if not 0 < self.beta < 1:
            raise ValueError("beta must be above 0 and below 1")
        check_theta(self.theta)
        return self

    def chosen_encoding(self, study: Study) -> FeatureEncoding:
        """What a resolved study writes: where every attribute has two values, `auto` is vanilla."""
        chosen = super().chosen_encoding(study)
        return "vanilla" if self.encoding == "auto" and chosen == "binary" else chosen

    def common_keys(self, study: Study) -> dict[str, object]:
        """What networks have in common; pooled tables of pairs tell mutual information, and no other score."""
        keys = super().common_keys(study)
        if self.structure == "pooled" and self.score not in ("auto", "I"):
            raise invalid(
                f"the score {self.score} is of draws by parties; a pooled structure is chosen by I.",
                "Leave `score` out, or write `structure: turns`.",
            )
        return {**keys, "score": "I"} if self.structure == "pooled" else keys

    def resolve(self, study: Study) -> Self:
        """Writes out encoding, score, and how large tables may be."""
        settled = self.model_copy(update=self.common_keys(study))
        known = study.model_copy(update={"method": settled})
        cells = settled.useful_table(known) if self.parameter_cells == "auto" else self.parameter_cells
        cells = 0 if self.degree == 0 else check_cells(cells, known)
        degree = most_parents(known) if self.degree is None else self.degree
        return settled.model_copy(update={"parameter_cells": cells, "degree": degree})

    def useful_table(self, study: Study) -> int:
        """The most cells of a theta-useful table; 0 if no table with a parent is."""
        return useful_sum_table(study, 1 - Fraction(self.beta), self.theta)

    def plan(self, study: Study) -> tuple[Step, ...]:
        """The structure, then the tables; the tables alone, with the whole budget, where no feature can have a
        parent.
        """
        parties, budget, cells = study.party_names, study.budget, resolved(self.parameter_cells)
        limit, sums = tables_limit(study, cells), QueryKind.SUM_MARGINALS
        if cells == 0:
            return (Step("parameters", "parameters", sums, parties, budget, limit),)
        structure = budget.share(self.beta)
        if self.structure == "pooled":
            views = views_limit(study, VIEW_CELLS)
            steps = [Step("correlations", "correlations", sums, parties, structure, views)]
        else:
            steps = self._draws(study, structure, cells)
        return (*steps, Step("parameters", "parameters", sums, parties, budget - structure, limit))

    def _draws(self, study: Study, cost: Cost, cells: int) -> list[Step]:
        """Draws by each party that has any."""
        choose = QueryKind.CHOOSE_PARENTS
        return [
            Step(f"structure-{name}", "structure", choose, (name,), cost, self.choice_limit(study, cells, count))
            for name, count in zip(study.party_names, share_draws(study), strict=True)
            if count
        ]
