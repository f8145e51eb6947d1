"""What the curator refuses to publish: one party's own answer in the clear, signed and well formed, that no table with
its public row count can give. Where the lie would pay, the test shows what it pays with the check off.
"""

import csv
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from synod.common.protocol.queries.base import bound_noise
from synod.common.protocol.queries.marginals import LocalMarginals
from synod.common.protocol.steps import Step
from synod.common.study.study import Study
from synod.curator import combine
from synod.curator.records import State
from synod.party import answer
from synod.party.count.tables import noisy_counts
from tests.support.simulation import ROWS, SimulatedSite, World, make_site, run_world
from tests.support.studies import NAMES, Table

Counts = NDArray[np.int64]
Lie = Callable[[Counts, int, int], Counts]
LIAR = 1
MOST, LEAST = 2**63 - 1, -(2**63)
POLICY = {"allow_local_queries": True}
METHODS = ({"name": "dp-subn", "theta": "0.01", "theta_frontier": "0.01"}, {"name": "independent"})


@pytest.fixture(scope="module")
def network_site(tmp_path_factory: pytest.TempPathFactory) -> SimulatedSite:
    """A study of DP-SUBN, in which parties are asked for tables of their own, one after the other; with next to no
    noise, so that what is published of so few rows is theirs.
    """
    return make_site(tmp_path_factory.mktemp("site"), method=METHODS[0], epsilon="100")


@pytest.fixture(scope="module", params=METHODS, ids=lambda method: str(method["name"]))
def local_site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SimulatedSite:
    """The same with every method that asks one party for tables of its own."""
    return make_site(tmp_path_factory.mktemp("site"), method=request.param)


def take_all(counts: Counts, rows: int, bound: int) -> Counts:
    """So many rows in the first cell that those of the other parties do not matter."""
    return np.array([2**62, *np.zeros(counts.size - 1, dtype=np.int64)])


def alternate(counts: Counts, rows: int, bound: int) -> Counts:
    """The largest and the least number that a message can hold."""
    return np.where(np.arange(counts.size) % 2, LEAST, MOST)


def wrap_around(counts: Counts, rows: int, bound: int) -> Counts:
    """Numbers that add up to the row count in 64 bits, where twice -2^63 is nothing."""
    lie = counts.copy()
    lie[:2] += LEAST
    return lie


def invent_rows(counts: Counts, rows: int, bound: int) -> Counts:
    """Every count is possible by itself, and together they are too many."""
    return np.full(counts.size, rows + bound)


LIES: dict[str, tuple[Lie, str]] = {
    "all rows in one cell": (take_all, "a released count is out of range"),
    "the ends of 64 bits": (alternate, "a released count is out of range"),
    "a sum that wraps around": (wrap_around, "a released count is out of range"),
    "rows that there are not": (invent_rows, "released counts do not add up to the row count"),
}


def make_liar(monkeypatch: pytest.MonkeyPatch, lie: Lie) -> None:
    """The second party signs and sends other counts than it has."""

    def tell(query: LocalMarginals, step: Step, study: Study, columns: Table, **coins: Any) -> Counts:
        counts = noisy_counts(query, step, study, columns, **coins)
        if step.answerers != (NAMES[LIAR],):
            return counts
        return lie(counts, ROWS[LIAR], bound_noise(query.runs(step, study)))

    monkeypatch.setattr(answer, "noisy_counts", tell)


def share_of_first_value(world: World) -> float:
    rows = [row["sex"] for row in csv.DictReader(io.StringIO(world.release()["synthetic.csv"].decode()))]
    return rows.count("F") / len(rows)


@pytest.mark.parametrize("name", LIES)
def test_counts_that_no_table_gives_are_found_and_nothing_is_published(
    local_site: SimulatedSite, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    lie, sentence = LIES[name]
    make_liar(monkeypatch, lie)
    with run_world(local_site, policy=POLICY) as world:
        world.finish()
        assert world.curator.state() is State.ABORTED
        assert world.release() == {}
        reason = world.curator.store.study(local_site.study.digest()).reason
        assert reason.startswith(f"{sentence}: the answer of {NAMES[LIAR]} to round ")
        assert reason.endswith(" is not sound.")
        assert not any(character.isdigit() for character in reason), "no count of the answer is told"
        assert world.declined == [], "the party is told of the end, and of nothing else"


def test_without_the_check_one_party_decides_what_is_published(
    network_site: SimulatedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of all rows are F. The liar has a third of the rows, and answers that 2^62 are."""
    shares = {}
    for lies in (False, True):
        if lies:
            make_liar(monkeypatch, take_all)
            monkeypatch.setattr(combine, "check_local_marginals", lambda *_: None)
        with run_world(network_site, policy={**POLICY, "max_epsilon_total": 100}) as world:
            world.finish()
            assert world.curator.state() is State.PUBLISHED
            shares[lies] = share_of_first_value(world)
    assert shares[True] == 1
    assert shares[False] < 0.8
