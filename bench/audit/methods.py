"""Each method end to end: its recipe asks parties in one process, of whom all but one collude with the curator, and
publishes. What is seen are the honest party's parts of all sums, its own answers, and the released rows.

The study of a method has three columns of two values, two parties and t = 1, so that the honest party adds a full share
of noise. Its cost is rho where there are several steps: rho adds up to what somebody can see, pure epsilon to more.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from math import sqrt
from typing import Any, TypeVar
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from bench.audit.bounds import least_loss, rate_interval
from bench.audit.neighbours import EVERY_ROW, OTHERS, Rows, make_study, read_rows, replace_first, seed_bytes
from bench.audit.queries import Audited, Runs, log_ratio
from bench.audit.seen import Seen
from synod.common.privacy.coins import Coins
from synod.common.privacy.cost import FREE, Cost
from synod.common.privacy.laws import LEAST_SQUARE, GaussianLaw, NoiseLaw
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.base import Query, SumQuery, check_within
from synod.common.protocol.queries.marginals import LocalMarginals
from synod.common.protocol.steps import QueryKind, Step
from synod.common.study.study import Study, known_methods
from synod.curator.inference import gaussian as gaussian_fit
from synod.curator.methods.base import Parties, Publication, finish_at_once, publish
from synod.deploy.simulate import InProcessParties
from synod.party.answer import SUMMANDS, noisy_values
from synod.party.count.tables import exact_counts
from synod.party.table.snapshot import Snapshot

T = TypeVar("T")
AnswerT = TypeVar("AnswerT")
HONEST = 0
REPEATED = 5  # each party holds every row so many times
REFERENCE_ROWS = 256
TRIED = 8
TRAINING = 250
COUNTED = (1200, 2000, 3000, 4000)
MARGIN = 1.2
PURE = {"epsilon": "1.5"}
WITH_DELTA = [{"epsilon": epsilon, "delta": "5e-4"} for epsilon in ("3.6", "3", "2.4", "1.9", "1.5")]
KEYS = {"beta": "0.1", "parameter_cells": 4, "table_cells": [4, 4]}
"""Of methods that have them: less for choices, which show less than they cost, and tables of two columns."""


@dataclass
class Witness(Parties):
    """Parties in one process whose curator knows all but the honest one, and notes what it gets of that one."""

    inner: InProcessParties
    tables: tuple[Snapshot, Snapshot]
    exact: dict[object, list[NDArray[np.int64]]]
    ratio: float = 0.0
    choices: list[tuple[str, Hashable]] = field(default_factory=list)
    laws: set[NoiseLaw] = field(default_factory=set)

    async def ask(self, label: str, query: Query[AnswerT]) -> AnswerT:
        """As `InProcessParties` answers; a sum is added up here, so that the honest part of it can be noted."""
        study = self.inner.study
        step = plan_study(study).step(label)
        if isinstance(query, SumQuery):
            check_within(query, step, study)
            terms = query.terms(step, study)
            parts = [noisy_values(query, study, table, terms, coins=self.inner.coins) for table in self.inner.tables]
            self._note_numbers(query, step, parts[HONEST])
            summed: AnswerT = query.split(np.sum(parts, axis=0), study)
            return summed
        answer = await self.inner.ask(label, query)
        if study.party_names[HONEST] in step.answerers:
            self._note_answer(query, step, answer)
        return answer

    def _note_answer(self, query: Query[Any], step: Step, answer: Any) -> None:
        if isinstance(query, LocalMarginals):
            self._note_numbers(query, step, np.concatenate(answer))
        elif step.cost != FREE:
            self.choices += [(f"{step.label} {place}", choice) for place, choice in enumerate(answer)]

    def _note_numbers(self, query: Any, step: Step, numbers: NDArray[np.int64]) -> None:
        study, key = self.inner.study, (step.label, repr(query.to_json()))
        if key not in self.exact:
            count = SUMMANDS[query.kind] if isinstance(query, SumQuery) else exact_counts
            self.exact[key] = [count(query, study, table.columns) for table in self.tables]
        runs = query.runs(step, study)
        self.laws |= {law for run in runs for law in run.laws}
        variances = np.concatenate([run.variances() for run in runs])
        self.ratio += log_ratio(step.cost, numbers, self.exact[key], variances)

    async def compute(self, work: Any) -> Any:
        """Implements `Parties.compute`."""
        return await self.inner.compute(work)

    async def remember(self, label: str, compute: Any) -> Any:
        """Implements `Parties.remember`."""
        return await self.inner.remember(label, compute)


def study_of(method: str) -> Study:
    """The study that a method is audited in: at pure epsilon if it asks for a single table, else at the largest rho at
    which no table has more noise than it costs.
    """
    keys = {key: value for key, value in KEYS.items() if key in known_methods()[method].model_fields}
    rows = len(EVERY_ROW) * REPEATED
    pure, *others = (
        make_study(method, 2, 1, rows, method={"name": method, **keys}, **costs) for costs in (PURE, *WITH_DELTA)
    )
    costly = [step for step in plan_study(pure).steps if step.cost != FREE]
    asks_one_table = [(step.kind, step.limit.tables) for step in costly] == [(QueryKind.SUM_MARGINALS, 1)]
    return pure if asks_one_table else next((study for study in others if not has_extra_noise(study)), others[-1])


def has_extra_noise(study: Study) -> bool:
    """Whether an answer of a few runs has the least noise that a share may have, which may be more than it costs."""
    table = read_rows(study, EVERY_ROW * REPEATED)
    laws: set[NoiseLaw] = set()
    for seed in range(TRIED):
        coins, rng = Coins(seed_bytes("noise", seed)), np.random.default_rng(seed)
        witness = Witness(InProcessParties(study, [table.columns] * 2, coins, rng), (table, table), {})
        finish_at_once(publish(study, witness, seed=seed))
        laws |= witness.laws
    return any(isinstance(law, GaussianLaw) and law.square <= LEAST_SQUARE for law in laws)


def cost_of(study: Study) -> Cost:
    """What the study costs the party with the canary."""
    return plan_study(study).cost_of(study.party_names[HONEST])


def audit_method(method: str) -> Audited:
    """A method in its study, under neighbouring tables of the honest party."""
    study = study_of(method)
    rows: Rows = EVERY_ROW * REPEATED
    canary = EVERY_ROW[-1]
    tables = read_rows(study, rows), read_rows(study, replace_first(rows, canary))
    other = read_rows(study, OTHERS * REPEATED)
    codes = [tuple(int(column[0]) for column in table.columns) for table in tables]
    exact: dict[object, list[NDArray[np.int64]]] = {}

    def observe(side: int, run: int) -> Seen:
        coins = Coins(seed_bytes("method", method, side, run))
        rng = np.random.default_rng([side, run])
        inner = InProcessParties(study, [tables[side].columns, other.columns], coins, rng)
        witness = Witness(inner, tables, exact)
        with mock.patch.object(gaussian_fit, "REFERENCE_ROWS", REFERENCE_ROWS):
            publication = finish_at_once(publish(study, witness, seed=run))
        replaced, own = (count_rows(publication, one) for one in codes)
        scores = {"rows like the canary": own, "rows like the replaced one": -replaced, "difference": own - replaced}
        return Seen(witness.ratio, tuple(witness.choices), scores=scores)

    return Audited(method, "end to end", cost_of(study), observe, runs_of(study))


def runs_of(study: Study) -> Runs:
    """How many runs should find out half the noise with a margin, if all but choices show what they cost: the log ratio
    is then Gaussian, of variance twice the rho that is spent.
    """
    if not study.budget.rho:
        return Runs(TRAINING, COUNTED[0])
    steps = plan_study(study).steps_of(study.party_names[HONEST])
    shown = Cost.total(step.cost for step in steps if step.kind is not QueryKind.CHOOSE_PARENTS)
    rate = float(stats.norm.cdf(sqrt(2 * 4 * shown.rho) / 2))

    def is_enough(runs: int) -> bool:
        more, _ = rate_interval(int(rate * runs), runs)
        return least_loss(shown, more, 1 - more) > MARGIN * study.budget.rho

    return Runs(TRAINING, next((runs for runs in COUNTED if is_enough(runs)), COUNTED[-1]))


def audited_methods() -> list[Audited]:
    """Every method that is registered."""
    return [audit_method(method) for method in sorted(known_methods())]


def count_rows(publication: Publication, codes: tuple[int, ...]) -> float:
    """How many released rows are equal to this one."""
    equal = [column == code for column, code in zip(publication.columns, codes, strict=True)]
    return float(np.count_nonzero(np.all(equal, axis=0)))
