"""Consoles over real HTTP on loopback, and visitors that send whatever headers an attacker would."""

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import yaml
from starlette.routing import BaseRoute

from synod.common.console.checks import Address
from synod.common.console.entry import Entrance
from synod.common.console.guard import Guard
from synod.common.console.pages import Pages
from synod.common.console.place import Place, Wanted, take_place
from synod.common.console.serve import make_server
from synod.common.protocol.notices import sign_announcement
from synod.common.runtime.settings import PartySettings, load_settings
from synod.common.study.study import Study, load_study
from synod.party.approval import load_identity
from synod.party.console.routes import PartyConsole, make_pages
from synod.party.inbox.announced import keep_announced
from synod.party.ledger import Ledger
from tests.support.commands import synod, write_party, write_study
from tests.support.keys import CURATOR, identity_of, pinned

NOW = 1_700_000_000
START_SECONDS = 10


@dataclass
class Clock:
    """A clock that a test sets."""

    seconds: float = 1_000.0

    def __call__(self) -> float:
        return self.seconds


@dataclass(frozen=True)
class Answer:
    """What a console answered."""

    status: int
    headers: dict[str, str]
    body: str

    def form(self, path: str) -> str:
        """The token of the form for a path."""
        found = re.search(
            rf'action="{re.escape(path)}"[^>]*>\s*<input type="hidden" name="form" value="([^"]+)"', self.body
        )
        assert found, f"there is no form for {path}"
        return found[1]

    @property
    def text(self) -> str:
        """What a person reads."""
        return " ".join(unescape(re.sub(r"<[^>]+>", " ", self.body)).split())


@dataclass
class Visitor:
    """A browser, as far as a console can tell: where it connects, its cookie, and what it says of itself."""

    address: Address
    cookie: str = ""

    def ask(
        self, path: str, form: dict[str, str] | None = None, *, seconds: float = 30, **headers: str | None
    ) -> Answer:
        """GET, or POST of a form; `headers` replace what a browser would send, None leaves one out."""
        if form is None:
            return self._send("GET", path, None, headers, seconds)
        return self.post(path, urlencode(form).encode(), "application/x-www-form-urlencoded", **headers)

    def post(self, path: str, body: bytes, kind: str, **headers: str | None) -> Answer:
        """POST of a body, as a page of the console would send it."""
        usual: dict[str, str | None] = {"content_type": kind, "origin": self.address.base}
        usual |= {"content_length": str(len(body)), "sec_fetch_site": "same-origin"}
        return self._send("POST", path, body, usual | headers)

    def _send(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str | None], seconds: float = 30
    ) -> Answer:
        sent: dict[str, str | None] = {"Host": self.address.base.partition("//")[2], "Cookie": self.cookie or None}
        sent |= {name.replace("_", "-").title(): value for name, value in headers.items()}
        connection = HTTPConnection("127.0.0.1", self.address.port or 80, timeout=seconds)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in sent.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders(body)
        with connection.getresponse() as response:
            answer = read_answer(response)
        connection.close()
        return answer

    def enter(self, link: str) -> Answer:
        """Opens the link, and keeps the cookie."""
        parts = urlsplit(link)
        answer = self.ask(f"{parts.path}?{parts.query}")
        if "set-cookie" in answer.headers:
            self.cookie = answer.headers["set-cookie"].partition(";")[0]
        return answer

    def send(self, page: str, action: str, **values: str) -> Answer:
        """Loads a page and sends one of its forms, as a person does."""
        return self.ask(action, {"form": self.ask(page).form(action), **values})


def read_answer(response: HTTPResponse) -> Answer:
    """The whole answer; header names in small letters."""
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Answer(response.status, headers, response.read().decode(errors="replace"))


@dataclass
class Served:
    """A console that serves: its address, the links that it printed, and the clock of its sessions."""

    address: Address
    links: list[str]
    clock: Clock
    entrance: Entrance

    def begin_anew(self) -> None:
        """Nobody is in, and one new link is printed."""
        self.links.clear()
        self.clock.seconds = 1_000.0
        self.entrance.leave()

    def visitor(self) -> Visitor:
        """Somebody who has not entered."""
        return Visitor(self.address)

    def entered(self) -> Visitor:
        """Somebody who has entered with a new link; whoever was in before has left."""
        visitor = self.visitor()
        assert visitor.enter(self.links[-1]).status == 200
        return visitor


@contextmanager
def serving(name: str, pages: Pages, routes: Sequence[BaseRoute], place: Place | None = None) -> Iterator[Served]:
    """Serves pages in a thread of this process, over a real socket."""
    place, clock = place or take_place(Wanted()), Clock()
    links: list[str] = []
    server = make_server(name, pages, routes, place, announce=links.append, clock=clock)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [place.socket]})
    thread.start()
    try:
        guard = server.config.app
        assert isinstance(guard, Guard)
        yield Served(place.address, links, clock, guard.entrance)
    finally:
        server.should_exit = True
        thread.join(START_SECONDS)
        place.close()
        assert not thread.is_alive()


# A party with a study that waits


@dataclass(frozen=True)
class House:
    """A party's folder with an identity, a ledger, a table of three rows, and studies that were announced to it."""

    config: Path

    @property
    def settings(self) -> PartySettings:
        return load_settings(PartySettings, self.config)

    def change(self, **values: object) -> None:
        """Changes keys of the configuration."""
        self.config.write_text(yaml.safe_dump({**yaml.safe_load(self.config.read_text()), **values}))

    def announce(self, name: str, **changes: object) -> Study:
        """The pinned curator announces a study to this party."""
        roster = {"north": (load_identity(self.settings).fingerprint, 3), "valley": (pinned(2), 7)}
        study = load_study(write_study(self.config.with_name(f"{name}.yaml"), name=name, roster=roster, **changes))
        resolved, curator = study.resolve(), identity_of(CURATOR)
        signature = sign_announcement(curator, resolved.digest())
        keep_announced(self.settings.state, resolved, curator=curator.public_key, signature=signature, now=NOW)
        return resolved

    def kinds(self) -> list[str]:
        """What kinds of entries the ledger has."""
        ledger = Ledger.open(self.settings.state)
        try:
            return [str(entry["kind"]) for entry in ledger.entries()]
        finally:
            ledger.close()

    @contextmanager
    def serving(self) -> Iterator[Served]:
        """Serves this party's console."""
        pages = make_pages(self.settings)
        clock: Callable[[], float] = lambda: NOW + 60  # noqa: E731
        console = PartyConsole(lambda: self.settings, pages, clock=clock)
        with serving("party", pages, console.routes()) as served:
            yield served


def make_house(folder: Path, **changes: Any) -> House:
    """A new party, with nothing announced yet."""
    config = write_party(folder, curator=identity_of(CURATOR).fingerprint, **changes)
    assert synod("party", "init", "--config", config).code == 0
    return House(config)
