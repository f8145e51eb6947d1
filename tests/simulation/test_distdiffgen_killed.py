"""DistDiffGen's curator dies at every commit, between its two sums too: the release is the same, byte for byte."""

from typing import Any

import pytest

from synod.common.protocol.manifest import verify_release
from synod.curator.records import State
from synod.curator.release.redraw import redraw_rows
from tests.support.simulated_processes import KILLS
from tests.support.simulation import SimulatedSite, assert_sound, make_site, run_world
from tests.support.studies import NAMES, categorical, integer

STUDY: dict[str, Any] = {
    "method": {"name": "distdiffgen", "theta": "0.01"},
    "schema": (integer("age", 17, 90, bins=5), categorical("sex", ("F", "M"))),
}


@pytest.fixture(scope="module")
def cut_site(tmp_path_factory: pytest.TempPathFactory) -> SimulatedSite:
    return make_site(tmp_path_factory.mktemp("distdiffgen"), **STUDY)


@pytest.fixture(scope="module")
def undisturbed_cut(cut_site: SimulatedSite) -> dict[str, bytes]:
    with run_world(cut_site) as world:
        world.finish()
        assert_sound(world, world.release())
        folder = world.curator.context.release_folder(cut_site.study.digest())
        verdict = verify_release(folder, None)
        assert redraw_rows(folder, verdict.study, verdict.seed)
        return world.release()


@pytest.mark.parametrize("when", KILLS)
def test_the_curator_of_a_cut_dies_at_every_commit_in_turn(
    when: str, cut_site: SimulatedSite, undisturbed_cut: dict[str, bytes]
) -> None:
    with run_world(cut_site) as world:
        for lives in range(90):
            world.kill_curator.when, world.kill_curator.commits = when, 0 if when == "after" else lives % 3
            world.converse(lives % len(NAMES))
            if world.curator.state() is State.PUBLISHED:
                break
        world.finish()
        assert_sound(world, undisturbed_cut)
