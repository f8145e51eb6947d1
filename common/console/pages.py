"""Pages from templates: every value is escaped, every form carries a token, and times are marked for the reader's own
clock. A console adds templates of its own to those that are here.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from synod.common.console.guard import FORM_FIELD, LEAVE_PATH, session_of
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.logs import write_defect

HERE = Path(__file__).parent
STATUSES = {
    Code.INVALID: 400,
    Code.REFUSED: 403,
    Code.NOT_FOUND: 404,
    Code.CONFLICT: 409,
    Code.NOT_READY: 409,
    Code.ABORTED: 409,
    Code.UNREACHABLE: 502,
    Code.UNAUTHENTICATED: 502,
    Code.NOT_ON_ROSTER: 502,
    Code.CHECK_FAILED: 502,
    Code.STORAGE: 503,
    Code.INTERNAL: 500,
}


class Pages:
    """The pages of one console. `whose` is its title, `links` lead to its main pages."""

    def __init__(self, whose: str, links: Mapping[str, str], templates: Path) -> None:
        self._environment = Environment(
            loader=FileSystemLoader([templates, HERE / "templates"]), autoescape=True, undefined=StrictUndefined
        )
        self._environment.globals.update(
            whose=whose, links=links, moment=moment, iso=iso, field=FORM_FIELD, leave=LEAVE_PATH
        )

    def show(self, request: Request, template: str, status: int = 200, **values: Any) -> Response:
        """A page, for whoever has entered."""
        session = session_of(request)
        shown = {"error": None, "done": "", **values}
        content = self._environment.get_template(template).render(
            token=session.give_form, path=request.scope["path"], entered=True, **shown
        )
        return HTMLResponse(content, status)

    def move(self, request: Request, path: str, told: str) -> Response:
        """After an action: to a page that says once what it did, and can be loaded again without doing it again."""
        session_of(request).note = (path, told)
        return RedirectResponse(path, 303)

    def render(self, template: str, **values: Any) -> str:
        """A part of a page, without a form."""
        return self._environment.get_template(template).render(**values)

    def say(self, request: Request, status: int, sentence: str, hint: str = "") -> Response:
        """A page of one sentence, for anybody: it says nothing that is private."""
        session = None
        with suppress(AttributeError):
            session = session_of(request)
        content = self._environment.get_template("message.html").render(
            title="Synod", sentence=sentence, hint=hint, path="", entered=session is not None, error=None, done="",
            token=session.give_form if session else None,
        )  # fmt: skip
        return HTMLResponse(content, status)

    def application(self, routes: Sequence[BaseRoute]) -> Starlette:
        """The application of these routes, with the static files; an error is a page of one sentence."""

        def explain(request: Request, error: Exception) -> Response:
            assert isinstance(error, SynodError)
            return self.say(request, STATUSES[error.code], error.sentence, error.hint)

        def confess(request: Request, error: Exception) -> Response:
            # An exception's text may hold a value of the table, so its kind alone is shown, and its frames are written.
            write_defect("synod.console", error)
            return self.say(request, 500, f"A defect: {type(error).__name__}.", "Please report it.")

        def miss(request: Request, _: Exception) -> Response:
            return self.say(request, 404, "There is no such page.")

        static = Mount("/static", StaticFiles(directory=HERE / "static"))
        return Starlette(
            routes=[*routes, static],
            exception_handlers={SynodError: explain, 404: miss, 405: miss, Exception: confess},
        )


def page(path: str, handler: Callable[[Request], Response]) -> Route:
    """A page that changes nothing."""
    return Route(path, handler, methods=["GET"])


def action(path: str, handler: Callable[[Request], Response]) -> Route:
    """What a form does."""
    return Route(path, handler, methods=["POST"])


def moment(seconds: float) -> str:
    """A time in UTC, as the command line writes it."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


def iso(seconds: float) -> str:
    """A time for a machine."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
