"""HPDP-DP (Gu, Zhang, Yang 2022): noisy pooled moments, principal components, rows drawn from the model."""

from decimal import Decimal
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from synod.common.models.moments import design_moments
from synod.common.privacy.cost import FREE
from synod.common.protocol.steps import Limit, QueryKind, Step
from synod.common.study.encoding import codings_of
from synod.common.study.schema import ExactDecimal
from synod.common.study.study import Method, Study


class HpdpDp(Method):
    """`components` is how many of them are kept, or `contribution`: those that explain that share of the variance;
    `levels` the steps of a number.
    """

    name: Literal["hpdp-dp"]
    version: Literal[1] = 1
    allows_losses: ClassVar[bool] = True
    contribution: ExactDecimal = Decimal("0.9")
    components: Annotated[int, Field(ge=1)] | Literal["contribution"] = "contribution"
    levels: Literal[256, 512, 1024] = 256
    link: Literal["copula", "linear"] = "copula"

    @model_validator(mode="after")
    def _check_contribution(self) -> "HpdpDp":
        if not 0 < self.contribution <= 1:
            raise ValueError("contribution must be above 0 and at most 1")
        return self

    @property
    def kept_components(self) -> int | None:
        """How many components are kept; none where their contribution decides."""
        return None if self.components == "contribution" else self.components

    @property
    def number_levels(self) -> int | None:
        """Numbers are quantized evenly over their range."""
        return self.levels

    def plan(self, study: Study) -> tuple[Step, ...]:
        """One encrypted sum with all of the budget, then rows, which are free."""
        parties, numbers = study.party_names, design_moments(codings_of(study)).length
        return (
            Step("moments", "moments", QueryKind.SUM_MOMENTS, parties, study.budget, Limit(numbers)),
            Step("rows", "rows", QueryKind.SYNTHESIZE, parties, FREE, Limit(0)),
        )
