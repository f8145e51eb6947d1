"""Every claim is judged by its figures: it holds where it is true, fails where it is false, and is open without any."""

import pytest

from bench.reproduction.claims.catalog import DP_SUBN, HPDP_DP, PAPERS, Claim
from bench.reproduction.claims.dp_subn import judge_orders
from bench.reproduction.claims.verdicts import Verdict
from tests.support.figures import make_nothing, make_world

MEASURED = [c for c in (*DP_SUBN, *HPDP_DP) if c.judge(make_world(is_true=True)).verdict is Verdict.HOLDS]


def name_of(claim: Claim) -> str:
    return claim.text


def test_all_claims_but_those_of_other_methods_and_of_proofs_are_measured() -> None:
    others = [claim for claim in (*DP_SUBN, *HPDP_DP) if claim not in MEASURED]
    assert len(MEASURED) == 25
    assert all("DistDiffGen" in claim.text or "differentially private" in claim.text for claim in others)


@pytest.mark.parametrize("claim", MEASURED, ids=name_of)
def test_a_false_claim_is_listed_as_failing(claim: Claim) -> None:
    assert claim.judge(make_world(is_true=False)).verdict is Verdict.FAILS


@pytest.mark.parametrize("claim", MEASURED, ids=name_of)
def test_without_figures_a_claim_is_not_measured(claim: Claim) -> None:
    assert claim.judge(make_nothing()).verdict is Verdict.UNKNOWN


def test_orders_of_magnitude() -> None:
    assert judge_orders([100, 5_000]) is Verdict.HOLDS
    assert judge_orders([99, 5_000]) is Verdict.IN_PART
    assert judge_orders([1, 10]) is Verdict.IN_PART
    assert judge_orders([1, 9]) is Verdict.FAILS


def test_methods_that_are_not_here_say_so() -> None:
    for paper in ("PrivBayes", "HPPrivBayes", "DPCocGen"):
        (claims,) = [claims for name, claims in PAPERS.items() if name.startswith(f"{paper} ")]
        judged = [claim.judge(make_world(is_true=True)) for claim in claims]
        assert {judgement.verdict for judgement in judged} == {Verdict.UNKNOWN}
        assert all("not in this version" in judgement.measurement for judgement in judged)
