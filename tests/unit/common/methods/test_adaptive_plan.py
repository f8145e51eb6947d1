"""Adaptive's plan: labels and costs that add up to the budget, limits that follow from the schema, and refusals."""

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synod.common.methods import adaptive
from synod.common.methods.adaptive import SHARES, Adaptive, shares_of
from synod.common.privacy.cost import Cost
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.base import check_within
from synod.common.protocol.queries.parsing import check_feasible
from synod.common.protocol.steps import Limit, QueryKind
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.features import sizes_of
from synod.common.study.study import Study
from synod.curator.methods.base import publisher_of
from tests.support.commands import synod, write_study
from tests.support.studies import Attribute, binary, categorical, integer, make_study, real

MIXED: list[Attribute] = [
    categorical("ward", 5, nullable=True),
    binary("sex"),
    integer("age", 0, 120),
    real("pay", "-1", "9"),
    categorical("one", 1),
]
BITS = [binary(f"x{i}") for i in range(5)]
LABELS = {
    1: ["ones"],
    3: ["ones", "agreements-1", "tables-1"],
    5: ["ones", "agreements-1", "tables-1", "agreements-2", "tables-2"],
}
KINDS: list[dict[str, Any]] = [{"epsilon": "0.7"}, {"epsilon": "0.7", "delta": "1e-9"}]
every_kind = pytest.mark.parametrize("budget", KINDS, ids=["pure", "rho"])


def study_of(schema: list[Attribute] = MIXED, rows: tuple[int, ...] = (4_000, 900, 70), **keys: Any) -> Study:
    budget = {key: keys.pop(key) for key in ("epsilon", "delta") if key in keys}
    return make_study(schema=schema, rows=rows, method={"name": "adaptive", **keys}, **budget)


def method_of(study: Study) -> Adaptive:
    assert isinstance(study.method, Adaptive)
    return study.method


@every_kind
@pytest.mark.parametrize("rounds", [1, 3, 5])
def test_costs_add_up_to_exactly_the_budget(budget: dict[str, Any], rounds: int) -> None:
    for schema in (MIXED, BITS):
        study = study_of(schema, rounds=rounds, **budget)
        plan = plan_study(study)
        assert Cost.total(step.cost for step in plan.steps) == study.budget
        assert all(plan.cost_of(name) == study.budget for name in study.party_names)
        assert [step.cost for step in plan.steps] == [study.budget.share(share) for share in shares_of(study, rounds)]
        assert all(step.answerers == study.party_names for step in plan.steps)


def test_shares_add_up() -> None:
    for rounds, shares in SHARES.items():
        assert len(shares) == rounds
        assert sum(map(Fraction, shares)) == 1


def shares_at(epsilon: str, **keys: Any) -> tuple[Decimal, ...]:
    return shares_of(study_of(epsilon=epsilon, rounds=3, **keys), 3)


def test_the_less_pure_epsilon_the_more_of_it_one_way_tables_get() -> None:
    ones = [shares_at(epsilon)[0] for epsilon in ("0.1", "1", "2", "4", "8", "100")]
    assert ones == sorted(ones, reverse=True)
    assert (ones[0], ones[-1]) == (Decimal("0.8"), Decimal("0.3"))
    assert ones[2] / ones[3] == pytest.approx(Decimal(2).sqrt(), rel=Decimal("0.03"))
    assert all(sum(shares_at(epsilon)) == 1 for epsilon in ("0.1", "1", "2", "4", "8", "100"))


def test_shares_under_rho_and_of_other_rounds_do_not_depend_on_noise() -> None:
    assert shares_at("0.1", delta="1e-9") == shares_at("8", delta="1e-9") == SHARES[3]
    assert shares_of(study_of(epsilon="0.1"), 5) == SHARES[5]


def test_noise_is_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tables of four cells with half of epsilon 1 each: scale 4, a deviation of 4 sqrt(2) = 5.66, or 6.93 with
    shares of three parties of which two are enough. That moves 0.4 * 4 * 6.93 = 11.1 of 250 rows, or 4.43 %; at
    5 % all the budget would go there, at 4.43 % sqrt(4.43 / 5) = 0.94 of it.
    """
    study = study_of([categorical("a", 4), categorical("b", 4)], rows=(100, 100, 50), epsilon="1", rounds=3)
    monkeypatch.setattr(adaptive, "MOST_ONES", Decimal(1))
    assert shares_of(study, 3)[0] == Decimal("0.94")


@pytest.mark.parametrize("rounds", [1, 3, 5])
def test_labels(rounds: int) -> None:
    plan = plan_study(study_of(rounds=rounds))
    assert [step.label for step in plan.steps] == LABELS[rounds]
    for step in plan.steps:
        is_look = step.label.startswith("agreements")
        assert step.kind is (QueryKind.SUM_AGREEMENTS if is_look else QueryKind.SUM_MARGINALS)
        assert step.kind.is_sum


def test_rounds_follow_from_the_schema() -> None:
    assert [step.label for step in plan_study(study_of(BITS)).steps] == ["agreements"]
    assert [step.label for step in plan_study(study_of(BITS, rounds=3)).steps] == LABELS[3]
    for alone in ([binary("x")], [categorical("x", 9)], [integer("x", 0, 500), integer("year", 1, 1)]):
        assert [step.label for step in plan_study(study_of(alone)).steps] == ["ones"]


@pytest.mark.parametrize(
    ("budget", "rounds"),
    [
        ({"epsilon": "0.1"}, 1),
        ({"epsilon": "1"}, 3),
        ({"epsilon": "100"}, 3),
        ({"epsilon": "0.1", "delta": "1e-9"}, 1),
        ({"epsilon": "1", "delta": "1e-9"}, 3),
        ({"epsilon": "10", "delta": "1e-9"}, 5),
    ],
)
def test_rounds_follow_from_the_noise(budget: dict[str, Any], rounds: int) -> None:
    """One stage is as good as two where noise is large and under pure epsilon; with still more noise pairs do harm."""
    schema = [categorical(f"x{i}", 8) for i in range(4)]
    assert [step.label for step in plan_study(study_of(schema, **budget)).steps] == LABELS[rounds]


@pytest.mark.parametrize("rounds", [3, 5])
@pytest.mark.parametrize("schema", [[binary("x")], [categorical("x", 9), integer("year", 1, 1)]])
def test_more_than_one_round_needs_pairs(rounds: int, schema: list[Attribute]) -> None:
    with pytest.raises(SynodError, match="single attribute that varies, so there are no pairs") as caught:
        study_of(schema, rounds=rounds)
    assert caught.value.code is Code.INVALID
    assert caught.value.hint == "Leave `rounds` out, or write 1."


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ({"rounds": 2}, "method.rounds"),
        ({"rounds": 0}, "method.rounds"),
        ({"rounds": "3"}, "method.rounds"),
        ({"max_model_cells": 999}, "method.max_model_cells"),
        ({"max_model_cells": 1_000_001}, "method.max_model_cells"),
        ({"max_model_cells": "many"}, "method.max_model_cells"),
        ({"splits": 0}, "method.splits"),
        ({"splits": 17}, "method.splits"),
        ({"encoding": "vanilla"}, "method.encoding"),
        ({"version": 2}, "method.version"),
    ],
)
def test_keys_that_are_refused(keys: dict[str, Any], key: str) -> None:
    with pytest.raises(SynodError) as caught:
        study_of(**keys)
    assert caught.value.code is Code.INVALID
    assert key in caught.value.sentence


# Limits


def test_limits_by_hand() -> None:
    study = study_of([categorical("a", 3), categorical("b", 4), binary("c")], rounds=3, splits=2)
    ones, look, tables = (step.limit for step in plan_study(study).steps)
    assert ones == Limit(numbers=9, tables=3, cells=4)
    assert look == Limit(numbers=2 * 3 + 1, tables=2, cells=2)
    assert tables == Limit(numbers=12 + 8 + 6, tables=3, cells=12)


@given(st.lists(st.integers(2, 300), min_size=2, max_size=12), st.integers(1, 5_000))
@settings(deadline=None, max_examples=60)
def test_tables_are_within_rows_and_cells(sizes: list[int], rows: int) -> None:
    study = study_of([categorical(f"x{i}", size) for i, size in enumerate(sizes)], rows=(rows, 1, 1), rounds=3)
    limit = method_of(study).tables_limit(study)
    assert limit.numbers <= max(study.total_rows, sum(sizes)), "one-way tables may always be asked again"
    assert limit.numbers >= sum(sizes)
    assert max(sizes) <= limit.cells <= max(*sizes, adaptive.LARGEST_TABLE)
    assert len(sizes) <= limit.tables <= max(4 * len(sizes), len(sizes))
    assert method_of(study).max_model_cells == "auto" or 1_000 <= int(method_of(study).max_model_cells) <= 1_000_000


@every_kind
def test_more_rows_and_more_budget_give_a_larger_model(budget: dict[str, Any]) -> None:
    small, large, richer = (
        int(method_of(study_of(rows=rows, **{**budget, "epsilon": epsilon})).max_model_cells)
        for rows, epsilon in (((10, 10, 10), "0.1"), ((10**4,) * 3, "0.5"), ((10**4,) * 3, "1"))
    )
    assert small == adaptive.FEWEST_CELLS < large < richer <= adaptive.MOST_CELLS


# Checked and forecast


@every_kind
@pytest.mark.parametrize("schema", [MIXED, BITS, [binary("x")], [categorical("a", 300), categorical("b", 200)]])
@pytest.mark.parametrize("rounds", ["auto", 1, 3, 5])
def test_typical_queries_are_within_the_plan(budget: dict[str, Any], schema: list[Attribute], rounds: Any) -> None:
    if len(schema) == 1 and rounds in (3, 5):
        return
    study = study_of(schema, rounds=rounds, **budget)
    check_feasible(study)
    typical = publisher_of(study).typical_queries(study)
    assert list(typical) == [step.label for step in plan_study(study).steps]
    for step in plan_study(study).steps:
        typical[step.label].check(study)
        check_within(typical[step.label], step, study)


@every_kind
@pytest.mark.parametrize("schema", [MIXED, BITS])
def test_the_program_checks_and_forecasts_it(budget: dict[str, Any], schema: list[Attribute], tmp_path: Path) -> None:
    path = write_study(tmp_path / "study.yaml", method={"name": "adaptive"}, schema=schema, **budget)
    ending = synod("study", "check", path, "--json")
    assert (ending.code, ending.err) == (0, "")
    checked = json.loads(ending.out)
    labels = [step["label"] for step in checked["plan"]]
    assert labels in (*LABELS.values(), ["agreements"])
    told = synod("study", "forecast", path, "--json")
    assert (told.code, told.err) == (0, "")
    assert [one["label"] for one in json.loads(told.out)["rounds"]] == labels
    assert synod("study", "forecast", path).code == 0


def test_every_kind_of_study_has_a_feature() -> None:
    """So that the shapes above are what they say."""
    assert [len(sizes_of(study_of(schema))) for schema in (MIXED, BITS)] == [4, 5]
