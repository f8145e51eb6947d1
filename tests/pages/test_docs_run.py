"""The blocks of the pages in docs/, run where its reader sits: beside real daemons and files."""

import json
import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest
import yaml

from synod.common.crypto.identity import Identity
from synod.common.protocol.manifest import verify_release
from synod.common.study.study import Study, parse_study
from synod.deploy.enrolment.kit import read_kit
from synod.deploy.launch.processes import await_curator
from synod.deploy.launch.site import write_yaml
from synod.deploy.study.numbers import NOTE
from synod.party.account import ApprovalState
from synod.v1 import study_pb2 as pb
from tests.support.daemons import Site, make_site, run_synod
from tests.support.pages import ROOT, Blocks, runs
from tests.support.shell import run, run_until, started

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

TLS = {"ca": "ca.pem", "certificate": "pem", "key": "key"}
OWN: dict[str, dict[str, Any]] = {
    "curator": {"listen": "127.0.0.1:0", "state": "state"},
    "operator": {"address": "127.0.0.1:1"},
}
TABLES = {"north.csv": 211, "harbour.csv": 157, "valley.parquet": 131}
STUDY: dict[str, Any] = {
    "name": "care-survey",
    "method": {"name": "hpdp-dp"},
    "epsilon": "0.8",
    "key_bits": 2048,
    "schema": [
        {"name": "sex", "type": "categorical", "categories": ["F", "M"]},
        {"name": "age", "type": "integer", "min": 0, "max": 99, "bins": 10},
        {"name": "diabetes", "type": "categorical", "categories": ["no", "yes"]},
        {"name": "ward", "type": "categorical", "categories": ["acute", "icu", "rehab"]},
    ],
}


def draw_table(count: int) -> pyarrow.Table:
    rng = random.Random(count)
    ages = [rng.randrange(100) for _ in range(count)]
    columns = {
        "sex": [rng.choice("FM") for _ in ages],
        "age": ages,
        "diabetes": ["yes" if rng.random() < age / 120 else "no" for age in ages],
        "ward": [rng.choice(["acute", "icu", "rehab"]) for _ in ages],
    }
    return pyarrow.table(columns)


def write_tables(folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in TABLES.items():
        write = pyarrow.csv.write_csv if name.endswith(".csv") else pyarrow.parquet.write_table
        write(draw_table(count), folder / name)
    return [folder / name for name in TABLES]


def write_study(folder: Path, content: dict[str, Any]) -> Path:
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A site with the pages' study: the curator's operator sits in its folder, a party's in the party's."""
    site = make_site(tmp_path, parse_study(STUDY, "the pages' study"), write_tables(tmp_path / "tables"))
    try:
        yield site
    finally:
        site.stop_all()


# The curator's operator


@runs(
    "docs/curator-operator.md",
    *("Set up (1)", "Set up (2)", "Set up (3)", "Set up (4)", "Set up (5)"),
    *("Write a study (1)", "Write a study (2)", "Run it (1)", "Run it (2)"),
)
def test_the_curators_operator_brings_a_study_to_its_release(blocks: Blocks, site: Site, tmp_path: Path) -> None:
    trusted = tmp_path / "trusted"
    trusted.mkdir()
    run(blocks.script("Set up (1)"), trusted)
    for name in ("curator", "operator"):
        write_yaml(trusted / f"{name}.yaml", {**OWN[name], "tls": {key: f"{name}.{end}" for key, end in TLS.items()}})
    told = run(blocks.script("Set up (2)"), trusted) + run(blocks.script("Set up (3)"), trusted, typed="y\ny\n")
    assert "Sign for the operator operator?" in told
    assert {"ca.key", "revoked.pem", "curator.pem", "operator.pem"} <= names_in(trusted / "authority")
    assert {"curator.key", "operator.key"} <= names_in(trusted), "keys stay where they were made"

    here = site.paths.folder
    fingerprint = run(blocks.script("Set up (4)"), here).splitlines()[-1]
    assert read_kit(here / "hospital.kit").curator == fingerprint
    assert {site.settings(name).curator for name in ("north", "harbour", "valley")} == {fingerprint}
    with started(blocks.script("Set up (5)"), here) as curator:
        await_curator(site.paths, curator)
        assert f"Hash: {site.study.digest().hex()}" in run(blocks.script("Write a study (1)"), here)
        shutil.copy(tmp_path / "tables" / "north.csv", here / "patients.csv")
        assert NOTE in run(blocks.script("Write a study (2)"), here)
        assert '"state": "enrolling"' in run(blocks.script("Run it (1)"), here)
        site.start_parties()
        site.await_state(pb.STUDY_STATE_PUBLISHED)
        run(blocks.script("Run it (2)"), here)
        assert json.loads((here / "release" / "manifest.json").read_bytes())["study"]["name"] == "care-survey"


@runs("docs/curator-operator.md", "Run it (3)")
def test_the_curators_operator_ends_a_study(blocks: Blocks, site: Site) -> None:
    site.start_curator()
    site.submit()
    run(blocks.script("Run it (3)"), site.paths.folder)
    assert site.status().state == pb.STUDY_STATE_ABORTED


@runs("docs/curator-operator.md", "One operator for all")
def test_one_operator_for_all(blocks: Blocks, tmp_path: Path) -> None:
    here = tmp_path / "here"
    write_tables(here)
    write_study(here, STUDY)
    run(blocks.script("One operator for all"), here, seconds=300)
    verify_release(here / "release", None)
    assert (here / "launch-state" / "operator.yaml").exists()


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# A party's operator


@runs(
    "docs/party-operator.md",
    *("Set up by hand (1)", "Set up by hand (2)", "Set up by hand (3)", "Set up by hand (4)"),
    *("Approve a study (1)", "Approve a study (2)"),
    "Run the daemon",
    "See what was spent",
    "Take an approval back",
    "Rename a dataset",
)
def test_a_partys_operator_from_the_first_day_to_a_revocation(blocks: Blocks, site: Site) -> None:
    site.start_curator()
    here = site.config("north").parent
    site.change(site.config("north"), approve="ask", dataset="north-stays")
    shutil.rmtree(here / "state")

    tls = {"ca": "../certs/ca.pem", "certificate": "north.pem", "key": "north.key"}
    site.change(site.config("north"), tls=tls)
    assert "which stays here" in run(blocks.script("Set up by hand (1)"), here)
    assert run_synod("certs", "sign", site.paths.certs, here / "north.csr", "--yes").returncode == 0
    shutil.copy(site.paths.certs / "north.pem", here)
    assert "north is ready." in run(blocks.script("Set up by hand (2)"), here)
    fingerprint = run(blocks.script("Set up by hand (3)"), here).strip()
    assert "FAIL" not in run(blocks.script("Set up by hand (4)"), here)

    study = with_key(site, "north", fingerprint)
    site.submit(study)
    run_until(blocks.script("Run the daemon"), here, lambda told: "waits for approval here" in told)
    listed = run(blocks.script("Approve a study (1)"), here)
    assert "care-survey: waits for your decision" in listed
    assert f"synod party approve care-survey --hash {study.digest().hex()[:16]}" in listed
    approved = run(blocks.script("Approve a study (2)"), here, typed="y\n")
    assert "Nothing was reserved." in approved
    assert "Approved: epsilon 0.8 is reserved for care-survey." in approved
    run_until(blocks.script("Run the daemon"), here, lambda told: '"enrolled"' in told)

    assert "spent epsilon 0, held epsilon 0.8" in run(blocks.script("See what was spent"), here)
    assert json.loads((here / "ledger.json").read_text())["signature"]
    assert "Revoked care-survey; spent on it: epsilon 0." in run(blocks.script("Take an approval back"), here)
    assert site.account("north").approvals[study.digest().hex()].state is ApprovalState.REVOKED
    assert "north-stays is north-visits now" in run(blocks.script("Rename a dataset"), here)


def with_key(site: Site, party: str, fingerprint: str) -> Study:
    """The site's study, with a party's new key in its roster."""
    roster = [
        {"name": entry.name, "key": fingerprint if entry.name == party else entry.key, "rows": entry.rows}
        for entry in site.study.roster
    ]
    return site.another_study(site.study.name, roster=roster)


@runs("docs/party-operator.md", "Join with a kit (1)", "Join with a kit (2)")
def test_a_party_joins_with_a_kit(blocks: Blocks, site: Site, tmp_path: Path) -> None:
    site.start_curator()
    here = tmp_path / "here"
    write_tables(here)
    (here / "north.csv").rename(here / "stays.csv")
    given = ("--config", site.paths.curator_config, "--address", site.settings("north").address)
    made = run_synod("curator", "kit", *given, "--out", here / "hospital.kit")
    assert made.returncode == 0, made.stderr
    typed = "".join(f"{line}\n" for line in ("y", "harbour", "harbour.csv", "", "", "", ""))
    assert "Made " in run(blocks.script("Join with a kit (1)"), here, typed=typed)
    fingerprint = site.settings("north").curator
    run(blocks.script("Join with a kit (2)"), here, {"FINGERPRINT": fingerprint})
    for name in ("harbour", "north"):
        assert run_synod("certs", "sign", site.paths.certs, here / name / f"{name}.csr", "--yes").returncode == 0
        shutil.copy(site.paths.certs / f"{name}.pem", here / name)
        examined = run_synod("party", "doctor", "--config", here / name / "party.yaml")
        assert examined.returncode == 0, examined.stdout
        assert "FAIL" not in examined.stdout
        assert "WARN" not in examined.stdout


# An analyst


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an analyst may have: a release, fingerprints by phone, the study, and for a comparison real tables."""
    desk = tmp_path_factory.mktemp("analyst") / "desk"
    tables = write_tables(desk / "tables")
    shutil.copy(desk / "tables" / "north.csv", desk / "patients.csv")
    study = write_study(desk, STUDY)
    data = [part for table in tables for part in ("--data", table)]
    ran = run_synod("launch", study, *data, "--out", desk / "release", "--state", desk.parent / "state")
    assert ran.returncode == 0, ran.stderr
    state = desk.parent / "state"
    identities = {path.relative_to(state).parts[0]: Identity.load(path) for path in state.rglob("identity.pem")}
    lines = [f"{name} {identity.fingerprint}\n" for name, identity in identities.items()]
    (desk / "trusted.txt").write_text("".join(lines))
    return desk


@runs("docs/party-operator.md", "Back up", "When the machine is lost")
def test_a_party_comes_back_from_its_backup(blocks: Blocks, site: Site) -> None:
    site.start_curator()
    here = site.config("north").parent
    assert "Nothing was restored." in run(blocks.script("Back up"), here)
    shutil.rmtree(here / "state")
    told = run(blocks.script("When the machine is lost"), here)
    assert "Restored. The old machine must never serve again." in told
    assert "FAIL" not in told


@runs("docs/analyst.md", "Check it first")
def test_an_analyst_checks_a_release(blocks: Blocks, desk: Path) -> None:
    told = run(blocks.script("Check it first"), desk)
    assert "NOT proven: who signed it" in told
    assert "and every signer is the one that you named." in told


@runs("docs/analyst.md", "What is in it")
def test_an_analyst_reads_a_release(blocks: Blocks, desk: Path) -> None:
    pytest.importorskip("pandas")
    told = run_python(f"{blocks.script('What is in it')}\nprint(table.shape)", desk)
    assert told == f"({sum(TABLES.values())}, 4)\n"


@runs("docs/analyst.md", "The noisy numbers themselves")
def test_an_analyst_reads_the_noisy_numbers(blocks: Blocks, desk: Path) -> None:
    pytest.importorskip("pandas")
    told = run_python(f"{blocks.script('The noisy numbers themselves')}\nprint(*answers, len(answers) > 10)", desk)
    assert told == "round party table of cell value deviation True\n"


@runs("docs/python.md", "Releases in Python", "Rows under conditions", "Try a method before anybody spends")
def test_an_analyst_works_in_python(blocks: Blocks, desk: Path) -> None:
    pytest.importorskip("pandas")
    told = run_python(blocks.script("Releases in Python"), desk)
    assert "released" in told
    assert "deviation" in told
    rows = run_python(f"{blocks.script('Rows under conditions')}\nprint(release)", desk)
    assert rows.startswith("<Release care-survey: 499 rows")
    told = run_python(blocks.script("Try a method before anybody spends"), desk)
    assert "NOT PRIVATE" in told
    assert 0 <= float(told.splitlines()[-1]) <= 1


@runs("docs/evaluation.md", "How near a synthetic table comes to the real one")
def test_an_analyst_compares_a_release(blocks: Blocks, desk: Path) -> None:
    script = blocks.script("How near a synthetic table comes to the real one")
    told = run(script, desk, seconds=300)
    assert '"tvd2"' in told
    assert "ward" in told
    assert (desk / "evaluation.png").read_bytes().startswith(b"\x89PNG")


@runs("docs/utility.md", "A table of your own")
def test_a_method_is_measured_on_a_table(blocks: Blocks, desk: Path) -> None:
    shutil.copy(desk / "patients.csv", desk / "table.csv")
    told = run(blocks.script("A table of your own"), desk, {"PYTHONPATH": str(ROOT)}, seconds=300)
    assert json.loads(told.splitlines()[-1])["runs"] == 10


@runs("docs/demo-table.md", "The demo's table")
def test_the_demos_tables_are_written(blocks: Blocks, tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    run_python(blocks.script("The demo's table"), here)
    assert names_in(here / "hospitals") == set(TABLES)


def run_python(script: str, folder: Path) -> str:
    (folder / "block.py").write_text(script)
    return run(f"{sys.executable} block.py", folder)
