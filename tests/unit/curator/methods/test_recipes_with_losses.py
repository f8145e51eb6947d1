"""Recipes that lose a party at any step: they publish all rows, and ask the others what the plan allows."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pytest

from synod.common.crypto.canonical import Json, canonical_bytes
from synod.common.privacy.coins import Coins
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.base import Query, SharedQuery
from synod.common.protocol.queries.marginals import SumMarginals
from synod.common.protocol.queries.parsing import read_query
from synod.common.study.study import Study, known_methods
from synod.curator.methods.base import Parties, Publication, publish, sum_variances
from synod.deploy.simulate import InProcessParties
from tests.support.losing import METHODS
from tests.support.studies import binary, categorical, draw_columns, make_study

NAMES = ("north", "harbour", "valley")
SCHEMA = [binary("a"), binary("b"), categorical("c", 3), binary("d")]


def study_of(**method: Any) -> Study:
    return make_study(
        names=NAMES, rows=(300, 400, 500), schema=SCHEMA, epsilon="60", may_lose=1, method=method, output_rows=700
    )


def make_parties(study: Study, losses: dict[str, str], seed: int = 1) -> InProcessParties:
    tables = [draw_columns(study, name) for name in NAMES]
    return InProcessParties(study, tables, Coins(bytes([seed]) * 32), np.random.default_rng(seed), losses)


def run(study: Study, parties: Parties) -> Publication:
    return asyncio.run(publish(study, parties, seed=5))


@dataclass
class Logged(Parties):
    """Keeps a log of what was asked of whom, as the curator's store does, and answers from it what is in it."""

    study: Study
    inner: InProcessParties
    log: dict[str, tuple[dict[str, Json], Any]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def ask(self, label: str, query: Query[Any]) -> Any:
        """The logged answer, to the logged question alone."""
        if isinstance(query, SharedQuery):
            query = query.asked_of(self.present(label), self.study)
        read_query(query.to_json(), self.study)
        self.asked.append(label)
        if label not in self.log:
            self.log[label] = (query.to_json(), await self.inner.ask(label, query))
        logged, answer = self.log[label]
        assert query.to_json() == logged, label
        return answer

    async def ask_one(self, label: str, query: Query[Any]) -> Any:
        """Nothing where the step is skipped."""
        (party,) = plan_study(self.study).step(label).answerers
        places = self.present(label) or tuple(range(len(NAMES)))
        return await self.ask(label, query) if self.study.index_of(party) in places else None

    def present(self, label: str) -> tuple[int, ...]:
        """As those who are asked are told."""
        return self.inner.present(label)

    async def compute(self, work: Callable[[], Any]) -> Any:
        """At once."""
        return work()

    async def remember(self, label: str, compute: Callable[[], Json]) -> Json:
        """Computed anew: what a restart would find in the log comes out the same."""
        return compute()


def check_loss(study: Study, name: str, label: str) -> None:
    """All rows come out, of the planned steps but those that are skipped; and from the log all of it comes again."""
    first = Logged(study, make_parties(study, {name: label}))
    found = run(study, first)
    assert [len(column) for column in found.columns] == [700] * len(SCHEMA)
    planned = [step.label for step in plan_study(study).steps]
    own = {step.label for step in plan_study(study).steps if step.answerers == (name,)}
    skipped = own & set(planned[planned.index(label) :])
    assert first.asked == [one for one in planned if one not in skipped]
    place = study.index_of(name)
    for step in plan_study(study).steps:
        if len(step.answerers) == len(NAMES):
            present = first.log[step.label][0].get("present", list(range(len(NAMES))))
            assert (place in cast("list[int]", present)) == (planned.index(step.label) < planned.index(label))
    again = Logged(study, make_parties(study, {name: label}, seed=2), first.log)
    replayed = run(study, again)
    assert again.asked == first.asked
    assert canonical_bytes(replayed.model) == canonical_bytes(found.model)
    assert all((a == b).all() for a, b in zip(found.columns, replayed.columns, strict=True))


STUDIES = {name: study_of(**method) for name, method in METHODS.items()}
TURNS = [
    pytest.param(study, name, step.label, id=f"{method}-{name}-{step.label}", marks=marks)
    for method, study in STUDIES.items()
    for name in NAMES
    for place, step in enumerate(plan_study(study).steps_of(name))
    for marks in [() if place == 0 or method == "dp-subn" else pytest.mark.slow]
]


@pytest.mark.parametrize(("study", "name", "label"), TURNS)
def test_a_recipe_loses_anybody_at_any_step(study: Study, name: str, label: str) -> None:
    check_loss(study, name, label)


def test_every_method_is_here() -> None:
    ours = {name: kind for name, kind in known_methods().items() if kind.__module__.startswith("synod.common.methods")}
    assert set(STUDIES) == set(ours)
    assert all(kind.allows_losses for kind in ours.values())


def test_a_sum_of_some_comes_in_proportion_to_all_rows() -> None:
    """The counts of two parties stand for those of three, and their noise is told as larger in proportion."""
    study = study_of(name="histogram")
    query = SumMarginals(((0, 1, 2, 3),))
    label = plan_study(study).steps[0].label
    whole, some = make_parties(study, {}), make_parties(study, {"valley": label})
    (all_counts,), (counts,) = (asyncio.run(one.ask(label, query)) for one in (whole, some))
    assert abs(int(all_counts.sum()) - 1200) < 30
    assert abs(int(counts.sum()) - 1200) < 60
    (before,), (after,) = (sum_variances(study, one, label, query) for one in (whole, some))
    assert after / before == pytest.approx((2 / 1) / (3 / 2) * (1200 / 700) ** 2)
