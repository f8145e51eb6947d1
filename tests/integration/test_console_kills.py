"""A console that is killed leaves the ledger as it was, or as it should be; and is stopped like any other command."""

import signal
from contextlib import closing
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from synod.common.console.checks import Address
from synod.party.account import ApprovalState
from synod.party.approval import check_study, drop_ended_snapshots, load_identity, reserve
from synod.party.ledger import Ledger
from tests.support.console_processes import Console, console
from tests.support.consoles import NOW, House, Visitor, make_house
from tests.support.daemons import CRASH_ENTRY

BEFORE, AFTER = ["opened"], ["opened", "approved"]
POINTS = {
    "synod.party.approval.save_snapshot:before:1": BEFORE,
    "synod.party.approval.save_snapshot:after:1": BEFORE,
    "synod.party.ledger.Ledger.approve:inside:1": BEFORE,
    "synod.party.ledger.Ledger.approve:after:1": AFTER,
}
ENDS = {
    "synod.party.ledger.Ledger.end_study:inside:1": AFTER,
    "synod.party.ledger.Ledger.end_study:after:1": [*AFTER, "revoked"],
}


def visit(served: Console) -> Visitor:
    """Enters the console of a process."""
    parts = urlsplit(served.link)
    visitor = Visitor(Address("http", (parts.hostname or "",), parts.port))
    assert visitor.enter(served.link).status == 200
    return visitor


def decide(visitor: Visitor, path: str, what: str) -> None:
    """Sends the form of a decision; whoever is killed meanwhile does not answer."""
    values = {"typed": path.removeprefix("/studies/")[:8]} if what == "approve" else {"sure": "yes"}
    with pytest.raises((OSError, HTTPException)):
        visitor.send(path, f"{path}/{what}", **values)


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_killed_while_it_approves(tmp_path: Path, point: str) -> None:
    house = make_house(tmp_path)
    study = house.announce("care")
    path = f"/studies/{study.digest().hex()}"
    with console("party", "console", "--config", house.config, program=(CRASH_ENTRY, point)) as served:
        decide(visit(served), path, "approve")
        assert served.process.wait(20) == -signal.SIGKILL
    assert house.kinds() == POINTS[point]
    if POINTS[point] == BEFORE:
        reserve(house.settings, check_study(house.settings, study), now=NOW)
    assert house.kinds() == AFTER, "the next attempt finds nothing in its way"
    check_whole(house)


@pytest.mark.slow
@pytest.mark.parametrize("point", ENDS)
def test_killed_while_it_revokes(tmp_path: Path, point: str) -> None:
    house = make_house(tmp_path)
    study = house.announce("care")
    reserve(house.settings, check_study(house.settings, study), now=NOW)
    path = f"/studies/{study.digest().hex()}"
    with console("party", "console", "--config", house.config, program=(CRASH_ENTRY, point)) as served:
        decide(visit(served), path, "revoke")
        assert served.process.wait(20) == -signal.SIGKILL
    assert house.kinds() == ENDS[point]
    check_whole(house)


def check_whole(house: House) -> None:
    """The ledger opens, its chain holds, the identity is there, and codes are kept of open studies alone, once another
    study is approved.
    """
    assert house.kinds()[0] == "opened"
    with closing(Ledger.open(house.settings.state)) as ledger:
        drop_ended_snapshots(house.settings, ledger.account())
        opened = [one.study for one in ledger.account().approvals.values() if one.state is ApprovalState.OPEN]
    assert [folder.name for folder in (house.settings.state / "snapshots").glob("*")] == opened
    assert load_identity(house.settings).fingerprint


def test_a_console_is_started_entered_and_stopped(tmp_path: Path) -> None:
    house = make_house(tmp_path)
    house.announce("care")
    with console("party", "console", "--config", house.config) as served:
        assert served.link.startswith("http://127.0.0.1:")
        assert "care" in visit(served).ask("/").text
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(20) == 0
    assert house.kinds() == BEFORE
