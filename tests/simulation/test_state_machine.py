"""The life of a study: of all pairs of states, only the legal moves ever happen, and each of them does."""

import itertools
from collections.abc import Callable

import pytest

from synod.common.protocol.notices import DeclineReason, sign_acknowledgement, sign_decline
from synod.common.runtime.errors import SynodError
from synod.curator.party_handler import Notice
from synod.curator.records import State
from synod.curator.study_handler import StudyHandler
from synod.party.approval import load_identity
from tests.support.simulated_processes import Killed
from tests.support.simulation import LEGAL_MOVES, SimulatedSite, World, run_world
from tests.support.studies import NAMES

ENDED = (State.PUBLISHED, State.ABORTED)


def reach(world: World, state: State) -> None:
    """Brings a world's study to a state, and keeps the session from going on."""
    world.holds_session = True
    if state is State.ENROLLING:
        return
    for index in range(len(NAMES)):
        world.converse(index)
    for _ in range(2):  # the session's first commit notes versions, and the second fixes the transcript
        world.kill_curator.when = "after"
        with pytest.raises(Killed):
            world.curator.settle()
        world.restart_curator()
    if state is State.RUNNING:
        for name in NAMES:  # a sum is asked when all are here
            world.curator.context.see(name)
        world.curator.settle()
    elif state is State.PUBLISHED:
        world.holds_session = False
        world.finish()
    elif state is State.ABORTED:
        decline(DeclineReason.CHECK_FAILED)(world)
    assert world.curator.state() is state


def attempt(event: Callable[[World], object], world: World) -> None:
    try:
        event(world)
    except SynodError:
        return


def abort(world: World) -> None:
    StudyHandler(world.curator.context).abort(world.site.study.name, by="the operator")


def decline(reason: DeclineReason) -> Callable[[World], object]:
    def say_no(world: World) -> None:
        study_hash, identity = world.site.study.digest(), load_identity(world.settings(1))
        signature = sign_decline(identity, NAMES[1], study_hash, reason)
        world.curator.handler.decline(Notice(NAMES[1], study_hash, identity.public_key, signature), reason)

    return say_no


def acknowledge(world: World) -> None:
    study_hash, identity = world.site.study.digest(), load_identity(world.settings(0))
    outcome = world.curator.store.study(study_hash).outcome
    signature = sign_acknowledgement(identity, NAMES[0], study_hash, outcome.value if outcome else "aborted")
    world.curator.handler.acknowledge(Notice(NAMES[0], study_hash, identity.public_key, signature))


def replay_everything(world: World) -> None:
    for message in list(world.sent):
        world.deliver_again(message)


def go_on(world: World) -> None:
    world.holds_session = False
    world.settle()
    world.holds_session = True


HARMLESS: dict[str, Callable[[World], object]] = {
    "messages come again": replay_everything,
    "not approved": decline(DeclineReason.NOT_APPROVED),
    "acknowledged": acknowledge,
    "restart": lambda world: world.restart_curator(),
}
ENDING: dict[str, Callable[[World], object]] = {
    "aborted by the operator": abort,
    "declined": decline(DeclineReason.CHECK_FAILED),
}


@pytest.mark.parametrize("state", State)
def test_what_must_not_move_a_study_does_not(state: State, site: SimulatedSite) -> None:
    with run_world(site) as world:
        reach(world, state)
        events = {**HARMLESS, **(ENDING if state in ENDED else {})}
        for name, event in events.items():
            attempt(event, world)
            assert world.curator.state() is state, name
        if state in ENDED:
            go_on(world)
            world.curator.store.end_study(site.study.digest(), State.PUBLISHED)
            world.curator.store.end_study(site.study.digest(), State.ABORTED)
        assert world.curator.state() is state
        assert world.moves() <= LEGAL_MOVES


def test_of_all_pairs_exactly_the_legal_moves_happen(site: SimulatedSite) -> None:
    happened: set[tuple[State, State]] = set()
    for state, ending in itertools.product([s for s in State if s not in ENDED], ENDING.values()):
        with run_world(site) as world:
            reach(world, state)
            ending(world)
            assert world.curator.state() is State.ABORTED
            happened |= world.moves()
    with run_world(site) as world:
        world.finish()
        happened |= world.moves()
    everything = set(itertools.permutations(State, 2))
    assert happened == LEGAL_MOVES
    assert everything - happened == everything - LEGAL_MOVES
    assert len(everything) == 20
