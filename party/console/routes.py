"""The pages of the party's console. Each reads what it shows anew, through the functions of the command line."""

from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from synod.common.console.guard import form_of, session_of, text_of
from synod.common.console.pages import Pages, action, page
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.settings import PartySettings
from synod.common.study.promise import describe_cost
from synod.party.account import ApprovalState
from synod.party.approval import load_identity
from synod.party.console.actions import TYPED_DIGITS, approve, end_approval, read_hash, try_table
from synod.party.doctor import examine
from synod.party.inbox.certificates import view_certificates
from synod.party.inbox.entries import view_entries
from synod.party.inbox.gauges import draw_gauges
from synod.party.inbox.listing import find_view, list_views
from synod.party.inbox.views import WAITING, StudyView, name_state, name_value, view_budget
from synod.party.ledger import Ledger
from synod.party.table.encode import TableError

LINKS = {"Inbox": "/", "Ledger": "/ledger", "Doctor": "/doctor"}
DONE = {
    ApprovalState.OPEN.value: "Approved: what the study costs is reserved, and the table is kept as it was read.",
    ApprovalState.REVOKED.value: "Revoked: nothing more is answered, and what was not spent is free again.",
}


def make_pages(settings: PartySettings) -> Pages:
    """The frame of this party's pages."""
    return Pages(f"party {settings.name}", LINKS, Path(__file__).parent / "templates")


class PartyConsole:
    """The handlers of one party's pages; `clock` gives seconds since 1970, `reload` the settings as they are now."""

    def __init__(self, reload: Callable[[], PartySettings], pages: Pages, *, clock: Callable[[], float]) -> None:
        self._reload, self._pages, self._clock = reload, pages, clock

    def routes(self) -> Sequence[BaseRoute]:
        """Every page and every action."""
        return [
            page("/", self.inbox),
            page("/ledger", self.ledger),
            page("/doctor", self.doctor),
            page("/studies/{hash}", self.study),
            action("/studies/{hash}/table", self.table),
            action("/studies/{hash}/approve", self.approve),
            action("/studies/{hash}/revoke", self.revoke),
        ]

    def inbox(self, request: Request) -> Response:
        """What waits, what is open, and on request what is over."""
        settings, ended = self._reload(), "all" in request.query_params
        views = list_views(settings, ended=ended)
        shown = [(view, name_state(view.state), draw_gauges(view.account, asked_by(view))) for view in views]
        return self._pages.show(
            request, "inbox.html", title="Inbox", studies=shown, ended=ended, dataset=settings.dataset, waiting=WAITING
        )

    def study(self, request: Request) -> Response:
        """One study, all of it; after a decision also that it was taken, if the ledger still says so."""
        note = session_of(request).take_note(request.scope["path"])
        return self._show_study(request, note=note)

    def _show_study(self, request: Request, status: int = 200, note: str = "", **values: Any) -> Response:
        settings = self._reload()
        view = find_view(settings, read_hash(request.path_params["hash"]))
        done = note if note == DONE.get(view.state) else ""
        shown = {"misfits": None, "fits": "", "has_values": False, "done": done, **values}
        return self._pages.show(
            request, "study.html", status, title=view.name, view=view, state=name_state(view.state),
            gauges=draw_gauges(view.account, asked_by(view)), dataset=settings.dataset, waiting=WAITING,
            is_open=view.state == ApprovalState.OPEN.value, table=settings.source.name, digits=TYPED_DIGITS,
            method_keys={key: name_value(value) for key, value in view.method_keys.items()}, **shown,
        )  # fmt: skip

    def table(self, request: Request) -> Response:
        """How the table fits, by counts; with values only where the operator asks for them."""
        settings, show_values = self._reload(), bool(form_of(request).get("values"))
        try:
            checked = try_table(settings, read_hash(request.path_params["hash"]), show_values=show_values)
        except TableError as error:
            return self._show_study(request, 400, error=error, misfits=error.misfits, has_values=show_values)
        except SynodError as error:
            return self._refuse(request, error)
        told = f"It fits, and would cost {describe_cost(checked.cost, settings.shown_delta)}. Nothing was reserved."
        return self._show_study(request, fits=told)

    def approve(self, request: Request) -> Response:
        """The decision."""
        study_hash = read_hash(request.path_params["hash"])
        try:
            approve(self._reload(), study_hash, text_of(request, "typed"), now=int(self._clock()))
        except TableError as error:
            return self._show_study(request, 400, error=error, misfits=error.misfits)
        except SynodError as error:
            return self._refuse(request, error)
        return self._pages.move(request, f"/studies/{study_hash}", DONE[ApprovalState.OPEN.value])

    def revoke(self, request: Request) -> Response:
        """Takes the decision back."""
        study_hash, is_sure = read_hash(request.path_params["hash"]), bool(form_of(request).get("sure"))
        try:
            end_approval(self._reload(), study_hash, is_sure=is_sure, now=int(self._clock()))
        except SynodError as error:
            return self._refuse(request, error)
        return self._pages.move(request, f"/studies/{study_hash}", DONE[ApprovalState.REVOKED.value])

    def _refuse(self, request: Request, error: SynodError) -> Response:
        """The study's page with the refusal on top, unless there is no such study."""
        if error.code is Code.NOT_FOUND:
            raise error
        return self._show_study(request, 400, error=error)

    def ledger(self, request: Request) -> Response:
        """Every entry with its date."""
        settings = self._reload()
        with closing(Ledger.open(settings.state, tidies=False)) as ledger:
            account, entries = ledger.account(), ledger.entries()
        views = list(view_entries(entries, delta=settings.shown_delta))
        budget = view_budget(settings, account, None)
        known = set(account.approvals)
        return self._pages.show(
            request, "ledger.html", title="Ledger", entries=views, budget=budget, dataset=settings.dataset,
            gauges=draw_gauges(budget, None), known=known,
        )  # fmt: skip

    def doctor(self, request: Request) -> Response:
        """What is examined between this party and its curator, and the days of the certificates."""
        settings, now = self._reload(), datetime.fromtimestamp(self._clock(), UTC)
        found = list(examine(settings, None, now=now))
        try:
            certificates = view_certificates(settings.tls, now=now)
        except SynodError:
            certificates = ()  # the first of what was examined says why
        return self._pages.show(
            request, "doctor.html", title="Doctor", found=found, certificates=certificates, name=settings.name,
            address=settings.address, curator=settings.curator, fingerprint=_own_fingerprint(settings),
        )  # fmt: skip


def asked_by(view: StudyView) -> Any:
    """What a study that waits would take of the budget; one that is approved holds it already."""
    return view.cost if view.state == WAITING else None


def _own_fingerprint(settings: PartySettings) -> str:
    try:
        return load_identity(settings).fingerprint
    except SynodError:
        return ""
