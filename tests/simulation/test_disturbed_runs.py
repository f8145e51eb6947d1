"""A study under trouble: whatever is lost, repeated, delayed, killed or set to another time, it ends in the same
release, byte for byte, with each charge in each ledger once, and no party says two things about one question.
"""

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from synod.common.protocol.manifest import verify_release
from synod.curator.records import State
from synod.curator.release.redraw import redraw_rows
from tests.support.operations import (
    DeliverLate,
    KillCurator,
    KillParty,
    Operation,
    Replay,
    RestartCurator,
    RestartParty,
    SetClock,
    Talk,
)
from tests.support.simulated_lines import FAULTS
from tests.support.simulated_processes import KILLS
from tests.support.simulation import SimulatedSite, assert_sound, make_site, run_world
from tests.support.studies import NAMES, categorical, integer

CALLS = 6
YEAR = 366 * 24 * 3600


parties = st.integers(0, len(NAMES) - 1)
operations = st.one_of(
    st.builds(Talk, parties),
    st.builds(Talk, parties, st.sampled_from(FAULTS), st.integers(0, CALLS)),
    st.builds(KillParty, parties, st.sampled_from(KILLS), st.integers(0, 1)),
    st.builds(RestartParty, parties),
    st.builds(KillCurator, st.sampled_from(KILLS), st.integers(0, 6)),
    st.builds(RestartCurator),
    st.builds(SetClock, st.sampled_from(("curator", *NAMES)), st.integers(-YEAR, YEAR)),
    st.builds(DeliverLate, st.integers(0, 9)),
    st.builds(Replay, st.integers(0, 99)),
)
EVERYBODY = [Talk(party) for party in range(len(NAMES))]


def run(site: SimulatedSite, undisturbed: dict[str, bytes], happenings: list[Operation], **changes: Any) -> None:
    with run_world(site, **changes) as world:
        for operation in happenings:
            operation.happen(world)
        world.finish()
        assert_sound(world, undisturbed)
        for message in world.sent[:: max(1, len(world.sent) // 20)]:
            world.deliver_again(message)
        assert_sound(world, undisturbed)


def test_an_undisturbed_run_is_published_and_verified(site: SimulatedSite) -> None:
    with run_world(site) as world:
        world.finish()
        assert_sound(world, world.release())
        assert set(world.release()) == {
            "manifest.json",
            "model.json",
            "report.html",
            "answers.parquet",
            "synthetic.csv",
            "synthetic.parquet",
        }
        verify_release(world.curator.context.release_folder(site.study.digest()), None)
        assert list(dict.fromkeys(world.states)) == [State.ENROLLING, State.KEYED, State.RUNNING, State.PUBLISHED]


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(happenings=st.lists(operations, max_size=25))
@example(happenings=[*EVERYBODY, *(Talk(party, "lose reply", 4) for party in range(3))])
@example(happenings=[*EVERYBODY, Talk(1, "delay", 4), Talk(1), DeliverLate(0), RestartCurator(), DeliverLate(0)])
@example(happenings=[KillParty(0, "after"), KillParty(1, "before"), *EVERYBODY, KillParty(0, "after")])
def test_any_trouble_ends_in_the_same_release(
    happenings: list[Operation], site: SimulatedSite, undisturbed: dict[str, bytes]
) -> None:
    run(site, undisturbed, happenings)


@pytest.mark.slow
@pytest.mark.timeout(1500)
@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(happenings=st.lists(operations, min_size=5, max_size=60))
def test_much_trouble_ends_in_the_same_release(
    happenings: list[Operation], site: SimulatedSite, undisturbed: dict[str, bytes]
) -> None:
    run(site, undisturbed, happenings)


@pytest.mark.parametrize("when", KILLS)
def test_the_curator_dies_at_every_commit_in_turn(
    when: str, site: SimulatedSite, undisturbed: dict[str, bytes]
) -> None:
    """One life for each commit: it gets one further each time, or not at all."""
    with run_world(site) as world:
        for lives in range(60):
            world.kill_curator.when, world.kill_curator.commits = when, 0 if when == "after" else lives % 3
            world.converse(lives % len(NAMES))
            if world.curator.state() is State.PUBLISHED:
                break
        world.finish()
        assert_sound(world, undisturbed)


@pytest.mark.parametrize("call", range(CALLS))
@pytest.mark.parametrize("fault", FAULTS)
def test_the_same_call_fails_for_everybody_again_and_again(
    fault: str, call: int, site: SimulatedSite, undisturbed: dict[str, bytes]
) -> None:
    run(site, undisturbed, [Talk(party, fault, call) for _ in range(4) for party in range(len(NAMES))])


# Adaptive: five rounds, each query made from the answers to those before, and notes of what shaped it

ADAPTIVE: dict[str, Any] = {
    "method": {"name": "adaptive", "rounds": 5},
    "epsilon": "200",
    "delta": "1e-9",
    "schema": (categorical("sex", ("F", "M")), integer("age", 17, 90, bins=5)),
}
POLICY: dict[str, Any] = {"max_rho_total": {"epsilon": "200", "delta": "1e-9"}}


@pytest.fixture(scope="module")
def adaptive_site(tmp_path_factory: pytest.TempPathFactory) -> SimulatedSite:
    return make_site(tmp_path_factory.mktemp("adaptive"), **ADAPTIVE)


@pytest.fixture(scope="module")
def adaptive_undisturbed(adaptive_site: SimulatedSite) -> dict[str, bytes]:
    with run_world(adaptive_site, policy=POLICY) as world:
        world.finish()
        assert_sound(world, world.release())
        folder = world.curator.context.release_folder(adaptive_site.study.digest())
        verdict = verify_release(folder, None)
        assert redraw_rows(folder, verdict.study, verdict.seed)
        return world.release()


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(happenings=st.lists(operations, max_size=25))
def test_any_trouble_with_adaptive_ends_in_the_same_release(
    happenings: list[Operation], adaptive_site: SimulatedSite, adaptive_undisturbed: dict[str, bytes]
) -> None:
    run(adaptive_site, adaptive_undisturbed, happenings, policy=POLICY)


@pytest.mark.parametrize("when", KILLS)
def test_adaptives_curator_dies_at_every_commit_in_turn(
    when: str, adaptive_site: SimulatedSite, adaptive_undisturbed: dict[str, bytes]
) -> None:
    with run_world(adaptive_site, policy=POLICY) as world:
        for lives in range(150):
            world.kill_curator.when, world.kill_curator.commits = when, 0 if when == "after" else lives % 3
            world.converse(lives % len(NAMES))
            if world.curator.state() is State.PUBLISHED:
                break
        world.finish()
        assert_sound(world, adaptive_undisturbed)
