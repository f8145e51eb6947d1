"""Identities rotated between two studies on real daemons: each release verifies with the trust file of its time."""

import sqlite3
from contextlib import closing
from pathlib import Path

import yaml

from synod.common.crypto.identity import Identity
from synod.common.protocol.rotation import sign_rotation
from synod.common.study.study import Study
from synod.party.ledger import LEDGER_FILE
from synod.v1 import study_pb2 as pb
from tests.support.daemons import Site, check_charges, run_synod
from tests.support.keys import identity_of
from tests.support.studies import NAMES

ROTATED = "harbour"


def run(*arguments: str | Path, code: int = 0) -> str:
    """Runs a command, and returns all that it says."""
    done = run_synod(*arguments)
    assert done.returncode == code, (arguments, done.stdout, done.stderr)
    return done.stdout + done.stderr


def key_of(site: Site, name: str) -> str:
    """The fingerprint of somebody's key now."""
    state = site.paths.folder / "curator" if name == "curator" else site.settings(name).state
    return Identity.load(state / "identity.pem").fingerprint


def write_trust(site: Site, path: Path) -> Path:
    """A trust file as of now."""
    path.write_text("".join(f"{name} {key_of(site, name)}\n" for name in ("curator", *NAMES)))
    return path


def publish(site: Site, study: Study) -> Path:
    """Runs a study to its end; everything is stopped then."""
    site.start_curator()
    site.submit(study)
    site.start_parties()
    site.await_state(pb.STUDY_STATE_PUBLISHED, study.name)
    site.await_closed(study)
    check_charges(site, study)
    for name in (*NAMES, "curator"):
        assert site.stop(name) == 0
    check_erased(site, study)
    return site.release_folder(study)


def check_erased(site: Site, study: Study) -> None:
    """Nothing is left that noise, masks or sums of the study could be opened with."""
    assert list((site.paths.folder / "curator" / "keys").iterdir()) == []
    for name in NAMES:
        assert not (site.settings(name).state / "snapshots" / study.digest().hex()).exists()
        with closing(sqlite3.connect(site.settings(name).state / LEDGER_FILE)) as ledger:
            assert ledger.execute("SELECT count(*) FROM study_secrets").fetchone() == (0,)
            payloads = ledger.execute("SELECT payload FROM answers WHERE study = ?", (study.digest(),)).fetchall()
        assert set(payloads) == {(b"",)}


def next_study(site: Site, name: str) -> Study:
    """A study whose roster has the keys of now."""
    roster = [{**entry.model_dump(mode="json"), "key": key_of(site, entry.name)} for entry in site.study.roster]
    return site.another_study(name, roster=roster)


def test_identities_rotated_between_two_studies(site: Site, tmp_path: Path) -> None:
    for name in NAMES:
        site.change(site.config(name), max_epsilon_total="1.6")
    party, curator = ("party", "rotate-identity"), ("curator", "rotate-identity")
    own, ours = ("--config", site.config(ROTATED)), ("--config", site.paths.curator_config)
    old_trust = write_trust(site, tmp_path / "trust.txt")

    # In the middle of a study, and while its daemon runs, nothing is rotated.
    site.start_curator()
    site.submit()
    site.start_party(ROTATED)
    site.await_event(ROTATED, "enrolled")
    assert "another process is serving" in run(*party, *own, "--out", tmp_path / "no.json", "--yes", code=1)
    assert site.stop(ROTATED) == site.stop("curator") == 0
    assert "open under the old key" in run(*party, *own, "--out", tmp_path / "no.json", "--yes", code=3)
    assert "open under the old key" in run(*curator, *ours, "--out", tmp_path / "no.json", "--yes", code=3)
    assert "not a terminal" in run(*party, *own, "--out", tmp_path / "no.json", code=3)
    assert not (tmp_path / "no.json").exists()
    first = publish(site, site.study)

    # Between studies both are; a second command hands the statement out again.
    before = key_of(site, ROTATED)
    assert before in run(*party, *own, "--out", tmp_path / "harbour.json", "--yes")
    assert key_of(site, ROTATED) != before
    run(*party, *own, "--out", tmp_path / "again.json", "--last")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "harbour.json").read_bytes()
    run(*curator, *ours, "--out", tmp_path / "curator.json", "--yes")

    # A daemon does not follow another key of the curator's by itself.
    site.start_curator()
    lost = site.start_party("north")
    assert lost.process.wait(60) == 3
    assert "synod party accept-rotation" in site.log("north")[-1]["why"]
    assert site.stop("curator") == 0
    stranger = sign_rotation("curator", identity_of("stranger"), identity_of("new"))
    (tmp_path / "stranger.json").write_bytes(stranger.to_bytes())
    for wrong in ("stranger.json", "harbour.json"):
        run("party", "accept-rotation", tmp_path / wrong, "--config", site.config("north"), "--yes", code=5)
    for name in NAMES:
        run("party", "accept-rotation", tmp_path / "curator.json", "--config", site.config(name), "--yes")
        assert yaml.safe_load(site.config(name).read_text())["curator"] == key_of(site, "curator")
    again = ("party", "accept-rotation", tmp_path / "curator.json", "--config", site.config("north"), "--yes")
    assert "not from the key that is known" in run(*again, code=5)

    # The next study has the new keys, and each release its own trust file.
    second = publish(site, next_study(site, "second-survey"))
    new_trust, rotate = tmp_path / "trust-new.txt", ("trust", "rotate", old_trust)
    run(*rotate, tmp_path / "harbour.json", tmp_path / "curator.json", "--out", new_trust)
    assert new_trust.read_text() == write_trust(site, tmp_path / "now.txt").read_text()
    for release, right, other in ((first, old_trust, new_trust), (second, new_trust, old_trust)):
        run("verify", release, "--trust", right)
        assert "is not the one that the trust file names" in run("verify", release, "--trust", other, code=5)
        assert "says of harbour what this ledger says" in run("party", "check-release", release, *own)

    # A chain has one order, one name and one signer.
    forged = sign_rotation(ROTATED, identity_of("stranger"), identity_of("new"))
    (tmp_path / "forged.json").write_bytes(forged.to_bytes())
    for file, wrong in ((old_trust, "forged.json"), (new_trust, "harbour.json"), (old_trust, "stranger.json")):
        run("trust", "rotate", file, tmp_path / wrong, "--out", tmp_path / "never.txt", code=5)
    assert not (tmp_path / "never.txt").exists()
    assert [entry["kind"] for entry in site.ledger_entries(ROTATED)].count("rotated") == 2
    assert not any(b"PRIVATE" in path.read_bytes() for path in tmp_path.glob("*.json"))


def test_a_curator_that_lost_its_identity_makes_no_other(site: Site) -> None:
    site.start_curator()
    site.submit()
    assert site.stop("curator") == 0
    (site.paths.folder / "curator" / "identity.pem").unlink()
    started = site.start_curator(wait=False)
    assert started.process.wait(60) == 2
    assert "a store and no identity key" in site.log("curator")[-1]["why"]
    told = run("curator", "fingerprint", "--config", site.paths.curator_config, code=2)
    assert "Restore identity.pem from its backup" in told
    assert not (site.paths.folder / "curator" / "identity.pem").exists()
