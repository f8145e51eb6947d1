"""Deaths around a loss, with real daemons: every run ends as if nothing had happened, or safely.

Harbour enrols and is not heard of any more. The first sum waits for it until it is declared lost, and is then asked of
the other two. Who takes part is in the log, so every disturbed run ends in the release of the undisturbed one.
"""

import json
import shutil
from typing import Any

import pytest

from synod.common.privacy.cost import FREE
from synod.common.protocol.manifest import MANIFEST_FILE, verify_release
from synod.common.protocol.plan import plan_study
from synod.curator.records import State
from synod.curator.study_handler import StudyHandler
from synod.party.account import ApprovalState
from synod.party.approval import initialize, revoke, snapshot_folder
from synod.party.ledger import LEDGER_FILE
from tests.support.simulated_processes import KILLS, Killed
from tests.support.simulation import DATASET, START, SimulatedSite, World, make_site, run_world
from tests.support.studies import NAMES

NORTH, HARBOUR, VALLEY = range(3)
LIVES = 120
SILENCE_SECONDS = 100


@pytest.fixture(scope="module")
def lossy_site(tmp_path_factory: pytest.TempPathFactory) -> SimulatedSite:
    return make_site(tmp_path_factory.mktemp("lossy"), may_lose=1)


def facts(world: World) -> dict[str, Any]:
    """The release, but for when it was made and when the loss was declared."""
    files: dict[str, Any] = world.release()
    manifest = json.loads(files.pop(MANIFEST_FILE))
    for loss in manifest["losses"]:
        assert loss.pop("unix_seconds") >= START
    return {**files, MANIFEST_FILE: manifest}


@pytest.fixture(scope="module")
def undisturbed_loss(lossy_site: SimulatedSite) -> dict[str, Any]:
    with run_world(lossy_site) as world:
        lose_before_the_first_sum(world)
        world.finish()
        check_ledgers(world)
        return facts(world)


def lose(world: World, index: int = HARBOUR) -> str:
    effect = StudyHandler(world.curator.context).lose(world.site.study.digest(), NAMES[index], "gone")
    world.settle()
    return effect


def is_lost(world: World) -> bool:
    return bool(world.curator.store.losses(world.site.study.digest()))


def leave_harbour_behind(world: World) -> None:
    """All enrol, and the first sum waits for harbour."""
    world.converse(HARBOUR)
    world.now += SILENCE_SECONDS
    world.converse(NORTH)
    world.converse(VALLEY)
    assert world.curator.context.gathering[world.site.study.digest()].parties == (NAMES[HARBOUR],)


def lose_before_the_first_sum(world: World) -> None:
    leave_harbour_behind(world)
    assert lose(world) == "harbour is lost: the next sum is asked without it."


def entries(world: World, index: int) -> list[tuple[str, str]]:
    with world.ledger(index) as ledger:
        return [(entry["kind"], entry.get("label", entry.get("outcome", ""))) for entry in ledger.entries()]


def check_ledgers(world: World) -> None:
    """Those who stayed were charged for each step once, harbour for none; each of them is told how it ended."""
    planned = [("charged", step.label) for step in plan_study(world.site.study).steps]
    for index in (NORTH, VALLEY):
        assert entries(world, index) == [("opened", ""), ("approved", ""), *planned, ("closed", "published")]
    assert entries(world, HARBOUR) == [("opened", ""), ("approved", ""), ("closed", "lost")]
    with world.ledger(HARBOUR) as ledger:
        assert (ledger.account().spent(DATASET), ledger.account().held(DATASET)) == (FREE, FREE)
    assert not snapshot_folder(world.settings(HARBOUR), world.site.study.digest()).exists()
    assert all(len(answers) == 1 for answers in world.left.values())
    assert world.declined == []


def check_same(world: World, undisturbed: dict[str, Any]) -> None:
    world.finish()
    assert facts(world) == undisturbed
    verify_release(world.curator.context.release_folder(world.site.study.digest()), None)
    check_ledgers(world)


@pytest.mark.parametrize("when", KILLS)
def test_the_curator_dies_at_every_commit_around_a_loss(
    when: str, lossy_site: SimulatedSite, undisturbed_loss: dict[str, Any]
) -> None:
    """The commit that notes the loss, and the one that opens the sum without the lost party, are among them."""
    with run_world(lossy_site) as world:
        leave_harbour_behind(world)
        for lives in range(LIVES):
            world.kill_curator.when, world.kill_curator.commits = when, 0 if when == "after" else lives % 3
            if is_lost(world):
                world.converse((NORTH, VALLEY)[lives % 2])
            else:
                try:
                    lose(world)
                except Killed:
                    world.restart_curator()
            if world.curator.state() is State.PUBLISHED:
                break
        check_same(world, undisturbed_loss)


@pytest.mark.parametrize("when", KILLS)
@pytest.mark.parametrize("index", [NORTH, VALLEY])
def test_a_party_of_the_smaller_sum_dies_at_every_commit(
    index: int, when: str, lossy_site: SimulatedSite, undisturbed_loss: dict[str, Any]
) -> None:
    """Before its charge it is asked the same again, of the same parties; after it the stored bytes go out."""
    with run_world(lossy_site) as world:
        lose_before_the_first_sum(world)
        for lives in range(LIVES):
            world.kill_party.when, world.kill_party.commits = when, 0 if when == "after" else lives % 3
            world.converse(index)
            world.converse(VALLEY if index == NORTH else NORTH)
            if world.curator.state() is State.PUBLISHED:
                break
        check_same(world, undisturbed_loss)


@pytest.mark.parametrize("when", KILLS)
def test_the_lost_party_dies_while_it_is_told(
    when: str, lossy_site: SimulatedSite, undisturbed_loss: dict[str, Any]
) -> None:
    with run_world(lossy_site) as world:
        lose_before_the_first_sum(world)
        world.kill_party.when = when
        world.converse(HARBOUR)
        check_same(world, undisturbed_loss)


def test_a_lost_party_comes_back_while_the_study_goes_on(
    lossy_site: SimulatedSite, undisturbed_loss: dict[str, Any]
) -> None:
    with run_world(lossy_site) as world:
        lose_before_the_first_sum(world)
        assert snapshot_folder(world.settings(HARBOUR), lossy_site.study.digest()).exists()
        world.converse(HARBOUR)
        assert entries(world, HARBOUR)[-1] == ("closed", "lost")
        assert world.curator.state() is State.RUNNING
        check_same(world, undisturbed_loss)


def test_a_lost_party_in_an_open_sum_still_closes_it_and_is_then_left_out(lossy_site: SimulatedSite) -> None:
    with run_world(lossy_site) as world:
        for index in (NORTH, HARBOUR, VALLEY):
            world.converse(index)
        assert "the round moments was opened with it and cannot be closed without it" in lose(world)
        world.restart_curator()  # who takes part comes from the log, and not from who is lost by now
        for _ in range(3):
            for index in (NORTH, VALLEY):
                world.converse(index)
        assert world.curator.store.submitters(lossy_site.study.digest(), "moments") == {"north", "valley"}
        world.converse(HARBOUR)
        world.finish()
        verdict = verify_release(world.curator.context.release_folder(lossy_site.study.digest()), None)
        assert [(loss.party, loss.since) for loss in verdict.losses] == [("harbour", "rows")]
        assert {label: query.to_json().get("present") for label, query in verdict.queries.items()} == {
            "moments": None,
            "rows": [0, 2],
        }
        assert entries(world, HARBOUR)[2:] == [("charged", "moments"), ("closed", "lost")]


def test_a_store_from_before_a_sum_was_opened_cannot_ask_it_of_others(lossy_site: SimulatedSite) -> None:
    """Whoever has paid for the sum of all refuses the sum without harbour, and the study ends: nothing leaks."""
    with run_world(lossy_site) as world:
        leave_harbour_behind(world)
        world.curator.stop()
        backup = shutil.copytree(world.folder / "curator", world.folder / "backup")
        world.curator.start()
        for index in (HARBOUR, NORTH, VALLEY, NORTH, VALLEY):
            world.converse(index)
        before = {index: entries(world, index) for index in range(3)}
        assert before[NORTH][-1] == ("charged", "moments")

        world.curator.stop()
        shutil.rmtree(world.folder / "curator")
        shutil.copytree(backup, world.folder / "curator")
        world.curator.start()
        world.settle()
        lose(world)
        for index in (NORTH, VALLEY, VALLEY):
            world.converse(index)
        assert world.curator.state() is State.ABORTED
        assert [who for who, _ in world.declined] == ["valley"]  # the first to be asked, when all who are left are here
        assert "check on its side failed" in world.declined[0][1]
        assert all(len(answers) == 1 for answers in world.left.values())
        world.finish()
        for index in range(3):
            assert [entry for entry in entries(world, index) if entry[0] == "charged"] == [
                entry for entry in before[index] if entry[0] == "charged"
            ]


def test_a_party_without_its_ledger_is_lost_and_the_study_goes_on(
    lossy_site: SimulatedSite, undisturbed_loss: dict[str, Any]
) -> None:
    """It cannot answer, since its keys are gone; a new ledger knows nothing of the study, and hears that it is lost."""
    with run_world(lossy_site) as world:
        leave_harbour_behind(world)
        world.stop_party(HARBOUR)
        settings = world.settings(HARBOUR)
        for path in settings.state.glob(f"{LEDGER_FILE}*"):
            path.unlink()
        initialize(settings, spent=None, now=START)
        lose(world)
        world.converse(HARBOUR)
        world.finish()
        assert facts(world) == undisturbed_loss
        assert [kind for kind, _ in entries(world, HARBOUR) if kind in ("approved", "charged", "closed")] == []


def test_a_study_that_a_party_does_not_want_to_hear_of_does_not_count_it_as_here(lossy_site: SimulatedSite) -> None:
    """A daemon that skips a study calls every few seconds, and would not answer."""
    with run_world(lossy_site) as world:
        leave_harbour_behind(world)
        world.curator.context.see(NAMES[HARBOUR])
        world.curator.context.skipped[NAMES[HARBOUR]] = {lossy_site.study.digest()}
        world.settle()
        assert world.curator.state() is State.KEYED
        world.curator.context.skipped[NAMES[HARBOUR]] = set()
        world.curator.context.see(NAMES[HARBOUR])
        world.settle()
        assert world.curator.state() is State.RUNNING


def test_a_party_that_is_not_told_frees_the_same_by_revoking(lossy_site: SimulatedSite) -> None:
    """And what it is told later changes nothing."""
    with run_world(lossy_site) as world:
        lose_before_the_first_sum(world)
        world.stop_party(HARBOUR)
        study_hash = lossy_site.study.digest()
        revoke(world.settings(HARBOUR), study_hash, now=START)
        with world.ledger(HARBOUR) as ledger:
            assert (ledger.account().spent(DATASET), ledger.account().held(DATASET)) == (FREE, FREE)
        world.finish()
        with world.ledger(HARBOUR) as ledger:
            assert ledger.account().approvals[study_hash.hex()].state is ApprovalState.REVOKED
        verify_release(world.curator.context.release_folder(study_hash), None)
