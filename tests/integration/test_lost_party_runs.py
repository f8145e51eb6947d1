"""`synod study lose` with a curator and parties as processes: the study goes on without a party that is gone."""

import json
from pathlib import Path

import pytest

from synod.common.privacy.cost import FREE, Cost
from synod.common.protocol.plan import plan_study
from synod.party.account import ApprovalState
from synod.party.approval import snapshot_folder
from synod.v1 import study_pb2 as pb
from tests.support.daemons import CRASH_ENTRY, MakeSite, Site, run_synod, until
from tests.support.studies import NAMES
from tests.support.surveys import draft_survey

pytestmark = pytest.mark.slow

GONE = "harbour"


def lose(site: Site, reason: str = "its server burned down", party: str = GONE) -> tuple[int, str]:
    told = run_synod(
        "study", "lose", site.study.name, party, "--reason", reason, "--config", site.paths.operator_config
    )
    return told.returncode, told.stdout or told.stderr


def test_a_study_goes_on_without_a_party_that_died_in_its_own_step(sites: MakeSite, tmp_path: Path) -> None:
    """Harbour answers the first sum and dies when it is asked for its own tables: they are skipped, and the last sum is
    of the other two. Back again it hears of that, and gets back what it has not spent.
    """
    site = sites(draft_survey(method={"name": "dp-subn"}, may_lose=1, epsilon="20"))
    own = [step.label for step in plan_study(site.study).steps if step.answerers == (GONE,)]
    labels = [step.label for step in plan_study(site.study).steps_of(GONE)]
    assert labels[0] == "correlations"
    assert labels[-1] == "parameters"
    site.start_curator()
    site.submit()
    code, said = lose(site)
    assert (code, "are still enrolling, and nothing is spent" in said) == (1, True)
    site.start_parties("north", "valley")
    dying = site.start_party(GONE, program=(CRASH_ENTRY, "synod.party.daemon.answer_round:before:2"))
    assert dying.process.wait(90) == -9

    status = until("the study waits for harbour alone", lambda: waits_for(site, GONE))
    assert status.label == own[0]
    code, said = lose(site, party="desert")
    assert (code, "desert is not on the roster" in said) == (1, True)
    code, said = lose(site)
    assert (code, said) == (0, "harbour is lost: its own step is skipped, and the study goes on.\n")

    site.await_state(pb.STUDY_STATE_PUBLISHED)
    told = run_synod("study", "status", "--config", site.paths.operator_config).stdout
    assert f"first left out of {own[0]}: its server burned down" in told
    out = tmp_path / "release"
    fetched = run_synod("study", "fetch", site.study.name, "--out", out, "--config", site.paths.operator_config)
    assert fetched.returncode == 0, fetched.stderr
    verified = run_synod("verify", out)
    assert verified.returncode == 0, verified.stderr
    assert f"the study went on without harbour (from {own[0]} on), and nobody else is missing" in verified.stdout
    assert (
        "harbour was lost (its server burned down): it is in the round correlations and not in"
        in (out / "report.html").read_text()
    )
    manifest = json.loads((out / "manifest.json").read_text())
    assert [(loss["party"], loss["since"]) for loss in manifest["losses"]] == [(GONE, own[0])]
    assert manifest["queries"]["parameters"]["present"] == [0, 2]
    assert not set(own) & set(manifest["queries"])

    held = site.account(GONE).held(GONE)
    assert held != FREE
    site.start_party(GONE)
    site.await_closed()
    check_ledgers(site, charged={GONE: labels[:1]})
    compared = run_synod("party", "check-release", out, "--config", site.config(GONE))
    assert compared.returncode == 0, compared.stderr
    assert [site.stop(name) for name in (*NAMES, "curator")] == [0, 0, 0, 0]


def waits_for(site: Site, name: str) -> pb.StudyStatus | None:
    status = site.status()
    return status if [party.name for party in status.parties if party.awaited] == [name] and status.label else None


def check_ledgers(site: Site, charged: dict[str, list[str]]) -> None:
    """Each charge is in each ledger once; who was lost has closed the study as such, and keeps nothing of it."""
    plan = plan_study(site.study)
    for name in NAMES:
        labels = charged.get(name, [step.label for step in plan.steps_of(name)])
        entries = [entry for entry in site.ledger_entries(name) if entry["kind"] == "charged"]
        assert [entry["label"] for entry in entries] == labels
        account = site.account(name)
        state = ApprovalState.LOST if name in charged else ApprovalState.PUBLISHED
        assert account.approvals[site.study.digest().hex()].state is state
        assert account.held(name) == FREE
        assert account.spent(name) == Cost.total(step.cost for step in plan.steps_of(name) if step.label in labels)
        assert not snapshot_folder(site.settings(name), site.study.digest()).exists()
