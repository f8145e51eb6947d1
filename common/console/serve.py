"""Serves a console until it is stopped. The link goes to the operator's terminal alone; there is no log of requests,
because a link is in one of them.
"""

import secrets
import time
from collections.abc import Callable, Sequence

import uvicorn
from starlette.routing import BaseRoute

from synod.common.console.entry import IDLE_SECONDS, Entrance
from synod.common.console.guard import Guard
from synod.common.console.pages import Pages
from synod.common.console.place import Place

MOST_CONNECTIONS = 64
STOP_SECONDS = 2


def make_server(
    name: str,
    pages: Pages,
    routes: Sequence[BaseRoute],
    place: Place,
    *,
    announce: Callable[[str], None],
    idle_seconds: float = IDLE_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> uvicorn.Server:
    """A server over an open socket; `run(sockets=[...])` of it serves. Its first link is announced here.

    Guarantee: the cookie is named after the console and its port, because a browser sends cookies to every port. Behind
    a Unix socket the port is another's, so that a name is drawn.
    """
    entrance = Entrance(place.address.base, clock=clock, announce=announce, idle_seconds=idle_seconds)
    cookie = f"synod-{name}-{place.address.port or f'socket-{secrets.token_hex(4)}'}"
    guarded = Guard(pages.application(routes), entrance, place.address, cookie=cookie, refuse=pages.say)
    entrance.open()
    tls = place.tls
    config = uvicorn.Config(
        guarded, http="h11", ws="none", loop="asyncio", lifespan="off", log_config=None, log_level="critical",
        access_log=False, server_header=False, proxy_headers=False, limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=STOP_SECONDS,
        ssl_context_factory=None if tls is None else lambda *_: tls,
    )  # fmt: skip
    return uvicorn.Server(config)


def serve_console(
    name: str,
    pages: Pages,
    routes: Sequence[BaseRoute],
    place: Place,
    *,
    announce: Callable[[str], None],
    idle_seconds: float,
) -> None:
    """Serves until SIGTERM or SIGINT."""
    server = make_server(name, pages, routes, place, announce=announce, idle_seconds=idle_seconds)
    try:
        server.run(sockets=[place.socket])
    except KeyboardInterrupt:
        pass
    finally:
        place.close()
