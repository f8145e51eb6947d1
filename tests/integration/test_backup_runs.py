"""A party's machine is lost with its disk in the middle of a study, and comes back from a backup in another folder: it
goes on, or is refused with the reason. There are never two answers, and no charge is made twice.
"""

import json
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from synod.deploy.launch.site import SitePaths
from synod.party.ledger import Ledger, StoredAnswer
from synod.v1 import study_pb2 as spb
from tests.support.daemons import CRASH_ENTRY, Site, check_charges, make_site, run_synod, until

LOST, LATE = "harbour", "valley"
LABELS = ("moments", "rows")
NEVER_SENT = "synod.party.client.CuratorClient.submit:before:1"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A study for which the party that will be lost has enrolled; nobody else is there yet."""
    site = make_site(tmp_path)
    try:
        site.start_curator()
        site.submit()
        site.start_party(LOST)
        site.await_event(LOST, "enrolled")
        yield site
    finally:
        for started in site.processes.values():
            started.process.send_signal(signal.SIGCONT)
        site.stop_all()


def back_up(site: Site, file: Path) -> Path:
    ran = run_synod("party", "backup", file, "--config", site.config(LOST))
    assert ran.returncode == 0, ran.stderr
    return file


def stay_in_the_first_round(site: Site) -> None:
    """The others come, and one of them dies before its answer leaves: the round stays open."""
    site.start_party("north")
    late = site.start_party(LATE, program=(CRASH_ENTRY, NEVER_SENT))
    late.process.wait(90)


def other_machine(site: Site) -> Path:
    """A configuration in another folder, with certificates and no state."""
    folder = site.config(LOST).parent.with_name("elsewhere")
    folder.mkdir()
    return Path(shutil.copy(site.config(LOST), folder))


def lose(site: Site) -> None:
    """The machine and its disk."""
    site.kill(LOST)
    shutil.rmtree(site.config(LOST).parent)


def move(site: Site, config: Path) -> None:
    """From now on the party is the one of this configuration."""
    members = [replace(member, config=config) if member.name == LOST else member for member in site.paths.members]
    site.paths = SitePaths(site.paths.folder, tuple(members))


def answers(config: Path, site: Site) -> dict[str, StoredAnswer]:
    ledger = Ledger.open(config.parent / "state")
    try:
        found = {label: ledger.answer(site.study.digest(), label) for label in LABELS}
        charged = [entry["label"] for entry in ledger.entries() if entry["kind"] == "charged"]
    finally:
        ledger.close()
    assert len(charged) == len(set(charged))
    return {label: answer for label, answer in found.items() if answer is not None}


def hashes_at_the_curator(site: Site) -> dict[str, str]:
    """What the curator took from the party, by round."""
    with closing(sqlite3.connect(site.paths.folder / "curator" / "store.sqlite")) as store:
        rows = store.execute("SELECT label, header FROM submissions WHERE party = ?", (LOST,)).fetchall()
    assert len(rows) == len({label for label, _ in rows})
    return {label: json.loads(header)["digest"] for label, header in rows}


def test_a_lost_machine_goes_on_from_a_backup_and_is_refused_from_an_older_one(site: Site, tmp_path: Path) -> None:
    old = back_up(site, tmp_path / "old.backup")
    stay_in_the_first_round(site)
    site.await_event(LOST, "answered")
    sent = answers(site.config(LOST), site)
    new = back_up(site, tmp_path / "new.backup")
    config = other_machine(site)
    lose(site)

    # The older one has forgotten a charge.
    for options in (["--check"], []):
        ran = run_synod("party", "restore", old, "--config", config, *options)
        assert ran.returncode == 3, ran.stdout
        assert (
            "the backup is older than what the curator has seen of this ledger: it ends at entry 2, and" in ran.stderr
        )
        assert not (config.parent / "state").exists()
    assert run_synod("party", "restore", old, "--config", config, "--offline").returncode == 0
    ran = run_synod("party", "serve", "--config", config)
    assert ran.returncode == 3
    assert "this ledger is behind, or beside, what the curator has seen of it" in ran.stderr
    assert answers(config, site) == {}
    ran = run_synod("party", "restore", new, "--config", config)
    assert ran.returncode == 2
    assert "there is a ledger at" in ran.stderr
    shutil.rmtree(config.parent / "state")

    # The newer one knows all of it.
    ran = run_synod("party", "restore", new, "--config", config, "--check")
    assert ran.returncode == 0, ran.stderr
    assert "survey is open, with 1 rounds answered; its snapshot is the table that was approved" in ran.stdout
    assert not (config.parent / "state").exists()
    ran = run_synod("party", "restore", new, "--config", config)
    assert ran.returncode == 0, ran.stderr
    move(site, config)
    site.start_party(LOST)
    site.start_party(LATE)
    site.await_state(spb.STUDY_STATE_PUBLISHED)
    site.await_closed()
    check_charges(site)
    after = answers(config, site)
    assert after["moments"].header == sent["moments"].header, "which has the hash of the answer"
    assert hashes_at_the_curator(site) == {label: answer.header["digest"] for label, answer in after.items()}

    # What was published is a witness, too, also where the curator is not asked.
    release = site.release_folder()
    shutil.rmtree(config.parent / "state")
    ran = run_synod("party", "restore", new, "--config", config, "--offline", "--check", "--release", release)
    assert ran.returncode == 3
    assert "does not agree with the backup: what the release says of round rows" in ran.stderr


def test_an_old_machine_that_is_still_there_ends_and_the_study_goes_on(site: Site, tmp_path: Path) -> None:
    """The restored one answers first; the old one, which slept, charges nothing anew and does not end the study."""
    file = back_up(site, tmp_path / "party.backup")
    config = other_machine(site)
    old = site.processes[LOST].process
    old.send_signal(signal.SIGSTOP)
    ran = run_synod("party", "restore", file, "--config", config)
    assert ran.returncode == 0, ran.stderr
    restored = site.start_clone("elsewhere", config).process
    site.await_event("elsewhere", "connected")
    stay_in_the_first_round(site)
    site.await_event("elsewhere", "answered")

    restored.send_signal(signal.SIGSTOP)
    site.start_party(LATE)
    old.send_signal(signal.SIGCONT)
    assert old.wait(90) == 3
    assert "this ledger is behind, or beside, what the curator has seen of it" in site.log(LOST)[-1]["why"]
    assert answers(site.config(LOST), site) == {}

    restored.send_signal(signal.SIGCONT)
    site.await_state(spb.STUDY_STATE_PUBLISHED)
    move(site, config)
    site.await_closed()
    check_charges(site)


def test_both_at_once_never_send_other_bytes(site: Site, tmp_path: Path) -> None:
    file = back_up(site, tmp_path / "party.backup")
    config = other_machine(site)
    assert run_synod("party", "restore", file, "--config", config).returncode == 0
    site.start_clone("elsewhere", config)
    site.await_event("elsewhere", "connected")
    site.start_parties("north", LATE)
    ends = (spb.STUDY_STATE_PUBLISHED, spb.STUDY_STATE_ABORTED)
    ended = until("the study ends", lambda: (status := site.status()).state in ends and status)
    assert ended.state == spb.STUDY_STATE_PUBLISHED, ended.reason
    own, copied = answers(site.config(LOST), site), answers(config, site)
    assert set(own) | set(copied) == set(LABELS)
    for label in LABELS:
        digests = {answer[label].header["digest"] for answer in (own, copied) if label in answer}
        assert digests == {hashes_at_the_curator(site)[label]}
