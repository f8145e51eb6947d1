"""The plan: a pure function from a resolved study to the ordered steps of its method, with exact costs.

Both sides compute it for themselves. A party answers nothing that is not its next planned step; the costs of the
steps add up to at most the study's epsilon for each party.
"""

from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import lru_cache

from synod.common.crypto.canonical import Json
from synod.common.methods.base import DpCcbn, DpSubn, HpdpDp, Independent
from synod.common.models.usefulness import own_cells, parameter_cells
from synod.common.privacy.cost import FREE, Cost
from synod.common.study.features import sizes_of
from synod.common.study.study import Study


class QueryKind(Enum):
    """The closed set of private queries."""

    SUM_MOMENTS = "sum-moments"
    SUM_MARGINALS = "sum-marginals"
    LOCAL_MARGINALS = "local-marginals"
    CHOOSE_PARENTS = "choose-parents"
    SYNTHESIZE = "synthesize"

    @property
    def is_local(self) -> bool:
        """Whether one party answers on its own, private by itself."""
        return self in (QueryKind.LOCAL_MARGINALS, QueryKind.CHOOSE_PARENTS)


@dataclass(frozen=True, slots=True)
class Step:
    """One round: its label is the round id."""

    label: str
    kind: QueryKind
    answerers: tuple[str, ...]
    cost: Cost

    def to_json(self) -> dict[str, Json]:
        """The step as manifest and command line show it."""
        return {
            "label": self.label,
            "kind": self.kind.value,
            "answerers": list(self.answerers),
            "cost": str(self.cost),
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """All steps of a study, in order."""

    steps: tuple[Step, ...]

    def steps_of(self, party: str) -> tuple[Step, ...]:
        """The steps that this party answers, in order."""
        return tuple(step for step in self.steps if party in step.answerers)

    def cost_of(self, party: str) -> Cost:
        """What the whole study costs this party."""
        return Cost.total(step.cost for step in self.steps_of(party))

    def step(self, label: str) -> Step:
        """The step with this label; asking for another is a defect of the recipe."""
        return next(step for step in self.steps if step.label == label)

    def to_json(self) -> list[Json]:
        """The plan as manifest and command line show it."""
        return [step.to_json() for step in self.steps]


@lru_cache(maxsize=64)
def plan_study(study: Study) -> Plan:
    """The steps of a resolved study.

    Guarantee: for each party, the costs of its steps add up to at most the study's epsilon (sequential
    composition); checked here for every plan, not only in tests.
    """
    match study.method:
        case HpdpDp():
            steps = _plan_hpdp_dp(study)
        case DpSubn():
            steps = _plan_dp_subn(study, study.method)
        case DpCcbn():
            steps = _plan_dp_ccbn(study, study.method)
        case Independent():
            steps = _plan_independent(study, study.method)
    plan = Plan(tuple(steps))
    assert all(plan.cost_of(entry.name).fits_within(study.budget) for entry in study.roster)
    return plan


def _everyone(study: Study) -> tuple[str, ...]:
    return tuple(entry.name for entry in study.roster)


def _plan_hpdp_dp(study: Study) -> list[Step]:
    return [
        Step("moments", QueryKind.SUM_MOMENTS, _everyone(study), study.budget),
        Step("rows", QueryKind.SYNTHESIZE, _everyone(study), FREE),
    ]


def _plan_dp_subn(study: Study, method: DpSubn) -> list[Step]:
    """Correlations, initialization by those who have a share of features, update, parameters; the parameters alone,
    with all of epsilon, where no feature can have a parent.
    """
    everyone = _everyone(study)
    if parameter_cells(study) == 0:
        return [Step("parameters", QueryKind.SUM_MARGINALS, everyone, study.budget)]
    first, second, third, fourth = (_part(study, part) for part in method.parts)
    draws = share_draws(len(sizes_of(study)) - 1, len(everyone))
    starts = [
        Step(f"initialize-{name}", QueryKind.CHOOSE_PARENTS, (name,), second)
        for name, count in zip(everyone, draws, strict=True)
        if count
    ]
    if method.update == "joint":
        updates = [Step("update", QueryKind.SUM_MARGINALS, everyone, third)]
    else:
        updates = [Step(f"update-{name}", QueryKind.LOCAL_MARGINALS, (name,), third) for name in everyone]
    return [
        Step("correlations", QueryKind.SUM_MARGINALS, everyone, first),
        *starts,
        *updates,
        Step("parameters", QueryKind.SUM_MARGINALS, everyone, fourth),
    ]


def _plan_dp_ccbn(study: Study, method: DpCcbn) -> list[Step]:
    everyone = _everyone(study)
    if parameter_cells(study) == 0:
        return [Step("parameters", QueryKind.SUM_MARGINALS, everyone, study.budget)]
    rounds = len(sizes_of(study)) - 1
    structure, parameters = (_part(study, part) for part in method.split)
    each = Cost(structure.epsilon / rounds)
    return [
        *(Step(f"candidates-{i}", QueryKind.SUM_MARGINALS, everyone, each) for i in range(1, rounds + 1)),
        Step("parameters", QueryKind.SUM_MARGINALS, everyone, parameters),
    ]


def _plan_independent(study: Study, method: Independent) -> list[Step]:
    steps: list[Step] = []
    choosing = _part(study, method.beta)
    for entry in study.roster:
        has_parents = own_cells(study, entry.rows) > 0
        if has_parents:
            steps.append(Step(f"choose-{entry.name}", QueryKind.CHOOSE_PARENTS, (entry.name,), choosing))
        tables = study.budget - choosing if has_parents else study.budget
        steps.append(Step(f"tables-{entry.name}", QueryKind.LOCAL_MARGINALS, (entry.name,), tables))
    return steps


def _part(study: Study, share: Decimal) -> Cost:
    return Cost(study.budget.epsilon * Fraction(share))


def share_draws(draws: int, parties: int) -> tuple[int, ...]:
    """How many features each party adds to the first network: as evenly as possible, the first get one more."""
    return tuple(draws // parties + (index < draws % parties) for index in range(parties))
