"""What a study promises for its budget, in the words that commands and reports use."""

from decimal import Decimal
from fractions import Fraction

from synod.common.privacy.conversion import epsilon_for
from synod.common.privacy.cost import Cost
from synod.common.study.schema import write_decimal
from synod.common.study.schema import write_delta as write_delta  # noqa: PLC0414  (the report takes it from here)
from synod.common.study.study import Study

SEVERAL_ROWS = 5
SEVERAL_TIMES = 2
USUAL_DELTA = Decimal("1e-9")


def describe_cost(cost: Cost, delta: Decimal = USUAL_DELTA) -> str:
    """A cost for people, rho also as the epsilon that it keeps within at this delta:
    `rho 0.00976 (epsilon 0.8 at delta 1e-9)`.
    """
    if not cost.rho:
        return cost.describe()
    epsilon = write_decimal(epsilon_for(cost.rho, Fraction(delta)))
    rho = f"rho {float(cost.rho):.4g} (epsilon {epsilon} at delta {write_delta(delta)})"
    return f"{Cost.pure(cost.epsilon).describe()} and {rho}" if cost.epsilon else rho


def name_budget(study: Study) -> str:
    """The budget in a few words: `epsilon 0.8`, or `(epsilon, delta) = (0.8, 1e-9)`."""
    epsilon = write_decimal(study.epsilon)
    return (
        f"epsilon {epsilon}" if study.delta is None else f"(epsilon, delta) = ({epsilon}, {write_delta(study.delta)})"
    )


def name_unit(study: Study) -> str:
    """What the budget is for, one of: `row`, or `person with up to 3 rows at a party`."""
    most = study.max_rows_per_unit
    return "row" if most == 1 else f"person with up to {most} rows at a party"


def explain_delta(study: Study) -> str:
    """What the delta of a study means: (epsilon, delta)-differential privacy in plain words.

    It is not the probability with which a bound of epsilon fails: for that, delta would have to be larger.
    """
    assert study.delta is not None
    most = study.max_rows_per_unit
    rows = "any one row" if most == 1 else f"the rows of any one person, up to {most} at a party,"
    return (
        f"Replacing {rows} changes the chance of whatever may be published by at most the factor "
        f"exp({write_decimal(study.epsilon)}), and by {write_delta(study.delta)}, which is delta, beside that."
    )


def explain_several_rows(study: Study) -> str:
    """What is promised to a person with more rows than the budget is for: epsilon grows with their number, rho with its
    square.
    """
    if study.max_rows_per_unit > 1:
        return _explain_more_rows(study)
    if study.delta is None:
        return "It is per row: a person with five rows has five times that epsilon."
    rho = study.budget.rho
    epsilon = epsilon_for(SEVERAL_ROWS**2 * rho, Fraction(study.delta))
    return (
        f"It is per row: the study's rho is {float(rho):.4g}, and a person with m rows has m\u00b2 times that. With "
        f"five rows that is an epsilon of {write_decimal(epsilon)} at the same delta."
    )


def _explain_more_rows(study: Study) -> str:
    """The same for a study whose units have several rows, of a person with twice as many over all parties."""
    unit, rows = name_unit(study), SEVERAL_TIMES * study.max_rows_per_unit
    if study.delta is None:
        return f"It is per {unit}: a person with {rows} rows, at one party or at several, has twice that epsilon."
    rho = study.budget.rho
    epsilon = epsilon_for(SEVERAL_TIMES**2 * rho, Fraction(study.delta))
    return (
        f"It is per {unit}: the study's rho is {float(rho):.4g}. A person with {rows} rows, at one party or at "
        f"several, has four times that, which is an epsilon of {write_decimal(epsilon)} at the same delta."
    )
