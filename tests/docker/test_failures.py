"""What happens to a study in containers when one of them dies, freezes, is cut off, or loses its volume."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from synod.common.runtime.wire import CALL_SECONDS
from synod.deploy.launch.bundles import KEPT, write_tar
from synod.deploy.launch.docker import docker
from synod.party.daemon import WAIT_SECONDS
from synod.v1 import study_pb2 as pb
from tests.support.containers import Fleet
from tests.support.daemons import until

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]

LONGEST_CALL_SECONDS = WAIT_SECONDS + CALL_SECONDS
LAST = "clinic2"


@pytest.fixture
def running(fleets: Callable[..., Fleet]) -> Fleet:
    """A study of three parties, held where it waits for the last of them."""
    fleet = fleets(3)
    fleet.start_held_at(LAST)
    return fleet


@pytest.mark.parametrize(
    "victims", [["clinic0"], ["curator"], ["curator", "clinic0", "clinic1", LAST]], ids=["party", "curator", "all"]
)
def test_killed_in_the_middle(running: Fleet, tmp_path: Path, victims: list[str]) -> None:
    running.kill(*victims)
    assert {running.exit_code(name) for name in victims} == {137}
    if LAST not in victims:
        running.unpause(LAST)
    running.start_again(*victims)
    running.check_end(tmp_path / "release")


def test_killed_again_and_again_at_work(running: Fleet, tmp_path: Path) -> None:
    """The party that everybody waits for is killed a little later each time; the round is charged once."""
    running.unpause(LAST)
    for delay in (0.0, 0.1, 0.3, 0.9, 1.2, 1.5):
        time.sleep(delay)
        running.kill(LAST)
        running.start_again(LAST)
    running.check_end(tmp_path / "release")


def test_killed_while_enrolling(fleets: Callable[..., Fleet], tmp_path: Path) -> None:
    fleet = fleets(3)
    fleet.submit()
    fleet.daemons.start_party(fleet.member("clinic0"))
    until("the first is enrolled", lambda: "enrolled" in fleet.events("clinic0"))
    fleet.kill("curator", "clinic0")
    fleet.start_again("curator")
    fleet.daemons.start_party(fleet.member("clinic1"))
    fleet.start_again("clinic0")
    fleet.daemons.start_party(fleet.member(LAST))
    fleet.check_end(tmp_path / "release")


def test_frozen_for_longer_than_any_call_may_take(running: Fleet, tmp_path: Path) -> None:
    """The last party and the curator stand still, until the calls of all others have failed."""
    running.pause("curator")
    until(
        "a party gives the curator up",
        lambda: "waiting for the curator" in running.events("clinic0"),
        seconds=LONGEST_CALL_SECONDS + 60,
    )
    running.unpause("curator")
    running.unpause(LAST)
    running.check_end(tmp_path / "release")


def test_a_wire_that_is_cut_and_mended(running: Fleet, tmp_path: Path) -> None:
    running.cut_off(LAST)
    running.unpause(LAST)
    until(
        "the party misses the curator",
        lambda: "waiting for the curator" in running.events(LAST),
        seconds=LONGEST_CALL_SECONDS + 60,
    )
    assert running.awaited() == [LAST]
    running.heal(LAST)
    running.check_end(tmp_path / "release")


def test_everything_is_stopped_and_started(running: Fleet, tmp_path: Path) -> None:
    for name in ("curator", *running.parties[:-1]):
        running.stop(name)
    running.unpause(LAST)
    running.stop(LAST)
    running.start_again("curator", *running.parties)
    running.check_end(tmp_path / "release")


def test_a_party_that_is_gone_for_good(running: Fleet) -> None:
    """The study says for whom it waits and since when; the operator ends it, and the others are free again."""
    start = int(time.time()) - 600
    running.kill(LAST)
    (missing,) = [party for party in running.status().parties if party.awaited]
    assert missing.name == LAST
    assert start < missing.awaited_since <= int(time.time())
    assert start < missing.last_seen <= int(time.time())
    since = missing.awaited_since

    running.kill("curator")
    running.start_again("curator")
    (missing,) = [party for party in running.status().parties if party.awaited]
    assert (missing.name, missing.awaited_since) == (LAST, since)

    with running.operator() as client:
        client.abort(running.study.name)
    assert running.status().state == pb.STUDY_STATE_ABORTED
    for party in running.parties[:-1]:
        ledger = until(f"{party} is free", lambda party=party: freed(running, party))  # type: ignore[misc]
        assert ledger["held"] == "epsilon:0"
        assert ledger["spent"] == ledger["studies"][0]["spent"]


def freed(fleet: Fleet, party: str) -> dict[str, object] | None:
    ledger = fleet.ledger(party)
    return ledger if ledger["studies"][0]["state"] == "aborted" else None


def lose_volume(fleet: Fleet, party: str, **kept: bytes) -> None:
    """The party's container comes back with a volume that is empty, or has only what a backup held."""
    container = fleet.daemons.container(party)
    docker("rm", "--force", container)
    docker("volume", "rm", f"{container}-kept")
    docker("volume", "create", "--label", fleet.daemons.label, f"{container}-kept")
    filler = docker(
        "create", "--label", fleet.daemons.label, "--volume", f"{container}-kept:{KEPT}", fleet.daemons.image
    )  # fmt: skip
    with tempfile.TemporaryFile() as archive:
        write_tar({name.replace("_", "."): content for name, content in kept.items()}, archive)
        archive.seek(0)
        docker("cp", "-", f"{filler}:{KEPT}", given=archive)
    docker("rm", filler)


def run_party(fleet: Fleet, party: str, *command: str) -> None:
    """Starts a container over the party's volumes, as `start_party` does, with another command."""
    container = fleet.daemons.container(party)
    docker(
        "run", "--detach", "--name", container, "--label", fleet.daemons.label, "--network", container,
        "--tmpfs", "/run/synod:uid=10001,gid=10001,mode=0700",
        "--volume", f"{container}-kept:{KEPT}", "--volume", f"{container}-given:/etc/synod:ro",
        fleet.daemons.image, "party", *command, "--config", "/etc/synod/party.yaml",
    )  # fmt: skip


def test_a_lost_volume_does_not_go_on(fleets: Callable[..., Fleet]) -> None:
    """Without its ledger a party knows neither what it has spent nor its secrets: it stops, and says what to do.
    A new ledger with room for the study, and the old identity, still cannot go on with it.
    """
    running = fleets(3)
    config = running.member(LAST).config
    config.write_text(config.read_text().replace("max_epsilon_total: '0.8'", "max_epsilon_total: '10'"))
    assert "'10'" in config.read_text()
    running.start_held_at(LAST)
    backup = (config.parent / "state" / "identity.pem").read_bytes()

    lose_volume(running, LAST)
    run_party(running, LAST, "serve")
    until("the daemon ends", lambda: running.exit_code(LAST) != -1)
    assert running.exit_code(LAST) != 0
    assert "Run `synod party init` first" in docker("logs", running.daemons.container(LAST), both=True)

    lose_volume(running, LAST, identity_pem=backup)
    run_party(running, LAST, "init", "--spent", "0.8", "--spent-rho", "0", "--yes")
    until("init ends", lambda: running.exit_code(LAST) == 0)
    docker("rm", running.daemons.container(LAST))
    run_party(running, LAST, "serve")
    until("the new ledger is refused or has nothing to give", lambda: refusal(running) is not None)

    assert running.status().state != pb.STUDY_STATE_PUBLISHED
    assert running.kept_ledger(LAST)["studies"] == [], "the new ledger was charged"


def refusal(fleet: Fleet) -> str | None:
    """Why the party with the new ledger does not answer."""
    told = [line for line in fleet.log(LAST) if line["event"] in ("move not made", "not approved", "ended")]
    return str(told[0]["why"]) if told else None
