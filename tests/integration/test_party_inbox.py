"""A party's operator reads and approves what the daemon has heard of, with real processes: no file travels by mail."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from synod.common.protocol.plan import plan_study
from synod.party.inbox.listing import list_views
from synod.v1 import study_pb2 as pb
from tests.support.daemons import Site, check_charges, run_synod, until
from tests.support.webhooks import listening

ASKED, OTHERS = "harbour", ("north", "valley")


def views(site: Site, *, ended: bool = False) -> list[dict[str, Any]]:
    return [view.to_json() for view in list_views(site.settings(ASKED), ended=ended)]


def approved_there(site: Site) -> list[str]:
    return [entry["name"] for view in views(site) for entry in view["roster"] if entry["approved"]]


@pytest.fixture
def told(site: Site) -> Iterator[list[tuple[str, Any]]]:
    """The events that the curator posts, as they come."""
    with listening() as (url, posted):
        site.change(site.paths.curator_config, webhook=url)
        yield posted


def kinds(told: list[tuple[str, Any]]) -> list[str]:
    return [event["event"] for _, event in told]


def test_a_study_is_read_and_approved_without_a_file(site: Site, told: list[tuple[str, Any]]) -> None:
    site.change(site.config(ASKED), approve="ask")
    site.start_curator()
    site.submit()
    site.start_party(ASKED)
    (view,) = until("the daemon keeps what is announced", lambda: views(site))
    assert (view["name"], view["hash"], view["state"]) == (site.study.name, site.study.digest().hex(), "waiting")
    assert view["problem"] == ""
    assert [step["label"] for step in view["steps"]] == [s.label for s in plan_study(site.study).steps_of(ASKED)]
    assert approved_there(site) == []
    site.start_parties(*OTHERS)
    until("the others have approved, as the curator says", lambda: approved_there(site) == list(OTHERS))

    config = ("--config", site.config(ASKED))
    shown = run_synod("party", "show", site.study.name, *config)
    assert shown.returncode == 0, shown.stderr
    assert all(attribute.name in shown.stdout for attribute in site.study.attributes)
    assert "harbour" in run_synod("party", "studies", "--json", *config).stdout
    other = run_synod("party", "approve", site.study.name, "--hash", "0" * 16, "--yes", *config)
    assert other.returncode == 3, other.stderr
    done = run_synod("party", "approve", site.study.name, "--hash", view["hash"][:16], "--yes", *config)
    assert done.returncode == 0, done.stderr
    site.await_state(pb.STUDY_STATE_PUBLISHED)
    site.await_closed()
    check_charges(site)
    assert views(site) == []
    (ended,) = views(site, ended=True)
    assert ended["state"] == "published"
    entries = json.loads(run_synod("party", "ledger", "--json", *config).stdout)["entries"]
    assert [entry["kind"] for entry in entries] == ["opened", "approved", "charged", "charged", "closed"]
    until("the last event is posted", lambda: len(told) == 5)
    assert kinds(told) == ["waiting", "approved", "approved", "approved", "published"]
    last = told[3][1]
    assert (last["party"], last["waits_for"], last["hash"]) == (ASKED, [], site.study.digest().hex())


def test_a_study_that_ends_before_the_decision_is_forgotten(site: Site, told: list[tuple[str, Any]]) -> None:
    site.change(site.config(ASKED), approve="ask")
    site.start_curator()
    site.submit()
    site.start_party(ASKED)
    until("the daemon keeps what is announced", lambda: views(site))
    site.kill(ASKED)
    assert len(views(site)) == 1, "it is kept while no daemon runs"
    with site.operator() as client:
        client.abort(site.study.name)
    site.start_party(ASKED)
    until("the daemon forgets it", lambda: views(site) == [])
    until("the end is posted", lambda: kinds(told) == ["waiting", "aborted"])
