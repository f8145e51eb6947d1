"""The curator operator's console where no curator answers: drafts, kits, refusals, and cookies of another console.

With real daemons it is in tests/browser/test_console_pages.py.
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import pytest
import yaml

from synod.common.console.entry import IDLE_SECONDS
from synod.common.runtime.settings import CuratorSettings, OperatorSettings, load_settings
from synod.common.study.study import load_study
from synod.curator.release.redraw import check_release
from synod.deploy.console.routes import CuratorConsole, make_pages, write_event
from synod.deploy.console.standing import view_standing
from synod.deploy.enrolment.kit import read_kit
from synod.deploy.launch.operator import OperatorClient
from synod.deploy.study.advice import Advice, Verdict, Way
from synod.deploy.study.rehearsal import Rehearsal
from synod.v1 import study_pb2 as pb
from tests.support.commands import synod, write_study
from tests.support.consoles import Served, Visitor, make_house, serving
from tests.support.keep_releases import kept_folder
from tests.support.keys import pinned
from tests.support.studies import study_document

ROSTER = [{"name": "north", "key": pinned(1), "rows": 300}, {"name": "valley", "key": pinned(2), "rows": 700}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, an operator's certificate and a curator's configuration; nothing listens at the address."""
    folder = tmp_path_factory.mktemp("coordinator")
    assert synod("certs", "init", folder / "ca").code == 0
    assert synod("certs", "issue", folder / "ca", "operator", "--role", "operator").code == 0
    tls = {"ca": "ca/ca.pem", "certificate": "ca/operator.pem", "key": "ca/operator.key"}
    (folder / "operator.yaml").write_text(yaml.safe_dump({"address": "127.0.0.1:1", "tls": tls}))
    curator = {"listen": "127.0.0.1:0", "state": "state", "tls": tls}
    (folder / "curator.yaml").write_text(yaml.safe_dump(curator))
    return folder


@pytest.fixture(scope="module")
def console(folder: Path) -> Iterator[Served]:
    settings = load_settings(OperatorSettings, folder / "operator.yaml")
    curator = load_settings(CuratorSettings, folder / "curator.yaml")
    pages = make_pages(settings)
    with ExitStack() as stack:
        served = stack.enter_context(CuratorConsole(settings, curator, pages, live_seconds=0.05))
        yield stack.enter_context(serving("curator", pages, served.routes()))


@pytest.fixture
def served(console: Served) -> Served:
    console.begin_anew()
    return console


@pytest.fixture
def visitor(served: Served) -> Visitor:
    return served.entered()


def written(**changes: object) -> str:
    document = study_document(**{"name": "care", "epsilon": "0.8", "seed": None, "roster": ROSTER, **changes})
    return yaml.safe_dump(json.loads(json.dumps(document, default=str)))


def test_a_study_is_checked_and_shown_before_it_goes_anywhere(visitor: Visitor, tmp_path: Path) -> None:
    text = written(seed=7)
    answer = visitor.send("/submit", "/submit", text=text)
    assert answer.status == 303, answer.text
    page = visitor.ask(answer.headers["location"])
    (tmp_path / "study.yaml").write_text(text)
    document = json.loads(synod("study", "check", tmp_path / "study.yaml", "--json").out)
    assert document["hash"] in page.text
    assert answer.headers["location"] == f"/drafts/{document['hash']}"
    forecast = json.loads(synod("study", "forecast", tmp_path / "study.yaml", "--quick", "--json").out)
    assert forecast["rounds"]
    for found in forecast["rounds"]:
        assert f"±{found['error']:.4f}" in page.text
    for remark in forecast["remarks"]:
        assert remark in page.text
    for attribute in load_study(tmp_path / "study.yaml").attributes:
        assert attribute.name in page.text


def test_the_draft_keeps_the_seed_that_was_drawn(visitor: Visitor) -> None:
    """A study without a seed gets one when it is resolved: what is submitted has the hash that was shown."""
    first = visitor.send("/submit", "/submit", text=written())
    page = visitor.ask(first.headers["location"])
    assert page.status == 200
    refused = visitor.ask(
        f"{first.headers['location']}/submit", {"form": page.form(f"{first.headers['location']}/submit")}
    )
    assert refused.status == 400
    assert "127.0.0.1:1" in refused.text, "the curator cannot be reached"
    assert first.headers["location"].removeprefix("/drafts/") in refused.text


def test_advice_is_shown_beside_the_forecast(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rehearsal itself takes a minute, and is tested where it is made; here its result is given."""
    found = Rehearsal(("sex", "age"), np.array([0.01, 0.3]), np.array([0.01, 0.25]), {(0, 1): 0.6}, 0.1, 0.2, 3.0)
    advice = Advice(
        Way("as it is", found),
        (Way("method x", found, asks_each_party=True), Way("method y", None, "it needs numbers")),
        (Way("twice the rows", found),),
    )
    monkeypatch.setattr("synod.deploy.console.drafts.advise_on", lambda *_, **__: advice)
    draft = visitor.send("/submit", "/submit", text=written()).headers["location"]
    answer = visitor.send(draft, f"{draft}/advice")
    assert (answer.status, answer.headers["location"]) == (303, draft)
    page = visitor.ask(draft)
    assert advice.recommendation in page.text
    assert f"age {Verdict.DROWNED.value} 30.0%" in page.text
    assert "method x 15.5% 50% usable 3.0 s each party's own numbers" in page.text
    assert "method y it needs numbers" in page.text
    assert "twice the rows 15.5% 50% usable 3.0 s sums" in page.text
    assert ", this study 15.5% 50% usable 3.0 s sums" in page.text, "the study is beside the others"
    assert "as it is 15.5% 50% usable 3.0 s sums" in page.text
    for line in ("Pairs of columns, usable", "Near a border: relations on average have 50% kept", "Time: about "):
        assert line in page.text


def test_advice_on_a_study_that_was_not_rehearsed_says_why(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    late = "its rehearsal took longer than 600 s of one core"
    advice = Advice(Way("as it is", None, late), (Way("method y", None, "it needs numbers"),), ())
    monkeypatch.setattr("synod.deploy.console.drafts.advise_on", lambda *_, **__: advice)
    draft = visitor.send("/submit", "/submit", text=written()).headers["location"]
    assert visitor.send(draft, f"{draft}/advice").status == 303
    page = visitor.ask(draft)
    assert f"How good it will be is not known: {late}." in page.text
    assert advice.recommendation in page.text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "there is no study."),
        ("name: [", "not valid YAML"),
        ("name: care", "the study"),
        (written(epsilon="-1"), "epsilon"),
        (written(roster=None), "the study has no roster."),
    ],
)
def test_a_broken_study_is_refused_and_its_text_kept(visitor: Visitor, text: str, told: str) -> None:
    answer = visitor.send("/submit", "/submit", text=text)
    assert answer.status == 400
    assert told in answer.text
    assert text.strip()[:8] in answer.text


def test_a_draft_that_nobody_handed_in(visitor: Visitor) -> None:
    assert visitor.ask(f"/drafts/{'0' * 64}").status == 404


def test_a_curator_that_is_away_is_one_sentence(visitor: Visitor) -> None:
    for path in ("/", "/studies/care", "/studies/care/release"):
        answer = visitor.ask(path)
        assert answer.status == 502
        assert "127.0.0.1:1" in answer.text
    assert visitor.ask("/studies/..%2f..").status == 404
    assert visitor.ask("/studies/A%20B").status == 404


def test_a_release_says_what_its_checks_do_not_prove(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kept release, as a curator would hand it out; with a real one it is in tests/browser."""
    kept = kept_folder("histogram")
    status = pb.StudyStatus(name="kept-histogram", state=pb.STUDY_STATE_PUBLISHED, study_hash=b"1" * 32)
    monkeypatch.setattr(OperatorClient, "status", lambda *_: [status])
    monkeypatch.setattr(OperatorClient, "fetch", lambda _, __, folder: shutil.copytree(kept, folder))
    page, checked = visitor.ask("/studies/kept-histogram/release").text, check_release(kept, None)
    assert f"{len(checked.lines)} checks hold." in page
    assert "who the curator and the parties are" in checked.unproven[0]
    for line in (*checked.lines, *checked.unproven):
        assert " ".join(line.split()) in page


def test_a_kit_is_the_one_that_the_command_writes(visitor: Visitor, folder: Path, tmp_path: Path) -> None:
    values = {"address": "curator.example.org:7443", "contact": "Send it to us."}
    assert visitor.ask("/kits/curator.kit").status == 404
    answer = visitor.send("/kits", "/kits", **values)
    assert (answer.status, answer.headers["location"]) == (303, "/kits")
    page = visitor.ask("/kits")
    assert "A kit for curator.example.org:7443 is made." in page.text
    assert 'href="/kits/curator.kit"' in page.body
    answer = visitor.ask("/kits/curator.kit")
    assert answer.headers["content-disposition"] == 'attachment; filename="curator.kit"'
    (tmp_path / "made.kit").write_text(answer.body)
    kit = read_kit(tmp_path / "made.kit")
    assert kit.curator == synod("curator", "fingerprint", "--config", folder / "curator.yaml").out.strip()
    assert kit.curator in page.text, "what is read out by phone is beside it"
    assert (kit.address, kit.certificates) == tuple(values.values())
    assert visitor.ask("/kits", {"form": page.form("/kits"), **values}).status == 303, "its form makes the next one"
    refused = visitor.send("/kits", "/kits", address="nowhere", contact="x")
    assert refused.status == 400
    assert "HOST:PORT" in refused.text
    assert "For parties that dial curator.example.org:7443." in refused.text, "the one that was made is as it was"


def test_the_cookies_of_the_two_consoles_are_not_each_others(served: Served, tmp_path: Path) -> None:
    house = make_house(tmp_path)
    house.announce("private-name")
    operator = served.entered()
    with house.serving() as party:
        person = party.entered()
        assert person.ask("/").status == operator.ask("/submit").status == 200
        for key in (person.cookie, person.cookie.partition("=")[2]):
            name = f"synod-curator-{served.address.port}="
            cookie = key if "=" in key else name + key
            assert Visitor(served.address, cookie).ask("/submit").status == 403
        stolen = f"synod-party-{party.address.port}={operator.cookie.partition('=')[2]}"
        for cookie in (operator.cookie, stolen):
            answer = Visitor(party.address, cookie).ask("/")
            assert (answer.status, "private-name" in answer.body) == (403, False)
        both = Visitor(party.address, f"{operator.cookie}; {person.cookie}")
        assert both.ask("/").status == 200, "a browser sends both, because a port is not a host"


def test_without_the_session_no_live_part(served: Served) -> None:
    assert served.visitor().ask("/studies/care/live").status == 403


def test_a_live_part_ends_with_the_session(served: Served) -> None:
    """It tells of trouble as long as the session is open; looking at it does not keep the session open."""
    visitor = served.entered()
    connection = HTTPConnection("127.0.0.1", served.address.port or 0, timeout=30)
    connection.request("GET", "/studies/care/live", headers={"Cookie": visitor.cookie})
    with connection.getresponse() as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.readline() == b"event: part\n"
        assert b"127.0.0.1:1" in response.readline()
        served.clock.seconds += IDLE_SECONDS + 1
        assert b"event: end" not in response.read(), "it came to its end, and says nothing of the study's"
    connection.close()
    assert visitor.ask("/submit").status == 403
    assert len(served.links) == 2


def test_no_line_of_an_event_can_end_it() -> None:
    assert write_event("part", "a\n\nb") == "event: part\ndata: a\ndata: \ndata: b\n\n"
    assert write_event("end", "") == "event: end\ndata: \n\n"


def test_how_a_study_stands() -> None:
    parties = [
        pb.PartyStatus(name="north", enrolled=True, awaited=True, awaited_since=50, last_seen=60),
        pb.PartyStatus(name="valley", enrolled=True),
        pb.PartyStatus(name="gone", enrolled=True, awaited=True, awaited_since=1),
    ]
    status = pb.StudyStatus(
        name="care", state=pb.STUDY_STATE_RUNNING, label="pairs", round=2, rounds=3, parties=parties,
        losses=[pb.Loss(party="gone", reason="its server burned down", unix_seconds=70)],
    )  # fmt: skip
    found = view_standing(status)
    assert found.rounds == ("over", "now", "ahead")
    assert found.state == "running, round 2 of 3 (pairs)"
    assert [(one.name, one.is_awaited, one.since, one.last_seen) for one in found.parties] == [
        ("north", True, 50, 60),
        ("valley", False, 0, 0),
        ("gone", False, 0, 0),
    ]
    assert [one.told for one in found.parties][:2] == ["waiting for its answer", "done for now"]
    assert "its server burned down" in found.parties[2].told
    assert view_standing(pb.StudyStatus(state=pb.STUDY_STATE_PUBLISHED, rounds=2)).rounds == ("over", "over")


def test_a_study_file_is_one_too(visitor: Visitor, tmp_path: Path) -> None:
    path = write_study(tmp_path / "s.yaml", roster={"north": (pinned(1), 300), "valley": (pinned(2), 700)})
    boundary, token = "synod-test", visitor.ask("/submit").form("/submit")
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="form"\r\n\r\n{token}\r\n',
        f'--{boundary}\r\nContent-Disposition: form-data; name="text"\r\n\r\n\r\n',
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="s.yaml"\r\n\r\n{path.read_text()}\r\n',
        f"--{boundary}--\r\n",
    ]
    answer = visitor.post("/submit", "".join(parts).encode(), f"multipart/form-data; boundary={boundary}")
    assert answer.status == 303, answer.text
