"""The budget as people talk about it: phases, which are the plan's steps without the names of who answers them."""

import re
from dataclasses import dataclass

from synod.common.privacy.cost import FREE, Cost
from synod.common.protocol.plan import QueryKind, Step, plan_study
from synod.common.study.study import Study

ASKED = {
    QueryKind.SUM_MOMENTS: "Means and products of all columns, added up over all parties under encryption.",
    QueryKind.SUM_MARGINALS: "Counts, added up over all parties under encryption.",
    QueryKind.LOCAL_MARGINALS: "Counts of one party at a time, with noise of its own.",
    QueryKind.CHOOSE_PARENTS: "Choices of which columns depend on which, drawn with noise by one party at a time.",
    QueryKind.SYNTHESIZE: "Rows drawn from the finished model. No party reads its table for this, so it is free.",
}
ASKED_OF_ONE = {
    QueryKind.SUM_MOMENTS: "Means and products of all columns, sent under encryption.",
    QueryKind.SUM_MARGINALS: "Counts, sent under encryption.",
    QueryKind.LOCAL_MARGINALS: "Counts with noise.",
    QueryKind.CHOOSE_PARENTS: "Choices of which columns depend on which, drawn with noise.",
}


@dataclass(frozen=True, slots=True)
class Phase:
    """Steps of one kind and purpose."""

    name: str
    asked: str
    steps: tuple[Step, ...]

    def cost_of(self, party: str) -> Cost:
        """What this phase costs one party."""
        return Cost.total(step.cost for step in self.steps if party in step.answerers)


def list_phases(study: Study) -> list[Phase]:
    """The phases of a study's plan, in order."""
    found: dict[tuple[str, QueryKind], list[Step]] = {}
    for step in plan_study(study).steps:
        found.setdefault((_phase_name(step), step.kind), []).append(step)
    asked = ASKED | ASKED_OF_ONE if len(study.roster) == 1 else ASKED
    return [Phase(name, asked[kind], tuple(steps)) for (name, kind), steps in found.items()]


def _phase_name(step: Step) -> str:
    if step.kind.is_local:
        return step.label.removesuffix(f"-{step.answerers[0]}")
    return re.sub(r"-\d+$", "", step.label)


def share_of_budget(cost: Cost, study: Study) -> float:
    """How long a cost's piece of a bar is. Costs are pure epsilon today; another kind would need another bar."""
    assert study.budget != FREE
    return float(cost.epsilon / study.budget.epsilon)
