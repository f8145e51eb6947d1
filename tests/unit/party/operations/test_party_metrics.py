"""A party's metrics: exactly these names, and not one number that a row could change."""

import re
from pathlib import Path

from synod.common.runtime.metrics import render
from synod.common.study.study import Study
from synod.party.operations.metrics import Contact, describe_party
from tests.support.attacks import small_case
from tests.support.parties import PartyInMemory, make_settings, make_transcript, open_party, seal
from tests.support.studies import Table

NAMES = [
    "synod_certificate_days_left",
    "synod_party_in_touch",
    "synod_party_last_contact_timestamp_seconds",
    "synod_party_studies_waiting",
    "synod_party_studies_waiting_since_timestamp_seconds",
    "synod_party_studies",
    "synod_party_epsilon_spent",
    "synod_party_epsilon_held",
    "synod_party_epsilon_cap",
    "synod_party_rho_spent",
    "synod_party_rho_held",
    "synod_party_rho_cap",
]
NOW = 1_700_000_039.5


def after_an_answer(folder: Path, study: Study, members: list[PartyInMemory], table: Table) -> str:
    """The metrics of a party with this table, once it has answered a round."""
    party = open_party(folder, study, members[0].name, table)
    party.answer(seal(make_transcript(study, [party, *members[1:]])))
    contact = Contact(lambda: NOW)
    contact.tell(True)
    settings = make_settings(folder, members[0].name, max_rho_total={"epsilon": "1", "delta": "1e-9"})
    account = party.ledger.account()
    party.ledger.close()
    return render(
        describe_party(
            settings, account, days_left={"own": 30, "authority": 300}, contact=contact, waiting_since=[int(NOW)]
        )
    )


def test_no_metric_changes_between_neighbouring_tables(tmp_path: Path) -> None:
    study, members = small_case()
    table = members[0].table
    texts = {after_an_answer(tmp_path / "first", study, members, table)}
    for row in (0, -1):
        for column in range(len(table)):
            changed = [codes.copy() for codes in table]
            changed[column][row] ^= 1
            texts.add(after_an_answer(tmp_path / f"{row}-{column}", study, members, changed))
    assert len(texts) == 1
    (text,) = texts
    assert re.findall(r"^# TYPE (\S+) gauge$", text, re.MULTILINE) == NAMES
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert values['synod_party_epsilon_spent{dataset="table"}'] != "0.0"
    assert values["synod_party_last_contact_timestamp_seconds"] == "1699999980"
    assert values["synod_party_studies_waiting"] == "1"
    assert values['synod_party_studies{state="open"}'] == "1"
    assert not re.search(r"second|duration|latency|elapsed", text.replace("timestamp_seconds", ""))


def test_contact_is_forgotten_by_nobody() -> None:
    now = 600.0
    contact = Contact(lambda: now)
    assert (contact.in_touch, contact.last) == (False, 0)
    contact.tell(True)
    contact.tell(False)
    assert (contact.in_touch, contact.last) == (False, 600)
