"""DistDiffGen's plan: costs that add up, classes of the target, the bound of the leaves, and refusals."""

import json
from decimal import Decimal
from fractions import Fraction
from math import floor, sqrt
from pathlib import Path
from typing import Any

import pytest

from synod.common.methods.distdiffgen import LARGEST_CUT, DistDiffGen, _budget_at
from synod.common.privacy.cost import Cost
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.base import check_within
from synod.common.protocol.queries.parsing import check_feasible
from synod.common.protocol.steps import Limit, QueryKind
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.study import Study, parse_study
from synod.curator.methods.base import publisher_of
from tests.support.commands import complaint, synod, write_study
from tests.support.studies import Attribute, binary, categorical, integer, make_study, real

MIXED: list[Attribute] = [
    categorical("ward", 5, nullable=True),
    binary("sex"),
    integer("age", 0, 120),
    real("pay", "-1", "9"),
    categorical("one", 1),
    categorical("grade", 4),
    integer("year", 2020, 2020),
]
ROWS = (40_000, 9_000, 700)
KINDS: list[dict[str, Any]] = [{"epsilon": "0.7"}, {"epsilon": "0.7", "delta": "1e-9"}]
every_kind = pytest.mark.parametrize("budget", KINDS, ids=["pure", "rho"])


def study_of(schema: list[Attribute] = MIXED, rows: tuple[int, ...] = ROWS, **keys: Any) -> Study:
    others = {key: keys.pop(key) for key in ("epsilon", "delta", "collusion", "names") if key in keys}
    return make_study(schema=schema, rows=rows, method={"name": "distdiffgen", **keys}, **others)


def method_of(study: Study) -> DistDiffGen:
    assert isinstance(study.method, DistDiffGen)
    return study.method


# The plan


@every_kind
@pytest.mark.parametrize("split", ["0.5", "0.1", "0.333"])
def test_two_sums_cost_exactly_the_budget(budget: dict[str, Any], split: str) -> None:
    study = study_of(split=split, **budget)
    classes, leaves = plan_study(study).steps
    assert (classes.label, leaves.label) == ("classes", "leaves")
    assert classes.cost == study.budget.share(Decimal(split))
    assert Cost.total([classes.cost, leaves.cost]) == study.budget
    assert all(plan_study(study).cost_of(name) == study.budget for name in study.party_names)
    assert {step.kind for step in (classes, leaves)} == {QueryKind.SUM_MARGINALS}
    assert all(step.answerers == study.party_names for step in (classes, leaves))


def test_limits_by_hand() -> None:
    study = study_of([categorical("a", 3), categorical("b", 5, nullable=True), binary("y")], epsilon="20")
    classes, leaves = (step.limit for step in plan_study(study).steps)
    assert classes == Limit(numbers=2 * (3 + 6), tables=2, cells=12)
    assert leaves == Limit(numbers=36, tables=1, cells=36)


def test_a_class_alone_has_all_of_the_budget() -> None:
    study = study_of([categorical("y", 3), categorical("one", 1)])
    (leaves,) = plan_study(study).steps
    assert (leaves.label, leaves.cost, leaves.limit) == ("leaves", study.budget, Limit(3, 1, 3))
    check_feasible(study)


def test_a_class_alone_of_many_values_is_not_refused_for_want_of_a_split() -> None:
    study = study_of([categorical("y", 300), integer("year", 1, 1)], rows=(40, 40, 40), epsilon="0.1")
    assert [step.label for step in plan_study(study).steps] == ["leaves"]
    check_feasible(study)


@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "0.7", "3"])
@pytest.mark.parametrize(("parties", "collusion"), [(1, 0), (2, 1), (3, 1), (7, 3)])
def test_the_bound_is_that_of_the_design(epsilon: str, parties: int, collusion: int) -> None:
    """floor(n epsilon_2 / (2 theta sqrt(K / (K - t))))."""
    names = tuple(f"p{i}" for i in range(parties))
    study = study_of(
        rows=(4_999,) * parties, names=names, epsilon=epsilon, collusion=collusion, split="0.4", theta="3.5"
    )
    noise = 2 * 3.5 * sqrt(parties / (parties - collusion))
    assert method_of(study).most_leaves(study) == floor(study.total_rows * float(epsilon) * 0.6 / noise)


def test_under_rho_the_bound_is_of_the_scale_of_the_same_variance() -> None:
    study = study_of(epsilon="1", delta="1e-9")
    rho, shares = float(study.budget.share(Fraction(1, 2)).rho), 3 / 2
    assert method_of(study).most_leaves(study) == floor(study.total_rows / (4 * sqrt(shares / (2 * rho))))


def test_leaves_are_never_more_than_a_million() -> None:
    study = study_of([categorical(f"x{i}", 60) for i in range(5)], rows=(10**8,) * 3, epsilon="100")
    assert method_of(study).most_leaves(study) == LARGEST_CUT == 1_000_000
    assert plan_study(study).step("leaves").limit == Limit(10**6, 1, 10**6)


# The target


def test_without_a_target_the_last_attribute_that_varies_is_the_class() -> None:
    study = study_of()
    assert study.to_json()["method"] == {
        "name": "distdiffgen",
        "version": 1,
        "target": "grade",
        "specializations": 10,
        "split": "0.5",
        "theta": "4",
    }
    assert method_of(study).target_feature(study) == 4
    assert study_of(target="grade").digest() == study.digest()


GRADES = {"attribute": "grade", "classes": [["c0", "c2"], ["c3", "c1"]]}


def test_classes_are_numbered_by_first_occurrence() -> None:
    assert method_of(study_of(target="ward")).class_groups(study_of(target="ward")) == (0, 1, 2, 3, 4, 5)
    study = study_of(target=GRADES)
    assert method_of(study).class_groups(study) == (0, 1, 0, 1)
    turned = study_of(target={**GRADES, "classes": GRADES["classes"][::-1]})
    assert method_of(turned).class_groups(turned) == (0, 1, 0, 1)
    wards = study_of(target={"attribute": "ward", "classes": [["c4", "c1"], ["c0", "c2", "c3"]]})
    assert method_of(wards).class_groups(wards) == (0, 1, 0, 0, 1, 2), "a missing value is a class of its own"
    assert parse_study(json.loads(json.dumps(study.to_json())), "again").resolve() == study


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"target": "income"}, "the target income is not in the schema"),
        ({"target": "year"}, "the target year has a single value"),
        ({"target": {**GRADES, "attribute": "income"}}, "the target income is not in the schema"),
        ({"target": {**GRADES, "classes": [["c0", "c1", "c2", "c3"]]}}, "two or more lists"),
        ({"target": {**GRADES, "classes": [["c0", "c1", "c2", "c3"], []]}}, "two or more lists"),
        ({"target": {**GRADES, "classes": [["c0", "c1"], ["c2"]]}}, "each of its categories once"),
        ({"target": {**GRADES, "classes": [["c0", "c1"], ["c1", "c2", "c3"]]}}, "each of its categories once"),
        ({"target": {**GRADES, "classes": [["c0", "c1"], ["c2", "c3", "c4"]]}}, "each of its categories once"),
        ({"target": {"attribute": "age", "classes": [["1"], ["2"]]}}, "the target age is a number"),
        ({"target": {"attribute": "grade"}}, "method.target"),
        ({"target": {**GRADES, "colour": "red"}}, "is not known"),
        ({"target": 5}, "method.target"),
        ({"split": "0"}, "split must be above 0 and below 1"),
        ({"split": "1"}, "split must be above 0 and below 1"),
        ({"theta": "0"}, "theta must be above 0"),
        ({"specializations": 0}, "method.specializations"),
        ({"specializations": 1_001}, "method.specializations"),
        ({"encoding": "vanilla"}, "method.encoding"),
        ({"version": 2}, "method.version"),
    ],
)
def test_keys_that_are_refused(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(SynodError) as caught:
        study_of(**keys)
    assert caught.value.code is Code.INVALID
    assert words in caught.value.sentence


# No split fits


@pytest.mark.parametrize("delta", [None, "1e-9"])
@pytest.mark.parametrize(
    "schema", [MIXED, [categorical("a", 7), categorical("y", 3)], [integer("a", 0, 9), binary("y")]]
)
def test_too_little_epsilon_is_refused_with_the_least_that_is_enough(
    schema: list[Attribute], delta: str | None
) -> None:
    study = study_of(schema, rows=(400, 90, 70), epsilon="0.02", delta=delta)
    with pytest.raises(SynodError, match="has no room for any split") as caught:
        check_feasible(study)
    assert caught.value.code is Code.REFUSED
    enough = Decimal(caught.value.hint.split()[1])
    assert "Epsilon" in caught.value.hint
    check_feasible(study_of(schema, rows=(400, 90, 70), epsilon=str(enough), delta=delta))
    less = enough - Decimal(1).scaleb(enough.adjusted() - 1)
    with pytest.raises(SynodError, match="has no room for any split"):
        check_feasible(study_of(schema, rows=(400, 90, 70), epsilon=str(less), delta=delta))


def test_where_no_epsilon_is_enough_it_says_so() -> None:
    with pytest.raises(SynodError) as caught:
        check_feasible(study_of([categorical("a", 70), categorical("y", 70)], rows=(1, 1, 1), epsilon="900"))
    assert caught.value.hint == "No epsilon allows one; try fewer classes, more rows or a smaller theta."


def test_another_epsilon_has_the_budget_that_a_study_with_it_has() -> None:
    for delta in (None, "1e-9"):
        assert (
            _budget_at(study_of(epsilon="0.3", delta=delta), Decimal("0.7"))
            == study_of(epsilon="0.7", delta=delta).budget
        )


# Checked and forecast


@every_kind
@pytest.mark.parametrize("schema", [MIXED, [binary("y")], [categorical("a", 30), integer("b", 0, 99), binary("y")]])
@pytest.mark.parametrize("specializations", [1, 10, 1_000])
def test_typical_queries_are_within_the_plan(
    budget: dict[str, Any], schema: list[Attribute], specializations: int
) -> None:
    study = study_of(schema, specializations=specializations, **budget)
    check_feasible(study)
    typical = publisher_of(study).typical_queries(study)
    assert list(typical) == [step.label for step in plan_study(study).steps]
    for step in plan_study(study).steps:
        typical[step.label].check(study)
        check_within(typical[step.label], step, study)


def test_the_forecast_says_how_many_columns_are_sure_to_be_uniform() -> None:
    schema = [*(binary(f"x{i}") for i in range(5)), categorical("large", 60), binary("y")]
    study = study_of(schema, rows=(1_000,), names=("north",), collusion=0, epsilon="0.4")
    assert method_of(study).most_leaves(study) == 25
    (words,) = publisher_of(study).advise(study, None)
    assert words == (
        "At most 3 of the 6 columns beside y can be split within 25 leaves and their classes: 3 or more come out "
        "uniform over their domain, whatever they are in the rows."
    )
    assert publisher_of(study).advise(study, {}) == ()
    wide = study_of(schema, rows=(10**6,), names=("north",), collusion=0, epsilon="1")
    assert publisher_of(wide).advise(wide, None) == ()


@every_kind
def test_the_program_checks_and_forecasts_it(budget: dict[str, Any], tmp_path: Path) -> None:
    method = {"name": "distdiffgen", "theta": "0.01"}
    path = write_study(tmp_path / "study.yaml", method=method, schema=MIXED, **budget)
    ending = synod("study", "check", path, "--json")
    assert (ending.code, ending.err) == (0, "")
    assert [step["label"] for step in json.loads(ending.out)["plan"]] == ["classes", "leaves"]
    told = synod("study", "forecast", path, "--json", "--quick")
    assert [one["label"] for one in json.loads(told.out)["rounds"]] == ["classes", "leaves"]
    poor = write_study(tmp_path / "poor.yaml", method={"name": "distdiffgen"}, schema=MIXED, **budget)
    assert "no room for any split" in complaint(synod("study", "check", poor), 3)
