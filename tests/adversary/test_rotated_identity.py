"""A party's state from before a rotation of its identity: it is behind, and a curator that saw the rotation says so."""

import shutil

import pytest

from synod.common.protocol.rotation import Rotation
from synod.common.runtime.errors import SynodError
from synod.curator import party_handler
from synod.curator.roster.rotation import Witnessed
from synod.curator.store import Store
from synod.party import daemon as daemon_module
from synod.party.ledger import Ledger
from synod.party.rotation import rotate_identity
from tests.support.simulation import START, SimulatedSite, World, make_site, run_world

PARTY = 1


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> SimulatedSite:
    return make_site(tmp_path_factory.mktemp("site"))


def rotate(world: World) -> Rotation:
    """Rotates between studies."""
    world.stop_party(PARTY)
    settings = world.settings(PARTY)
    ledger = Ledger.open(settings.state)
    try:
        return rotate_identity(settings, ledger, now=START)
    finally:
        ledger.close()


def roll_back(world: World) -> None:
    """After the study the identity is rotated and used; then the state of before is there again."""
    world.finish()
    world.stop_party(PARTY)
    state, backup = world.settings(PARTY).state, world.folder / "backup"
    shutil.copytree(state, backup)
    rotate(world)
    world.converse(PARTY)
    world.stop_party(PARTY)
    shutil.rmtree(state)
    shutil.copytree(backup, state)


def converses(world: World) -> str:
    """What the daemon says when it refuses, or nothing."""
    try:
        world.converse(PARTY)
    except SynodError as error:
        return f"{error.code.value}: {error}"
    return ""


def test_a_rotated_party_goes_on_and_its_end_of_before_stays_acknowledged(site: SimulatedSite) -> None:
    with run_world(site) as world:
        world.finish()
        rotation = rotate(world)
        assert converses(world) == ""
        assert converses(world) == ""
        assert rotation in world.curator.store.rotations(rotation.name).values()
        with world.ledger(PARTY) as ledger:
            assert world.curator.store.highest_head(rotation.new, ledger.head().ledger) is not None


def test_a_state_from_before_a_rotation_is_refused(site: SimulatedSite) -> None:
    with run_world(site) as world:
        roll_back(world)
        told = converses(world)
        assert told.startswith("refused: ")
        assert "an old copy" in told


def test_without_a_look_at_the_rotations_it_would_go_on(site: SimulatedSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest head is signed by a key that the old state does not know."""
    monkeypatch.setattr(daemon_module, "check_not_rotated", lambda *_: None)
    with run_world(site) as world:
        roll_back(world)
        assert converses(world) == ""


def test_without_the_rotations_nobody_would_tell(site: SimulatedSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """A curator that knows heads by key alone lets the old copy go on."""

    def by_key_alone(store: Store, party: str, identity: bytes, ledger: bytes) -> Witnessed:
        del party
        return Witnessed(store.highest_head(identity, ledger), identity, ())

    with run_world(site) as world:
        roll_back(world)
        monkeypatch.setattr(party_handler, "witness", by_key_alone)
        assert converses(world) == ""


def test_an_earlier_key_s_signature_still_binds_the_ledger(
    site: SimulatedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clone under the old key went further than the one that was rotated: the rotated one is beside it."""
    with run_world(site) as world:
        world.finish()
        world.stop_party(PARTY)
        state, clone = world.settings(PARTY).state, world.folder / "clone"
        shutil.copytree(state, clone)
        with world.ledger(PARTY) as ledger:
            for _ in range(3):
                ledger.declare_spent("other", ledger.account().spent("none"), now=START)
        world.converse(PARTY)  # the curator sees three entries under the old key
        world.stop_party(PARTY)
        shutil.rmtree(state)
        shutil.copytree(clone, state)
        rotate(world)
        assert "behind, or beside" in converses(world)
        monkeypatch.setattr(daemon_module, "own_keys", lambda _, identity: {identity.public_key})
        assert converses(world) == ""
