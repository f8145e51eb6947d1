"""HPPrivBayes (Deng 2025): a Bayesian network in the order of the columns' information, whose tables have different
noise for sensitive columns and for others, and in the latter for different values.

What the paper reads off the rows without paying for it is here read off one encrypted sum, or written in the study.
"""

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from synod.common.methods.networks import (
    Auto,
    Cells,
    DegreeMethod,
    Parts,
    check_cells,
    check_parts,
    check_theta,
    list_to_tuple,
    most_parents,
    resolved,
    share_draws,
    tables_limit,
    useful_sum_table,
    views_limit,
)
from synod.common.protocol.queries.marginals import LARGEST_WEIGHT, SumMarginals
from synod.common.protocol.steps import QueryKind, Step
from synod.common.runtime.errors import invalid
from synod.common.study.encoding import codings_of
from synod.common.study.features import base_count, base_sizes, features_of
from synod.common.study.schema import ExactDecimal, Name
from synod.common.study.study import FeatureEncoding, Study

WITH_READING = (Decimal("0.1"), Decimal("0.3"), Decimal("0.15"), Decimal("0.45"))
WITHOUT_READING = (Decimal("0.3"), Decimal("0.175"), Decimal("0.525"))
LARGEST_RATIO = 1_000  # of the groups' shares; with at most a thousand columns the tables' shares fit into a query


def _read_weights(value: Any) -> Any:
    """A mapping from YAML or JSON becomes pairs, in the order of names."""
    if not isinstance(value, Mapping):
        return value
    pairs = [(name, list_to_tuple(weights)) for name, weights in value.items()]
    return tuple(sorted(pairs, key=lambda pair: str(pair[0])))  # whatever YAML takes a name for


Names = Annotated[tuple[Name, ...], BeforeValidator(list_to_tuple)]
ValueWeights = Annotated[
    tuple[tuple[Name, tuple[Annotated[int, Field(ge=1, le=LARGEST_WEIGHT)], ...]], ...],
    BeforeValidator(_read_weights),
    PlainSerializer(lambda pairs: {name: list(weights) for name, weights in pairs}),
]


class HpPrivBayes(DegreeMethod):
    """`sensitive_to` is an attribute: it and those that tell at least `threshold` bits about it are sensitive. Or
    `sensitive` lists these, and `sensitive_to` is empty. `order` is that in which attributes enter the network.

    `weights` are those of the values of an attribute that is not sensitive: more weight is less noise. `rare` gives
    more to rare values, as printed, `frequent` to frequent ones; a mapping has whole numbers from 1 to 64, one for each
    value of an attribute, the missing one last.

    `split` are the shares of the budget for reading, structure, tables of sensitive attributes and other tables; the
    first is left out where order, groups and weights are written in the study, so that nothing is read.
    """

    name: Literal["hpprivbayes"]
    version: Literal[1] = 1
    allows_losses: ClassVar[bool] = True
    encoding: Literal[Auto, "vanilla", "hierarchical"] = "auto"
    split: Auto | Parts = "auto"
    sensitive_to: Name | Literal[""] = ""
    sensitive: Names = ()
    threshold: ExactDecimal = Decimal("0.1")
    weights: Literal["rare", "frequent", "none"] | ValueWeights = "none"
    order: Literal["information", "schema"] | Names = "information"
    theta: ExactDecimal = Decimal(4)
    parameter_cells: Cells | Auto = "auto"
    max_view_cells: Annotated[int, Field(ge=4, le=1_000_000)] = 4096
    usual_encoding: ClassVar[FeatureEncoding] = "vanilla"

    @model_validator(mode="after")
    def _check_keys(self) -> "HpPrivBayes":
        if self.sensitive_to and self.sensitive:
            raise ValueError("`sensitive_to` and `sensitive` are two ways to say the same; leave one out")
        check_parts(self.parts, 4 if self.reads else 3)
        ratio = Fraction(self.parts[-2]) / Fraction(self.parts[-1])
        if not Fraction(1, LARGEST_RATIO) <= ratio <= LARGEST_RATIO:
            raise ValueError(f"the last two shares of split must not differ by more than {LARGEST_RATIO:,} times")
        if self.threshold <= 0:
            raise ValueError("threshold must be above 0")
        check_theta(self.theta)
        return self

    @property
    def reads(self) -> bool:
        """Whether order, groups or weights follow from the rows, so that something has to be read."""
        return not self.sensitive or self.order == "information" or self.weights in ("rare", "frequent")

    @property
    def parts(self) -> tuple[Decimal, ...]:
        """The shares of the budget: four, or three where nothing is read."""
        if isinstance(self.split, tuple):
            return self.split
        return WITH_READING if self.reads else WITHOUT_READING

    def chosen_encoding(self, study: Study) -> FeatureEncoding:
        """What a resolved study writes; `auto` is vanilla everywhere."""
        del study
        return self.feature_encoding

    def resolve(self, study: Study) -> Self:
        """Writes out encoding, score, split, which attribute is sensitive, and how large tables may be."""
        settled = self.model_copy(update={**self.common_keys(study), "split": self.parts})
        known = study.model_copy(update={"method": settled})
        if not self.sensitive and not self.sensitive_to:
            settled = settled.model_copy(update={"sensitive_to": attribute_names(known)[-1]})
        settled._check_names(known)
        cells = settled.useful_table(known) if self.parameter_cells == "auto" else self.parameter_cells
        cells = 0 if self.degree == 0 else check_cells(cells, known)
        degree = most_parents(known) if self.degree is None else self.degree
        return settled.model_copy(update={"parameter_cells": cells, "degree": degree})

    def _check_names(self, study: Study) -> None:
        """Attributes that are named must vary, an order must have each once, and weights one for each value."""
        names, sizes = attribute_names(study), dict(zip(attribute_names(study), base_sizes(study), strict=True))
        listed = [("sensitive_to", [self.sensitive_to] * bool(self.sensitive_to)), ("sensitive", list(self.sensitive))]
        weights = self.weights if isinstance(self.weights, tuple) else ()
        listed += [("weights", [name for name, _ in weights])]
        for key, chosen in listed:
            unknown = [name for name in chosen if name not in names]
            if unknown:
                known = any(attribute.name == unknown[0] for attribute in study.attributes)
                why = "has a single value" if known else "is not in the schema"
                raise invalid(f"{unknown[0]}, which `{key}` names, {why}.", "Name an attribute that varies.")
            if len(set(chosen)) < len(chosen):
                raise invalid(f"`{key}` names an attribute twice.", "Name each once.")
        if isinstance(self.order, tuple) and sorted(self.order) != sorted(names):
            raise invalid(
                "`order` does not name every attribute that varies once.",
                "List them all, or write information or schema.",
            )
        for name, own in weights:
            if name in self.sensitive:
                raise invalid(
                    f"{name} has `weights` and is among the `sensitive` attributes, whose tables have none.",
                    "Leave it out of one of the two.",
                )
            if len(own) != sizes[name]:
                raise invalid(
                    f"`weights` has {len(own)} numbers for {name}, which has {sizes[name]} values.",
                    "Write one for each value in the schema's order, and one more if it may be missing.",
                )

    def useful_table(self, study: Study) -> int:
        """The most cells of a table that would be theta-useful if all had the same noise; 0 if no table with a parent
        is.
        """
        return useful_sum_table(study, Fraction(self.parts[-2]) + Fraction(self.parts[-1]), self.theta)

    def check(self, study: Study) -> None:
        """Refuses a study in which the noisiest cell that could be asked for has too little of the budget, or no room
        in a plaintext.
        """
        step = self.plan(study)[-1]
        first, second = (Fraction(part) for part in self.parts[-2:])
        rarest = second if self.weights == "none" else second / LARGEST_WEIGHT
        least = min(first, rarest) / (first + second) / base_count(study)
        SumMarginals.check_room(step, study, least)

    def plan(self, study: Study) -> tuple[Step, ...]:
        """Reading where something is read, draws by each party that has any, then the tables; the tables alone, with
        the whole budget, where no feature can have a parent.
        """
        parties, budget, cells = study.party_names, study.budget, resolved(self.parameter_cells)
        limit, sums = tables_limit(study, cells), QueryKind.SUM_MARGINALS
        if cells == 0:
            return (Step("parameters", "parameters", sums, parties, budget, limit),)
        *reading, structure, first, second = (Fraction(part) for part in self.parts)
        views, choose = views_limit(study, self.max_view_cells), QueryKind.CHOOSE_PARENTS
        draws = zip(parties, share_draws(study), strict=True)
        return (
            *(Step("reading", "reading", sums, parties, budget.share(part), views) for part in reading),
            *(
                Step(
                    f"structure-{name}",
                    "structure",
                    choose,
                    (name,),
                    budget.share(structure),
                    self.choice_limit(study, cells, count),
                )
                for name, count in draws
                if count
            ),
            Step("parameters", "parameters", sums, parties, budget.share(first + second), limit),
        )


def attribute_names(study: Study) -> tuple[str, ...]:
    """The name of the attribute that each base feature is."""
    codings = codings_of(study)
    return tuple(codings[feature.attribute].attribute.name for feature in features_of(study) if not feature.level)
