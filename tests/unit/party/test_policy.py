"""Each numbered check of the policy refuses on its own, and what it allows passes."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from synod.common.privacy.cost import Cost
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.moments import SumMoments
from synod.common.protocol.steps import QueryKind
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.settings import PartySettings
from synod.common.study.study import Study
from synod.party.policy import check_policy
from tests.support.keys import identity_of
from tests.support.parties import make_settings
from tests.support.studies import SCHEMA, binary, make_study

BITS = [binary(f"x{i}") for i in range(8)]
OWN_KEY = identity_of("north").fingerprint


def check(settings: PartySettings, study: Study, key: str = OWN_KEY) -> Cost:
    return check_policy(settings, study, own_key=key)


def refusal(settings: PartySettings, study: Study, key: str = OWN_KEY) -> str:
    with pytest.raises(SynodError) as caught:
        check(settings, study, key)
    assert caught.value.code is Code.REFUSED
    return str(caught.value)


def test_an_allowed_study_costs_its_epsilon(tmp_path: Path) -> None:
    assert check(make_settings(tmp_path), make_study(epsilon="0.3")) == Cost.pure(Decimal("0.3"))


def test_1_this_party_is_on_the_roster_under_its_own_key(tmp_path: Path) -> None:
    assert "not on the roster" in refusal(make_settings(tmp_path, name="desert"), make_study())
    stranger = identity_of("harbour").fingerprint
    assert "pins another key" in refusal(make_settings(tmp_path), make_study(), stranger)


def test_2_the_method_is_allowed(tmp_path: Path) -> None:
    assert "hpdp-dp is not among" in refusal(make_settings(tmp_path, methods=["dpcocgen"]), make_study())
    assert "hpdp-dp is not among" in refusal(make_settings(tmp_path, methods=[]), make_study())
    check(make_settings(tmp_path, methods=["dpcocgen", "hpdp-dp"]), make_study())


def test_3_epsilon_is_within_the_cap_for_one_study(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, max_epsilon_per_study="0.5")
    check(settings, make_study(epsilon="0.5"))
    assert refusal(settings, make_study(epsilon="0.500000000001")) == (
        "the study costs epsilon 0.500000000001; `max_epsilon_per_study` allows epsilon 0.5. Ask for less, or raise "
        "`max_epsilon_per_study` if your policy allows it."
    )


RHO: dict[str, Any] = {"max_rho_total": {"epsilon": "1", "delta": "1e-9"}}


def test_3_a_study_with_delta_needs_leave(tmp_path: Path) -> None:
    study = make_study(epsilon="0.3", delta="1e-9")
    said = refusal(make_settings(tmp_path), study)
    assert "pure epsilon only" in said
    assert "Set `max_rho_total: {epsilon: ..., delta: ...}`" in said
    per_study = make_settings(tmp_path, max_rho_per_study={"epsilon": "1", "delta": "1e-9"})
    assert "Set `max_rho_total" in refusal(per_study, study)
    assert check(make_settings(tmp_path, **RHO), study) == study.budget == Cost.concentrated(study.budget.rho)


def test_3_rho_is_within_the_cap_for_one_study(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, **RHO, max_rho_per_study={"epsilon": "0.5", "delta": "1e-9"})
    check(settings, make_study(epsilon="0.5", delta="1e-9"))
    check(settings, make_study(epsilon="0.5", delta="1e-10"))
    assert refusal(settings, make_study(epsilon="0.6", delta="1e-9")) == (
        "the study costs rho 0.005615 (epsilon 0.6 at delta 1e-9); `max_rho_per_study` allows rho 0.003953 (epsilon "
        "0.5 at delta 1e-9). Ask for less, or raise `max_rho_per_study` if your policy allows it."
    )
    assert "max_rho_per_study" in refusal(settings, make_study(epsilon="0.50001", delta="1e-9"))
    assert "max_rho_per_study" in refusal(settings, make_study(epsilon="0.5", delta="1e-8"))


@pytest.mark.parametrize("key", ["max_rho_total", "max_rho_per_study"])
def test_3_a_delta_of_the_policy_is_small_for_the_partys_own_rows(tmp_path: Path, key: str) -> None:
    """It has 400 of 1,500 rows, and its own are what it answers for."""
    study = make_study(epsilon="0.3", delta="1e-9", rows=(400, 500, 600))
    check(make_settings(tmp_path, **RHO | {key: {"epsilon": "1", "delta": "0.00025"}}), study)
    large = make_settings(tmp_path, **RHO | {key: {"epsilon": "1", "delta": "0.000251"}})
    assert refusal(large, study) == (
        f"this party's `{key}` does not fit its table: delta 0.000251 is too large for 400 rows, because somebody's "
        "row could be published outright with such a delta. Write 1e-9, or at most 0.0002."
    )
    check(large, make_study(epsilon="0.3"))


@pytest.mark.parametrize(
    "policy", [{"methods": []}, {"columns": []}, {"unit": "age"}, {"min_parties": 9}, {"max_epsilon_per_study": "0"}]
)
def test_every_refusal_has_a_hint(tmp_path: Path, policy: dict[str, Any]) -> None:
    with pytest.raises(SynodError) as caught:
        check(make_settings(tmp_path, **policy), make_study())
    assert caught.value.hint


def test_3_each_kind_has_its_own_cap_for_one_study(tmp_path: Path) -> None:
    """The epsilon of a study with delta is not a pure one, and rho never allows pure epsilon."""
    pair = {"epsilon": "1", "delta": "1e-9"}
    little = make_settings(tmp_path, **RHO, max_epsilon_per_study="0", max_rho_per_study=pair)
    check(little, make_study(delta="1e-9"))
    assert "max_epsilon_per_study" in refusal(little, make_study(epsilon="0.001"))


def test_3_a_larger_delta_than_the_policys_is_no_reason_to_refuse(tmp_path: Path) -> None:
    """Rho is what adds up: the total holds at the policy's delta, whatever delta a study's rho came from."""
    check(make_settings(tmp_path, **RHO), make_study(epsilon="0.5", delta="1e-5"))


LEAST: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ({"min_collusion": 2}, {"collusion": 2}, {"collusion": 1}),
    ({}, {"collusion": 1}, {"collusion": 0}),
    ({"min_parties": 3}, {}, {"names": ("north", "harbour"), "rows": (40, 50)}),
    ({"min_key_bits": 3072}, {"key_bits": 3072}, {"key_bits": 3064}),
]


@pytest.mark.parametrize(("policy", "enough", "too_little"), LEAST)
def test_4_numbers_that_must_be_high_enough(
    tmp_path: Path, policy: dict[str, Any], enough: dict[str, Any], too_little: dict[str, Any]
) -> None:
    settings = make_settings(tmp_path, **policy)
    check(settings, make_study(**enough))
    refusal(settings, make_study(**too_little))


def test_4_no_collusion_threshold_needs_leave(tmp_path: Path) -> None:
    check(make_settings(tmp_path, min_collusion=0), make_study(collusion=0))


def test_4_the_default_key_size_is_3072(tmp_path: Path) -> None:
    values = make_settings(tmp_path).model_dump(exclude={"min_key_bits"}, exclude_unset=True)
    settings = PartySettings.model_validate(values)
    assert "min_key_bits" in refusal(settings, make_study())
    check(settings, make_study(key_bits=3072))


def test_5_only_allowed_columns(tmp_path: Path) -> None:
    names = [attribute["name"] for attribute in SCHEMA]
    check(make_settings(tmp_path, columns=[*names, "more"]), make_study())
    assert "the column ward" in refusal(make_settings(tmp_path, columns=names[:-1]), make_study())


def test_5_the_unit_of_privacy_is_never_asked_for(tmp_path: Path) -> None:
    assert "unit of privacy" in refusal(make_settings(tmp_path, unit="age"), make_study())
    check(make_settings(tmp_path, unit="id"), make_study())


def test_5_persons_with_several_rows_need_a_column_that_tells_them_apart(tmp_path: Path) -> None:
    study = make_study(max_rows_per_unit=3)
    assert "does not say which column tells persons apart" in refusal(make_settings(tmp_path), study)
    check(make_settings(tmp_path, unit="id"), study)


def test_6_answers_of_its_own_need_leave(tmp_path: Path) -> None:
    for method, is_local in (
        ("dp-subn", True),
        ("independent", True),
        ("privbayes", True),
        ("hpprivbayes", True),
        ("dp-ccbn", False),
        ("hpdp-dp", False),
    ):
        study = make_study(method={"name": method}, schema=BITS, rows=(4000, 500, 600))
        check(make_settings(tmp_path, allow_local_queries=True), study)
        if is_local:
            assert f"the method {method} asks this party for answers of its own" in refusal(
                make_settings(tmp_path), study
            )
        else:
            check(make_settings(tmp_path), study)


def test_6_a_pooled_structure_needs_no_leave(tmp_path: Path) -> None:
    method = {"name": "privbayes", "structure": "pooled"}
    check(make_settings(tmp_path), make_study(method=method, schema=BITS, rows=(4000, 500, 600)))


def test_6_tables_of_its_own_alone_need_leave_too(tmp_path: Path) -> None:
    """So few rows that no parents are chosen: tables are all that the party is asked for."""
    study = make_study(method={"name": "independent"})
    assert {step.kind for step in plan_study(study).steps_of("north")} == {QueryKind.LOCAL_MARGINALS}
    check(make_settings(tmp_path, allow_local_queries=True), study)
    assert "asks this party for answers of its own" in refusal(make_settings(tmp_path), study)


def test_7_no_query_with_more_cells_than_allowed(tmp_path: Path) -> None:
    study = make_study()
    cells = SumMoments().terms(plan_study(study).step("moments"), study).length
    check(make_settings(tmp_path, max_cells=cells), study)
    assert f"the step moments may ask for {cells} numbers" in refusal(
        make_settings(tmp_path, max_cells=cells - 1), study
    )


@pytest.mark.parametrize("method", ["dp-subn", "dp-ccbn", "independent"])
def test_7_the_largest_query_of_every_own_step_is_within_the_allowed_cells(tmp_path: Path, method: str) -> None:
    """What a step may ask at most is known at approval, for every method, before any query is."""
    study = make_study(method={"name": method}, schema=BITS, rows=(4000, 500, 600))
    largest = max(step.limit.numbers for step in plan_study(study).steps_of("north"))
    settings = make_settings(tmp_path, allow_local_queries=True, max_cells=largest)
    check(settings, study)
    said = refusal(settings.model_copy(update={"max_cells": largest - 1}), study)
    assert f"may ask for {largest} numbers; `max_cells` is {largest - 1}" in said


def test_7_steps_of_others_are_theirs_to_allow(tmp_path: Path) -> None:
    study = make_study(method={"name": "independent"}, schema=BITS, rows=(400, 40_000, 600))
    own, other = (max(s.limit.numbers for s in plan_study(study).steps_of(name)) for name in ("north", "harbour"))
    assert own < other
    check(make_settings(tmp_path, allow_local_queries=True, max_cells=own), study)


def test_7_a_dp_ccbn_study_that_asks_for_too_much_is_refused_at_approval(tmp_path: Path) -> None:
    """Not after everybody has enrolled."""
    method = {"name": "dp-ccbn", "theta": "0.001"}
    wide = make_study(method=method, schema=[binary(f"x{i}") for i in range(30)], rows=(40_000, 50_000, 60_000))
    assert "DP-CCBN would ask for more than 200,000 numbers in one iteration" in refusal(make_settings(tmp_path), wide)
    check(make_settings(tmp_path), make_study(method=method, schema=BITS, rows=(40_000, 50_000, 60_000)))


def test_7_a_study_without_room_for_its_noise_is_refused_at_approval(tmp_path: Path) -> None:
    with pytest.raises(SynodError, match="too little of the study's epsilon for its sensitivity") as caught:
        check(make_settings(tmp_path), make_study(epsilon="0.000001"))
    assert caught.value.code is Code.INVALID
