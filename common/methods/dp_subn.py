"""DP-SUBN (Su, Tang, Cheng, Chen, Wu 2016): a Bayesian network that the parties begin and update in turn."""

from decimal import Decimal
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from synod.common.methods.networks import (
    Auto,
    Cells,
    NetworkMethod,
    Parts,
    check_cells,
    check_parts,
    check_theta,
    coarsest_sizes,
    own_shares,
    resolved,
    share_draws,
    sum_shares,
    tables_limit,
    useful_sum_table,
    views_limit,
)
from synod.common.models.usefulness import largest_table
from synod.common.protocol.steps import QueryKind, Step
from synod.common.runtime.errors import invalid
from synod.common.study.features import base_count, base_sizes, sizes_of
from synod.common.study.schema import ExactDecimal
from synod.common.study.study import FeatureEncoding, Study

PAPER_SPLIT = (Decimal("0.25"),) * 4
BEST_SPLITS = {  # measured by bench/utility.py on NLTCS, K = 3, t = 0
    "sequential": (Decimal("0.2"), Decimal("0.05"), Decimal("0.15"), Decimal("0.6")),
    "joint": (Decimal("0.3"), Decimal("0.02"), Decimal("0.3"), Decimal("0.38")),
}


class DpSubn(NetworkMethod):
    """`split` are the shares of the budget for correlations, initialization, update and parameters.

    `cover` says which views the correlations are read off: the best that is known, the paper's NOCD, which is of binary
    features, or overlapping ones as PriView has them. A view has at most `max_view_cells` cells; a pair that has more
    is counted in groups of values. `parameter_cells` and `frontier_cells` are the most cells of a table of the network
    and of the search frontier; `auto` takes what is theta-useful. With 0 no feature can have a parent, and only single
    features are counted.
    """

    name: Literal["dp-subn"]
    version: Literal[1] = 1
    allows_losses: ClassVar[bool] = True
    split: Literal["best", "paper"] | Parts = "best"
    theta: ExactDecimal = Decimal(6)
    theta_frontier: ExactDecimal = Decimal(2)
    update: Literal["sequential", "joint"] = "sequential"
    cover: Literal["best", "nocd", "overlapping"] = "best"
    max_view_cells: Annotated[int, Field(ge=4, le=1_000_000)] = 4096
    parameter_cells: Cells | Auto = "auto"
    frontier_cells: Cells | Auto = "auto"
    usual_encoding: ClassVar[FeatureEncoding] = "vanilla"

    @model_validator(mode="after")
    def _check_split(self) -> "DpSubn":
        check_parts(self.parts, 4)
        check_theta(self.theta)
        check_theta(self.theta_frontier, "theta_frontier")
        return self

    @property
    def parts(self) -> tuple[Decimal, ...]:
        """The four shares of the budget."""
        if isinstance(self.split, tuple):
            return self.split
        return PAPER_SPLIT if self.split == "paper" else BEST_SPLITS[self.update]

    def resolve(self, study: Study) -> Self:
        """Writes out encoding, score, split, and how large tables may be."""
        settled = self.model_copy(update={**self.common_keys(study), "split": self.parts})
        known = study.model_copy(update={"method": settled})
        if self.cover == "nocd" and any(size > 2 for size in base_sizes(known)):
            raise invalid(
                "the cover nocd is of binary features, and this study has larger ones.",
                "Take the encoding binary or gray, or another cover.",
            )
        network = settled.useful_table(known) if self.parameter_cells == "auto" else self.parameter_cells
        frontier = settled.useful_frontier(known) if self.frontier_cells == "auto" else self.frontier_cells
        cells = {"parameter_cells": check_cells(network, known), "frontier_cells": max(frontier, network)}
        return settled.model_copy(update=cells)

    def useful_table(self, study: Study) -> int:
        """The most cells of a theta-useful table of the published network; 0 if no table with a parent is."""
        return useful_sum_table(study, self.parts[3], self.theta)

    def useful_frontier(self, study: Study) -> int:
        """The most cells of a theta-useful table of the search frontier."""
        return largest_table(
            base_sizes(study),
            rows=study.total_rows,
            cost=study.budget.share(self.parts[2]),
            theta=self.theta_frontier,
            shares=own_shares(study, len(study.roster)) if self.update == "sequential" else sum_shares(study),
            nested=False,
            coarsest=coarsest_sizes(study),
        )

    def plan(self, study: Study) -> tuple[Step, ...]:
        """Correlations, initialization by those who have a share of features, update, parameters; the parameters
        alone, with the whole budget, where no feature can have a parent.
        """
        parties, budget = study.party_names, study.budget
        network, frontier = resolved(self.parameter_cells), resolved(self.frontier_cells)
        limit = tables_limit(study, network)
        sums, choose, local = QueryKind.SUM_MARGINALS, QueryKind.CHOOSE_PARENTS, QueryKind.LOCAL_MARGINALS
        if network == 0:
            return (Step("parameters", "parameters", sums, parties, budget, limit),)
        first, second, third, fourth = (budget.share(part) for part in self.parts)
        draws = share_draws(study)
        starts = [
            Step(f"initialize-{name}", "initialize", choose, (name,), second, self.choice_limit(study, network, count))
            for name, count in zip(parties, draws, strict=True)
            if count
        ]
        widest = tables_limit(study, frontier)
        if self.update == "joint":
            updates = [Step("update", "update", sums, parties, third, widest)]
        else:
            updates = [Step(f"update-{name}", "update", local, (name,), third, widest) for name in parties]
        # attributes without levels cannot be grouped where others have some
        whole, overlapping = len(sizes_of(study)) > base_count(study), self.cover == "overlapping"
        views = views_limit(study, self.max_view_cells, whole_pairs=whole, overlapping=overlapping)
        return (
            Step("correlations", "correlations", sums, parties, first, views),
            *starts,
            *updates,
            Step("parameters", "parameters", sums, parties, fourth, limit),
        )
