"""HPPrivBayes' plan: what is read, how the budget is shared, what a resolved study writes, and refusals."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from synod.common.methods.hpprivbayes import HpPrivBayes, attribute_names
from synod.common.methods.networks import resolved, share_draws
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.parsing import check_feasible
from synod.common.protocol.steps import QueryKind
from synod.common.runtime.errors import SynodError
from synod.common.study.study import Study, parse_study
from tests.support.studies import binary, categorical, integer, make_study

SCHEMA = [categorical("ward", 3), categorical("one", 1), integer("age", 0, 9, bins=5, nullable=True), binary("ill")]
PUBLIC = {"sensitive": ["ill"], "order": "schema", "weights": "none"}


def study_of(schema: list[dict[str, Any]] = SCHEMA, **keys: Any) -> Study:
    return make_study(schema=schema, method={"name": "hpprivbayes", **keys}, rows=(900, 40, 800), epsilon="4")


def method_of(study: Study) -> HpPrivBayes:
    assert isinstance(study.method, HpPrivBayes)
    return study.method


def test_the_resolved_study_writes_every_default_out() -> None:
    study = study_of()
    assert study.to_json()["method"] == {
        "name": "hpprivbayes",
        "version": 1,
        "score": "R",
        "encoding": "vanilla",
        "max_candidates": 500_000,
        "split": ["0.1", "0.3", "0.15", "0.45"],
        "sensitive_to": "ill",
        "sensitive": [],
        "threshold": "0.1",
        "weights": "none",
        "order": "information",
        "theta": "4",
        "degree": 2,
        "parameter_cells": resolved(method_of(study).parameter_cells),
        "max_view_cells": 4096,
    }


def test_the_last_column_that_varies_is_the_sensitive_one() -> None:
    assert method_of(study_of([*SCHEMA, categorical("end", 1)])).sensitive_to == "ill"
    assert attribute_names(study_of()) == ("ward", "age", "ill")


def test_a_mapping_of_weights_comes_back_in_one_form() -> None:
    one = study_of(weights={"ward": [1, 64, 3], "ill": [2, 1]})
    other = study_of(weights={"ill": [2, 1], "ward": [1, 64, 3]})
    assert one.to_json()["method"]["weights"] == {"ill": [2, 1], "ward": [1, 64, 3]}  # type: ignore[index, call-overload]
    assert one.digest() == other.digest() == parse_study(one.to_json(), "again").digest()


@pytest.mark.parametrize(
    ("keys", "parts"),
    [
        ({}, 4),
        (PUBLIC, 3),
        ({**PUBLIC, "order": ["ill", "age", "ward"], "weights": {"age": [1, 2, 3, 4, 5, 6]}}, 3),
        ({**PUBLIC, "sensitive": [], "sensitive_to": "age"}, 4),
        ({**PUBLIC, "order": "information"}, 4),
        ({**PUBLIC, "weights": "rare"}, 4),
        ({**PUBLIC, "weights": "frequent"}, 4),
    ],
)
def test_what_follows_from_rows_is_read_and_paid_for(keys: dict[str, Any], parts: int) -> None:
    study = study_of(**keys)
    labels = [step.label for step in plan_study(study).steps]
    assert len(method_of(study).parts) == parts
    assert labels == [*["reading"] * (parts == 4), "structure-north", "structure-valley", "parameters"]


@pytest.mark.parametrize("delta", [None, "1e-9"])
@pytest.mark.parametrize("keys", [{}, PUBLIC])
def test_costs_add_up_and_a_party_without_draws_spends_less(keys: dict[str, Any], delta: str | None) -> None:
    method = {"name": "hpprivbayes", **keys}
    study = make_study(schema=SCHEMA, method=method, rows=(900, 40, 800), epsilon="4", delta=delta)
    check_feasible(study)
    plan = plan_study(study)
    assert share_draws(study) == (1, 0, 1)
    assert plan.cost_of("north") == plan.cost_of("valley") == study.budget
    assert plan.cost_of("harbour") == study.budget - study.budget.share(Decimal("0.3"))
    assert [step.kind for step in plan.steps if len(step.answerers) == 1] == [QueryKind.CHOOSE_PARENTS] * 2
    assert plan.step("parameters").cost.part_of(study.budget) == Fraction(6 if not keys else 7, 10)


@pytest.mark.parametrize("keys", [{"parameter_cells": 0}, {"degree": 0}, {"theta": "1000000"}])
def test_without_parents_nothing_is_read_and_all_is_spent_on_single_columns(keys: dict[str, Any]) -> None:
    (step,) = plan_study(study_of(**keys)).steps
    assert (step.label, step.cost) == ("parameters", study_of().budget)


def test_a_single_column_that_varies_is_counted_alone() -> None:
    study = study_of([binary("ill"), categorical("one", 1)])
    assert [step.label for step in plan_study(study).steps] == ["parameters"]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"encoding": "binary"}, "encoding"),
    ({"encoding": "gray"}, "encoding"),
    ({"score": "F"}, "the score F is of binary features"),
    ({"sensitive_to": "ill", "sensitive": ["age"]}, "two ways to say the same"),
    ({"sensitive_to": "sex"}, "sex, which `sensitive_to` names, is not in the schema"),
    ({"sensitive": ["one"]}, "one, which `sensitive` names, has a single value"),
    ({"sensitive": ["age", "age"]}, "`sensitive` names an attribute twice"),
    ({"weights": {"sex": [1]}}, "sex, which `weights` names, is not in the schema"),
    ({"weights": {"age": [1, 2, 3, 4, 5]}}, "has 5 numbers for age, which has 6 values"),
    ({"weights": {"ill": [0, 1]}}, "at least 1"),
    ({"weights": {"ill": [65, 1]}}, "at most 64"),
    ({"weights": {1: [1, 2], "ill": [1, 2]}}, "weights"),
    ({"weights": {True: [1, 2], "ill": [1, 2]}}, "weights"),
    ({"sensitive": ["ill"], "weights": {"ill": [1, 2]}}, "ill has `weights` and is among the `sensitive` attributes"),
    ({"weights": "some"}, "'rare', 'frequent' or 'none'"),
    ({"order": ["ill", "age"]}, "`order` does not name every attribute that varies once"),
    ({"order": ["ill", "age", "ward", "one"]}, "`order` does not name every attribute that varies once"),
    ({"order": ["ill", "age", "age"]}, "`order` does not name every attribute that varies once"),
    ({"split": ["0.3", "0.2", "0.5"]}, "split must be 4 positive shares"),
    ({**PUBLIC, "split": ["0.1", "0.3", "0.2", "0.4"]}, "split must be 3 positive shares"),
    ({"split": ["0.2", "0.3", "0.2", "0.4"]}, "add up to at most 1"),
    ({"split": ["0.1", "0.3", "0.0001", "0.5"]}, "must not differ by more than 1,000 times"),
    ({"threshold": "0"}, "threshold must be above 0"),
    ({"theta": "0"}, "theta must be above 0"),
]


@pytest.mark.parametrize(("keys", "why"), REFUSED)
def test_what_is_refused(keys: dict[str, Any], why: str) -> None:
    with pytest.raises(SynodError, match=why):
        study_of(**keys)


def test_too_little_for_the_noisiest_cell_is_refused_before_anybody_approves() -> None:
    """Without weights the same budget is enough."""

    def check(weights: str) -> None:
        keys = {"name": "hpprivbayes", "weights": weights, "parameter_cells": 12}
        study = make_study(schema=SCHEMA, method=keys, rows=(900, 40, 800), epsilon="0.0000000001")
        study.method.check(study)

    check("none")
    with pytest.raises(SynodError, match="too little of the study's epsilon"):
        check("rare")
