"""Each numbered check of the policy refuses on its own, and what it allows passes."""

from pathlib import Path
from typing import Any

import pytest

from synod.common.privacy.cost import Cost
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries import sum_terms
from synod.common.protocol.queries.moments import SumMoments
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.settings import PartySettings
from synod.common.study.study import Study
from synod.party.policy import check_policy
from tests.support.keys import identity_of
from tests.support.parties import make_settings
from tests.support.studies import SCHEMA, make_study

OWN_KEY = identity_of("north").fingerprint


def check(settings: PartySettings, study: Study, key: str = OWN_KEY) -> Cost:
    return check_policy(settings, study, own_key=key)


def refusal(settings: PartySettings, study: Study, key: str = OWN_KEY) -> str:
    with pytest.raises(SynodError) as caught:
        check(settings, study, key)
    assert caught.value.code is Code.REFUSED
    return str(caught.value)


def test_an_allowed_study_costs_its_epsilon(tmp_path: Path) -> None:
    assert check(make_settings(tmp_path), make_study(epsilon="0.3")) == Cost.parse("3/10")


def test_1_this_party_is_on_the_roster_under_its_own_key(tmp_path: Path) -> None:
    assert "not on the roster" in refusal(make_settings(tmp_path, name="desert"), make_study())
    stranger = identity_of("harbour").fingerprint
    assert "pins another key" in refusal(make_settings(tmp_path), make_study(), stranger)


def test_2_the_method_is_allowed(tmp_path: Path) -> None:
    assert "hpdp-dp is not among" in refusal(make_settings(tmp_path, methods=["privbayes"]), make_study())
    assert "hpdp-dp is not among" in refusal(make_settings(tmp_path, methods=[]), make_study())
    check(make_settings(tmp_path, methods=["privbayes", "hpdp-dp"]), make_study())


def test_3_epsilon_is_within_the_cap_for_one_study(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, max_epsilon_per_study="0.5")
    check(settings, make_study(epsilon="0.5"))
    assert "max_epsilon_per_study" in refusal(settings, make_study(epsilon="0.500000000001"))


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


def test_7_no_query_with_more_cells_than_allowed(tmp_path: Path) -> None:
    study = make_study()
    cells = sum_terms(SumMoments(), plan_study(study).step("moments"), study).length
    check(make_settings(tmp_path, max_cells=cells), study)
    assert f"asks for {cells} numbers" in refusal(make_settings(tmp_path, max_cells=cells - 1), study)
