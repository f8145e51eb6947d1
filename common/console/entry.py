"""Who may enter a console: one link, good once and for a short while, becomes one session in one browser.

Everything is in memory, so the end of the process is the end of every session. What is random is drawn here from the
system's generator; time comes from the caller.
"""

import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

LINK_SECONDS = 600
IDLE_SECONDS = 1_800
MOST_FORMS = 256
ENTER_PATH = "/enter"


@dataclass(slots=True)
class Session:
    """One browser that has entered. `forms` are the tokens of the forms that it was shown and has not sent, with the
    path that each is for; `note` is what the last action did and no page has said yet, with the page that it is for.
    """

    key: str = field(repr=False)
    last_used: float
    forms: OrderedDict[str, str] = field(default_factory=OrderedDict, repr=False)
    note: tuple[str, str] = field(default=("", ""), repr=False)

    def give_form(self, path: str) -> str:
        """The token of a new form for this path; of very many, the oldest are forgotten."""
        token = secrets.token_urlsafe(24)
        self.forms[token] = path
        while len(self.forms) > MOST_FORMS:
            self.forms.popitem(last=False)
        return token

    def take_form(self, token: str, path: str) -> bool:
        """Whether the token is one that was given for this path and has not been used; it is used up by this.

        Guarantee: no form counts twice, and none counts for another path than it was shown for.
        """
        return self.forms.pop(token, None) == path

    def take_note(self, path: str) -> str:
        """What the last action did, for the page of this path, once; empty where there is nothing to say."""
        kept, told = self.note
        if kept != path:
            return ""
        self.note = ("", "")
        return told


class Entrance:
    """The one link that is good now, and the one session that may be open.

    `announce` is told each new link, for the operator's own terminal.
    """

    def __init__(
        self,
        base: str,
        *,
        clock: Callable[[], float],
        announce: Callable[[str], None],
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._base, self._clock, self._announce, self._idle = base, clock, announce, idle_seconds
        self._token, self._made, self._is_used = "", 0.0, True
        self._session: Session | None = None

    def open(self) -> None:
        """Makes a new link; the one before is worth nothing from here on."""
        self._token, self._made, self._is_used = secrets.token_urlsafe(32), self._clock(), False
        self._announce(f"{self._base}{ENTER_PATH}?token={self._token}")

    def admit(self, token: str) -> Session | str:
        """A session for whoever shows the link that is good now, or why there is none.

        Guarantee: a link opens one session, once, within ten minutes.
        """
        self._end_idle()
        if not self._token or not hmac.compare_digest(token.encode(), self._token.encode()):
            return "This link is not the one that the console printed last."
        if self._is_used:
            return "This link was used already. If that was not you, stop the console and start it again."
        self._is_used = True
        if self._clock() - self._made > LINK_SECONDS:
            self.open()
            return "This link is too old. A new one is printed where the console was started."
        self._session = Session(secrets.token_urlsafe(32), self._clock())
        return self._session

    def find(self, key: str, *, counts: bool = True) -> Session | None:
        """The session of this key, if it is open. A look that `counts` keeps it open; after a while without one it is
        over, and whoever looks next, with any key or none, has a new link printed.
        """
        self._end_idle()
        session = self._session
        if session is None or not hmac.compare_digest(key.encode(), session.key.encode()):
            return None
        if counts:
            session.last_used = self._clock()
        return session

    def _end_idle(self) -> None:
        """Before any key is looked at: a browser that has lost its cookie cannot show one."""
        if self._session is not None and self._clock() - self._session.last_used > self._idle:
            self.leave()

    def leave(self) -> None:
        """Ends the session; whoever wants to go on enters with a new link."""
        self._session = None
        self.open()
