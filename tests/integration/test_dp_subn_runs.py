"""DP-SUBN with a curator and parties as processes of their own: ledgers equal the plan, and the release verifies."""

import json
from pathlib import Path

import pytest

from synod.common.privacy.cost import FREE
from synod.common.protocol.manifest import verify_release
from synod.common.protocol.plan import plan_study
from synod.common.protocol.steps import QueryKind
from synod.v1 import study_pb2 as pb
from tests.support.daemons import MakeSite, check_charges, read_release, run_synod, until
from tests.support.studies import NAMES
from tests.support.surveys import SCHEMA, WARDS, draft_survey


@pytest.mark.parametrize("update", ["sequential", "joint"])
def test_a_dp_subn_study_is_published_and_each_ledger_equals_its_plan(
    sites: MakeSite, tmp_path: Path, update: str
) -> None:
    site = sites(draft_survey(epsilon="10", method={"name": "dp-subn", "update": update}))
    plan = plan_study(site.study)
    kinds = [step.kind for step in plan.steps]
    assert kinds.count(QueryKind.CHOOSE_PARENTS) == 3
    assert kinds.count(QueryKind.LOCAL_MARGINALS) == (3 if update == "sequential" else 0)
    site.start_curator()
    site.submit()
    site.start_parties()
    site.await_state(pb.STUDY_STATE_PUBLISHED)
    site.await_closed()

    check_charges(site)
    for name in NAMES:
        account = site.account(name)
        assert account.spent(name) == plan.cost_of(name)
        assert account.spent(name).fits_within(site.study.budget)

    out = tmp_path / "release"
    fetched = run_synod("study", "fetch", site.study.name, "--out", out, "--config", site.paths.operator_config)
    assert fetched.returncode == 0, fetched.stderr
    verified = run_synod("verify", out)
    assert verified.returncode == 0, verified.stderr
    assert set(verify_release(out, None).signers) == {"curator", *NAMES}
    manifest = json.loads((out / "manifest.json").read_text())
    asked = {label: query["kind"] for label, query in manifest["queries"].items()}
    assert asked == {step.label: step.kind.value for step in plan.steps}

    lines = (out / "synthetic.csv").read_text().splitlines()
    assert lines[0] == ",".join(attribute["name"] for attribute in SCHEMA)
    assert len(lines) == 1 + site.study.total_rows
    columns = list(zip(*(line.split(",") for line in lines[1:]), strict=True))
    assert set(columns[0]) == {"F", "M"}
    assert {int(age) for age in columns[1]} <= set(range(100))
    assert all(2 <= float(weight) <= 200 for weight in columns[2] if weight)
    assert "" in columns[2]
    assert set(columns[3]) <= set(WARDS)
    assert {int(stays) for stays in columns[4]} <= set(range(6))

    # A single digit of the model changed afterwards is noticed.
    (out / "model.json").write_bytes(read_release(out)["model.json"].replace(b"1", b"2", 1))
    assert run_synod("verify", out).returncode == 5


@pytest.mark.parametrize("method", ["dp-subn", "independent"])
def test_a_party_that_gives_no_answers_of_its_own_refuses_at_approval(sites: MakeSite, method: str) -> None:
    site = sites(draft_survey(epsilon="10", method={"name": method}))
    site.change(site.config("north"), allow_local_queries=False)
    before = site.ledger_entries("north")
    refused = run_synod("party", "approve", site.paths.study_file, "--yes", "--config", site.config("north"))
    assert refused.returncode == 3
    assert f"the method {method} asks this party for answers of its own" in refused.stderr
    assert "allow_local_queries: true" in refused.stderr
    assert site.ledger_entries("north") == before

    allowed = run_synod("party", "approve", site.paths.study_file, "--dry-run", "--config", site.config("harbour"))
    assert allowed.returncode == 0, allowed.stderr


def test_its_daemon_declines_too_and_the_study_waits(sites: MakeSite) -> None:
    site = sites(draft_survey(epsilon="10", method={"name": "dp-subn"}))
    site.change(site.config("north"), allow_local_queries=False)
    site.start_curator()
    site.submit()
    site.start_parties()
    until("north declines", lambda: next(p for p in site.status().parties if p.name == "north").not_approved)
    assert site.status().state == pb.STUDY_STATE_ENROLLING
    assert site.study.digest().hex() not in site.account("north").approvals
    assert [site.account(name).spent(name) for name in NAMES] == [FREE, FREE, FREE]
