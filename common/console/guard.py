"""The guard in front of every page. For each request, in this order:

1. The Host is this console's. 2. Static files are for everybody; they say nothing. 3. The link becomes a cookie. 4. No
other site caused it. 5. The cookie is that of the open session. 6. What changes something comes from a page of this
console, is not too large, and carries the unused token of the form that it was shown.

Every answer, refusals too, has headers that forbid to frame, to keep and to run anything of somebody else's.
"""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import FormData, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from synod.common.console.checks import Address, is_from_elsewhere, is_own_host, is_own_origin
from synod.common.console.entry import ENTER_PATH, Entrance, Session

LEAVE_PATH = "/leave"
STATIC_PATH = "/static/"
LIVE_SUFFIX = "/live"
FORM_FIELD = "form"
LARGEST_FORM_BYTES = 2 << 20
MOST_FIELDS = 100
POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with `no-referrer` browsers say `Origin: null`, and no form could be told
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
Refuse = Callable[[Request, int, str], Response]


class Guard:
    """An application behind the guard. `cookie` is the cookie's name, `refuse` makes the page that says no."""

    def __init__(self, app: ASGIApp, entrance: Entrance, address: Address, *, cookie: str, refuse: Refuse) -> None:
        self._app, self.entrance, self._address = app, entrance, address
        self._cookie, self._refuse = cookie, refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        request = Request(scope, receive)
        try:
            answer = await self._look_at(request)
        except _No as no:
            answer = self._refuse(request, no.status, no.sentence)
        await (answer or self._app)(scope, receive, send_guarded)

    async def _look_at(self, request: Request) -> Response | None:
        """The answer of the guard itself; None where the request may go on."""
        path, headers = request.scope["path"], request.headers
        # 1
        if not is_own_host(self._address, headers.get("host", "")):
            return PlainTextResponse("This console is not served under that name.", 421)
        # 2
        if path.startswith(STATIC_PATH) and request.method in ("GET", "HEAD"):
            return None
        # 3
        if path == ENTER_PATH and request.method == "GET":
            return self._enter(request)
        # 4
        if is_from_elsewhere(headers):
            raise _No(403, "Another page sent this request, so it was not looked at.")
        # 5
        session = self.entrance.find(request.cookies.get(self._cookie, ""), counts=not path.endswith(LIVE_SUFFIX))
        if session is None:
            raise _No(403, "Nobody has entered here. Open the link that is printed where the console was started.")
        request.state.session = session
        request.state.is_open = lambda: self.entrance.find(session.key, counts=False) is session
        # 6
        if request.method in ("GET", "HEAD"):
            return None
        await self._look_at_form(request, session)
        if path == LEAVE_PATH:
            return self._leave(request)
        return None

    def _enter(self, request: Request) -> Response:
        (token, *_) = parse_qs(request.scope["query_string"].decode("latin-1")).get("token", [""])
        admitted = self.entrance.admit(token)
        if isinstance(admitted, str):
            return self._refuse(request, 403, admitted)
        # A page that moves on by itself, not a redirect: a browser that came from elsewhere would not send the cookie.
        page = self._refuse(request, 200, "You have entered.")
        page.headers["refresh"] = "0; url=/"
        page.headers["referrer-policy"] = "no-referrer"
        page.set_cookie(
            self._cookie, admitted.key, httponly=True, samesite="strict", secure=self._address.scheme == "https"
        )
        return page

    def _leave(self, request: Request) -> Response:
        self.entrance.leave()
        del request.state.session
        page = self._refuse(request, 200, "You have left. A new link is printed where the console was started.")
        page.delete_cookie(self._cookie)
        return page

    async def _look_at_form(self, request: Request, session: Session) -> None:
        if request.method != "POST":
            raise _No(405, "This console does not know such a request.")
        if not is_own_origin(self._address, request.headers):
            raise _No(403, "Another page sent this request, so nothing was done.")
        length = request.headers.get("content-length", "")
        if not (length.isascii() and length.isdigit()) or int(length) > LARGEST_FORM_BYTES:
            raise _No(413, f"A form has at most {LARGEST_FORM_BYTES >> 20} MiB. Nothing was done.")
        try:
            form = await request.form(max_files=1, max_fields=MOST_FIELDS, max_part_size=LARGEST_FORM_BYTES)
        except (HTTPException, MultiPartException):
            raise _No(400, "That is no form of this console. Nothing was done.") from None
        token = form.get(FORM_FIELD)
        if not isinstance(token, str) or not session.take_form(token, request.scope["path"]):
            raise _No(
                403,
                "This form was sent already, or is too old. This time nothing was done; load its page again to see "
                "what the first one did.",
            )
        request.state.form = form


class _No(Exception):  # noqa: N818  (it is an answer, not an error)
    """The guard does not let a request through; the sentence is for whoever sent it."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


def form_of(request: Request) -> Mapping[str, Any]:
    """The form of a request that the guard has let through."""
    form: FormData = request.state.form
    return form


def text_of(request: Request, name: str) -> str:
    """One text of the form; empty where there is none."""
    value = form_of(request).get(name, "")
    return value.strip() if isinstance(value, str) else ""


def session_of(request: Request) -> Session:
    """The session of a request that the guard has let through."""
    session: Session = request.state.session
    return session


def is_still_open(request: Request) -> bool:
    """Whether the session of a request that takes long is still open; asking does not keep it so."""
    still: bool = request.state.is_open()
    return still
