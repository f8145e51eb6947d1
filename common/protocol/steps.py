"""Steps: the rounds of a study, in order, each with its exact cost and with the largest query that it may ask.

Values only; a method makes them out of its study, and `plan_study` checks them.
"""

from dataclasses import asdict, dataclass
from enum import Enum

from synod.common.crypto.canonical import Json
from synod.common.privacy.cost import Cost


class QueryKind(Enum):
    """The closed set of private queries."""

    SUM_MOMENTS = "sum-moments"
    SUM_MARGINALS = "sum-marginals"
    SUM_AGREEMENTS = "sum-agreements"
    LOCAL_MARGINALS = "local-marginals"
    CHOOSE_PARENTS = "choose-parents"
    SYNTHESIZE = "synthesize"

    @property
    def is_local(self) -> bool:
        """Whether one party answers on its own, private by itself."""
        return self in (QueryKind.LOCAL_MARGINALS, QueryKind.CHOOSE_PARENTS)

    @property
    def is_sum(self) -> bool:
        """Whether all parties answer with encrypted parts of one sum, each with a share of its noise."""
        return self in (QueryKind.SUM_MOMENTS, QueryKind.SUM_MARGINALS, QueryKind.SUM_AGREEMENTS)


@dataclass(frozen=True, slots=True)
class Limit:
    """The largest query that a step may ask: in a party's policy, in its checks of a round, and in a forecast.

    `numbers` are all that come back, or that a draw looks at, at a time; `tables` are sets of features, or splits, or
    draws; `cells` those of one table; `candidates` the parents that a feature may be offered; `parents` the most that
    it may get, 0 where cells bound that; `options` what a draw may choose among, 0 where the others bound that. A draw
    must use the score that is named here.
    """

    numbers: int
    tables: int = 1
    cells: int = 0
    candidates: int = 0
    parents: int = 0
    options: int = 0
    score: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One round: its label is the round id; `phase` is what people call the part of the method that it belongs to."""

    label: str
    phase: str
    kind: QueryKind
    answerers: tuple[str, ...]
    cost: Cost
    limit: Limit

    def to_json(self) -> dict[str, Json]:
        """The step as manifest and command line show it."""
        return {
            "label": self.label,
            "phase": self.phase,
            "kind": self.kind.value,
            "answerers": list(self.answerers),
            "cost": str(self.cost),
            "limit": asdict(self.limit),
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
