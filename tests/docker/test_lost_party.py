"""Five parties in containers, one of which is killed for good after the first round and declared lost."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from synod.common.protocol.manifest import verify_release
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.marginals import SumMarginals
from synod.v1 import study_pb2 as pb
from tests.support.containers import RUN_SECONDS, Fleet
from tests.support.daemons import until
from tests.support.survivors import may_be, squares_to_promise

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]

GONE = "clinic3"
METHODS: dict[str, dict[str, Any]] = {
    "dp-subn": {"method": {"name": "dp-subn"}},
    "adaptive": {"method": {"name": "adaptive", "rounds": 2}, "delta": "1e-9"},
}


@pytest.mark.parametrize("method", METHODS)
def test_a_party_killed_after_the_first_round_and_declared_lost(
    fleets: Callable[..., Fleet], tmp_path: Path, method: str
) -> None:
    fleet = fleets(5, may_lose=1, collusion=1, epsilon="4", **METHODS[method])
    plan = plan_study(fleet.study)
    own = [step.label for step in plan.steps_of(GONE)]
    fleet.submit()
    for name in fleet.parties:
        if name != GONE:
            fleet.daemons.start_party(fleet.member(name))
    fleet.start_dying(GONE, "synod.party.daemon", "answer_round", number=2)
    until("the party is killed in its second round", lambda: fleet.exit_code(GONE) == 137, seconds=RUN_SECONDS)
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
    (label, *_) = [label for label, query in sums.items() if place not in query.places(verdict.study)]
    tables = {member.name: member.table for member in fleet.daemons.paths.members}
    squares = squares_to_promise(folder, verdict, label, tables)
    assert may_be(squares), (len(squares), squares.mean())
    assert not may_be(squares, 0.25), "half of the noise would pass"
    assert not may_be(squares, 4.0), "twice the noise would pass"


def test_a_dead_party_is_told_of_its_loss_when_it_is_back(fleets: Callable[..., Fleet]) -> None:
    """It gets back what it has not spent, and no question is answered by it again."""
    fleet = fleets(3, may_lose=1, collusion=0, **METHODS["dp-subn"])
    own = [step.label for step in plan_study(fleet.study).steps_of("clinic2")]
    fleet.submit()
    for name in ("clinic0", "clinic1"):
        fleet.daemons.start_party(fleet.member(name))
    fleet.start_dying("clinic2", "synod.party.daemon", "answer_round", number=2)
    until("the party is killed", lambda: fleet.exit_code("clinic2") == 137, seconds=RUN_SECONDS)
    until("the study waits for it alone", lambda: fleet.awaited() == ["clinic2"], seconds=RUN_SECONDS)
    with fleet.operator() as client:
        client.lose(fleet.study.name, "clinic2", "gone for good")
    fleet.await_published()
    fleet.replace("clinic2")
    ledger = until("it hears of its loss", lambda: heard(fleet), seconds=RUN_SECONDS)
    assert [charge["label"] for charge in ledger["studies"][0]["charges"]] == own[:1]
    assert ledger["held"] == "epsilon:0"


def heard(fleet: Fleet) -> dict[str, Any] | None:
    ledger = fleet.ledger("clinic2")
    return ledger if ledger["studies"][0]["state"] == "lost" else None
