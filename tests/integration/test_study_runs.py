"""Studies from submission to their end, with a curator and parties as processes of their own."""

import json
import subprocess
import sys
import time
from pathlib import Path

from synod.common.privacy.cost import FREE, Cost
from synod.common.protocol.manifest import verify_release
from synod.common.protocol.plan import plan_study
from synod.deploy.launch.processes import PROGRAM
from synod.party.account import ApprovalState
from synod.v1 import study_pb2 as pb
from tests.support.daemons import CRASH_ENTRY, Site, check_charges, read_release, run_synod, until
from tests.support.studies import NAMES
from tests.support.surveys import WARDS


def party_status(status: pb.StudyStatus, name: str) -> pb.PartyStatus:
    return next(party for party in status.parties if party.name == name)


def await_enrolled(site: Site, *names: str) -> pb.StudyStatus:
    def enrolled() -> pb.StudyStatus | None:
        status = site.status()
        return status if all(party_status(status, name).enrolled for name in names) else None

    found = until(f"{names} enrol", enrolled)
    assert isinstance(found, pb.StudyStatus)
    return found


def test_a_study_ends_in_a_verified_release_and_each_charge_is_made_once(site: Site, tmp_path: Path) -> None:
    site.start_curator()
    digest = site.submit()
    site.start_parties()
    status = site.await_state(pb.STUDY_STATE_PUBLISHED)

    pids = {started.process.pid for started in site.processes.values() if started.process.poll() is None}
    assert len(pids) == 4
    assert digest == status.study_hash == site.study.digest()
    assert not any(party.awaited for party in status.parties)

    out = tmp_path / "release"
    fetched = run_synod("study", "fetch", site.study.name, "--out", out, "--config", site.paths.operator_config)
    assert fetched.returncode == 0, fetched.stderr
    assert sorted(read_release(out)) == [
        "answers.parquet",
        "manifest.json",
        "model.json",
        "report.html",
        "synthetic.csv",
        "synthetic.parquet",
    ]
    assert read_release(out) == read_release(site.release_folder())
    verdict = verify_release(out, None)
    assert set(verdict.signers) == {"curator", *NAMES}

    trust = tmp_path / "trust.txt"
    lines = [f"{name} {key}" for name, key in verdict.signers.items()]
    trust.write_text("\n".join(lines))
    assert run_synod("verify", out, "--trust", trust).returncode == 0
    trust.write_text("\n".join(lines[:-1]))
    assert run_synod("verify", out, "--trust", trust).returncode == 5

    check_table(out / "synthetic.csv", site.study.total_rows)

    site.await_closed()
    check_charges(site)
    for name in NAMES:
        shown = json.loads(run_synod("party", "ledger", "--json", "--config", site.config(name)).stdout)
        assert (shown["spent"], shown["held"]) == (str(plan_study(site.study).cost_of(name)), "epsilon:0")

    # Whoever signs off stops at once and leaves nothing behind.
    assert [site.stop(name) for name in (*NAMES, "curator")] == [0, 0, 0, 0]


def check_table(path: Path, rows: int) -> None:
    """As many rows as the roster has, in the original domains."""
    lines = path.read_text().splitlines()
    assert lines[0] == "sex,age,weight,ward,stays"
    assert len(lines) == 1 + rows
    columns = list(zip(*(line.split(",") for line in lines[1:]), strict=True))
    assert set(columns[0]) == {"F", "M"}
    assert {int(age) for age in columns[1]} <= set(range(100))
    assert all(2 <= float(weight) <= 200 for weight in columns[2] if weight)
    assert "" in columns[2]
    assert set(columns[3]) <= set(WARDS)


def test_two_studies_run_side_by_side_and_are_both_paid_for(site: Site) -> None:
    second = site.another_study("second-survey", seed=5)
    for name in NAMES:
        site.change(site.config(name), max_epsilon_total="1.6")
    site.start_curator()
    site.submit()
    site.submit(second)
    site.start_parties()
    site.await_state(pb.STUDY_STATE_PUBLISHED)
    site.await_state(pb.STUDY_STATE_PUBLISHED, second.name)
    for study in (site.study, second):
        site.await_closed(study)
        check_charges(site, study)
        verify_release(site.release_folder(study), None)
    assert [site.account(name).spent(name) for name in NAMES] == [Cost.parse("epsilon:8/5")] * 3
    assert (
        read_release(site.release_folder())["synthetic.csv"]
        != read_release(site.release_folder(second))["synthetic.csv"]
    )


def test_a_second_study_beyond_the_cap_is_refused_at_approval_and_spends_nothing(site: Site) -> None:
    second = site.another_study("second-survey", epsilon="0.01")
    path = site.write_study(second)
    site.change(site.config("valley"), max_epsilon_total="1")
    site.start_curator()
    site.submit()
    site.start_parties("north", "harbour")
    await_enrolled(site, "north", "harbour")
    before = site.ledger_entries("north")

    held = run_synod("party", "approve", path, "--yes", "--config", site.config("north"))
    assert held.returncode == 3
    assert "holds epsilon 0.8 for open studies, of epsilon 0.8 in all" in held.stderr
    assert site.ledger_entries("north") == before

    site.submit(second)
    until("north declines", lambda: party_status(site.status(second.name), "north").not_approved)
    assert site.ledger_entries("north") == before
    assert site.status(second.name).state == pb.STUDY_STATE_ENROLLING
    assert "0.8" not in site.paths.folder.joinpath("curator.log").read_text()

    site.start_parties("valley")
    site.await_state(pb.STUDY_STATE_PUBLISHED)
    site.await_closed()
    check_charges(site)
    spent = run_synod("party", "approve", path, "--yes", "--config", site.config("north"))
    assert spent.returncode == 3
    assert "north has spent epsilon 0.8 and holds epsilon 0 for open studies" in spent.stderr
    assert second.digest().hex() not in site.account("north").approvals


def test_two_approvals_at_the_same_time_cannot_pass_the_cap_together(site: Site) -> None:
    studies = [site.another_study(f"survey-{number}", seed=number) for number in range(4)]
    commands = [
        [sys.executable, *PROGRAM, "party", "approve", str(path), "--yes", "--config", str(site.config("north"))]
        for path in map(site.write_study, studies)
    ]
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for command in commands]
    told = [process.communicate(timeout=60)[1].decode() for process in running]
    assert sorted(process.returncode for process in running) == [0, 3, 3, 3], told
    account = site.account("north")
    assert len(account.approvals) == 1
    assert account.held("north") == Cost.parse("epsilon:4/5")


def test_a_daemon_waits_for_its_operator_who_approves_while_it_runs(site: Site) -> None:
    site.change(site.config("valley"), approve="ask")
    site.start_curator()
    site.submit()
    submitted = time.time()
    site.start_parties()
    await_enrolled(site, "north", "harbour")
    until("valley says that it waits", lambda: party_status(site.status(), "valley").not_approved)

    status = site.status()
    valley = party_status(status, "valley")
    assert status.state == pb.STUDY_STATE_ENROLLING
    assert (valley.awaited, valley.enrolled) == (True, False)
    assert abs(valley.awaited_since - submitted) < 60
    assert valley.last_seen >= valley.awaited_since
    assert not party_status(status, "north").awaited
    told = run_synod("study", "status", "--config", site.paths.operator_config).stdout.splitlines()
    assert told[0] == "survey: enrolling, waits for the approval of valley"
    assert any(line.startswith("  valley: waiting for its approval since 20") and "last seen" in line for line in told)
    assert site.account("valley").approvals == {}

    dry_run = run_synod(
        "party", "approve", site.paths.study_file, "--dry-run", "--config", site.config("valley")
    )  # reserves nothing
    assert (dry_run.returncode, site.account("valley").approvals) == (0, {})
    approved = run_synod("party", "approve", site.paths.study_file, "--yes", "--config", site.config("valley"))
    assert approved.returncode == 0, approved.stderr
    assert site.study.digest().hex() in approved.stdout
    assert all(entry.key in approved.stdout for entry in site.study.roster)
    site.await_state(pb.STUDY_STATE_PUBLISHED)
    site.await_closed()
    check_charges(site)


def test_abort_frees_what_was_reserved_and_not_spent(site: Site) -> None:
    site.start_curator()
    site.submit()
    site.start_parties("north", "harbour")
    await_enrolled(site, "north", "harbour")
    assert site.account("north").held("north") == Cost.parse("epsilon:4/5")

    aborted = run_synod("study", "abort", site.study.name, "--config", site.paths.operator_config)
    assert aborted.returncode == 0, aborted.stderr
    status = site.await_state(pb.STUDY_STATE_ABORTED)
    assert status.reason == "Aborted by operator."
    site.await_closed(parties=["north", "harbour"])
    for name in ("north", "harbour"):
        account = site.account(name)
        assert (account.held(name), account.spent(name)) == (FREE, FREE)
        assert account.approvals[site.study.digest().hex()].state is ApprovalState.ABORTED
        assert not (site.settings(name).state / "snapshots" / site.study.digest().hex()).exists()
    again = run_synod("study", "abort", site.study.name, "--config", site.paths.operator_config)
    assert again.returncode == 1
    assert "has ended already (aborted)" in again.stderr
    fetched = run_synod(
        "study", "fetch", site.study.name, "--out", site.paths.folder / "out", "--config", site.paths.operator_config
    )
    assert fetched.returncode == 1
    assert "is not published" in fetched.stderr


def test_a_party_that_never_comes_back_is_named_and_nobody_pays_for_its_round(site: Site) -> None:
    site.start_curator()
    site.submit()
    site.start_parties("north", "valley")
    await_enrolled(site, "north", "valley")
    site.kill("valley")
    site.start_parties("harbour")

    def waits_for_valley() -> pb.StudyStatus | None:
        status = site.status()
        return status if status.gathering == ["valley"] else None

    status = until("the first sum waits for valley alone", waits_for_valley)
    valley = party_status(status, "valley")
    assert (status.label, status.rounds) == ("", 2)
    assert 0 < valley.last_seen <= valley.awaited_since <= time.time()
    told = run_synod("study", "status", site.study.name, "--config", site.paths.operator_config).stdout
    assert "waits for the call of valley" in told
    assert "valley: waiting for its call, before the next sum is asked, since 20" in told
    assert "north: done for now" in told
    as_json = run_synod("study", "status", "--json", "--config", site.paths.operator_config).stdout
    (described,) = json.loads(as_json)
    assert [party["name"] for party in described["parties"] if party["awaited"]] == ["valley"]

    with site.operator() as client:
        client.abort(site.study.name)
    site.await_closed(parties=["north", "harbour"])
    assert [site.account(name).spent(name) for name in ("north", "harbour")] == [FREE] * 2
    assert site.account("valley").held("valley") == Cost.parse("epsilon:4/5")
    site.start_party("valley")
    site.await_closed(parties=["valley"])
    assert site.account("valley").held("valley") == site.account("valley").spent("valley") == FREE


def test_a_revoked_approval_aborts_the_study(site: Site) -> None:
    site.start_curator()
    site.submit()
    site.start_parties("north", "harbour")
    await_enrolled(site, "north", "harbour")
    revoked = run_synod("party", "revoke", site.study.name, "--config", site.config("north"))
    assert revoked.returncode == 0, revoked.stderr
    site.start_parties("valley")
    status = site.await_state(pb.STUDY_STATE_ABORTED)
    assert status.reason == "north declined: its operator revoked the approval."
    site.await_closed(parties=["harbour", "valley"])
    assert site.account("north").spent("north") == FREE
    assert [line["kind"] for line in site.ledger_entries("north")] == ["opened", "approved", "revoked"]


def test_an_answer_that_was_stored_but_not_sent_stays_home_after_a_revocation(site: Site) -> None:
    """The charge stands, since noise was drawn; but no further answer leaves the party."""
    site.start_curator()
    site.submit()
    site.start_parties("north", "harbour")
    await_enrolled(site, "north", "harbour")
    site.kill("north")
    dying = site.start_party("north", program=(CRASH_ENTRY, "synod.party.ledger.Ledger.charge:after:1"))
    site.start_parties("valley")
    assert dying.process.wait(60) == -9
    assert site.account("north").spent("north") == Cost.parse("epsilon:4/5")

    revoked = run_synod("party", "revoke", site.study.name, "--config", site.config("north"))
    assert revoked.returncode == 0, revoked.stderr
    site.start_party("north")
    status = site.await_state(pb.STUDY_STATE_ABORTED)
    assert status.reason == "north declined: its operator revoked the approval."
    assert "answered" not in site.events("north")


def test_a_party_whose_own_check_fails_gets_its_reservation_back_when_the_study_is_aborted(site: Site) -> None:
    """Its daemon declines, the study ends, and the ledger learns of it without a restart."""
    site.start_curator()
    site.submit()
    site.start_parties("north", "harbour")
    await_enrolled(site, "north", "harbour")
    site.stop("north")
    site.start_party("north", program=(CRASH_ENTRY, "refuse:synod.party.rounds.next_step"))
    site.start_parties("valley")
    status = site.await_state(pb.STUDY_STATE_ABORTED)
    assert status.reason.startswith("north declined: a check on its side failed")
    site.await_closed()
    assert site.account("north").held("north") == site.account("north").spent("north") == FREE
