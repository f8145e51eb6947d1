"""Queries: rows shared out by proportion, terms of the sums, and a Q that depends on every ingredient."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synod.common.models.gaussian import GaussianModel
from synod.common.privacy.bounds import noise_bound
from synod.common.privacy.cost import Cost
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries import sum_terms
from synod.common.protocol.queries.base import Query
from synod.common.protocol.queries.marginals import LocalMarginals
from synod.common.protocol.queries.moments import SumMoments, moment_design
from synod.common.protocol.queries.parsing import parse_query, query_digest
from synod.common.protocol.queries.rows import Synthesize, share_rows
from synod.common.protocol.steps import QueryKind
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.study import Study
from tests.support.keys import pinned
from tests.support.studies import SCHEMA, categorical, integer, make_roster, make_study

ROWS = (1, 2, 4)


def small_study(**changes: Any) -> Study:
    return make_study(**{"rows": ROWS, "epsilon": "0.8", **changes})


def some_model(study: Study) -> GaussianModel:
    width = moment_design(study).width - 1
    return GaussianModel(np.eye(width)[:, :2], 0.5, np.linspace(-1, 1, width), np.full(width, 0.25))


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=12), st.integers(1, 10**9))
def test_rows_are_shared_out_in_proportion(counts: list[int], rows: int) -> None:
    study = make_study(names=[f"p{i}" for i in range(len(counts))], rows=counts, output_rows=rows, collusion=0)
    shares = share_rows(study)
    assert sum(shares) == rows
    for share, count in zip(shares, counts, strict=True):
        assert abs(share - Fraction(rows * count, sum(counts))) < 1
    by_count = sorted(zip(counts, shares, strict=True))
    assert all(one[1] <= other[1] for one, other in pairwise(by_count) if one[0] < other[0])


def test_the_default_is_each_partys_own_count() -> None:
    assert share_rows(small_study()) == (1, 2, 4)


def test_ties_go_to_the_first() -> None:
    assert share_rows(make_study(rows=(5, 5, 5), output_rows=4)) == (2, 1, 1)
    assert share_rows(make_study(rows=(1, 1, 8), output_rows=1)) == (0, 0, 1)


def test_terms_follow_from_the_study_alone() -> None:
    study = small_study(collusion=2, epsilon="0.3")
    step = plan_study(study).step("moments")
    terms, design = sum_terms(SumMoments(), step, study), moment_design(study)
    assert terms.sensitivity == design.sensitivity
    assert terms.scale == Fraction(design.sensitivity) / Fraction(3, 10)
    assert terms.shape == Fraction(1, 3 - 2)
    assert (terms.length, (terms.low, terms.high)) == (design.length, design.bounds(7))
    assert terms.noise_bound == noise_bound(terms.scale, 3, 2, design.length)
    layout = terms.layout(2048)
    assert (layout.low, layout.high) == (terms.low - terms.noise_bound, terms.high + terms.noise_bound)
    assert layout.slots * layout.width < 2048


def test_only_sums_have_terms() -> None:
    study = small_study()
    with pytest.raises(AssertionError):
        sum_terms(SumMoments(), plan_study(study).step("rows"), study)


@pytest.mark.parametrize("epsilon", ["1e-9", "1e-30"])
def test_too_little_epsilon_for_the_noise_is_refused_before_anything_is_asked(epsilon: str) -> None:
    study = small_study(epsilon=epsilon)
    with pytest.raises(SynodError, match="moments has too little epsilon") as caught:
        sum_terms(SumMoments(), plan_study(study).step("moments"), study)
    assert caught.value.code is Code.INVALID


def digest(label: str = "moments", query: Query | None = None, **changes: Any) -> bytes:
    study = small_study(**changes)
    step = plan_study(study).step(label)
    asked = query or (SumMoments() if label == "moments" else Synthesize(some_model(study), share_rows(study)))
    return query_digest(asked, step, study)


def changed_roster(index: int, **changes: Any) -> list[dict[str, Any]]:
    entries = make_roster(rows=ROWS)
    entries[index] |= changes
    return entries


BINDING_CHANGES: list[dict[str, Any]] = [
    {"epsilon": "0.80001"},
    {"collusion": 0},
    {"collusion": 2},
    {"roster": changed_roster(0, name="east")},
    {"roster": changed_roster(1, key=pinned(99))},
    {"roster": changed_roster(2, rows=5)},
    {"roster": list(reversed(changed_roster(0)))},
    {"roster": changed_roster(0)[:2]},
]
SUM_CHANGES: list[dict[str, Any]] = [
    {"key_bits": 3072},
    {"method": {"name": "hpdp-dp", "levels": 512}},
    {"schema": [*SCHEMA, categorical("more", 2)]},
    {"schema": [*SCHEMA, categorical("more", 3)]},
    {"schema": [*SCHEMA, integer("more", 0, 1)]},
]


@pytest.mark.parametrize("changes", [*BINDING_CHANGES, *SUM_CHANGES])
def test_the_digest_of_a_sum_changes_with_every_ingredient(changes: dict[str, Any]) -> None:
    assert digest() == digest()
    assert digest(**changes) != digest()


@pytest.mark.parametrize("changes", [change for change in BINDING_CHANGES if "epsilon" not in change])
def test_the_digest_of_a_draw_changes_with_every_ingredient(changes: dict[str, Any]) -> None:
    assert digest("rows", **changes) != digest("rows")


def test_the_digest_of_a_draw_changes_with_model_and_rows() -> None:
    study = small_study()
    model, rows = some_model(study), share_rows(study)
    nudge = np.zeros(len(model.shift))
    nudge[3] = 1e-9
    others: list[Query] = [
        Synthesize(model, (1, 2, 5)),
        Synthesize(replace(model, noise=0.5 + 1e-9), rows),
        Synthesize(replace(model, shift=model.shift + nudge), rows),
        Synthesize(replace(model, spread=model.spread + nudge), rows),
        Synthesize(replace(model, loadings=model.loadings + nudge[:, None]), rows),
        LocalMarginals(((0,),)),
    ]
    digests = [digest("rows", query) for query in others]
    assert len({digest("rows"), *digests}) == 1 + len(others)


def test_the_digest_changes_with_the_steps_cost() -> None:
    study = small_study()
    step = plan_study(study).step("moments")
    cheaper = replace(step, cost=Cost(step.cost.epsilon / 2))
    assert query_digest(SumMoments(), cheaper, study) != query_digest(SumMoments(), step, study)
    draw, free = Synthesize(some_model(study), share_rows(study)), plan_study(study).step("rows")
    assert query_digest(draw, replace(free, cost=step.cost), study) != query_digest(draw, free, study)


def test_queries_read_back() -> None:
    study = small_study()
    assert parse_query(SumMoments().to_json(), study) == SumMoments()
    draw = Synthesize(some_model(study), share_rows(study))
    again = parse_query(draw.to_json(), study)
    assert isinstance(again, Synthesize)
    assert again.kind is QueryKind.SYNTHESIZE
    assert again.to_json() == draw.to_json()


def test_rows_come_from_the_study_and_not_from_the_question() -> None:
    study = small_study()
    greedy = Synthesize(some_model(study), (10**9, 10**9, 10**9)).to_json()
    again = parse_query(greedy, study)
    assert isinstance(again, Synthesize)
    assert again.rows == (1, 2, 4)


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        "sum-moments",
        5,
        {},
        {"kind": None},
        {"kind": "local-marginals"},
        {"kind": ["sum-moments"]},
        {"kind": 1},
    ],
)
def test_what_is_no_query_is_refused(data: object) -> None:
    with pytest.raises(SynodError, match="not one that this version answers") as caught:
        parse_query(data, small_study())
    assert caught.value.code is Code.INVALID


def test_a_draw_without_a_sound_model_is_refused() -> None:
    study = small_study()
    models: list[Any] = [None, {}, [], {"loadings": 5}]
    for model in models:
        with pytest.raises(SynodError, match="model is malformed"):
            parse_query({"kind": "synthesize", "model": model, "rows": [1, 2, 4]}, study)
