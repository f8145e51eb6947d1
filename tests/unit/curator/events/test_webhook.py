"""Events of studies are posted to one address, a bounded number of times, and hold up nobody."""

import logging
import threading
import time
from typing import Any

import pytest

from synod.common.runtime.errors import SynodError
from synod.common.runtime.settings import CuratorSettings, parse_settings
from synod.curator.events import webhook
from synod.curator.events.event import EventKind, event_of
from synod.curator.events.webhook import telling
from tests.support.studies import make_study
from tests.support.webhooks import listening

STUDY = make_study()
EVENT = event_of(EventKind.APPROVED, STUDY, now=7.9, party="north", enrolled={"north"})
WAIT_SECONDS = 30.0


def until(check: Any) -> None:
    end = time.monotonic() + WAIT_SECONDS
    while not check():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(webhook, "LOOK_SECONDS", 0.01)


def test_an_event_has_names_and_times_and_nothing_else() -> None:
    assert EVENT.to_json() == {
        "event": "approved",
        "study": STUDY.name,
        "hash": STUDY.digest().hex(),
        "party": "north",
        "waits_for": ["harbour", "valley"],
        "unix_seconds": 7,
    }
    ended = event_of(EventKind.PUBLISHED, STUDY, now=1)
    assert (ended.party, ended.waits_for) == ("", ())


def test_events_arrive_in_order() -> None:
    events = [event_of(kind, STUDY, now=number) for number, kind in enumerate(EventKind)]
    with listening() as (url, posted), telling(url) as tell:
        for event in events:
            tell(event)
        until(lambda: len(posted) == len(events))
    assert posted == [("/hook?token=hidden", event.to_json()) for event in events]


def test_it_tries_again_and_gives_up_after_a_few(caplog: pytest.LogCaptureFixture) -> None:
    with listening(500, 404) as (url, posted), telling(url) as tell:
        tell(EVENT)
        until(lambda: len(posted) == 3)
    assert caplog.records == []
    with listening(*[500] * 10) as (url, posted), telling(url) as tell:
        tell(EVENT)
        until(lambda: caplog.records)
    assert len(posted) == webhook.ATTEMPTS
    assert caplog.records[0].__dict__["why"] == "it was answered with 500"
    assert "hidden" not in str([record.__dict__ for record in caplog.records])


def test_it_follows_nobody_elsewhere(caplog: pytest.LogCaptureFixture) -> None:
    with listening(*[307] * 3) as (url, posted), telling(url) as tell:
        tell(EVENT)
        until(lambda: caplog.records)
    assert {path for path, _ in posted} == {"/hook?token=hidden"}


def test_nobody_waits_for_a_server_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(webhook, "MOST_EVENTS", 2)
    monkeypatch.setattr(webhook, "STOP_SECONDS", 0.01)
    hold = threading.Event()
    with listening(hold=hold) as (url, posted):
        with telling(url) as tell:
            tell(EVENT)
            until(lambda: len(posted) == 1)
            for _ in range(4):
                tell(EVENT)
            refusals = [record for record in caplog.records if record.__dict__["why"] == "too many events wait"]
            assert len(refusals) == 2, "two wait, and two are dropped; none of the calls has waited"
        hold.set()


def test_where_nobody_listens_the_log_says_so(caplog: pytest.LogCaptureFixture) -> None:
    with listening() as (url, _):
        pass
    with caplog.at_level(logging.WARNING), telling(url) as tell:
        tell(EVENT)
        until(lambda: caplog.records)
    assert caplog.records[0].__dict__["host"] == "127.0.0.1"
    with telling(None) as tell:
        tell(EVENT)


def settings(url: Any) -> CuratorSettings:
    tls = {"ca": "a", "certificate": "b", "key": "c"}
    return parse_settings(
        CuratorSettings, {"listen": "127.0.0.1:0", "state": "s", "tls": tls, "webhook": url}, "curator.yaml"
    )


@pytest.mark.parametrize(
    "url", ["https://chat.example.org/hooks/1?x=y", "http://127.0.0.1:8080/", "http://[::1]/a", None]
)
def test_addresses_that_are_fine(url: str | None) -> None:
    assert settings(url).webhook == url


@pytest.mark.parametrize(
    "url",
    [
        "http://chat.example.org/hook",
        "http://localhost/hook",
        "http://10.0.0.1/",
        "https://me:secret@chat.example.org/",
        "https://",
        "https://host:99999/",
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "chat.example.org",
        "https://a b/",
        "https://a\n/",
        7,
    ],
)
def test_addresses_that_are_refused(url: Any) -> None:
    with pytest.raises(SynodError):
        settings(url)
