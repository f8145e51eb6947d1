"""Five parties in containers, one of which is killed for good after the first round and declared lost."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from synod.common.protocol.manifest import verify_release
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.marginals import SumMarginals
from synod.v1 import study_pb2 as pb
from tests.support.containers import RUN_SECONDS, Fleet
from tests.support.daemons import until
from tests.support.parties import as_file
from tests.support.survivors import may_be, squares_to_promise

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]

GONE = "clinic3"
METHODS: dict[str, dict[str, Any]] = {
    "dp-subn": {"method": {"name": "dp-subn"}, "epsilon": "40"},
    "adaptive": {"method": {"name": "adaptive", "rounds": 3}, "epsilon": "8", "delta": "1e-9"},
}
"""Epsilon is large, so that there are many cells, and not so large that the least noise of a share would be more."""


@pytest.mark.parametrize("method", METHODS)
def test_a_party_killed_after_the_first_round_and_declared_lost(
    fleets: Callable[..., Fleet], tmp_path: Path, method: str
) -> None:
    fleet = fleets(5, may_lose=1, collusion=1, **METHODS[method])
    plan = plan_study(fleet.study)
    own = [step.label for step in plan.steps_of(GONE)]
    fleet.submit()
    for name in fleet.parties:
        if name != GONE:
            fleet.daemons.start_party(fleet.member(name))
    fleet.start_dying(GONE, "synod.party.client:CuratorClient.submit:after")
    until("the party is dead", lambda: fleet.exit_code(GONE) == 137, seconds=RUN_SECONDS)
    until("the study waits for it alone", lambda: fleet.awaited() == [GONE], seconds=RUN_SECONDS)
    assert fleet.status().state == pb.STUDY_STATE_RUNNING
    with fleet.operator() as client:
        client.lose(fleet.study.name, GONE, "its server burned down")
    fleet.await_published()

    folder = tmp_path / "release"
    with fleet.operator() as client:
        client.fetch(fleet.study.name, folder)
    verdict = verify_release(folder, None)
    assert [(loss.party, loss.since) for loss in verdict.losses] == [(GONE, own[1])]
    for name in fleet.parties:
        charged = own[:1] if name == GONE else [step.label for step in plan.steps_of(name)]
        told = fleet.kept_ledger(GONE) if name == GONE else fleet.closed_ledger(name)
        (entry,) = told["studies"]
        assert [charge["label"] for charge in entry["charges"]] == charged

    place = fleet.parties.index(GONE)
    sums = {label: query for label, query in verdict.queries.items() if isinstance(query, SumMarginals)}
    without = [label for label, query in sums.items() if place not in query.places(verdict.study)]
    tables = {member.name: as_file(member.table) for member in fleet.daemons.paths.members}
    squares = np.concatenate([squares_to_promise(folder, verdict, label, tables) for label in without])
    law = "Gaussian" if fleet.study.delta else "Laplace"
    assert may_be(squares, law), (len(squares), squares.mean())
    assert not may_be(squares, law, 0.25), f"half of the noise would pass, in {len(squares)} cells"
    assert not may_be(squares, law, 4.0), f"twice the noise would pass, in {len(squares)} cells"
