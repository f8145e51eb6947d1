"""Adaptive, Synod's own method: fine one-way tables, then those pair tables that tell the most, all in encrypted sums.

A look at all pairs at once, `SumAgreements`, tells which pairs are worth a table. One or two stages of look and tables
follow the one-way tables, or none where even those are noisy; where every attribute has two values, one sum asks for
everything. No party answers on its own.
"""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import comb, isqrt
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from synod.common.methods.networks import Auto, Parts, resolved
from synod.common.privacy.cost import Cost
from synod.common.privacy.laws import TABLE, noise_for
from synod.common.protocol.steps import Limit, QueryKind, Step
from synod.common.runtime.errors import invalid
from synod.common.study.features import sizes_of
from synod.common.study.study import Method, Study

FINE_BINS = 64
LARGEST_TABLE = 1 << 16
SHARES = {
    1: (Decimal(1),),
    3: (Decimal("0.38"), Decimal("0.10"), Decimal("0.52")),
    5: (Decimal("0.30"), Decimal("0.08"), Decimal("0.26"), Decimal("0.08"), Decimal("0.28")),
}
USUAL_GROUPS = 16
# What part of a one-way table's rows noise puts into wrong cells, were the whole budget spent on these tables. Above
# the first, in at most 16 groups, there are one-way tables only: pairs of Adult do harm from 0.05 on, those of strongly
# dependent columns help beyond it, and fine bins of a number, which pairs are not counted in, say nothing about pairs.
# Above the second, two stages were no better than one. At the third, one-way tables would get all.
ONES_ONLY, ONE_STAGE, ALL_TO_ONES = Fraction(1, 10), Fraction(1, 100), Fraction(1, 20)
LEAST_ONES, MOST_ONES = Decimal("0.30"), Decimal("0.65")
PURE_LOOK = Decimal("0.15")
BINARY_CELLS = 32_768
FEWEST_CELLS, MOST_CELLS = 60_000, 1_000_000
ModelCells = Annotated[int, Field(ge=1_000, le=MOST_CELLS)]
Splits = Annotated[int, Field(ge=1, le=16)]


class Adaptive(Method):
    """`rounds` are the encrypted sums that are asked for: five, or three where noise is larger or parties are rarely
    online; with one, a table of two-valued attributes is asked for all pairs at once, and of any other the one-way
    tables only, which is best where even those are noisy.

    `split` is each round's share of the budget. `max_model_cells` bounds the junction tree of the model, and with it
    the curator's time and memory. `splits` is how many signs each value gets in a look at all pairs.
    """

    name: Literal["adaptive"]
    version: Literal[1] = 1
    allows_losses: ClassVar[bool] = True
    rounds: Literal["auto", 1, 3, 5] = "auto"
    split: Parts | Auto = "auto"
    max_model_cells: ModelCells | Auto = "auto"
    splits: Splits | Auto = "auto"

    @classmethod
    def complete_attribute(cls, attribute: Any) -> Any:
        """Numbers are counted in 64 bins, integers of up to 128 values one by one, since bins of one and of two values
        beside each other would make a comb; and by themselves where they are 0 or a bound.
        """
        if not isinstance(attribute, dict) or attribute.get("type") not in ("integer", "real"):
            return attribute
        low, high = attribute.get("min"), attribute.get("max")
        edges = attribute.get("edges")
        if isinstance(edges, list | tuple) and edges:
            return {"spikes": _usual_spikes(edges[0], edges[-1]), **attribute}
        bins = FINE_BINS
        if attribute["type"] == "integer" and isinstance(low, int) and isinstance(high, int):
            values = max(1, high - low + 1)
            bins = values if values <= 2 * FINE_BINS else FINE_BINS
        return {"bins": bins, "spikes": _usual_spikes(low, high), **attribute}

    def resolve(self, study: Study) -> Self:
        """Writes out rounds, cells and splits; more than one round needs pairs to look at."""
        sizes = sizes_of(study.model_copy(update={"method": self}))
        rounds = _useful_rounds(study, sizes) if self.rounds == "auto" else self.rounds
        if rounds > 1 and len(sizes) < 2:
            raise invalid(
                f"{study.name} has a single attribute that varies, so there are no pairs to ask for.",
                "Leave `rounds` out, or write 1.",
            )
        split = _useful_split(study, sizes, rounds) if self.split == "auto" else self.split
        _check_split(split, rounds)
        cells = _useful_cells(study, sizes) if self.max_model_cells == "auto" else self.max_model_cells
        splits = (1 if study.delta is None else 3) if self.splits == "auto" else self.splits
        return self.model_copy(update={"rounds": rounds, "split": split, "max_model_cells": cells, "splits": splits})

    def plan(self, study: Study) -> tuple[Step, ...]:
        """One sum of everything, or one-way tables and then one or two stages of agreements and tables."""
        rounds, sizes, budget = resolved(self.rounds), sizes_of(study), study.budget
        costs = [budget.share(share) for share in resolved(self.split)]
        if rounds == 1 and asks_everything(study):
            return (self._look(study, "agreements", costs[0], splits=1),)
        steps = [_sum(study, "ones", "one-way tables", costs[0], _ones_limit(sizes))]
        for stage, (look, tables) in enumerate(zip(costs[1::2], costs[2::2], strict=True), 1):
            steps.append(self._look(study, f"agreements-{stage}", look, splits=resolved(self.splits)))
            limit = self.tables_limit(study)
            steps.append(_sum(study, f"tables-{stage}", "tables", tables, limit))
        return tuple(steps)

    def _look(self, study: Study, label: str, cost: Cost, *, splits: int) -> Step:
        sizes = sizes_of(study)
        numbers = splits * comb(len(sizes), 2) + sizes.count(2)
        limit = Limit(numbers=numbers, tables=splits, cells=2)
        return Step(label, "agreements", QueryKind.SUM_AGREEMENTS, study.party_names, cost, limit)

    def tables_limit(self, study: Study) -> Limit:
        """At most four tables for each attribute, and no more numbers than rows or than the model has cells."""
        sizes = sorted(sizes_of(study), reverse=True)
        pairs = [a * b for i, a in enumerate(sizes) for b in sizes[i + 1 :]]
        most = min(study.total_rows, resolved(self.max_model_cells), sum(pairs))
        tables = max(len(sizes), min(len(pairs), 4 * len(sizes)))
        largest = max(sizes[0], min(LARGEST_TABLE, pairs[0], most))
        return Limit(numbers=max(most, sum(sizes)), tables=tables, cells=largest)


def asks_everything(study: Study) -> bool:
    """Whether one sum asks for the ones of every attribute and the agreements of all pairs."""
    return _is_binary(sizes_of(study))


def _useful_split(study: Study, sizes: Sequence[int], rounds: int) -> tuple[Decimal, ...]:
    """Each round's share of the budget.

    Under pure epsilon the one-way tables get the more the noisier they are: at share x they err by noise / x, and pairs
    lose about in proportion to x, which is least together at x = sqrt(noise / ALL_TO_ONES).
    """
    if rounds != 3 or study.delta is not None:
        return SHARES[rounds]
    wanted = Decimal(isqrt(int(10_000 * noise_in_ones(study, sizes) / ALL_TO_ONES))) / 100
    ones = min(MOST_ONES, max(LEAST_ONES, wanted))
    return ones, PURE_LOOK, 1 - ones - PURE_LOOK


def _check_split(split: Sequence[Decimal], rounds: int) -> None:
    if len(split) != rounds or min(split) <= 0 or sum(split) != 1:
        raise invalid(
            f"`split` is not {rounds} positive shares that add up to 1, one for each round.",
            "Leave `split` out, or write both `rounds` and `split`.",
        )


def _useful_rounds(study: Study, sizes: Sequence[int]) -> int:
    """Two stages under rho, one where one-way tables are noisy or the cost is pure, none where they are very noisy."""
    if len(sizes) < 2 or _is_binary(sizes) or is_too_noisy(study, sizes):
        return 1
    return 3 if study.delta is None or noise_in_ones(study, sizes) > ONE_STAGE else 5


def is_too_noisy(study: Study, sizes: Sequence[int]) -> bool:
    """Whether there is too much noise to ask for pairs, whose tables count groups of values and not fine bins."""
    return noise_in_groups(study, sizes) > ONES_ONLY


def noise_in_groups(study: Study, sizes: Sequence[int]) -> Fraction:
    """The same as `noise_in_ones`, of columns in at most as many groups as a table of two columns usually has."""
    return noise_in_ones(study, [min(size, USUAL_GROUPS) for size in sizes])


def noise_in_ones(study: Study, sizes: Sequence[int]) -> Fraction:
    """What part of a one-way table's rows noise puts into wrong cells, were the whole budget spent on these tables, in
    parts by the roots of their sizes. In whole numbers, so that all sides agree.

    Noise of deviation s changes a cell by 0.8 s rows, and each misplaced row is counted in two cells.
    """
    roots, moved = [isqrt(size * 10**6) for size in sizes], Fraction(0)
    public = {"parties": len(study.roster), "threshold": study.collusion, "rows_per_unit": study.max_rows_per_unit}
    for size, root in zip(sizes, roots, strict=True):
        part = Fraction(root, sum(roots))
        law = noise_for(study.budget, TABLE, part=part, **public)
        moved += Fraction(4, 10) * size * Fraction(isqrt(int(10**6 * law.nominal_variance)), 10**3)
    return moved / (len(sizes) * study.total_rows)


def _is_binary(sizes: Sequence[int]) -> bool:
    return len(sizes) > 1 and all(size == 2 for size in sizes)


def _ones_limit(sizes: Sequence[int]) -> Limit:
    return Limit(numbers=sum(sizes), tables=len(sizes), cells=max(sizes))


def _sum(study: Study, label: str, phase: str, cost: Cost, limit: Limit) -> Step:
    return Step(label, phase, QueryKind.SUM_MARGINALS, study.party_names, cost, limit)


def _useful_cells(study: Study, sizes: Sequence[int]) -> int:
    """How large a model the rows can fill: 110 n sqrt(rho) cells, or 10 n epsilon, within bounds; less by so many times
    as a unit has rows.

    Both are 426 n / sigma, sigma being that of a table that has a fifteenth of the budget.
    """
    if _is_binary(sizes):
        return BINARY_CELLS
    law = noise_for(study.budget, TABLE, rows_per_unit=study.max_rows_per_unit, part=Fraction(1, 15))
    variance = law.nominal_variance
    return min(MOST_CELLS, max(FEWEST_CELLS, isqrt(int((426 * study.total_rows) ** 2 / variance))))


def _usual_spikes(low: Any, high: Any) -> list[Any]:
    """The bounds, and 0 where it lies between them; nothing for a constant, nor where the bounds are no numbers, which
    is refused later.
    """
    try:
        varies, inside = Decimal(str(low)) < Decimal(str(high)), Decimal(str(low)) < 0 < Decimal(str(high))
    except ArithmeticError:
        return []
    return ([low, 0, high] if inside else [low, high]) if varies else []
