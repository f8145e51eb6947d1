"""The curator of each method dies at every commit, between any two rounds too: the release is the same, byte for byte.

Adaptive has this in test_disturbed_runs.py.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from synod.common.protocol.manifest import verify_release
from synod.common.study.study import known_methods
from synod.curator.records import State
from tests.support.simulated_processes import KILLS
from tests.support.simulation import SimulatedSite, assert_sound, make_site, run_world
from tests.support.studies import NAMES, categorical, integer

SCHEMA = (integer("age", 17, 90, bins=5), categorical("sex", ("F", "M")))
EPSILON = 20  # enough that every method asks all kinds of its queries
POLICY: dict[str, Any] = {"allow_local_queries": True, "max_epsilon_total": EPSILON}
BITS = {"encoding": "binary"}
KEYS: dict[str, dict[str, Any]] = {"distdiffgen": {"theta": "0.01"}, "dp-subn": BITS, "privbayes": BITS}
METHODS = sorted(known_methods().keys() - {"adaptive"})
MOST_LIVES = 150


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[SimulatedSite, dict[str, bytes]]]:
    """A site for each method, and what is published there if nothing happens."""

    @cache
    def undisturbed(method: str) -> tuple[SimulatedSite, dict[str, bytes]]:
        keys = {"name": method, **KEYS.get(method, {})}
        site = make_site(tmp_path_factory.mktemp(method), method=keys, schema=SCHEMA, epsilon=str(EPSILON))
        with run_world(site, policy=POLICY) as world:
            world.finish()
            assert_sound(world, world.release())
            assert verify_release(world.curator.context.release_folder(site.study.digest()), None)
            return site, world.release()

    return undisturbed


@pytest.mark.slow
@pytest.mark.parametrize("when", KILLS)
@pytest.mark.parametrize("method", METHODS)
def test_the_curator_of_a_method_dies_at_every_commit_in_turn(
    method: str, when: str, runs: Callable[[str], tuple[SimulatedSite, dict[str, bytes]]]
) -> None:
    site, undisturbed = runs(method)
    with run_world(site, policy=POLICY) as world:
        for lives in range(MOST_LIVES):
            world.kill_curator.when, world.kill_curator.commits = when, 0 if when == "after" else lives % 3
            world.converse(lives % len(NAMES))
            if world.curator.state() is State.PUBLISHED:
                break
        world.finish()
        assert_sound(world, undisturbed)
