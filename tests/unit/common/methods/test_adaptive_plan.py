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
from synod.common.methods.adaptive import Adaptive, noise_in_ones
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
        assert [step.cost for step in plan.steps] == [study.budget.share(share) for share in split_of(study)]
        assert all(step.answerers == study.party_names for step in plan.steps)


def split_of(study: Study) -> tuple[Decimal, ...]:
    split = method_of(study).split
    assert split != "auto"
    return split


def decimals(*shares: str) -> tuple[Decimal, ...]:
    return tuple(map(Decimal, shares))


FACTORS = [categorical("a", 4), categorical("b", 16)]


def test_noise_is_what_it_says() -> None:
    """Parts by roots of 4 and 16 are 1/3 and 2/3. Of epsilon 1: scales 6 and 3, so deviations of 6 sqrt(3) = 10.392 and
    5.196 with shares of three parties of which two are enough. Cells: 0.4 (4 * 10.392 + 16 * 5.196) = 49.88 rows of two
    tables of 250 rows.
    """
    study = study_of(FACTORS, rows=(100, 100, 50), epsilon="1", rounds=3)
    assert float(noise_in_ones(study, (4, 16))) == pytest.approx(49.88 / 500, rel=1e-3)


def test_noise_under_rho_is_what_it_says() -> None:
    """Rho of the study in parts 1/3 and 2/3: variances of 1 / part rho, half as much again for the shares of three."""
    study = study_of(FACTORS, rows=(100, 100, 50), epsilon="1", delta="1e-9", rounds=3)
    deviations = [(1.5 / (part * float(study.budget.rho))) ** 0.5 for part in (1 / 3, 2 / 3)]
    moved = 0.4 * (4 * deviations[0] + 16 * deviations[1])
    assert float(noise_in_ones(study, (4, 16))) == pytest.approx(moved / 500, rel=1e-3)


@pytest.mark.parametrize(
    ("epsilon", "split"),
    [
        ("0.1", decimals("0.65", "0.15", "0.20")),
        ("5", decimals("0.63", "0.15", "0.22")),  # noise is 0.0998 / 5 = 0.01995; its root over that of 0.05 is 0.631
        ("10", decimals("0.44", "0.15", "0.41")),
        ("100", decimals("0.30", "0.15", "0.55")),
    ],
)
def test_the_less_pure_epsilon_the_more_of_it_one_way_tables_get(epsilon: str, split: tuple[Decimal, ...]) -> None:
    assert split_of(study_of(FACTORS, rows=(100, 100, 50), epsilon=epsilon, rounds=3)) == split


@pytest.mark.parametrize("epsilon", ["0.1", "8"])
def test_shares_under_rho_and_of_other_rounds_do_not_depend_on_noise(epsilon: str) -> None:
    assert split_of(study_of(epsilon=epsilon, delta="1e-9", rounds=3)) == decimals("0.38", "0.10", "0.52")
    five = decimals("0.30", "0.08", "0.26", "0.08", "0.28")
    for delta in (None, "1e-9"):
        assert split_of(study_of(rounds=5, epsilon=epsilon, delta=delta)) == five
        assert split_of(study_of(rounds=1, epsilon=epsilon, delta=delta)) == decimals("1")


def test_a_study_may_write_its_own_split() -> None:
    study = study_of(rounds=3, split=["0.5", "0.2", "0.3"], epsilon="2")
    assert [step.cost for step in plan_study(study).steps] == [Cost.pure(Fraction(x, 10)) for x in (10, 4, 6)]


@pytest.mark.parametrize(
    "split", [["1"], ["0.5", "0.5"], ["0.5", "0.5", "0"], ["0.5", "0.2", "0.2"], ["0.9", "0.3", "-0.2"]]
)
def test_a_split_that_is_none_is_refused(split: list[str]) -> None:
    with pytest.raises(SynodError, match="is not 3 positive shares that add up to 1, one for each round") as caught:
        study_of(rounds=3, split=split)
    assert caught.value.hint == "Leave `split` out, or write both `rounds` and `split`."


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
    ("epsilon", "rows", "delta", "rounds"),
    [
        # Noise is 0.0998 / epsilon, so 0.1 at 0.998.
        ("0.99", 250, None, 1),
        ("1.01", 250, None, 3),
        ("100", 250, None, 3),
        # It is 0.110 at epsilon 2 and 0.092 at 2.4, and a tenth of it with ten times the rows.
        ("2", 250, "1e-9", 1),
        ("2.4", 250, "1e-9", 3),
        ("2", 2_500, "1e-9", 3),
        ("2.4", 2_500, "1e-9", 5),
    ],
)
def test_rounds_follow_from_the_noise(epsilon: str, rows: int, delta: str | None, rounds: int) -> None:
    """One stage is as good as two where noise is large and under pure epsilon; with still more noise pairs do harm."""
    parts = (rows * 2 // 5, rows * 2 // 5, rows // 5)
    study = study_of(FACTORS, rows=parts, epsilon=epsilon, delta=delta)
    assert [step.label for step in plan_study(study).steps] == LABELS[rounds]


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
    assert labels == (["agreements"] if schema is BITS else LABELS[1])
    told = synod("study", "forecast", path, "--json", "--quick")
    assert (told.code, told.err) == (0, "")
    assert [one["label"] for one in json.loads(told.out)["rounds"]] == labels
    assert synod("study", "forecast", path, "--quick").code == 0


def test_every_kind_of_study_has_a_feature() -> None:
    """So that the shapes above are what they say."""
    assert [len(sizes_of(study_of(schema))) for schema in (MIXED, BITS)] == [4, 5]
