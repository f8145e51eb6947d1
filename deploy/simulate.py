"""In-process parties: the same recipes over tables in memory, for tests, benchmarks and simulation.

Sums are plain and noise coins are injected, so there are no keys, no masks and no wire; the integers that come out
are those that real daemons with the same coins would release. Not a deployment: one process sees every row.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from synod.common.crypto.canonical import Json
from synod.common.models.gaussian import draw_rows
from synod.common.privacy.coins import Coins
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.base import Query, SharedQuery, SumQuery, check_within
from synod.common.protocol.queries.marginals import LocalMarginals
from synod.common.protocol.queries.moments import moment_design
from synod.common.protocol.queries.parents import ChooseParents
from synod.common.protocol.queries.rows import Synthesize, stack_rows
from synod.common.protocol.steps import QueryKind, Step
from synod.common.study.encoding import Codes
from synod.common.study.study import Study
from synod.curator.methods.base import Parties, Publication, publish
from synod.party.answer import noisy_values
from synod.party.count.parents import choose_parents
from synod.party.count.tables import noisy_counts

T = TypeVar("T")
AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True, slots=True)
class InProcessParties(Parties):
    """Implements `Parties` over one table of codes for each roster entry; `losses` names the first step of the plan
    that goes without a party.
    """

    study: Study
    tables: Sequence[Sequence[Codes]]
    coins: Coins
    rng: np.random.Generator
    losses: Mapping[str, str] = field(default_factory=dict)

    async def ask(self, label: str, query: Query[AnswerT]) -> AnswerT:
        """Implements `Parties.ask`."""
        step = plan_study(self.study).step(label)
        if isinstance(query, SharedQuery):
            query = query.asked_of(self.present(label), self.study)
        query.check(self.study)
        check_within(query, step, self.study)
        if isinstance(query, SumQuery):
            terms, tables = query.terms(step, self.study), [self.tables[place] for place in query.places(self.study)]
            answers = [noisy_values(query, self.study, table, terms, coins=self.coins) for table in tables]
            answer: AnswerT = query.estimate(query.split(np.sum(answers, axis=0), self.study), self.study)
            return answer
        local: AnswerT = ANSWERS[query.kind](self, step, query)
        return local

    async def ask_one(self, label: str, query: Query[AnswerT]) -> AnswerT | None:
        """Implements `Parties.ask_one`."""
        (party,) = plan_study(self.study).step(label).answerers
        if party in self._lost(label):
            return None
        return await self.ask(label, query)

    def present(self, label: str) -> tuple[int, ...]:
        """Implements `Parties.present`."""
        lost = self._lost(label)
        return tuple(place for place, name in enumerate(self.study.party_names) if name not in lost) if lost else ()

    def _lost(self, label: str) -> set[str]:
        labels = [step.label for step in plan_study(self.study).steps]
        return {party for party, first in self.losses.items() if labels.index(first) <= labels.index(label)}

    def table_of(self, step: Step) -> Sequence[Codes]:
        """The rows of the one party that a step asks."""
        return self.tables[self.study.index_of(step.answerers[0])]

    async def compute(self, work: Callable[[], T]) -> T:
        """Implements `Parties.compute`."""
        return work()

    async def remember(self, label: str, compute: Callable[[], Json]) -> Json:  # noqa: ARG002
        """Implements `Parties.remember`."""
        return compute()


def _marginals(parties: InProcessParties, step: Step, query: LocalMarginals) -> Any:
    study = parties.study
    counts = noisy_counts(query, step, study, parties.table_of(step), coins=parties.coins)
    return query.read_answer(query.write_answer([counts]), study)


def _parents(parties: InProcessParties, step: Step, query: ChooseParents) -> Any:
    return choose_parents(query, step, parties.study, parties.table_of(step), coins=parties.coins)


def _rows(parties: InProcessParties, step: Step, query: Synthesize) -> Any:
    del step
    design = moment_design(parties.study)
    return stack_rows([draw_rows(design, query.model, rows, rng=parties.rng) for rows in query.rows])


ANSWERS: Mapping[QueryKind, Callable[[InProcessParties, Step, Any], Any]] = {
    QueryKind.LOCAL_MARGINALS: _marginals,
    QueryKind.CHOOSE_PARENTS: _parents,
    QueryKind.SYNTHESIZE: _rows,
}


def publish_in_process(
    study: Study,
    tables: Sequence[Sequence[Codes]],
    *,
    coins: Coins,
    rng: np.random.Generator,
    losses: Mapping[str, str] | None = None,
) -> Publication:
    """Runs a study's recipe over tables in memory."""
    parties = InProcessParties(study, tables, coins, rng, losses or {})

    async def run() -> Publication:
        return await publish(study, parties, seed=int(rng.integers(2**53)))

    return asyncio.run(run())
