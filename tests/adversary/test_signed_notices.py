"""Announcements, ends, declines and acknowledgements: what somebody can do who has seen other things signed, or who can
pose as one of the two sides on the wire.

Each protection is taken away once, to see that the attack is one.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from synod.common.crypto.identity import Identity
from synod.common.protocol.heads import Head
from synod.common.protocol.notices import DeclineReason, sign_announcement, sign_end
from synod.common.runtime.errors import SynodError
from synod.common.study.study import Study
from synod.curator import party_handler as handler_module
from synod.curator.context import Context
from synod.curator.party_handler import MoveKind, NextMove, Notice, PartyHandler
from synod.curator.records import PendingStudy, State
from synod.curator.store import Store
from synod.party import daemon as daemon_module
from synod.party.account import ApprovalState
from synod.party.approval import identity_path, snapshot_folder
from tests.support.curators import acknowledged, declined, make_context
from tests.support.keys import CURATOR, identity_of
from tests.support.simulation import SimulatedSite, World, make_site, run_world
from tests.support.studies import NAMES, make_study

HEAD = Head(9, b"h" * 32, b"l" * 32)
STUDY, OTHER = make_study(), make_study(name="other")
FAILED = DeclineReason.CHECK_FAILED
ENROL_CALL = 3

# Whoever holds the authority's key can connect in a party's name, and has seen what the party signed elsewhere.


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    context = make_context(tmp_path)
    for study in (STUDY, OTHER):
        context.store.add_study(study, now=5)
    yield context
    context.store.close()


def of_this_study(notice: Notice) -> Notice:
    return replace(notice, study_hash=STUDY.digest())


def head_of_north() -> Notice:
    """The head of north's ledger, which goes out with every call."""
    north = identity_of("north")
    return Notice("north", STUDY.digest(), north.public_key, north.sign("head", HEAD.statement()))


DECLINES: dict[str, Callable[[], Notice]] = {
    "the head of its ledger": head_of_north,
    "its decline of another study": lambda: of_this_study(declined("north", OTHER, FAILED)),
    "its decline for another reason": lambda: declined("north", STUDY, DeclineReason.NOT_APPROVED),
    "its word that it knows of the end": lambda: acknowledged("north", STUDY, "aborted"),
    "the decline of another party": lambda: replace(declined("valley", STUDY, FAILED), party="north"),
    "its key and another party's signature": lambda: replace(
        declined("north", STUDY, FAILED, signer="valley"), identity=identity_of("north").public_key
    ),
}


@pytest.mark.parametrize("seen", DECLINES)
def test_what_a_party_signed_for_something_else_declines_nothing(context: Context, seen: str) -> None:
    with pytest.raises(SynodError):
        PartyHandler(context).decline(DECLINES[seen](), FAILED)
    assert context.store.study(STUDY.digest()).outcome is None


ACKNOWLEDGEMENTS: dict[str, Callable[[], Notice]] = {
    "the head of its ledger": head_of_north,
    "its word on another study": lambda: of_this_study(acknowledged("north", OTHER, "aborted")),
    "its word on another end": lambda: acknowledged("north", STUDY, "published"),
    "its decline": lambda: declined("north", STUDY, FAILED),
    "the word of another party": lambda: replace(acknowledged("valley", STUDY, "aborted"), party="north"),
}


@pytest.mark.parametrize("seen", ACKNOWLEDGEMENTS)
def test_what_a_party_signed_for_something_else_acknowledges_nothing(context: Context, seen: str) -> None:
    """Or north would never be told, and hold its budget for ever."""
    context.store.end_study(STUDY.digest(), State.ABORTED, "why")
    with pytest.raises(SynodError):
        PartyHandler(context).acknowledge(ACKNOWLEDGEMENTS[seen]())
    assert not context.store.acknowledged(STUDY.digest(), "north")


def test_without_these_checks_a_head_ends_any_study_of_its_party(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    for check in ("require_decline", "require_acknowledgement"):
        monkeypatch.setattr(handler_module, check, lambda *_: None)
    PartyHandler(context).decline(head_of_north(), FAILED)
    assert context.store.study(STUDY.digest()).outcome is State.ABORTED
    PartyHandler(context).acknowledge(head_of_north())
    assert context.store.acknowledged(STUDY.digest(), "north")


# Whoever holds the authority's key or the curator's TLS key can pose as the curator.


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> SimulatedSite:
    return make_site(tmp_path_factory.mktemp("site"))


THIEF = identity_of("thief")
ANNOUNCEMENTS: dict[str, Callable[[Study], bytes]] = {
    "nothing": lambda _: b"",
    "its own signature": lambda study: sign_announcement(THIEF, study.digest()),
    "the curator's on another study": lambda _: sign_announcement(identity_of(CURATOR), OTHER.digest()),
    "the curator's on the study's end": lambda study: sign_end(identity_of(CURATOR), study.digest(), "aborted"),
}
ENDS: dict[str, Callable[[Study], bytes]] = {
    "nothing": lambda _: b"",
    "its own signature": lambda study: sign_end(THIEF, study.digest(), "aborted"),
    "the curator's on another study": lambda _: sign_end(identity_of(CURATOR), OTHER.digest(), "aborted"),
    "the curator's on another end": lambda study: sign_end(identity_of(CURATOR), study.digest(), "published"),
    "the curator's announcement": lambda study: sign_announcement(identity_of(CURATOR), study.digest()),
}


def pose(monkeypatch: pytest.MonkeyPatch, *moves: NextMove) -> None:
    """The party's polls are answered by somebody else."""
    monkeypatch.setattr(PartyHandler, "moves", lambda *_: list(moves))


def states(world: World, index: int) -> list[ApprovalState]:
    with world.ledger(index) as ledger:
        return [approval.state for approval in ledger.account().approvals.values()]


@pytest.mark.parametrize("signature", ANNOUNCEMENTS)
def test_auto_approves_nothing_that_the_curator_has_not_announced(
    site: SimulatedSite, signature: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = site.study
    announced = NextMove(study.digest(), study.name, MoveKind.ENROL, signature=ANNOUNCEMENTS[signature](study))
    with monkeypatch.context() as posing, run_world(site, holds_session=True) as world:
        pose(posing, announced)
        world.converse(0)
        assert states(world, 0) == []
        assert {message.name for message in world.sent} == {"greet", "pull"}, "the thief gets nothing that is signed"
        posing.undo()
        world.converse(0)
        world.converse(0)
        assert states(world, 0) == [ApprovalState.OPEN], "the curator's own announcement comes later, and is heard"


def test_without_the_check_auto_approves_for_anybody(site: SimulatedSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon_module, "require_announcement", lambda *_: None)
    with run_world(site, holds_session=True) as world:
        pose(monkeypatch, NextMove(site.study.digest(), site.study.name, MoveKind.ENROL))
        world.converse(0)
        assert states(world, 0) == [ApprovalState.OPEN]


@pytest.mark.parametrize("signature", ENDS)
def test_nobody_but_the_curator_ends_a_study(
    site: SimulatedSite, signature: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = site.study
    end = NextMove(study.digest(), study.name, MoveKind.CLOSE_ABORTED, signature=ENDS[signature](study))
    with run_world(site, holds_session=True) as world:
        world.converse(0)
        before = len(world.sent)
        pose(monkeypatch, end)
        world.converse(0)
        assert states(world, 0) == [ApprovalState.OPEN]
        assert snapshot_folder(world.settings(0), study.digest()).exists()
        assert {message.name for message in world.sent[before:]} == {"greet", "pull"}, "nor is anything declined"


def test_without_the_check_anybody_does(site: SimulatedSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon_module, "require_end", lambda *_: None)
    with run_world(site, holds_session=True) as world:
        world.converse(0)
        pose(monkeypatch, NextMove(site.study.digest(), site.study.name, MoveKind.CLOSE_ABORTED))
        world.converse(0)
        assert states(world, 0) == [ApprovalState.ABORTED]


# A curator that lies about an end


def published(study: Study) -> NextMove:
    signature = sign_end(identity_of(CURATOR), study.digest(), "published")
    return NextMove(study.digest(), study.name, MoveKind.CLOSE_PUBLISHED, signature=signature)


def test_what_is_published_without_this_party_s_answers_frees_nothing(
    site: SimulatedSite, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """So an old copy of a ledger, which has forgotten the answers, does not get their cost back."""
    with run_world(site, holds_session=True) as world:
        world.converse(0)
        pose(monkeypatch, published(site.study))
        for _ in range(3):
            world.converse(0)
        assert states(world, 0) == [ApprovalState.OPEN]
        assert not any(message.name in ("decline", "acknowledge") for message in world.sent)
    told = [record.__dict__.get("why", "") for record in caplog.records]
    assert sum("has not charged all that it asked of this party" in why for why in told) == 1


def test_without_that_check_it_gets_everything_back(site: SimulatedSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon_module.Daemon, "_require_answered", lambda *_: None)
    with run_world(site, holds_session=True) as world:
        world.converse(0)
        pose(monkeypatch, published(site.study))
        world.converse(0)
        assert states(world, 0) == [ApprovalState.PUBLISHED]


# A party with a new identity


def test_a_party_with_a_new_identity_is_told_of_no_end_that_it_cannot_acknowledge(site: SimulatedSite) -> None:
    with run_world(site, holds_session=True) as world:
        world.curator.store.end_study(site.study.digest(), State.ABORTED, "why")
        renew_identity(world)
        world.converse(0)
        assert [message.name for message in world.sent] == ["greet", "pull", "pull"]


def test_an_end_that_is_told_nevertheless_is_complained_about_once(
    site: SimulatedSite, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Not at every poll, which comes every two seconds then."""
    tell = Store.pending_studies
    key = site.study.roster[0].key

    def tell_all(self: Store, party: str, _: list[str], skip: set[bytes], *, most_ended: int) -> list[PendingStudy]:
        return tell(self, party, [key], skip, most_ended=most_ended)

    monkeypatch.setattr(Store, "pending_studies", tell_all)
    with run_world(site, holds_session=True) as world:
        world.curator.store.end_study(site.study.digest(), State.ABORTED, "why")
        renew_identity(world)
        for _ in range(4):
            world.converse(0)
        assert [message.name for message in world.sent].count("acknowledge") == 1
        assert world.declined == []
    assert [record.getMessage() for record in caplog.records] == ["move not made"]


def test_a_no_that_the_curator_does_not_take_is_told_once(
    site: SimulatedSite, caplog: pytest.LogCaptureFixture
) -> None:
    """The study was approved with the identity that is gone; the curator takes no enrolment and no decline."""
    caplog.set_level("INFO", "synod.party")
    with run_world(site, holds_session=True) as world:
        world.converse(0, "lose request", ENROL_CALL)
        renew_identity(world)
        for _ in range(4):
            world.converse(0)
        assert states(world, 0) == [ApprovalState.OPEN]
        assert world.curator.store.study(site.study.digest()).outcome is None
    told = [record.getMessage() for record in caplog.records]
    assert told.count("the curator does not take this no") == told.count("move not made") == 1


def renew_identity(world: World) -> None:
    world.stop_party(0)
    path = identity_path(world.settings(0))
    path.unlink()
    Identity.generate().save(path)
    assert world.site.study.roster[0].name == NAMES[0]
