"""The curator's metrics: exactly these names; of ended studies a number, and only roster names of open ones."""

import re
from pathlib import Path

from synod.common.runtime.metrics import render
from synod.curator.metrics import describe_curator
from synod.curator.records import State
from tests.support.curators import make_context, open_moments
from tests.support.parties import open_parties
from tests.support.studies import NAMES, make_study

METRICS = [
    "synod_certificate_days_left",
    "synod_curator_studies",
    "synod_curator_studies_halted",
    "synod_curator_study_open_since_timestamp_seconds",
    "synod_curator_round_open_since_timestamp_seconds",
    "synod_curator_party_last_seen_timestamp_seconds",
]


def test_studies_by_state_and_whom_they_wait_for(tmp_path: Path) -> None:
    context = make_context(tmp_path / "curator")
    running, ended = make_study(name="running"), make_study(name="ended")
    context.store.add_study(ended, now=60)
    context.store.end_study(ended.digest(), State.ABORTED, "Aborted by operator.")
    context.store.add_study(make_study(name="new"), now=125)
    context.store.add_study(running, now=185)
    parties = open_parties(tmp_path / "parties", running)
    open_moments(context, running, parties)
    context.see(NAMES[0])
    context.see("stranger")
    text = render(describe_curator(context, halted=2, days_left={"own": 9, "authority": 99}))
    context.store.close()
    for party in parties:
        party.ledger.close()

    assert re.findall(r"^# TYPE (\S+) gauge$", text, re.MULTILINE) == METRICS
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    counts = {state: values[f'synod_curator_studies{{state="{state.value}"}}'] for state in State}
    assert counts == {
        State.ENROLLING: "1",
        State.KEYED: "0",
        State.RUNNING: "1",
        State.PUBLISHED: "0",
        State.ABORTED: "1",
    }
    assert values["synod_curator_studies_halted"] == "2"
    assert values['synod_curator_study_open_since_timestamp_seconds{study="new"}'] == "120"
    assert {name for name in values if "round_open" in name} == {
        'synod_curator_round_open_since_timestamp_seconds{study="running"}'
    }
    seen = {name: value for name, value in values.items() if "last_seen" in name}
    assert len(seen) == len(NAMES)
    assert "stranger" not in text
    assert "ended" not in text
    assert [value == "0" for value in seen.values()].count(True) == len(NAMES) - 1
    assert all(int(value) % 60 == 0 for value in seen.values())
