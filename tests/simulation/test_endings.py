"""How studies end badly: by a failed check, by the operators of either side. What was not spent is free again."""

import json
from decimal import Decimal
from typing import Any

import pytest

from synod.common.crypto.canonical import canonical_bytes
from synod.common.privacy.cost import FREE, Cost
from synod.curator.party_handler import DocumentKind, PartyHandler
from synod.curator.records import State
from synod.curator.study_handler import StudyHandler
from synod.party import daemon as daemon_module
from synod.party.approval import revoke, snapshot_folder
from tests.support.simulation import LEGAL_MOVES, SimulatedSite, World, run_world
from tests.support.studies import NAMES

SUBMIT_CALL = 5  # after greet, pull, greet again before a charge, document and query


def assert_all_closed(world: World, spent: dict[str, str]) -> None:
    """Each ledger is closed as it should be, holds nothing, and has spent what was answered."""
    assert world.curator.state() is State.ABORTED
    assert world.release() == {}
    assert world.moves() <= LEGAL_MOVES
    for index, name in enumerate(NAMES):
        with world.ledger(index) as ledger:
            account = ledger.account()
        assert account.held("ward") == FREE
        assert account.spent("ward") == Cost.pure(Decimal(spent[name]))
        assert not snapshot_folder(world.settings(index), world.site.study.digest()).exists()


def alter_transcript(handler: PartyHandler, monkeypatch: pytest.MonkeyPatch, victim: str) -> None:
    """The curator shows one party another transcript."""
    honest = PartyHandler.document

    def document(self: PartyHandler, party: str, study_hash: bytes, kind: DocumentKind) -> bytes:
        content = honest(self, party, study_hash, kind)
        if party != victim or kind is not DocumentKind.TRANSCRIPT:
            return content
        envelope: dict[str, Any] = json.loads(content)
        envelope["key"]["h_s"] = "1"
        return canonical_bytes(envelope)

    monkeypatch.setattr(PartyHandler, "document", document)


def test_a_failed_check_ends_the_study_and_frees_what_it_held(
    site: SimulatedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    with run_world(site) as world:
        alter_transcript(world.curator.handler, monkeypatch, NAMES[1])
        world.finish()
        assert world.declined == [(NAMES[1], "a check on its side failed; its operator sees which")]
        assert_all_closed(world, dict(zip(NAMES, "100", strict=True)))


def test_a_defect_in_one_move_ends_its_study_and_not_the_daemon(
    site: SimulatedSite, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody foresaw it, so it has no sentence; its text may hold a value, and is not sent or kept."""

    def fail(*_: object) -> None:
        raise ZeroDivisionError("Zachariah")

    monkeypatch.setattr(daemon_module, "check_round", fail)
    with run_world(site) as world:
        world.finish()
        assert {reason for _, reason in world.declined} == {"a check on its side failed; its operator sees which"}
        assert_all_closed(world, dict.fromkeys(NAMES, "0"))
    told = [record.__dict__.get("why", "") for record in caplog.records]
    assert any("a defect: ZeroDivisionError." in why for why in told)
    assert not any("Zachariah" in why for why in told)


def test_an_aborted_study_frees_what_it_held(site: SimulatedSite) -> None:
    with run_world(site) as world:
        for index in (0, 1, 2, 0):
            world.converse(index)
        StudyHandler(world.curator.context).abort(site.study.name, by="the operator")
        world.finish()
        assert world.declined == []
        assert_all_closed(world, dict(zip(NAMES, "100", strict=True)))


def test_a_study_aborted_while_an_answer_is_on_its_way_frees_what_it_held(site: SimulatedSite) -> None:
    with run_world(site) as world:
        for index in range(3):
            world.converse(index)
        world.converse(0, "delay", SUBMIT_CALL)
        StudyHandler(world.curator.context).abort(site.study.name, by="the operator")
        world.deliver_again(world.delayed.pop())
        world.finish()
        assert_all_closed(world, dict(zip(NAMES, "100", strict=True)))


def test_nothing_leaves_after_a_revocation(site: SimulatedSite) -> None:
    with run_world(site) as world:
        for index in range(3):
            world.converse(index)
        world.converse(2, "lose request", SUBMIT_CALL)
        with world.ledger(2) as ledger:
            assert ledger.answer(site.study.digest(), "moments") is not None
        revoke(world.settings(2), site.study.digest(), now=int(world.now))
        before = len(world.sent)
        world.finish()
        assert not any(m.name == "submit" and m.party == NAMES[2] for m in world.sent[before:])
        assert world.declined == [(NAMES[2], "its operator revoked the approval")]
        assert_all_closed(world, dict(zip(NAMES, "111", strict=True)))


def test_a_study_that_is_not_approved_waits(site: SimulatedSite) -> None:
    with run_world(site, approvals="ask") as world:
        for index in (0, 1, 2, 0, 1, 2):
            world.converse(index)
        assert world.curator.state() is State.ENROLLING
        assert set(world.declined) == {(name, "not-approved") for name in NAMES}
        for index in range(3):
            with world.ledger(index) as ledger:
                assert ledger.account().approvals == {}
