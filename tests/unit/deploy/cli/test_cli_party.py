"""`synod party`: init, fingerprint, approve, ledger, ledger export and revoke, and how each of them fails."""

import json
import shutil
import sqlite3
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from synod.common.crypto.canonical import canonical_hash
from synod.common.crypto.identity import Identity, verify
from synod.common.privacy.conversion import spent_epsilon
from synod.common.privacy.cost import Cost
from synod.party.ledger import LEDGER_FILE, Ledger
from tests.support.commands import HEADER, Ending, complaint, synod, write_party, write_study
from tests.support.studies import binary

CAP = Cost(Fraction(2), Fraction("0.00976032164611"))
OTHER = ("sha256:" + "2" * 64, 7)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A party that is initialized."""
    path = write_party(tmp_path / "north")
    ending = synod("party", "init", "--config", path)
    assert (ending.code, ending.err) == (0, "")
    return path


def own_key(config: Path) -> str:
    return synod("party", "fingerprint", "--config", config).out.strip()


def study_for(config: Path, *, rows: int = 3, **changes: Any) -> Path:
    roster = {"north": (own_key(config), rows), "valley": OTHER}
    name = changes.get("name", "care-survey")
    return write_study(config.parent / f"{name}.yaml", roster=roster, **changes)


def party(verb: str, config: Path, *arguments: object) -> Any:
    return synod("party", *verb.split(), *arguments, "--config", config)


def ledger(config: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(synod("party", "ledger", "--json", "--config", config).out)
    return found


# init and fingerprint


def test_init_prints_the_fingerprint_that_stays(tmp_path: Path) -> None:
    path = write_party(tmp_path / "north")
    ending = synod("party", "init", "--config", path)
    fingerprint = ending.out.split()[-1]
    assert fingerprint.startswith("sha256:")
    assert own_key(path) == fingerprint
    assert Identity.load(path.parent / "state" / "identity.pem").fingerprint == fingerprint


def test_init_twice(config: Path) -> None:
    key = own_key(config)
    assert "initialized already" in complaint(party("init", config), 2)
    assert own_key(config) == key


def test_init_after_a_loss(config: Path) -> None:
    key = own_key(config)
    for path in (config.parent / "state").glob(f"{LEDGER_FILE}*"):
        path.unlink()
    ending = party("init", config)
    assert ending.code == 0
    assert "counts as fully spent" in ending.out
    assert own_key(config) == key
    study = study_for(config)
    assert "fully spent" in complaint(party("approve", config, study, "--yes"), 3)
    assert "both kinds" in complaint(party("init", config, "--spent", "4/5"), 2)
    assert "both kinds" in complaint(party("init", config, "--spent-rho", "1/100"), 2)
    ending = party("init", config, "--spent", "4/5", "--spent-rho", "0", "--yes")
    assert ending.code == 0
    assert "fully spent" not in ending.out
    assert ledger(config)["spent"] == "epsilon:4/5"
    assert party("approve", config, study, "--yes").code == 0


@pytest.mark.parametrize("text", ["much", "-1", "1/0", "nan", "", "inf"])
def test_init_with_an_epsilon_that_is_none(tmp_path: Path, text: str) -> None:
    path = write_party(tmp_path / "north")
    assert "is not a rho" in complaint(party("init", path, "--spent", "1", "--spent-rho", text), 2)
    assert "is not an epsilon" in complaint(party("init", path, "--spent", text), 2)
    assert not (path.parent / "state").exists()


def test_what_was_declared_does_not_go_down(config: Path) -> None:
    party("init", config, "--spent", "1.5", "--yes")
    assert "never comes back" in complaint(party("init", config, "--spent", "0", "--yes"), 3)
    assert ledger(config)["spent"] == "epsilon:3/2"
    party("init", config, "--spent", "1.5", "--spent-rho", "0.01", "--yes")
    assert "`--spent` and `--spent-rho`" in complaint(party("init", config, "--spent", "2", "--yes"), 3)
    assert ledger(config)["spent"] == "epsilon:3/2+rho:1/100"


@pytest.mark.parametrize("verb", ["fingerprint", "ledger", "revoke x"])
def test_before_init(tmp_path: Path, verb: str) -> None:
    path = write_party(tmp_path / "north")
    assert "init" in complaint(party(verb, path), 2)
    assert not (path.parent / "state" / LEDGER_FILE).exists()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"sources": "x"}, "sources is not known"),
        ({"curator": "sha256:abc"}, "curator"),
        ({"address": "nowhere"}, "address"),
        ({"max_epsilon_total": -1}, "max_epsilon_total"),
        ({"approve": "always"}, "approve"),
        ({"max_rho_total": 0.8}, "max_rho_total: must be {epsilon: ..., delta: ...}. Write such as {epsilon: 0.8, del"),
    ],
)
def test_a_configuration_that_is_none(tmp_path: Path, change: dict[str, Any], sentence: str) -> None:
    path = write_party(tmp_path / "north", **change)
    assert sentence in complaint(party("init", path), 2)


def test_no_configuration(tmp_path: Path) -> None:
    complaint(party("init", tmp_path / "none.yaml"), 2)


# approve


def test_approve_shows_what_is_vouched_for_and_reserves(config: Path) -> None:
    study = study_for(config)
    ending = party("approve", config, study, "--yes")
    assert (ending.code, ending.err) == (0, "")
    for name, key in (("north", own_key(config)), ("valley", OTHER[0])):
        lines = [line for line in ending.out.splitlines() if key in line]
        assert [line.split()[0] for line in lines] == [name], "a fingerprint must be whole, beside its name"
    assert "at most 1 of these parties" in ending.out
    assert "epsilon 1 is reserved for care-survey" in ending.out
    state = ledger(config)
    assert (state["spent"], state["held"], state["cap"]) == ("epsilon:0", "epsilon:1", "epsilon:2")


@pytest.mark.parametrize("stdin", ["", "y\n", "yes\n"])
def test_without_a_terminal_and_without_yes_nothing_is_approved(config: Path, stdin: str) -> None:
    ending = synod("party", "approve", study_for(config), "--config", config, stdin=stdin)
    told = complaint(ending, 3)
    assert "standard input is not a terminal. Nothing was reserved." in told
    assert "`--yes`" in told
    assert ledger(config)["held"] == "epsilon:0"
    assert not (config.parent / "state" / "snapshots").exists()


@pytest.mark.parametrize(
    ("answer", "code", "held"), [("y", 0, "epsilon:1"), ("n", 3, "epsilon:0"), ("", 3, "epsilon:0")]
)
def test_on_a_terminal_a_person_is_asked(
    config: Path, monkeypatch: pytest.MonkeyPatch, answer: str, code: int, held: str
) -> None:
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True, raising=False)
    ending = synod("party", "approve", study_for(config), "--config", config, stdin=f"{answer}\n")
    assert ending.code == code
    assert "Approve, vouching for this roster?" in ending.out
    assert ledger(config)["held"] == held


def test_a_dry_run_reserves_nothing(config: Path) -> None:
    ending = party("approve", config, study_for(config), "--dry-run")
    assert ending.code == 0
    assert "Nothing was reserved" in ending.out
    assert ledger(config)["held"] == "epsilon:0"
    assert ledger(config)["studies"] == []
    assert not (config.parent / "state" / "snapshots").exists()


def test_what_does_not_fit_is_shown_here_and_not_in_the_error(config: Path) -> None:
    lines = [HEADER, "F,30,500,a", "M,140,,Zachariah", "Q,50,1001,c"]
    (config.parent / "patients.csv").write_text("\n".join(lines) + "\n")
    ending = party("approve", config, study_for(config), "--yes")
    told = complaint(ending, 2)
    assert told.startswith("the table does not fit the study's schema. ")
    assert not any(character.isdigit() for character in told)
    for column in ("sex", "age", "income", "ward"):
        assert f"│ {column} " in ending.out
        assert column not in told.split()
    assert "outside the domain" in ending.out
    assert "for your eyes only" in ending.out
    assert "Zachariah" not in ending.out + ending.err
    assert ledger(config)["held"] == "epsilon:0"


def test_another_row_count(config: Path) -> None:
    ending = party("approve", config, study_for(config, rows=4), "--yes")
    complaint(ending, 2)
    assert "the row count is not the roster's" in ending.out


@pytest.mark.parametrize(
    ("change", "sentence"),
    [({"epsilon": 2.5}, "of epsilon 2 in all"), ({"collusion": 0}, "min_collusion")],
)
def test_policy_and_budget_refuse(config: Path, change: dict[str, Any], sentence: str) -> None:
    told = complaint(party("approve", config, study_for(config, **change), "--yes"), 3)
    assert sentence in told
    assert ledger(config)["held"] == "epsilon:0"


@pytest.mark.parametrize(("most", "code"), [(1000, 0), (500, 3)])
def test_iterations_that_are_too_large_are_refused_at_approval(config: Path, most: int, code: int) -> None:
    names = [f"a{place}" for place in range(12)]
    (config.parent / "patients.csv").write_text("\n".join([",".join(names), *[",".join(["no"] * 12)] * 3]) + "\n")
    method = {"name": "dp-ccbn", "parameter_cells": 8, "max_numbers": most}
    study = study_for(config, method=method, schema=[binary(name) for name in names])
    ending = party("approve", config, study, "--yes")
    assert ending.code == code, ending.err
    assert ("DP-CCBN would ask for more than 500 numbers" in ending.err) == bool(code)
    assert ledger(config)["held"] == ("epsilon:0" if code else "epsilon:1")


def test_a_plan_that_could_ask_for_too_much_is_refused_at_approval(config: Path) -> None:
    config.write_text(config.read_text() + "max_cells: 7\n")
    told = complaint(party("approve", config, study_for(config), "--yes"), 3)
    assert "the step moments may ask for" in told
    assert "`max_cells` is 7" in told
    assert ledger(config)["held"] == "epsilon:0"


def test_a_study_under_another_key(config: Path) -> None:
    study = write_study(config.parent / "study.yaml")
    assert "pins another key" in complaint(party("approve", config, study, "--yes"), 3)


def test_a_study_without_this_party(config: Path) -> None:
    study = write_study(config.parent / "study.yaml", roster={"valley": OTHER, "hill": ("sha256:" + "3" * 64, 7)})
    assert "not on the roster" in complaint(party("approve", config, study, "--yes"), 3)


def test_a_second_study_beyond_the_cap(config: Path) -> None:
    party("approve", config, study_for(config, epsilon=1.5), "--yes")
    told = complaint(party("approve", config, study_for(config, name="second", epsilon=0.6), "--yes"), 3)
    assert "holds epsilon 1.5" in told
    assert ledger(config)["held"] == "epsilon:3/2"


def test_approving_twice(config: Path) -> None:
    study = study_for(config)
    party("approve", config, study, "--yes")
    assert "in the ledger already" in complaint(party("approve", config, study, "--yes"), 1)


def test_no_table(config: Path) -> None:
    (config.parent / "patients.csv").unlink()
    assert "there is no table" in complaint(party("approve", config, study_for(config), "--yes"), 2)


def test_no_study(config: Path) -> None:
    complaint(party("approve", config, config.parent / "none.yaml", "--yes"), 2)


# revoke


def test_revoke_by_name_and_by_hash(config: Path) -> None:
    for name in ("first", "second"):
        party("approve", config, study_for(config, name=name, epsilon=0.5), "--yes")
    hashes = {study["name"]: study["hash"] for study in ledger(config)["studies"]}
    ending = party("revoke", config, "first")
    assert ending.code == 0
    assert "Revoked first; spent on it: epsilon 0." in ending.out
    assert ledger(config)["held"] == "epsilon:1/2"
    assert party("revoke", config, hashes["second"]).code == 0
    assert ledger(config)["held"] == "epsilon:0"
    assert {study["state"] for study in ledger(config)["studies"]} == {"revoked"}


def test_revoke_what_is_not_there(config: Path) -> None:
    assert "no open approval of care-survey" in complaint(party("revoke", config, "care-survey"), 1)
    party("approve", config, study_for(config), "--yes")
    party("revoke", config, "care-survey")
    complaint(party("revoke", config, "care-survey"), 1)


# ledger


def test_the_ledger_for_people(config: Path) -> None:
    party("approve", config, study_for(config), "--yes")
    ending = party("ledger", config)
    assert (ending.code, ending.err) == (0, "")
    assert "patients: spent epsilon 0, held epsilon 1, of epsilon 2 in all" in ending.out
    assert "care-survey" in ending.out


RHO: dict[str, Any] = {"max_rho_total": {"epsilon": "0.8", "delta": "1e-9"}}


@pytest.fixture
def other_config(tmp_path: Path) -> Path:
    """A party that allows studies with a delta."""
    path = write_party(tmp_path / "north", **RHO)
    assert synod("party", "init", "--config", path).code == 0
    return path


def test_the_ledger_shows_both_sums_and_what_they_come_to(other_config: Path) -> None:
    party("approve", other_config, study_for(other_config, epsilon="0.5", delta="1e-9"), "--yes")
    party("init", other_config, "--spent", "0.1", "--spent-rho", "0.001", "--yes")
    ending = party("ledger", other_config)
    assert (
        "patients: spent epsilon 0.1 and rho 0.001 (epsilon 0.24512 at delta 1e-9), held rho 0.003953 (epsilon 0.5 at "
        "delta 1e-9), of epsilon 2 and rho 0.00976 (epsilon 0.8 at delta 1e-9) in all\n"
    ) in ending.out
    assert "Spent as (epsilon, delta): epsilon 0.3" in ending.out
    assert "at delta 1e-9" in ending.out
    shown = ledger(other_config)
    assert (shown["spent"], shown["cap"]) == ("epsilon:1/10+rho:1/1000", str(CAP))
    cost = Cost.parse(shown["spent"])
    assert shown["spent_at_delta"] == {"epsilon": str(spent_epsilon(cost, Fraction("1e-9"))), "delta": "1e-9"}


def test_a_pure_ledger_is_shown_without_delta(config: Path) -> None:
    assert "delta" not in party("ledger", config).out
    assert ledger(config)["spent_at_delta"] is None


def test_rho_that_was_spent_is_shown_also_where_the_policy_allows_no_more(config: Path) -> None:
    party("init", config, "--spent-rho", "1/1000", "--yes")
    assert "Spent as (epsilon, delta): epsilon 0.24" in party("ledger", config).out
    assert ledger(config)["spent"] == "rho:1/1000"


def test_a_study_with_delta_says_what_delta_means(other_config: Path) -> None:
    study = study_for(other_config, epsilon="0.5", delta="1e-9")
    out = party("approve", other_config, study, "--dry-run").out
    assert "Study care-survey, hpdp-dp, (epsilon, delta) = (0.5, 1e-9)" in out
    assert "and by 1e-9, which is delta, beside that" in out
    assert "a person with m rows has m\u00b2 times that" in out
    assert "It fits, and would cost rho 0.003953 (epsilon 0.5 at delta 1e-9). Nothing was reserved." in out


def test_a_refusal_speaks_of_epsilon_to_whom_wrote_it(other_config: Path) -> None:
    party("init", other_config, "--spent", "0.1", "--spent-rho", "0.001", "--yes")
    study = study_for(other_config, epsilon="0.8", delta="1e-9")
    assert complaint(party("approve", other_config, study, "--yes"), 3) == (
        "the study asks for rho 0.00976 (epsilon 0.8 at delta 1e-9); patients has spent rho 0.001 (epsilon 0.24512 at "
        "delta 1e-9) and holds rho 0 for open studies, of rho 0.00976 (epsilon 0.8 at delta 1e-9) in all. Ask for "
        "less, or raise `max_rho_total` if your policy allows it."
    )
    told = complaint(party("approve", other_config, study_for(other_config, epsilon="2"), "--yes"), 3)
    assert "asks for epsilon 2; patients has spent epsilon 0.1 and holds epsilon 0 for" in told
    assert "rho" not in told


def test_the_policys_delta_is_that_of_what_is_told(tmp_path: Path) -> None:
    path = write_party(tmp_path / "north", max_rho_total={"epsilon": "0.8", "delta": "1e-5"})
    synod("party", "init", "--config", path)
    assert "of epsilon 2 and rho 0.02026 (epsilon 0.8 at delta 0.00001) in all" in party("ledger", path).out
    told = complaint(party("approve", path, study_for(path, epsilon="1", delta="1e-5"), "--yes"), 3)
    assert "asks for rho 0.03056 (epsilon 1 at delta 0.00001)" in told
    assert "of rho 0.02026 (epsilon 0.8 at delta 0.00001) in all" in told


def test_a_study_with_delta_needs_a_cap_on_rho(config: Path) -> None:
    said = complaint(party("approve", config, study_for(config, epsilon="0.5", delta="1e-9"), "--yes"), 3)
    assert "Set `max_rho_total: {epsilon: ..., delta: ...}`" in said


def test_the_exported_chain_can_be_checked_by_others(config: Path) -> None:
    party("approve", config, study_for(config), "--yes")
    party("revoke", config, "care-survey")
    for arguments in (["ledger", "--config", config, "export"], ["ledger", "export", "--config", config]):
        ending = synod("party", *arguments)
        assert (ending.code, ending.err) == (0, "")
        export = json.loads(ending.out)
        previous = "00" * 32
        for sequence, entry in enumerate(export["entries"], 1):
            assert (entry["sequence"], entry["previous"]) == (sequence, previous)
            previous = canonical_hash(entry).hex()
        assert [entry["kind"] for entry in export["entries"]] == ["opened", "approved", "revoked"]
        first = canonical_hash(export["entries"][0]).hex()
        assert export["head"] == {"sequence": 3, "hash": previous, "ledger": first}
        key = bytes.fromhex(export["identity"])
        assert verify(key, "head", export["head"], bytes.fromhex(export["signature"]))


def test_the_exported_chain_has_no_secret(config: Path) -> None:
    opened = Ledger.open(config.parent / "state")
    secret = opened.secret().hex()
    opened.close()
    assert secret not in synod("party", "ledger", "--config", config, "export").out


def test_a_ledger_that_was_altered(config: Path) -> None:
    party("approve", config, study_for(config), "--yes")
    with sqlite3.connect(config.parent / "state" / LEDGER_FILE) as connection:
        connection.execute(
            'UPDATE entries SET body = replace(body, \'"reserved":"epsilon:1"\', \'"reserved":"epsilon:0"\')'
        )
    for verb in ("ledger", "revoke care-survey"):
        assert "chain is broken at entry 2" in complaint(party(verb, config), 5)


# serve and doctor, as far as they come without a curator


def last_word(ending: Ending, code: int) -> str:
    """Why a daemon ended, from the last line of its log."""
    assert ending.code == code
    return str(json.loads(ending.err.splitlines()[-1])["why"])


def test_serve_checks_its_certificate_before_dialing(config: Path) -> None:
    assert "cannot be read" in last_word(party("serve", config), 4)


def test_serve_with_the_certificate_of_another(config: Path, tmp_path: Path) -> None:
    synod("certs", "init", tmp_path / "certs")
    synod("certs", "issue", tmp_path / "certs", "valley")
    for source, target in (("ca.pem", "ca.pem"), ("valley.pem", "north.pem"), ("valley.key", "north.key")):
        shutil.copy(tmp_path / "certs" / source, config.parent / target)
    assert "is for the party valley, not for the party north" in last_word(party("serve", config), 4)


def test_doctor_names_what_fails_first(config: Path, tmp_path: Path) -> None:
    ending = party("doctor", config)
    assert ending.code == 4
    lines = ending.out.splitlines()
    assert lines[0].startswith("FAIL certificate:")
    assert lines[-1].startswith("FAIL port: 127.0.0.1:1 does not accept connections")


# Persons, and names of datasets


def test_approve_says_whom_the_study_protects(config: Path, tmp_path: Path) -> None:
    assert "Protects any one row." in party("approve", config, study_for(config), "--dry-run").out
    persons = write_party(tmp_path / "persons", unit="patient")
    party("init", persons)
    lines = (persons.parent / "patients.csv").read_text().splitlines()
    named = [f"{who},{line}" for who, line in zip(("patient", "p1", "p1", "p2"), lines, strict=True)]
    (persons.parent / "patients.csv").write_text("\n".join(named) + "\n")
    study = study_for(persons, max_rows_per_unit=2)
    told = party("approve", persons, study, "--dry-run").out
    assert "Protects any one person with up to 2 rows at a party." in told
    assert "It fits" in told
    study = study_for(config, max_rows_per_unit=2)
    assert "which column tells persons apart" in complaint(party("approve", config, study, "--yes"), 3)


def test_a_renamed_dataset_is_refused_until_its_account_is_carried_over(config: Path) -> None:
    party("approve", config, study_for(config, epsilon="1.5"), "--yes")
    config.write_text(config.read_text().replace("dataset: patients", "dataset: people"))
    second = study_for(config, name="second", epsilon="1.5")
    told = complaint(party("approve", config, second, "--yes"), 3)
    assert "this table was approved as the dataset patients" in told
    assert "`synod party rename-dataset patients people`" in told
    assert "no dataset patient." in complaint(party("rename-dataset", config, "patient", "people"), 1)
    assert "no name of a dataset" in complaint(party("rename-dataset", config, "patients", "The People"), 2)
    ending = party("rename-dataset", config, "patients", "people")
    assert (ending.code, ending.out) == (0, "patients is people now, with one account: spent epsilon 0.\n")
    assert (ledger(config)["dataset"], ledger(config)["held"]) == ("people", "epsilon:3/2")
    assert "people has spent epsilon 0 and holds epsilon 1.5" in complaint(party("approve", config, second, "--yes"), 3)
    assert party("approve", config, study_for(config, name="third", epsilon="0.5"), "--yes").code == 0
