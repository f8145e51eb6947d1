"""DPCocGen (Benkhelif, Fessant, Clérot, Raschia 2017): values that behave alike are joined into parts, which are found
in a noisy table of all attributes; then the parts are counted. Both are encrypted sums.
"""

from decimal import Decimal
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from synod.common.methods.cells import LARGEST_CELLS, CellsMethod
from synod.common.protocol.steps import Step
from synod.common.runtime.errors import refused
from synod.common.study.encoding import codings_of
from synod.common.study.features import features_of, sizes_of
from synod.common.study.schema import ExactDecimal
from synod.common.study.study import Study

MOST_VALUES = 500


class DpCocGen(CellsMethod):
    """`split` is the share of the budget for the table that parts are found in; the rest counts the parts.

    `parts` says how many parts there are: `error` takes those of the least expected error, `modl` those that the
    criterion MODL likes best, and a number at most so many cells of parts.
    """

    name: Literal["dpcocgen"]
    version: Literal[1] = 1
    allows_losses: ClassVar[bool] = True
    split: ExactDecimal = Decimal("0.5")
    parts: Literal["auto", "error", "modl"] | Annotated[int, Field(ge=2, le=LARGEST_CELLS)] = "auto"

    @model_validator(mode="after")
    def _check_split(self) -> "DpCocGen":
        if not 0 < self.split < 1:
            raise ValueError("split must be above 0 and below 1")
        return self

    def resolve(self, study: Study) -> Self:
        """Writes out the attributes, and that parts are those of the least expected error."""
        settled = super().resolve(study)
        return settled.model_copy(update={"parts": "error" if self.parts == "auto" else self.parts})

    def check(self, study: Study) -> None:
        """Refuses too many cells, and attributes of so many values without an order that joining them takes hours."""
        super().check(study)
        codings = codings_of(study)
        for feature in features_of(study):
            attribute = codings[feature.attribute].attribute
            if feature.size > MOST_VALUES and not attribute.is_numeric:
                raise refused(
                    f"{attribute.name} has {feature.size:,} values, which would be compared two by two; at most "
                    f"{MOST_VALUES:,} can be.",
                    "Join rare categories in the schema, or leave it out of `attributes`.",
                )

    def plan(self, study: Study) -> tuple[Step, ...]:
        """A sum of all cells, then one of the parts; where all values are joined, of the first attribute's values."""
        first = study.budget.share(self.split)
        most = max(self.parts, *sizes_of(study)[:1]) if isinstance(self.parts, int) else None
        return (
            self.cells_step(study, "histogram", first),
            self.cells_step(study, "parts", study.budget - first, most),
        )
