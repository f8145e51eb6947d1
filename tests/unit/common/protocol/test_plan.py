"""The plan of a study: order, answerers, and costs that stay within epsilon."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synod.common.methods import hpdp_dp
from synod.common.models.moments import design_moments
from synod.common.privacy.cost import FREE, Cost
from synod.common.protocol.plan import plan_study
from synod.common.protocol.steps import Limit, Plan, QueryKind, Step
from synod.common.runtime.errors import SynodError
from synod.common.study.encoding import codings_of
from tests.support.studies import NAMES, make_study


@given(
    st.decimals("0.00001", 1000, places=7),
    st.integers(1, 9),
    st.sampled_from([256, 512, 1024]),
    st.sampled_from(["copula", "linear"]),
)
def test_costs_add_up_to_at_most_epsilon_for_each_party(epsilon: Any, parties: int, levels: int, link: str) -> None:
    study = make_study(
        epsilon=epsilon,
        collusion=parties - 1,
        method={"name": "hpdp-dp", "levels": levels, "link": link},
        names=[f"p{i}" for i in range(parties)],
        rows=range(1, parties + 1),
    )
    plan = plan_study(study)
    for index in range(parties):
        spent = sum((s.cost.epsilon for s in plan.steps if f"p{index}" in s.answerers), Fraction(0))
        assert spent == plan.cost_of(f"p{index}").epsilon
        assert 0 < spent <= Fraction(epsilon)
    assert len({step.label for step in plan.steps}) == len(plan.steps)


def test_steps_of_hpdp_dp() -> None:
    study = make_study(epsilon="0.8")
    numbers = design_moments(codings_of(study)).length
    moments, rows = plan_study(study).steps
    budget = Cost.pure(Fraction(4, 5))
    nothing = {"numbers": 0, "tables": 1, "cells": 0, "candidates": 0, "parents": 0, "options": 0, "score": ""}
    assert moments == Step("moments", "moments", QueryKind.SUM_MOMENTS, NAMES, budget, Limit(numbers))
    assert rows == Step("rows", "rows", QueryKind.SYNTHESIZE, NAMES, FREE, Limit(0))
    assert plan_study(study).to_json() == [
        {
            "label": "moments",
            "phase": "moments",
            "kind": "sum-moments",
            "answerers": [*NAMES],
            "cost": "epsilon:4/5",
            "limit": {**nothing, "numbers": numbers},
        },
        {
            "label": "rows",
            "phase": "rows",
            "kind": "synthesize",
            "answerers": [*NAMES],
            "cost": "epsilon:0",
            "limit": nothing,
        },
    ]


def test_a_party_has_its_own_steps_only() -> None:
    one = Step("one", "first", QueryKind.SUM_MOMENTS, ("a", "b"), Cost(Fraction(1)), Limit(1))
    two = replace(one, label="two", answerers=("b",), cost=Cost(Fraction(2)))
    plan = Plan((one, two))
    assert (plan.steps_of("a"), plan.steps_of("b"), plan.steps_of("c")) == ((one,), (one, two), ())
    assert [plan.cost_of(name).epsilon for name in "abc"] == [1, 3, 0]
    assert plan.step("two") is two


def test_a_plan_beyond_epsilon_is_never_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hpdp_dp, "FREE", Cost(Fraction(1, 10**9)))
    with pytest.raises(SynodError, match="cost more than its budget"):
        plan_study(make_study(name="never-planned-before"))


def test_a_plan_with_a_label_twice_is_never_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    step = Step("rows", "rows", QueryKind.SYNTHESIZE, NAMES, FREE, Limit(0))
    monkeypatch.setattr(hpdp_dp.HpdpDp, "plan", lambda *_: (step, step))
    with pytest.raises(AssertionError):
        plan_study(make_study(name="never-planned-either"))
