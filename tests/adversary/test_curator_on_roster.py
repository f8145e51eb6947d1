"""A curator that is a party of its own study under another name: refused by everybody, at every step.

Among the parties it would use up what `collusion` allows, and nobody could tell what it signed as which of the two.
"""

import asyncio
from pathlib import Path

import pytest

from synod.common.crypto.canonical import canonical_bytes
from synod.common.crypto.identity import Identity
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.study import Study
from synod.curator.study_handler import StudyHandler
from synod.party.policy import check_policy
from tests.support.curators import make_context
from tests.support.keys import CURATOR, identity_of
from tests.support.parties import PartyUnderTest, make_settings, make_transcript, open_parties, seal
from tests.support.studies import make_roster, make_study


def study_with(key: str) -> Study:
    roster = make_roster()
    roster[2] |= {"key": identity_of(key).fingerprint}
    return make_study(roster=roster)


class Pretender(PartyUnderTest):
    """A party whose identity is the curator's."""

    @property
    def identity(self) -> Identity:
        """The curator's identity."""
        return identity_of(CURATOR)


def open_pretended(folder: Path) -> list[PartyUnderTest]:
    parties = open_parties(folder, study_with(CURATOR))
    last = parties[2]
    pretender = Pretender(last.study, last.name, last.snapshot, last.root, last.ledger, last.folder)
    return [*parties[:2], pretender]


def test_the_curator_takes_no_such_study(tmp_path: Path) -> None:
    async def submit(study: Study) -> None:
        await StudyHandler(make_context(tmp_path)).submit(canonical_bytes(study.to_json()))

    with pytest.raises(SynodError, match="this curator's own key") as caught:
        asyncio.run(submit(study_with(CURATOR)))
    assert caught.value.code is Code.INVALID


def test_no_party_approves_it(tmp_path: Path) -> None:
    own = identity_of("north").fingerprint
    check_policy(make_settings(tmp_path), study_with("valley"), own_key=own)
    with pytest.raises(SynodError, match="the curator's own key for a party") as caught:
        check_policy(make_settings(tmp_path), study_with(CURATOR), own_key=own)
    assert caught.value.code is Code.REFUSED


def test_no_party_answers_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parties = open_pretended(tmp_path)
    envelope = seal(make_transcript(parties[0].study, parties))
    with pytest.raises(SynodError, match="the curator of the transcript is a party"):
        parties[0].answer(envelope)
    assert parties[0].charges() == []
    monkeypatch.setattr(Study, "pins", lambda *_: False)
    assert parties[0].answer(envelope)
    assert parties[0].charges() == ["moments"]


def test_no_party_has_the_name_that_trust_files_give_the_curator() -> None:
    with pytest.raises(SynodError, match="no party can be called curator"):
        make_study(names=("curator", "harbour", "valley"))
