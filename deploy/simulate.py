"""In-process parties: the same recipes over tables in memory, for tests, benchmarks and simulation.

Sums are plain and noise coins are injected, so there are no keys, no masks and no wire; the integers that come out
are those that real daemons with the same coins would release. Not a deployment: one process sees every row.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from synod.common.crypto.canonical import Json
from synod.common.models.gaussian import GaussianModel, concatenate_columns, draw_rows
from synod.common.privacy.coins import Coins
from synod.common.protocol.answers import Choice
from synod.common.protocol.plan import Step, plan_study
from synod.common.protocol.queries import (
    ChooseParents,
    EncryptedSum,
    LocalMarginals,
    SumMarginals,
    SumMoments,
    cells_of,
    moment_design,
    share_rows,
    sum_terms,
)
from synod.common.study.encoding import Codes
from synod.common.study.study import Study
from synod.curator.methods import RECIPES
from synod.curator.methods.base import Publication, Sets
from synod.party.answer import noisy_values
from synod.party.count.parents import choose_parents, noisy_counts

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class InProcessParties:
    """Implements `Parties` over one table of codes for each roster entry."""

    study: Study
    tables: Sequence[Sequence[Codes]]
    coins: Coins
    rng: np.random.Generator

    async def sum_moments(self, label: str) -> NDArray[np.int64]:
        """Implements `Parties.sum_moments`."""
        return self._sum(label, SumMoments())

    async def sum_marginals(self, label: str, sets: Sets) -> list[NDArray[np.int64]]:
        """Implements `Parties.sum_marginals`."""
        return np.split(self._sum(label, SumMarginals(sets)), np.cumsum(cells_of(sets, self.study))[:-1])

    async def local_marginals(self, label: str, sets: Sets) -> list[NDArray[np.int64]]:
        """Implements `Parties.local_marginals`."""
        step = plan_study(self.study).step(label)
        counts = noisy_counts(LocalMarginals(sets), step, self.study, self._table(step), coins=self.coins)
        return np.split(counts, np.cumsum(cells_of(sets, self.study))[:-1])

    async def choose_parents(self, label: str, query: ChooseParents) -> list[Choice]:
        """Implements `Parties.choose_parents`."""
        step = plan_study(self.study).step(label)
        return choose_parents(query, step, self.study, self._table(step), coins=self.coins)

    def _table(self, step: Step) -> Sequence[Codes]:
        return self.tables[self.study.index_of(step.answerers[0])]

    def _sum(self, label: str, query: EncryptedSum) -> NDArray[np.int64]:
        terms = sum_terms(query, plan_study(self.study).step(label), self.study)
        answers = [noisy_values(query, self.study, table, terms, coins=self.coins) for table in self.tables]
        total: NDArray[np.int64] = np.sum(answers, axis=0)
        return total

    async def synthesize(self, label: str, model: GaussianModel) -> list[Codes]:  # noqa: ARG002
        """Implements `Parties.synthesize`."""
        design = moment_design(self.study)
        parts = [draw_rows(design, model, rows, rng=self.rng) for rows in share_rows(self.study)]
        return concatenate_columns(design, parts)

    async def compute(self, work: Callable[[], T]) -> T:
        """Implements `Parties.compute`."""
        return work()

    async def remember(self, label: str, compute: Callable[[], Json]) -> Json:  # noqa: ARG002
        """Implements `Parties.remember`."""
        return compute()


def publish_in_process(
    study: Study, tables: Sequence[Sequence[Codes]], *, coins: Coins, rng: np.random.Generator
) -> Publication:
    """Runs a study's recipe over tables in memory."""
    parties = InProcessParties(study, tables, coins, rng)

    async def run() -> Publication:
        return await RECIPES[study.method.name](study, parties, rng=rng)

    return asyncio.run(run())
