"""Recipes that lose a party at any step: they publish all rows, and ask the others what the plan allows."""

import asyncio
from typing import Any

import numpy as np
import pytest

from synod.common.privacy.coins import Coins
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.marginals import SumMarginals
from synod.common.study.study import Study
from synod.curator.methods.base import Parties, Publication, publish, sum_variances
from synod.deploy.simulate import InProcessParties
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


DP_SUBN = study_of(name="dp-subn")
TURNS = [(name, step.label) for name in NAMES for step in plan_study(DP_SUBN).steps_of(name)]


@pytest.mark.parametrize(("name", "label"), TURNS)
def test_dp_subn_loses_anybody_at_any_step(name: str, label: str) -> None:
    found = run(DP_SUBN, make_parties(DP_SUBN, {name: label}))
    assert [len(column) for column in found.columns] == [700] * 4
    again = run(DP_SUBN, make_parties(DP_SUBN, {name: label}))
    assert all((a == b).all() for a, b in zip(found.columns, again.columns, strict=True))


@pytest.mark.parametrize("method", ["independent", "privbayes", "hpprivbayes", "dp-ccbn", "histogram", "dpcocgen"])
@pytest.mark.parametrize("name", NAMES)
def test_other_methods_publish_all_rows(method: str, name: str) -> None:
    study = study_of(name=method)
    first = plan_study(study).steps_of(name)[0].label
    found = run(study, make_parties(study, {name: first}))
    assert [len(column) for column in found.columns] == [700] * 4


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
