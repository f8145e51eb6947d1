"""DP-CCBN, a baseline of the DP-SUBN paper: every candidate table of every iteration through an encrypted sum."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from math import comb, prod
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from synod.common.methods.networks import (
    Auto,
    Cells,
    FlatEncoding,
    NetworkMethod,
    Parts,
    check_cells,
    check_parts,
    check_theta,
    resolved,
    tables_limit,
    useful_sum_table,
)
from synod.common.models.candidates import Features, maximal_sets
from synod.common.protocol.steps import Limit, QueryKind, Step
from synod.common.runtime.errors import refused
from synod.common.study.features import sizes_of
from synod.common.study.schema import ExactDecimal
from synod.common.study.study import Study

MOST_FEATURES = 200


class DpCcbn(NetworkMethod):
    """`split` are the budget's shares for structure and parameters; `max_numbers` the most that one iteration asks.

    `parameter_cells` is the most cells of a table; `auto` takes what is theta-useful.
    """

    name: Literal["dp-ccbn"]
    version: Literal[1] = 1
    allows_losses: ClassVar[bool] = True
    encoding: Literal[Auto, FlatEncoding] = "auto"
    split: Parts = (Decimal("0.5"), Decimal("0.5"))
    theta: ExactDecimal = Decimal(6)
    parameter_cells: Cells | Auto = "auto"
    max_numbers: Annotated[int, Field(ge=1, le=1_000_000)] = 200_000

    @model_validator(mode="after")
    def _check_split(self) -> "DpCcbn":
        check_parts(self.split, 2)
        check_theta(self.theta)
        return self

    def resolve(self, study: Study) -> Self:
        """Writes out encoding, score, and how large tables may be."""
        settled = self.model_copy(update=self.common_keys(study))
        known = study.model_copy(update={"method": settled})
        cells = settled.useful_table(known) if self.parameter_cells == "auto" else self.parameter_cells
        return settled.model_copy(update={"parameter_cells": check_cells(cells, known)})

    def useful_table(self, study: Study) -> int:
        """The most cells of a theta-useful table; 0 if no table with a parent is."""
        return useful_sum_table(study, self.split[1], self.theta)

    def check(self, study: Study) -> None:
        """Refuses a study whose iterations are absurdly many or large."""
        if len(sizes_of(study)) > MOST_FEATURES:
            raise refused(
                f"DP-CCBN would take {len(sizes_of(study)) - 1} rounds for {study.name}; it is for {MOST_FEATURES} "
                "features at most.",
                "Use dp-subn, or publish fewer attributes.",
            )
        if resolved(self.parameter_cells) and largest_sum(study, resolved(self.parameter_cells), self.max_numbers) > (
            self.max_numbers
        ):
            raise refused(
                f"DP-CCBN would ask for more than {self.max_numbers:,} numbers in one iteration of {study.name}.",
                "Use dp-subn, or raise theta so that tables get smaller.",
            )

    def plan(self, study: Study) -> tuple[Step, ...]:
        """One sum for each feature that is placed, then the parameters."""
        parties, budget, cells = study.party_names, study.budget, resolved(self.parameter_cells)
        limit = tables_limit(study, cells)
        if cells == 0:
            return (Step("parameters", "parameters", QueryKind.SUM_MARGINALS, parties, budget, limit),)
        rounds = len(sizes_of(study)) - 1
        structure, parameters = (budget.share(part) for part in self.split)
        each = structure.share(Fraction(1, rounds))
        candidates = Limit(numbers=self.max_numbers, tables=self.max_numbers, cells=limit.cells)
        return (
            *(
                Step(f"candidates-{i}", "candidates", QueryKind.SUM_MARGINALS, parties, each, candidates)
                for i in range(1, rounds + 1)
            ),
            Step("parameters", "parameters", QueryKind.SUM_MARGINALS, parties, parameters, limit),
        )


def candidate_families(sizes: Sequence[int], placed: Sequence[int], cells: int) -> Iterator[tuple[int, Features]]:
    """All features that are not placed, each with every largest set of placed ones that its table has room for."""
    for feature in range(len(sizes)):
        if feature not in placed:
            for parents in maximal_sets(feature, placed, sizes, cells):
                yield feature, parents


def largest_sum(study: Study, cells: int, enough: int) -> int:
    """The most numbers that one iteration asks for, or the first count above `enough`.

    When all features have the same size, the order of placing does not matter, and the count has a closed form.
    Otherwise features are placed in three orders: the schema's, the small ones first, and the large ones first. Each
    feature alone counts too: another order may ask for the first one.
    """
    sizes = sizes_of(study)
    if len(set(sizes)) == 1:
        return max(sizes[0], *(uniform_sum(len(sizes), sizes[0], placed, cells) for placed in range(1, len(sizes))))
    most = max(sizes)
    for key in (lambda x: x, lambda x: sizes[x], lambda x: -sizes[x]):
        order = sorted(range(len(sizes)), key=key)
        for placed in range(1, len(sizes)):
            most = max(most, _count_numbers(sizes, order[:placed], cells, enough))
            if most > enough:
                return most
    return most


def uniform_sum(features: int, size: int, placed: int, cells: int) -> int:
    """Each open feature with each set of as many placed ones as fit: no two of them are the same set."""
    parents = 0
    while parents < placed and size ** (parents + 2) <= cells:
        parents += 1
    cells_each: int = size ** (parents + 1)
    return (features - placed) * comb(placed, parents) * cells_each


def _count_numbers(sizes: Sequence[int], placed: Sequence[int], cells: int, enough: int) -> int:
    """The cells of one iteration's tables; counting ends above `enough`."""
    numbers = 0
    for feature, parents in candidate_families(sizes, placed, cells):
        numbers += prod(sizes[i] for i in (feature, *parents))
        if numbers > enough:
            break
    return numbers
