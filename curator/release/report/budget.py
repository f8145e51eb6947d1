"""The budget as people talk about it: phases, each of one or several steps of the plan."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from synod.common.privacy.cost import Cost
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.parsing import AnyQuery, answerers_of
from synod.common.protocol.steps import QueryKind, Step
from synod.common.study.study import Study

ASKED = {
    QueryKind.SUM_MOMENTS: "Means and products of all columns, added up over all parties under encryption.",
    QueryKind.SUM_MARGINALS: "Counts, added up over all parties under encryption.",
    QueryKind.SUM_AGREEMENTS: "In how many rows two columns agree, for every pair, added up over all parties under "
    "encryption.",
    QueryKind.LOCAL_MARGINALS: "Counts of one party at a time, with noise of its own.",
    QueryKind.CHOOSE_PARENTS: "Choices of which columns depend on which, drawn with noise by one party at a time.",
    QueryKind.SYNTHESIZE: "Rows drawn from the finished model. No party reads its table for this, so it is free.",
}
ASKED_OF_ONE = {
    QueryKind.SUM_MOMENTS: "Means and products of all columns, sent under encryption.",
    QueryKind.SUM_MARGINALS: "Counts, sent under encryption.",
    QueryKind.SUM_AGREEMENTS: "In how many rows two columns agree, for every pair, sent under encryption.",
    QueryKind.LOCAL_MARGINALS: "Counts with noise.",
    QueryKind.CHOOSE_PARENTS: "Choices of which columns depend on which, drawn with noise.",
}


@dataclass(frozen=True, slots=True)
class Phase:
    """Steps of one kind and purpose."""

    name: str
    asked: str
    steps: tuple[Step, ...]

    @property
    def rounds(self) -> int:
        """How many of the steps were not skipped."""
        return sum(bool(step.answerers) for step in self.steps)

    def cost_of(self, party: str) -> Cost:
        """What this phase costs one party."""
        return Cost.total(step.cost for step in self.steps if party in step.answerers)


def list_phases(study: Study, queries: Mapping[str, AnyQuery]) -> list[Phase]:
    """The phases of a study's plan, in order, with those who took part in each step."""
    found: dict[tuple[str, QueryKind], list[Step]] = {}
    for step in plan_study(study).steps:
        query = queries.get(step.label)
        took_part = answerers_of(query, step, study) if query is not None else ()
        found.setdefault((step.phase, step.kind), []).append(replace(step, answerers=took_part))
    asked = ASKED | ASKED_OF_ONE if len(study.roster) == 1 else ASKED
    return [Phase(name, asked[kind], tuple(steps)) for (name, kind), steps in found.items()]


def share_of_budget(cost: Cost, study: Study) -> float:
    """How long a cost's piece of a bar is."""
    return float(cost.part_of(study.budget))
