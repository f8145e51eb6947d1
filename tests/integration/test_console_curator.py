"""The curator operator's console with a real curator: what it does is to be seen there, and whoever is not the operator
changes nothing.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

import pytest
import yaml

from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.settings import CuratorSettings, OperatorSettings, load_settings
from synod.deploy.console.routes import ABORTED, SUBMITTED, CuratorConsole, make_pages
from synod.deploy.launch.operator import OperatorClient
from synod.v1 import study_pb2 as pb
from tests.support.consoles import Answer, Served, Visitor, serving
from tests.support.daemons import Site, make_site

ANNOUNCED, DRAFTED = "announced", "drafted"


class Form(NamedTuple):
    """A form of the console: the page that it is on, where it goes, and what a person would enter."""

    page: str
    action: str
    values: dict[str, str]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A curator with one study that waits for parties."""
    site = make_site(tmp_path_factory.mktemp("curator"))
    try:
        site.start_curator()
        site.submit(site.another_study(ANNOUNCED))
        yield site
    finally:
        site.stop_all()


@pytest.fixture(scope="module")
def console(site: Site) -> Iterator[Served]:
    settings = load_settings(OperatorSettings, site.paths.operator_config)
    curator = load_settings(CuratorSettings, site.paths.curator_config)
    pages = make_pages(settings)
    with ExitStack() as stack:
        served = stack.enter_context(CuratorConsole(settings, curator, pages, live_seconds=0.05))
        yield stack.enter_context(serving("curator", pages, served.routes()))


@pytest.fixture
def visitor(console: Served) -> Visitor:
    console.begin_anew()
    return console.entered()


@pytest.fixture(params=["submit", "abort", "lose", "kits"])
def form(request: pytest.FixtureRequest, site: Site, visitor: Visitor) -> Form:
    """Everything that changes something, each with what would do it."""
    study = f"/studies/{ANNOUNCED}"
    if request.param == "submit":
        draft = hand_in(visitor, site, DRAFTED)
        return Form(draft, f"{draft}/submit", {})
    forms = {
        "abort": Form(study, f"{study}/abort", {"typed": ANNOUNCED}),
        "lose": Form(study, f"{study}/lose", {"party": "valley", "reason": "it burned down", "sure": "yes"}),
        "kits": Form("/kits", "/kits", {"address": "curator.example.org:7443", "contact": "Send it to us."}),
    }
    return forms[request.param]


@pytest.fixture
def unchanged(site: Site, visitor: Visitor) -> Iterator[None]:
    """The study waits, the draft is with nobody, and no kit was made."""
    yield
    found = site.status(ANNOUNCED)
    assert (found.state, list(found.losses)) == (pb.STUDY_STATE_ENROLLING, [])
    with pytest.raises(SynodError) as caught:
        site.status(DRAFTED)
    assert caught.value.code is Code.NOT_FOUND
    assert visitor.ask("/kits/curator.kit").status == 404


def hand_in(visitor: Visitor, site: Site, name: str) -> str:
    """The page of a study that was checked and not submitted."""
    text = yaml.safe_dump(site.another_study(name).to_json(), sort_keys=False)
    answer = visitor.send("/submit", "/submit", text=text)
    assert answer.status == 303, answer.text
    return answer.headers["location"]


def assert_refused(answer: Answer, status: int) -> None:
    assert answer.status == status, answer.text
    assert ANNOUNCED not in answer.body
    assert DRAFTED not in answer.body


def test_a_rebound_host(visitor: Visitor, form: Form, unchanged: None) -> None:
    sent = {"form": visitor.ask(form.page).form(form.action), **form.values}
    name = f"evil.example:{visitor.address.port}"
    assert_refused(visitor.ask(form.page, host=name), 421)
    assert_refused(visitor.ask(form.action, sent, host=name, origin=f"http://{name}"), 421)


def test_another_origin_or_site(visitor: Visitor, form: Form, unchanged: None) -> None:
    sent = {"form": visitor.ask(form.page).form(form.action), **form.values}
    for origin in ("http://evil.example", "null", None):
        assert_refused(visitor.ask(form.action, sent, origin=origin, sec_fetch_site=None), 403)
    for where in ("cross-site", "same-site"):
        assert_refused(visitor.ask(form.action, sent, sec_fetch_site=where), 403)


def test_a_forged_form(visitor: Visitor, form: Form, unchanged: None) -> None:
    page = visitor.ask(form.page)
    for token in ({}, {"form": ""}, {"form": "x" * 32}, {"form": page.form("/leave")}):
        assert_refused(visitor.ask(form.action, {**token, **form.values}), 403)


def test_a_form_that_is_sent_again(visitor: Visitor, form: Form, unchanged: None) -> None:
    """A token counts once, whatever came of it."""
    sent = {"form": visitor.ask(form.page).form(form.action), **form.values}
    assert_refused(visitor.ask("/drafts/nothing/advice", sent), 403)
    again = visitor.ask(form.action, sent)
    assert_refused(again, 403)
    assert "This time nothing was done" in again.text


def test_nobody_who_has_not_entered(visitor: Visitor, form: Form, unchanged: None) -> None:
    sent = {"form": visitor.ask(form.page).form(form.action), **form.values}
    assert_refused(Visitor(visitor.address).ask(form.action, sent), 403)


def test_what_an_action_did_is_said_once_and_by_the_curator(visitor: Visitor, site: Site) -> None:
    draft = hand_in(visitor, site, "first")
    done = visitor.send(draft, f"{draft}/submit")
    assert (done.status, done.headers["location"]) == (303, "/studies/first")
    assert [SUBMITTED in visitor.ask("/studies/first").text for _ in range(2)] == [True, False]
    assert ABORTED not in visitor.ask("/studies/first?done=aborted").text
    wrong = visitor.send("/studies/first", "/studies/first/abort", typed="second")
    assert (wrong.status, site.status("first").state) == (400, pb.STUDY_STATE_ENROLLING)
    done = visitor.send("/studies/first", "/studies/first/abort", typed="first")
    assert (done.status, done.headers["location"]) == (303, "/studies/first")
    assert site.status("first").state == pb.STUDY_STATE_ABORTED
    assert [ABORTED in visitor.ask("/studies/first").text for _ in range(2)] == [True, False]
    assert "event: end" in visitor.ask("/studies/first/live").body


def test_that_a_study_waits_is_not_said_of_one_that_has_ended(visitor: Visitor, site: Site) -> None:
    draft = hand_in(visitor, site, "short")
    assert visitor.send(draft, f"{draft}/submit").status == 303
    with site.operator() as client:
        client.abort("short")
    assert SUBMITTED not in visitor.ask("/studies/short").text


def test_a_loss_is_answered_with_a_page_that_can_be_loaded_again(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, values = f"/studies/{ANNOUNCED}", {"party": "valley", "reason": "it burned down", "sure": "yes"}
    refused = visitor.send(path, f"{path}/lose", **values)
    assert refused.status == 400
    assert "are still enrolling, and nothing is spent." in refused.text
    monkeypatch.setattr(OperatorClient, "lose", lambda *_: "The study goes on without valley.")
    done = visitor.send(path, f"{path}/lose", **values)
    assert (done.status, done.headers["location"]) == (303, path)
    assert "The study goes on without valley." in visitor.ask(path).text
