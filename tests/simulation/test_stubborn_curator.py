"""A curator that does not take no for an answer: it asks on after a revocation, shows other studies than it names, or
is another than the pinned one.

What a party does by itself, without its operator, is the least that it can be talked into.
"""

from pathlib import Path
from typing import Any

import pytest

from synod.common.crypto.canonical import canonical_bytes
from synod.common.privacy.cost import FREE
from synod.common.runtime.errors import SynodError
from synod.common.runtime.settings import PartySettings
from synod.common.study.study import Study, parse_study
from synod.curator.party_handler import DocumentKind, PartyHandler
from synod.party import daemon as daemon_module
from synod.party.approval import CheckedStudy, check_study, revoke
from tests.support.keys import identity_of
from tests.support.parties import file_of
from tests.support.simulation import DATASET, SCHEMA, SimulatedSite, World, run_world
from tests.support.studies import NAMES, integer

SUBMIT_CALL = 5  # after greet, pull, greet again before a charge, document and query


def another(study: Study, name: str, **changes: Any) -> Study:
    """A study of the same roster, which the table fits too unless the changes are such."""
    return parse_study({**study.to_json(), "name": name, **changes}, "the test's study").resolve()


def table_of(world: World, index: int) -> Path:
    return file_of(world.settings(index))


def approvals(world: World, index: int) -> dict[str, str]:
    """The studies in a party's ledger, by name, with their states."""
    with world.ledger(index) as ledger:
        return {one.name: one.state.value for one in ledger.account().approvals.values()}


# Revoked


def test_a_stored_answer_of_a_revoked_study_is_not_sent_however_often_it_is_asked_for(
    site: SimulatedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer was computed, charged and stored; its request was lost. Then the operator revoked."""
    monkeypatch.setattr(PartyHandler, "decline", lambda *_: None)
    with run_world(site) as world:
        for index in range(3):
            world.converse(index)
        world.converse(2, "lose request", SUBMIT_CALL)
        with world.ledger(2) as ledger:
            assert ledger.answer(site.study.digest(), "moments") is not None
        revoke(world.settings(2), site.study.digest(), now=int(world.now))
        before = len(world.sent)
        for _ in range(2):
            world.converse(2)
            world.stop_party(2)
        assert {message.name for message in world.sent[before:]} == {"greet", "pull", "decline"}
        assert world.curator.store.submitters(site.study.digest(), "moments") == set()


def test_a_stored_answer_is_sent_again_as_it_is(site: SimulatedSite) -> None:
    """Without a second charge, and without a look at the table; the control of the test above."""
    with run_world(site) as world:
        for index in range(3):
            world.converse(index)
        world.converse(2, "lose request", SUBMIT_CALL)
        world.converse(2)
        assert world.declined == []
        assert len(world.left[NAMES[2], "moments"]) == 1
        assert world.curator.store.submitters(site.study.digest(), "moments") == {NAMES[2]}
        with world.ledger(2) as ledger:
            assert [entry["kind"] for entry in ledger.entries()].count("charged") == 1


# `approve: auto`


def test_a_study_that_is_not_the_announced_one_is_not_approved(
    site: SimulatedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is within the policy, and the table fits it; but the curator announced another."""
    other = another(site.study, "other")
    honest = PartyHandler.document

    def show(self: PartyHandler, party: str, study_hash: bytes, kind: DocumentKind) -> bytes:
        if kind is DocumentKind.STUDY:
            return canonical_bytes(other.to_json())
        return honest(self, party, study_hash, kind)

    monkeypatch.setattr(PartyHandler, "document", show)
    with run_world(site) as world:
        world.converse(0)
        assert approvals(world, 0) == {}
        assert world.declined == [(NAMES[0], "a check on its side failed; its operator sees which")]


def add_study(world: World, study: Study) -> None:
    world.curator.store.add_study(study, now=int(world.now))


def test_after_a_table_that_does_not_fit_nothing_is_approved_automatically(
    site: SimulatedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or study after study, with other domains each, would tell where the values are."""
    looked_at: list[str] = []

    def look(settings: PartySettings, study: Study) -> CheckedStudy:
        looked_at.append(study.name)
        return check_study(settings, study)

    monkeypatch.setattr(daemon_module, "check_study", look)
    with run_world(site, holds_session=True) as world:
        path = table_of(world, 0)
        path.write_text(path.read_text().replace(",17\n", ",16\n"))
        world.converse(0)
        assert approvals(world, 0) == {}
        add_study(world, another(site.study, "wider", schema=[SCHEMA[0], integer("age", 16, 90)]))
        world.converse(0)
        assert approvals(world, 0) == {}
        assert looked_at == [site.study.name], "the second study is not even looked at"
        with world.ledger(0) as ledger:
            assert ledger.account().held(DATASET) == FREE
        assert {reason for _, reason in world.declined} == {"not-approved"}


def test_after_a_study_that_the_policy_refuses_the_next_is_approved(site: SimulatedSite) -> None:
    """That tells nothing of the rows; the control of the test above."""
    with run_world(site, policy={"max_epsilon_per_study": "0.5"}, holds_session=True) as world:
        world.converse(0)
        assert approvals(world, 0) == {}
        add_study(world, another(site.study, "cheaper", epsilon="0.5"))
        world.converse(0)
        assert approvals(world, 0) == {"cheaper": "open"}


# The greeting


def test_a_curator_that_is_not_the_pinned_one_is_asked_for_nothing(site: SimulatedSite) -> None:
    stranger = identity_of("stranger").fingerprint
    with run_world(site, policy={"curator": stranger}, holds_session=True) as world:
        with pytest.raises(SynodError, match="not the one that `curator` pins"):
            world.converse(0)
        assert [message.name for message in world.sent] == ["greet"]
        assert approvals(world, 0) == {}
