"""One file from the coordinator makes a party: authentic by its fingerprint, whole or not at all."""

import json
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from synod.common.crypto.authority import make_authority
from synod.common.crypto.certificates import Holder, Role
from synod.common.crypto.identity import Identity
from synod.common.crypto.requests import read_request
from synod.common.protocol.envelope import sign_document
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.settings import PartySettings, load_settings
from synod.deploy.enrolment.join import Answers, join
from synod.deploy.enrolment.kit import read_kit, write_kit
from synod.party.ledger import Ledger
from tests.support.commands import complaint, synod
from tests.support.databases import duckdb_table
from tests.support.keys import CURATOR, identity_of
from tests.support.parties import NOW

PINNED = identity_of(CURATOR).fingerprint
ADDRESS = "curator.example.org:7443"
KILLED_JOINS = Path(__file__).parents[3] / "support" / "killed_joins.py"


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("authority")
    make_authority(folder / "ca", now=datetime(2026, 1, 1, tzinfo=UTC))
    return (folder / "ca" / "ca.pem").read_text()


@pytest.fixture
def kit(tmp_path: Path, authority: str) -> Path:
    path = tmp_path / "hospital.kit"
    path.write_bytes(write_kit(identity_of(CURATOR), address=ADDRESS, ca=authority, certificates="Mail it to Ada."))
    (tmp_path / "stays.csv").write_text("sex,age\nF,30\n")
    return path


def run(kit: Path, *more: object, expect: str = PINNED) -> Any:
    given = ["--name", "north", "--source", kit.parent / "stays.csv", "--max-epsilon-total", "3"]
    return synod("party", "join", kit, "--expect", expect, *given, "--folder", kit.parent / "made", *more)


def answers(folder: Path, **changes: Any) -> Answers:
    values = {"name": "north", "dataset": "stays", "source": folder / "stays.csv", "max_epsilon_total": "3"}
    return Answers(**{**values, **changes})


def test_a_table_of_a_database(kit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named after the table, and found wherever the daemon runs."""
    source = duckdb_table(kit.parent, "sex varchar, age integer", ["'F', 30"])
    assert source.file is not None
    monkeypatch.chdir(kit.parent)
    ending = run(kit, "--source", f"duckdb:{source.file.name}#stays")
    assert (ending.code, ending.err) == (0, "")
    assert f"The table stays of {source.file.name} has 2 columns." in ending.out
    settings = load_settings(PartySettings, kit.parent / "made" / "party.yaml")
    assert (settings.dataset, settings.source) == ("stays", source)


def test_a_kit_and_three_answers_make_a_party(kit: Path, authority: str) -> None:
    ending = run(kit)
    assert (ending.code, ending.err) == (0, "")
    folder = kit.parent / "made"
    settings = load_settings(PartySettings, folder / "party.yaml")
    assert (settings.name, settings.address, settings.curator) == ("north", ADDRESS, PINNED)
    assert (settings.dataset, settings.source, str(settings.max_epsilon_total)) == (
        "stays",
        kit.parent / "stays.csv",
        "3",
    )
    assert settings.approve == "ask"
    assert settings.max_rho_total is None
    assert (folder / "ca.pem").read_text().split() == authority.split()
    request = read_request(folder / "north.csr")
    assert request.holder == Holder(Role.PARTY, "north")
    assert request.fingerprint in ending.out
    assert Identity.load(folder / "state" / "identity.pem").fingerprint in ending.out
    ledger = Ledger.open(settings.state)
    assert [entry["kind"] for entry in ledger.entries()] == ["opened"]
    assert not ledger.account().history_lost
    ledger.close()
    assert "Mail it to Ada." in ending.out
    assert "stays.csv has 2 columns" in ending.out
    for secret in (folder / "north.key", folder / "state" / "identity.pem", folder / "state" / "ledger.sqlite"):
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600, secret
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not (kit.parent / "made.draft").exists()


def test_every_answer_is_scriptable(kit: Path) -> None:
    more = ["--dataset", "people", "--unit", "patient: #1", "--max-epsilon-per-study", "0.5"]
    assert run(kit, *more, "--max-rho-total", "0.8", "1e-9").code == 0
    settings = load_settings(PartySettings, kit.parent / "made" / "party.yaml")
    assert (settings.dataset, settings.unit, str(settings.max_epsilon_per_study)) == ("people", "patient: #1", "0.5")
    assert settings.max_rho_total is not None
    assert (str(settings.max_rho_total.epsilon), settings.max_rho_total.delta.as_tuple().exponent) == ("0.8", -9)


def test_another_curators_kit_makes_nothing(kit: Path) -> None:
    told = complaint(run(kit, expect=identity_of("valley").fingerprint), 5)
    assert "is not what `--expect` says. Nothing was made." in told
    assert "64 hexadecimal digits" in complaint(run(kit, expect="sha256:12"), 2)
    unseen = synod("party", "join", kit, "--name", "north", "--source", "x.csv", "--max-epsilon-total", "1")
    assert "`--expect sha256:...`" in complaint(unseen, 3)
    assert not (kit.parent / "made").exists()


@pytest.mark.parametrize("key", ["address", "ca", "certificates", "format", "signer"])
def test_a_kit_that_was_changed_is_refused(kit: Path, key: str) -> None:
    document = json.loads(kit.read_text())
    other = identity_of("valley").public_key.hex() if key == "signer" else f"{document[key]}1"
    kit.write_text(json.dumps({**document, key: other}))
    assert "signature" in complaint(run(kit), 5)
    assert not (kit.parent / "made").exists()


def resigned(kit: Path, **changes: Any) -> None:
    """The same kit with other content, soundly signed: whoever runs the curator may send what it likes."""
    document = {k: v for k, v in json.loads(kit.read_text()).items() if k not in ("signer", "signature")}
    content = {k: v for k, v in {**document, **changes}.items() if v is not None}
    kit.write_text(json.dumps(sign_document("kit", content, identity_of(CURATOR))))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"address": "no port"}, 2),
        ({"ca": "not a certificate"}, 4),
        ({"ca": None}, 2),
        ({"certificates": "two\nlines"}, 2),
        ({"certificates": "\x1b[2J"}, 2),
        ({"proxy": "http://evil:1"}, 2),
        ({"format": "synod/kit/v2"}, 2),
    ],
)
def test_a_kit_that_holds_something_else(kit: Path, changes: dict[str, Any], code: int) -> None:
    resigned(kit, **changes)
    complaint(run(kit), code)
    assert not (kit.parent / "made").exists()
    assert not (kit.parent / "made.draft").exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"{}", b"x" * (1 << 18 | 1)])
def test_a_file_that_is_no_kit(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "kit"
    path.write_bytes(content)
    with pytest.raises(SynodError) as caught:
        read_kit(path)
    assert caught.value.code in (Code.INVALID, Code.CHECK_FAILED)
    assert "cannot be read" in complaint(run(tmp_path / "none"), 2)


@pytest.mark.parametrize(
    "more",
    [
        ["--name", "North"],
        ["--name", "../north"],
        ["--dataset", "a b"],
        ["--max-epsilon-total", "much"],
        ["--max-epsilon-total", "-1"],
        ["--max-epsilon-per-study", "nan"],
        ["--max-rho-total", "0.8", "2"],
    ],
)
def test_an_answer_that_is_none_makes_nothing(kit: Path, more: list[str]) -> None:
    complaint(run(kit, *more), 2)
    assert not (kit.parent / "made").exists()


def test_in_a_script_what_only_a_person_knows_is_required(kit: Path) -> None:
    for missing in ("--name", "--source", "--max-epsilon-total"):
        given = {"--name": "north", "--source": "stays.csv", "--max-epsilon-total": "1"}
        del given[missing]
        flat = [word for pair in given.items() for word in pair]
        ending = synod("party", "join", kit, "--expect", PINNED, "--folder", kit.parent / "made", *flat)
        assert f"`{missing}` is missing. Nothing was made." in complaint(ending, 2)


def test_nothing_that_exists_is_replaced(kit: Path) -> None:
    assert run(kit).code == 0
    before = {path: path.read_bytes() for path in (kit.parent / "made").rglob("*") if path.is_file()}
    assert "holds something" in complaint(run(kit), 2)
    assert {path: path.read_bytes() for path in before} == before


def test_a_table_that_is_not_there_yet_is_said(kit: Path) -> None:
    (kit.parent / "stays.csv").unlink()
    ending = run(kit)
    assert ending.code == 0
    assert "cannot be read yet" in ending.out


@pytest.mark.timeout(120)
def test_killed_anywhere_it_is_whole_or_runs_again(kit: Path) -> None:
    """Processes end at once before or after each step, as if they were killed; nothing is cleaned up."""
    ran = subprocess.run([sys.executable, KILLED_JOINS, kit, kit.parent], capture_output=True, text=True, check=True)
    folders = [Path(line) for line in ran.stdout.splitlines()]
    assert len(folders) == 14
    whole = [folder.name for folder in folders if folder.exists()]
    assert whole == ["rename-after"], "all that is there has its name last"
    for folder in folders:
        if not folder.exists():
            join(read_kit(kit), answers(kit.parent), folder, now=NOW)
        settings = load_settings(PartySettings, folder / "party.yaml")
        ledger = Ledger.open(settings.state)
        assert not ledger.account().history_lost, "a first run is no loss"
        ledger.close()
        assert read_request(folder / "north.csr").holder.name == "north"
        assert Identity.load(folder / "state" / "identity.pem")
        assert not folder.with_name(f"{folder.name}.draft").exists()


def test_on_a_terminal_it_asks_with_defaults(kit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True, raising=False)
    made = kit.parent / "made"
    refused = synod("party", "join", kit, "--folder", made, stdin="n\n")
    assert refused.code == 3
    assert not made.exists()
    said = ["y", "north", str(kit.parent / "stays.csv"), "", "", "", ""]
    ending = synod("party", "join", kit, "--folder", made, stdin="".join(f"{line}\n" for line in said))
    assert (ending.code, ending.err) == (0, "")
    assert "Did the curator's operator read out this very fingerprint" in ending.out
    assert "The dataset's name [stays]" in ending.out
    assert "The most epsilon that it may ever spend [1]" in ending.out
    written = yaml.safe_load((made / "party.yaml").read_text())
    assert (written["name"], written["dataset"], written["max_epsilon_total"]) == ("north", "stays", "1")
    assert {"unit", "max_epsilon_per_study", "max_rho_total"}.isdisjoint(written)
