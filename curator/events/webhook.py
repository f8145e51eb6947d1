"""The webhook: events of studies as small JSON documents, posted to the address that the operator names.

A thread of its own sends them, so that no study ever waits for it. It is a courtesy, not a record: what cannot be
delivered in a few attempts, or waits while the curator stops, is dropped, and the log says so.
"""

import json
import logging
import queue
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from synod.curator.events.event import Event

log = logging.getLogger("synod.curator")

MOST_EVENTS = 256
ATTEMPTS = 3
PAUSE_SECONDS = 2.0
POST_SECONDS = 10.0
STOP_SECONDS = 2.0
LOOK_SECONDS = 0.2
Tell = Callable[[Event], None]


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows nobody: an event goes to the address that the operator named, or nowhere."""

    def redirect_request(self, *_: Any) -> None:
        return None


@contextmanager
def telling(url: str | None) -> Iterator[Tell]:
    """Sends what it is told while the block runs; without an address nothing is sent."""
    if url is None:
        yield lambda _: None
        return
    waiting: queue.Queue[Event] = queue.Queue(MOST_EVENTS)
    stopped = threading.Event()
    sender = threading.Thread(target=_send_all, args=(url, waiting, stopped), daemon=True)
    sender.start()

    def tell(event: Event) -> None:
        try:
            waiting.put_nowait(event)
        except queue.Full:
            log.warning("an event is not sent", extra={"study": event.study, "why": "too many events wait"})

    try:
        yield tell
    finally:
        stopped.set()
        sender.join(STOP_SECONDS)


def _send_all(url: str, waiting: "queue.Queue[Event]", stopped: threading.Event) -> None:
    opener = urllib.request.build_opener(_Stay)
    while not (stopped.is_set() and waiting.empty()):
        try:
            event = waiting.get(timeout=LOOK_SECONDS)
        except queue.Empty:
            continue
        if why := _deliver(opener, url, event, stopped):
            told = {"study": event.study, "kind": event.kind.value, "host": urlsplit(url).hostname, "why": why}
            log.warning("an event could not be sent", extra=told)


def _deliver(opener: urllib.request.OpenerDirector, url: str, event: Event, stopped: threading.Event) -> str:
    """Tries a few times, once only while the curator stops; returns why the event did not arrive, or nothing."""
    why = ""
    for attempt in range(1, ATTEMPTS + 1):
        why = _post(opener, url, event)
        if not why or stopped.wait(PAUSE_SECONDS * attempt if attempt < ATTEMPTS else 0):
            break
    return why


def _post(opener: urllib.request.OpenerDirector, url: str, event: Event) -> str:
    """Sends one event; returns why it did not arrive, or nothing. The address may hold a secret, and is never told."""
    body = json.dumps(event.to_json()).encode()
    headers = {"Content-Type": "application/json", "User-Agent": "synod"}
    request = urllib.request.Request(url, body, headers, method="POST")  # noqa: S310  (the settings check the scheme)
    try:
        with opener.open(request, timeout=POST_SECONDS):
            return ""
    except urllib.error.HTTPError as error:
        error.close()
        return f"it was answered with {error.code}"
    except Exception as error:  # noqa: BLE001  (whatever a network can raise; its text may hold the address)
        return type(error).__name__
