"""HPPrivBayes with a curator and parties as processes of their own: ledgers equal the plan, and the manifest states the
noise of every group and weight.
"""

import json
from pathlib import Path

from synod.common.protocol.manifest import verify_release
from synod.common.protocol.plan import plan_study
from synod.v1 import study_pb2 as pb
from tests.support.daemons import MakeSite, check_charges, run_synod
from tests.support.studies import NAMES
from tests.support.surveys import draft_survey


def test_a_study_is_published_each_ledger_equals_its_plan_and_the_manifest_states_every_scale(
    sites: MakeSite, tmp_path: Path
) -> None:
    keys = {"sensitive": ["sex"], "order": "schema", "weights": "rare", "degree": 1}
    site = sites(draft_survey(epsilon="10", method={"name": "hpprivbayes", **keys}))
    plan = plan_study(site.study)
    assert [step.label for step in plan.steps] == ["reading", *(f"structure-{name}" for name in NAMES), "parameters"]
    site.start_curator()
    site.submit()
    site.start_parties()
    site.await_state(pb.STUDY_STATE_PUBLISHED)
    site.await_closed()

    check_charges(site)
    for name in NAMES:
        assert site.account(name).spent(name) == plan.cost_of(name) == site.study.budget

    out = tmp_path / "release"
    fetched = run_synod("study", "fetch", site.study.name, "--out", out, "--config", site.paths.operator_config)
    assert fetched.returncode == 0, fetched.stderr
    verified = run_synod("verify", out)
    assert verified.returncode == 0, verified.stderr
    assert set(verify_release(out, None).signers) == {"curator", *NAMES}
    manifest = json.loads((out / "manifest.json").read_text())
    model = json.loads((out / "model.json").read_text())["model"]
    assert manifest["queries"]["parameters"] == model["parameters"]
    assert all(manifest["queries"][f"structure-{name}"]["ordered"] for name in NAMES)
    (law,) = [law for law in manifest["noise"] if law["label"] == "parameters"]
    scales = {own["scale"] for run in law["runs"] for own in run.get("runs", [run])}
    assert len(scales) > 2
    assert "What a row with a value loses at most" in (out / "report.html").read_text()
