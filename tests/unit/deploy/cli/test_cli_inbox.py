"""`synod party studies`, `show` and `approve NAME`: what the operator sees and decides, without a file by mail."""

import json
from pathlib import Path
from typing import Any

import pytest

from synod.common.protocol.notices import sign_announcement
from synod.common.protocol.plan import plan_study
from synod.common.study.study import Study, load_study
from synod.party.inbox.announced import forget_announced, hear_again, keep_announced
from tests.support.commands import complaint, synod, write_party, write_study
from tests.support.keys import CURATOR, identity_of, pinned

NOW = 1_700_000_000


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A party that is initialized and pins a curator."""
    path = write_party(tmp_path / "north", curator=identity_of(CURATOR).fingerprint)
    assert synod("party", "init", "--config", path).code == 0
    return path


def announce(config: Path, **changes: Any) -> Study:
    """A study that the daemon would have kept."""
    key = synod("party", "fingerprint", "--config", config).out.strip()
    roster = {"north": (key, 3), "valley": (pinned(2), 7)}
    study = load_study(write_study(config.parent / "sent.yaml", roster=roster, **changes)).resolve()
    curator, state = identity_of(CURATOR), config.parent / "state"
    signature = sign_announcement(curator, study.digest())
    keep_announced(state, study, curator=curator.public_key, signature=signature, now=NOW)
    hear_again(state, study.digest(), ["valley"], now=NOW)
    return study


def party(config: Path, *arguments: object) -> Any:
    return synod("party", *arguments, "--config", config)


def test_nothing_waits(config: Path) -> None:
    assert party(config, "studies").out.startswith("No study waits here.")
    assert json.loads(party(config, "studies", "--json").out) == []
    assert "no study named care-survey" in complaint(party(config, "show", "care-survey"), 1)
    assert "no study named care-survey" in complaint(party(config, "approve", "care-survey", "--dry-run"), 1)


def test_what_waits_is_listed_and_shown_whole(config: Path) -> None:
    study = announce(config)
    listed = party(config, "studies").out
    assert "care-survey: waits for your decision, announced 2023-11-14 22:13 UTC" in listed
    assert f"hash {study.digest().hex()[:16]}, 4 columns, 2 parties" in listed
    shown = party(config, "show", "care-survey").out
    lines = shown.splitlines()
    assert f"Hash  {study.digest().hex()}" in lines
    for attribute in study.attributes:
        assert [line for line in lines if line.startswith(f"  {attribute.name}: {attribute.type}, ")], attribute.name
    for step in plan_study(study).steps_of("north"):
        assert f"step {step.label} ({step.phase}): {step.kind.value}, {step.cost.describe()}" in shown
    assert "patients has spent epsilon 0 and holds epsilon 0, of epsilon 2 in all: epsilon 2 is left" in shown
    assert "and epsilon 1 after this study" in shown
    assert "the curator's word, of 2023-11-14 22:13 UTC" in shown
    (valley,) = [line for line in lines if line.startswith("  valley")]
    assert valley.split() == ["valley", pinned(2), "7", "rows,", "has", "approved"]
    assert lines[-1] == f"To approve it: synod party approve care-survey --hash {study.digest().hex()[:16]}"
    document = json.loads(party(config, "show", study.digest().hex()[:16], "--json").out)
    assert document["cost"] == {"exact": "epsilon:1", "told": "epsilon 1"}
    assert [step["label"] for step in document["steps"]] == [s.label for s in plan_study(study).steps_of("north")]
    assert json.loads(party(config, "studies", "--json").out) == [document]


def test_an_announced_study_is_approved_by_name_and_hash(config: Path) -> None:
    prefix = announce(config).digest().hex()[:16]
    tried = party(config, "approve", "care-survey", "--hash", prefix, "--dry-run").out
    assert "Nothing was reserved" in tried
    assert "7 rows, has approved" in tried
    assert "is reserved for care-survey" in party(config, "approve", "care-survey", "--hash", prefix, "--yes").out
    assert "care-survey: approved, not ended" in party(config, "studies").out
    assert "State open" not in party(config, "show", "care-survey").out
    assert "in the ledger already" in complaint(party(config, "approve", "care-survey", "--hash", prefix, "--yes"), 1)
    party(config, "revoke", "care-survey")
    assert party(config, "studies").out.startswith("No study waits here.")
    assert "care-survey: revoked" in party(config, "studies", "--all").out
    assert "care-survey: approval revoked here" in party(config, "ledger").out


def test_a_study_that_was_exchanged_under_the_same_name_is_not_approved(config: Path) -> None:
    seen = announce(config).digest()
    forget_announced(config.parent / "state", seen)
    announce(config, epsilon="1.5")
    ending = party(config, "approve", "care-survey", "--hash", seen.hex()[:16], "--yes")
    assert "does not begin with what `--hash` says" in complaint(ending, 3)
    assert json.loads(party(config, "ledger", "--json").out)["held"] == "epsilon:0"


def test_two_of_one_name_are_told_apart_by_hash(config: Path) -> None:
    one, other = announce(config), announce(config, epsilon="1.5")
    told = complaint(party(config, "show", "care-survey"), 1)
    assert one.digest().hex()[:16] in told
    assert other.digest().hex()[:16] in told
    assert "epsilon 1.5" in party(config, "show", other.digest().hex()).out


@pytest.mark.parametrize("prefix", ["0123", "G" * 16, "a" * 65, ""])
def test_a_short_or_broken_prefix(config: Path, prefix: str) -> None:
    announce(config)
    assert "first 16 to 64 digits" in complaint(party(config, "approve", "care-survey", "--hash", prefix, "--yes"), 2)


def test_yes_beforehand_says_to_which_hash(config: Path) -> None:
    announce(config)
    ending = party(config, "approve", "care-survey", "--yes")
    assert "`--hash` says which study" in complaint(ending, 2)
    assert json.loads(party(config, "ledger", "--json").out)["held"] == "epsilon:0"


def test_a_file_is_held_to_the_hash_as_well(config: Path) -> None:
    study = announce(config)
    file = config.parent / "sent.yaml"
    assert "does not begin" in complaint(party(config, "approve", file, "--hash", "0" * 16, "--yes"), 3)
    assert party(config, "approve", file, "--hash", study.digest().hex(), "--dry-run").code == 0


def test_what_the_policy_forbids_is_said_in_the_list(config: Path) -> None:
    announce(config, epsilon="5")
    assert "cannot be approved: " in party(config, "studies").out
    shown = party(config, "show", "care-survey").out
    assert "It cannot be approved here: " in shown
    assert "To approve it" not in shown


def test_a_declaration_asks_echoes_and_shows(config: Path) -> None:
    ending = party(config, "init", "--spent", "0.5")
    assert "Nothing was declared" in complaint(ending, 3)
    assert "patients is declared to have spent epsilon 0.5 before this ledger." in ending.out
    assert "It can be raised later, never lowered." in ending.out
    assert json.loads(party(config, "ledger", "--json").out)["spent"] == "epsilon:0"
    ending = party(config, "init", "--spent", "0.5", "--yes")
    assert "patients has spent epsilon 0.5 in all, and has epsilon 1.5 left" in ending.out
    entry = json.loads(party(config, "ledger", "--json").out)["entries"][-1]
    assert (entry["kind"], entry["cost"]) == ("declared", "epsilon:1/2")
    assert "declared: patients had spent epsilon 0.5 before this ledger" in party(config, "ledger").out


def lines_of(config: Path, what: str, *more: object) -> list[str]:
    """What the doctor says of one thing, of a party that cannot reach its curator."""
    lines = party(config, "doctor", *more).out.splitlines()
    return [line for line in lines if line[5:].startswith(f"{what}:")]


def test_the_doctor_looks_at_the_table(config: Path) -> None:
    assert lines_of(config, "table") == ["ok   table: patients.csv can be read, with 4 columns"]
    announce(config, schema=[{"name": name, "type": "integer", "min": 0, "max": 9} for name in ("age", "x", "y")])
    warned = "WARN table: it has no column x and 1 others that care-survey asks for."
    assert lines_of(config, "table")[1:] == [warned]
    assert lines_of(config, "table", "--study", config.parent / "sent.yaml")[1:] == [warned]
    settings = config.read_text()
    config.write_text(settings + "unit: patient\n")
    assert lines_of(config, "table")[0].startswith("FAIL table: patients.csv has no column patient, which the config")
    config.write_text(settings.replace("patients.csv", "gone.csv"))
    (told,) = lines_of(config, "table")
    assert told.startswith("FAIL table: there is no table at ")
    (config.parent / "gone.csv").write_bytes(b"a,a\n1,secret-row\n")
    (told,) = lines_of(config, "table")
    assert told.startswith("FAIL table: the column a appears twice")
    assert "secret-row" not in told


def test_the_doctor_looks_at_who_may_read_keys(config: Path) -> None:
    assert lines_of(config, "keys") == ["ok   keys: readable by nobody else"]
    key = config.parent / "state" / "identity.pem"
    for mode in (0o640, 0o604, 0o620):
        key.chmod(mode)
        (told,) = lines_of(config, "keys")
        assert told == f"WARN keys: others may read or change {key} (mode {mode:04o}). Run `chmod 600 {key}`."
    key.chmod(0o600)
    ledger = config.parent / "state" / "ledger.sqlite"
    ledger.chmod(0o666)
    assert str(ledger) in lines_of(config, "keys")[0]
