"""A party's machine is lost with its disk at any moment of a study that may lose a party, and its backup, made at any
moment before, is restored on another machine: the party goes on with the same answers, or the restoration and the
daemon refuse with the reason and the study goes on without it. There are never two answers.
"""

import io

import pytest

from synod.common.crypto.identity import Identity
from synod.common.protocol.heads import Head, LedgerBehindError
from synod.common.protocol.manifest import verify_release
from synod.common.runtime.errors import Code, SynodError
from synod.curator.records import State
from synod.curator.study_handler import StudyHandler
from synod.party.approval import identity_path
from synod.party.client import Greeting
from synod.party.ledger import LEDGER_FILE
from synod.party.operations.backup import write_backup
from synod.party.operations.restore import examine, place, reserved, unpacked
from tests.support.parties import file_of
from tests.support.simulated_lines import Line
from tests.support.simulation import SimulatedSite, World, make_site, run_world

PARTY, COPY = 1, 1
LABELS = ("moments", "rows")
SUBMITTING = 5
"""The call of a conversation that hands an answer in."""
MOMENTS = (
    "not approved",
    "enrolled",
    "first answer not sent",
    "first answered",
    "second answer not sent",
    "second answered",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> SimulatedSite:
    return make_site(tmp_path_factory.mktemp("elsewhere"), may_lose=1)


def come_to(world: World, moment: str) -> None:
    """The party's next step in the life of the study."""
    match moment:
        case "enrolled":
            for index in range(len(world.names)):
                world.converse(index)
            for index in range(len(world.names)):
                world.curator.context.see(world.names[index])
            world.settle()
        case "first answer not sent" | "second answer not sent":
            world.converse(PARTY, "lose request", SUBMITTING)
        case "first answered":
            for index in (PARTY, 0, 2):
                world.converse(index)
        case "second answered":
            world.converse(PARTY)


def back_up(world: World) -> bytes:
    file = io.BytesIO()
    write_backup(world.settings(PARTY), b"the configuration", file, None, now=int(world.now))
    return file.getvalue()


def restore_elsewhere(world: World, backup: bytes, *, asks: bool) -> None:
    """What `synod party restore` does on the other machine; asks the curator unless told not to."""
    settings = world.settings(PARTY, COPY)
    file_of(settings).write_bytes(file_of(world.settings(PARTY)).read_bytes())

    def greet(identity: Identity, head: Head) -> Greeting:
        return Line(world, settings.name, identity).greet(head)

    with reserved(settings), unpacked(settings, io.BytesIO(backup), None) as found:
        list(examine(settings, found, greet=greet if asks else None, releases=(), exports=()))
        place(settings, found, identity_only=False)


def entries_of(world: World, copy: int) -> list[str]:
    with world.ledger(PARTY, copy) as ledger:
        return [entry["label"] for entry in ledger.entries() if entry["kind"] == "charged"]


def others_talk(world: World, times: int) -> None:
    for _ in range(times):
        for index in range(len(world.names)):
            if index != PARTY:
                world.converse(index)


def head_of(world: World) -> Head:
    with world.ledger(PARTY) as ledger:
        return ledger.head()


def seen_of(world: World) -> int:
    """The last entry of the party's ledger that came to the curator."""
    key = Identity.load(identity_path(world.settings(PARTY))).public_key
    seen = world.curator.store.highest_head(key, head_of(world).ledger)
    return 0 if seen is None else seen.sequence


CASES = [(made, lost) for lost in range(len(MOMENTS)) for made in range(lost + 1)]


@pytest.mark.parametrize(
    ("made", "lost"), CASES, ids=[f"made when {MOMENTS[made]}, lost when {MOMENTS[lost]}" for made, lost in CASES]
)
def test_a_lost_machine_comes_back_or_is_refused(site: SimulatedSite, made: int, lost: int) -> None:
    with run_world(site, salted=True) as world:
        backup, kept = b"", 0
        for number, moment in enumerate(MOMENTS[: lost + 1]):
            come_to(world, moment)
            if number == made:
                backup, kept = back_up(world), head_of(world).sequence
        charged, seen = entries_of(world, 0), seen_of(world)
        world.stop_party(PARTY)
        if kept >= seen:
            goes_on(world, backup)
        else:
            is_refused(world, backup)
            ends_without(world)
        assert all(len(sent) == 1 for sent in world.left.values())
        assert len({submission.transcript for sent in world.left.values() for submission, _ in sent}) <= 1
        assert entries_of(world, 0) == charged, "the lost machine was never asked again"


def goes_on(world: World, backup: bytes) -> None:
    restore_elsewhere(world, backup, asks=True)
    for _ in range(3):
        world.converse(PARTY, copy=COPY)
        others_talk(world, 1)
    assert world.curator.state() is State.PUBLISHED
    assert entries_of(world, COPY) == list(LABELS)
    verdict = verify_release(world.curator.context.release_folder(world.site.study.digest()), None)
    assert verdict.losses == ()


def is_refused(world: World, backup: bytes) -> None:
    """When the curator is asked before anything is restored, and by the daemon where it was not."""
    state = world.settings(PARTY, COPY).state
    with pytest.raises(SynodError, match="the backup is older than what the curator has seen of this ledger") as caught:
        restore_elsewhere(world, backup, asks=True)
    assert caught.value.code is Code.REFUSED
    assert not (state / LEDGER_FILE).exists()
    restore_elsewhere(world, backup, asks=False)
    with pytest.raises(LedgerBehindError):
        world.converse(PARTY, copy=COPY)


def ends_without(world: World) -> None:
    """The party is declared lost. A sum that waits for its answer is not closed without it, and then the study ends;
    any other study is published.
    """
    handler, study = StudyHandler(world.curator.context), world.site.study
    effect = handler.lose(study.digest(), world.names[PARTY], "its disk is lost")
    others_talk(world, 3)
    if "cannot be closed without it" in effect:
        assert world.curator.state() is State.RUNNING
        handler.abort(study.name, by="the operator")
        others_talk(world, 1)
    else:
        assert world.curator.state() is State.PUBLISHED
