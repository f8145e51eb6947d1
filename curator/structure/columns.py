"""Columns alone: the noise that a study's whole budget would leave if every column were published by itself.

This is the baseline of every figure: a method that asks for tables of several columns must be worth more than one-way
tables of all columns, in the schema's bins, at the same cost and with noise of the same law.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import fsum, sqrt

from synod.common.privacy.cost import Cost
from synod.common.privacy.laws import TABLE, NoiseLaw, noise_for
from synod.common.study.encoding import binned_codings
from synod.common.study.study import Study, follow_rho
from synod.curator.structure.parts import part_power, whole_parts


def column_sizes(study: Study) -> tuple[int, ...]:
    """How many cells each column has in the schema's bins, but for columns of one cell."""
    return tuple(coding.size for coding in binned_codings(study) if coding.size > 1)


def column_laws(study: Study) -> tuple[NoiseLaw, ...]:
    """The noise on a cell of each column's one-way table; a study without a roster is taken as one party's.

    Guarantee: a replaced row changes two cells of each table by 1, the noise is for all rows of a unit, and the parts
    of the budget add up to 1, so all tables together cost at most the study's whole budget, against as many colluding
    parties as the study says.
    """
    parties, threshold = (len(study.roster), study.collusion) if study.roster else (1, 0)
    budget, sizes = whole_budget(study), column_sizes(study)
    parts = divide_budget(sizes, part_power(study))
    public = {"parties": parties, "threshold": threshold, "rows_per_unit": study.max_rows_per_unit}
    laws = {part: noise_for(budget, TABLE, part=part, **public) for part in set(parts)}
    return tuple(laws[part] for part in parts)


def whole_budget(study: Study) -> Cost:
    """The study's budget, also of a study that has a delta and is not resolved."""
    if study.delta is None or study.rho is not None:
        return study.budget
    rho, _ = follow_rho(study.epsilon, study.delta, study.name)
    return Cost.concentrated(rho)


def divide_budget(sizes: Sequence[int], power: float) -> list[Fraction]:
    """Parts of one in proportion to sizes^power."""
    parts = whole_parts([size**power for size in sizes])
    return [Fraction(part, sum(parts)) for part in parts]


def column_deviation(study: Study) -> float | None:
    """The root mean square, in rows, of the noise on a cell of all one-way tables; None where every column has one
    cell.
    """
    sizes = column_sizes(study)
    if not sizes:
        return None
    pairs = zip(sizes, column_laws(study), strict=True)
    return sqrt(fsum(size * law.variance for size, law in pairs) / sum(sizes))
