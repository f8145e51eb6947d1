"""PrivBayes' plan: the paper's degrees and cells to the digit, draws by rows, costs that add up, and refusals."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synod.common.methods.networks import resolved, share_by_rows, share_draws
from synod.common.methods.privbayes import PrivBayes
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.parsing import check_feasible
from synod.common.protocol.steps import QueryKind
from synod.common.runtime.errors import SynodError
from synod.common.study.features import base_count, sizes_of
from synod.common.study.study import Study
from tests.support.studies import binary, categorical, integer, make_study

EPSILONS = ("0.05", "0.1", "0.2", "0.4", "0.8", "1.6")
ADULT = (16, 7, 16, 16, 16, 7, 14, 6, 5, 2, 16, 16, 16, 41, 2)


def alone(schema: list[dict[str, Any]], rows: int, epsilon: str, **keys: Any) -> Study:
    method = {"name": "privbayes", **keys}
    return make_study(names=("one",), rows=(rows,), schema=schema, epsilon=epsilon, method=method, collusion=0)


def cells_of(study: Study) -> int:
    assert isinstance(study.method, PrivBayes)
    return resolved(study.method.parameter_cells)


def degree_of(study: Study) -> int:
    """K of the paper, for features of two values: tables have 2^(k+1) cells."""
    return max(1, cells_of(study)).bit_length() - 1 - bool(cells_of(study))


@pytest.mark.parametrize(
    ("d", "rows", "degrees"),
    [(16, 21_574, (1, 2, 3, 5, 6, 7)), (23, 47_461, (2, 3, 4, 5, 6, 7))],
    ids=["NLTCS", "ACS"],
)
def test_the_degrees_of_binary_tables_are_the_papers(d: int, rows: int, degrees: tuple[int, ...]) -> None:
    schema = [binary(f"x{i}") for i in range(d)]
    assert tuple(degree_of(alone(schema, rows, epsilon)) for epsilon in EPSILONS) == degrees


def test_the_degrees_and_cells_of_adult_are_the_papers() -> None:
    schema = [categorical(f"x{i}", size) for i, size in enumerate(ADULT)]
    bits = [alone(schema, 45_222, epsilon, encoding="binary") for epsilon in EPSILONS]
    assert tuple(map(degree_of, bits)) == (0, 1, 3, 4, 5, 6)
    whole = [alone(schema, 45_222, epsilon, encoding="vanilla") for epsilon in EPSILONS]
    assert tuple(map(cells_of, whole)) == (13, 26, 52, 105, 211, 422)


def test_levels_neither_count_as_attributes_nor_change_the_bound() -> None:
    schema = [integer(f"x{i}", 0, 15) for i in range(15)]
    fine, coarse = (alone(schema, 45_222, "0.8", encoding=encoding) for encoding in ("vanilla", "hierarchical"))
    assert (len(sizes_of(coarse)), base_count(coarse)) == (60, 15)
    assert cells_of(fine) == 0  # two columns of 16 values have 256 cells, and 211 are useful
    assert cells_of(coarse) == 211


@pytest.mark.parametrize(
    ("schema", "encoding", "score"),
    [
        ([binary("a"), binary("b")], "vanilla", "F"),
        ([binary("a"), categorical("b", 3)], "hierarchical", "R"),
        ([binary("a"), integer("b", 0, 9)], "hierarchical", "R"),
        ([binary("a"), categorical("b", 2, nullable=True)], "hierarchical", "R"),
    ],
)
def test_what_auto_is(schema: list[dict[str, Any]], encoding: str, score: str) -> None:
    method = make_study(schema=schema, method={"name": "privbayes"}).method
    assert isinstance(method, PrivBayes)
    assert (method.encoding, method.score) == (encoding, score)


def test_the_resolved_study_writes_every_default_out() -> None:
    study = make_study(schema=[binary(f"x{i}") for i in range(6)], rows=(100, 200, 300), method={"name": "privbayes"})
    assert study.to_json()["method"] == {
        "name": "privbayes",
        "version": 1,
        "score": "F",
        "encoding": "vanilla",
        "max_candidates": 500_000,
        "beta": "0.3",
        "theta": "4",
        "structure": "turns",
        "degree": 5,
        "tables": "project",
        "parameter_cells": cells_of(study),
    }


@given(st.integers(0, 60), st.lists(st.integers(1, 1000), min_size=1, max_size=8))
def test_draws_are_shared_by_largest_remainder(draws: int, rows: list[int]) -> None:
    shares = share_by_rows(draws, rows)
    quotas = [Fraction(draws * own, sum(rows)) for own in rows]
    assert sum(shares) == draws
    assert all(abs(share - quota) < 1 for share, quota in zip(shares, quotas, strict=True))
    more = [quota % 1 for share, quota in zip(shares, quotas, strict=True) if share > quota]
    fewer = [quota % 1 for share, quota in zip(shares, quotas, strict=True) if share < quota]
    assert not more or not fewer or min(more) >= max(fewer)


def test_draws_by_hand() -> None:
    assert share_by_rows(5, [100, 100, 100]) == (2, 2, 1)
    assert share_by_rows(4, [10, 1, 1]) == (4, 0, 0)
    assert share_by_rows(3, [1, 5, 6]) == (0, 1, 2)
    assert share_by_rows(0, [1, 2]) == (0, 0)


@pytest.mark.parametrize("delta", [None, "1e-9"])
def test_a_party_with_draws_spends_everything_and_one_without_saves_what_choices_cost(delta: str | None) -> None:
    schema = [binary(f"x{i}") for i in range(5)]
    study = make_study(schema=schema, rows=(900, 40, 800), epsilon="2", delta=delta, method={"name": "privbayes"})
    check_feasible(study)
    plan = plan_study(study)
    assert share_draws(study) == (2, 0, 2)
    assert [(step.label, step.kind, step.limit.tables) for step in plan.steps] == [
        ("structure-north", QueryKind.CHOOSE_PARENTS, 2),
        ("structure-valley", QueryKind.CHOOSE_PARENTS, 2),
        ("parameters", QueryKind.SUM_MARGINALS, 5),
    ]
    assert plan.cost_of("north") == plan.cost_of("valley") == study.budget
    assert plan.cost_of("harbour") == study.budget - study.budget.share(Decimal("0.3"))


@pytest.mark.parametrize("delta", [None, "1e-9"])
def test_a_pooled_structure_costs_everybody_the_same(delta: str | None) -> None:
    method = {"name": "privbayes", "structure": "pooled"}
    schema = [binary(f"x{i}") for i in range(5)]
    study = make_study(schema=schema, rows=(900, 40, 800), epsilon="2", delta=delta, method=method)
    check_feasible(study)
    plan, structure = plan_study(study), study.budget.share(Decimal("0.3"))
    assert [(step.label, step.kind, step.answerers, step.cost) for step in plan.steps] == [
        ("correlations", QueryKind.SUM_MARGINALS, study.party_names, structure),
        ("parameters", QueryKind.SUM_MARGINALS, study.party_names, study.budget - structure),
    ]
    assert all(plan.cost_of(name) == study.budget for name in study.party_names)
    assert isinstance(study.method, PrivBayes)
    assert study.method.score == "I"


def test_who_chooses_parents_does_not_change_how_large_tables_may_be() -> None:
    schema = [integer(f"x{i}", 0, 15) for i in range(15)]
    assert len({cells_of(alone(schema, 45_222, "0.8", structure=kind)) for kind in ("turns", "pooled")}) == 1


@pytest.mark.parametrize("structure", ["turns", "pooled"])
@pytest.mark.parametrize("keys", [{"parameter_cells": 0}, {"degree": 0}, {"theta": "1000000"}])
def test_without_parents_all_is_spent_on_single_columns(keys: dict[str, Any], structure: str) -> None:
    method = {"name": "privbayes", "structure": structure, **keys}
    study = make_study(schema=[categorical(f"x{i}", 3) for i in range(4)], method=method)
    (step,) = plan_study(study).steps
    assert (step.label, step.cost) == ("parameters", study.budget)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"score": "F"}, "the score F is of binary features"),
    ({"beta": "0"}, "beta must be above 0 and below 1"),
    ({"beta": "1"}, "beta must be above 0 and below 1"),
    ({"theta": "0"}, "theta must be above 0"),
    ({"degree": -1}, "at least 0"),
    ({"structure": "pooled", "score": "R"}, "a pooled structure is chosen by I"),
    ({"structure": "pooled", "score": "F"}, "the score F is of binary features"),
    ({"structure": "central"}, "'turns' or 'pooled'"),
    ({"tables": "ripple"}, "'project' or 'clip'"),
    ({"max_candidates": 10}, "at least 100"),
]


@pytest.mark.parametrize(("keys", "why"), REFUSED)
def test_what_is_refused(keys: dict[str, Any], why: str) -> None:
    with pytest.raises(SynodError, match=why):
        make_study(schema=[categorical("a", 3), binary("b")], method={"name": "privbayes", **keys})
