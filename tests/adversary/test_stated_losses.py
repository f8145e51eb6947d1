"""Losses that must not be: more than the study allows, and manifests that say otherwise of them than the run."""

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from synod.common.protocol.manifest import KEYS, MANIFEST_FILE, seal_manifest, verify_release
from synod.common.runtime.errors import Code, SynodError
from synod.curator.records import State
from synod.curator.roster.losses import lose_party
from tests.support.keys import CURATOR, identity_of
from tests.support.losing import Run, make_case, seal_of


def test_a_second_loss_is_refused_where_one_is_allowed(tmp_path: Path) -> None:
    study, parties = make_case(tmp_path)
    run = Run(tmp_path, study, parties)
    run.gives_up = False
    context, _ = run.open()
    record = context.store.study(study.digest())
    with pytest.raises(SynodError, match="still enrolling"):
        lose_party(context, record, "north", "gone")
    for party in parties:
        context.store.add_enrolment(study.digest(), party.enrolment())
    context.store.fix_transcript(study.digest(), seal_of(study, parties, context))
    with pytest.raises(SynodError, match="is not on the roster"):
        lose_party(context, record, "desert", "gone")
    for reason in ("", "two\nlines", "x" * 201):
        with pytest.raises(SynodError, match="one line"):
            lose_party(context, record, "north", reason)
    assert "next sum is asked without it" in lose_party(context, record, "north", "gone")
    assert "lost already" in lose_party(context, record, "north", "again")
    with pytest.raises(SynodError, match="may lose 1 of its parties, and no more"):
        lose_party(context, record, "harbour", "gone too")
    assert [loss.reason for loss in context.store.losses(study.digest())] == ["gone"]
    context.store.close()


Change = Callable[[dict[str, Any]], None]


def set_loss(**changes: Any) -> Change:
    return lambda manifest: manifest["losses"][0].update(changes)


def bring_back(manifest: dict[str, Any]) -> None:
    del manifest["queries"]["rows"]["present"]


def leave_out_another(manifest: dict[str, Any]) -> None:
    manifest["queries"]["rows"]["present"] = [0, 1, 2]


def add_header(manifest: dict[str, Any]) -> None:
    manifest["parties"]["north"]["steps"] = manifest["parties"]["harbour"]["steps"][:1]


TAMPERED: dict[str, Change] = {
    "no losses": lambda manifest: manifest.pop("losses"),
    "loss removed": lambda manifest: manifest["losses"].clear(),
    "another party": set_loss(party="harbour"),
    "nobody": set_loss(party="desert"),
    "another step": set_loss(since="rows"),
    "a number for a name": set_loss(party=1),
    "one too many": lambda manifest: manifest["losses"].append({**manifest["losses"][0], "party": "hill", "since": ""}),
    "twice": lambda manifest: manifest["losses"].append(manifest["losses"][0]),
    "back in a round": bring_back,
    "another left out": leave_out_another,
    "a header of the lost party": add_header,
}


def test_a_manifest_that_says_otherwise_of_losses_does_not_verify(tmp_path: Path) -> None:
    study, parties = make_case(tmp_path)
    run = Run(tmp_path, study, parties)
    run.dead = {"north": 0}
    assert run.go() is State.PUBLISHED
    verify_release(run.release, None)
    path = run.release / MANIFEST_FILE
    genuine = json.loads(path.read_bytes())
    assert genuine["parties"]["north"] == {"steps": [], "spent": "epsilon:0", "signature": ""}
    for name, change in TAMPERED.items():
        content = {key: deepcopy(value) for key, value in genuine.items() if key not in ("signer", "signature")}
        content = {key: content[key] for key in content if key in KEYS | {"losses"}}
        change(content)
        path.write_bytes(seal_manifest(content, identity_of(CURATOR)))
        with pytest.raises(SynodError) as caught:
            verify_release(run.release, None)
        assert caught.value.code is Code.CHECK_FAILED, name
    path.write_bytes(seal_manifest({key: genuine[key] for key in KEYS | {"losses"}}, identity_of(CURATOR)))
    verify_release(run.release, None)
