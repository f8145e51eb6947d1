"""The pages of the curator operator's console. It speaks with the curator as the command line does, with the operator's
certificate, and keeps nothing but drafts and fetched releases, in memory and in a folder of its own.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from synod.common.console.guard import LIVE_SUFFIX, form_of, is_still_open, session_of, text_of
from synod.common.console.pages import Pages, action, page
from synod.common.runtime.errors import Code, SynodError, invalid, refused
from synod.common.runtime.settings import CuratorSettings, OperatorSettings
from synod.common.study.study import SLUG
from synod.deploy.console.drafts import Drafts, describe_advice, describe_draft, read_draft
from synod.deploy.console.releases import REPORT_FILE, Releases
from synod.deploy.console.standing import Standing, view_standing
from synod.deploy.enrolment.kit import USUAL_CONTACT
from synod.deploy.enrolment.making import MadeKit, make_kit
from synod.deploy.launch.operator import OperatorClient

LINKS = {"Studies": "/", "New study": "/submit", "Kits": "/kits"}
KIT_PATH = "/kits/curator.kit"
LIVE_SECONDS = 1.0
REPORT_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
SUBMITTED = "The study is with the curator, and waits for the parties."
ABORTED = "The study is aborted; reservations that were not spent are free again."


def make_pages(settings: OperatorSettings) -> Pages:
    """The frame of the curator's pages."""
    return Pages(f"curator at {settings.address}", LINKS, Path(__file__).parent / "templates")


class CuratorConsole:
    """The handlers of the pages; `curator` is the curator's own configuration where this machine has it."""

    def __init__(
        self,
        settings: OperatorSettings,
        curator: CuratorSettings | None,
        pages: Pages,
        *,
        live_seconds: float = LIVE_SECONDS,
    ) -> None:
        self._settings, self._curator, self._pages = settings, curator, pages
        self._live_seconds = live_seconds
        self._drafts, self._releases = Drafts(), Releases(self._fetch)
        self._kit: tuple[str, str, MadeKit] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._releases.close()

    def routes(self) -> Sequence[BaseRoute]:
        """Every page and every action."""
        return [
            page("/", self.studies),
            page("/submit", self.write),
            action("/submit", self.check),
            page("/drafts/{hash}", self.draft),
            action("/drafts/{hash}/advice", self.rehearse),
            action("/drafts/{hash}/submit", self.submit),
            page("/studies/{name}", self.study),
            Route(f"/studies/{{name}}{LIVE_SUFFIX}", self.live, methods=["GET"]),
            action("/studies/{name}/abort", self.abort),
            action("/studies/{name}/lose", self.lose),
            page("/studies/{name}/release", self.release),
            page("/studies/{name}/release.zip", self.archive),
            page("/studies/{name}/files/{file}", self.file),
            page("/kits", self.kits),
            action("/kits", self.make_kit),
            page(KIT_PATH, self.kit),
        ]

    @contextmanager
    def _client(self) -> Iterator[OperatorClient]:
        with closing(OperatorClient(self._settings)) as client:
            yield client

    def _fetch(self, name: str, folder: Path) -> None:
        with self._client() as client:
            client.fetch(name, folder)

    def _stand(self, request: Request, client: OperatorClient | None = None) -> Standing:
        name = request.path_params["name"]
        if not SLUG.fullmatch(name):
            raise SynodError(Code.NOT_FOUND, "there is no study of that name.")
        if client is not None:
            (found,) = client.status(name)
            return view_standing(found)
        with self._client() as own:
            return self._stand(request, own)

    # Watching

    def studies(self, request: Request) -> Response:
        """The newest studies, and whom they wait for."""
        with self._client() as client:
            found, older = client.newest()
        shown = [view_standing(study) for study in found]
        return self._pages.show(request, "studies.html", title="Studies", studies=shown, older=older)

    def study(self, request: Request) -> Response:
        """One study; after an action also what it did, if the curator still says so."""
        return self._show_study(request, note=session_of(request).take_note(request.scope["path"]))

    def _show_study(self, request: Request, status: int = 200, note: str = "", **values: Any) -> Response:
        standing = self._stand(request)
        done = note if is_true_of(standing, note) else ""
        return self._pages.show(
            request, "standing.html", status, title=standing.name, study=standing, done=done, **values
        )

    def live(self, request: Request) -> Response:
        """The part of the study's page that changes, as server-sent events; works as long as the session is open."""
        return StreamingResponse(self._follow(request), media_type="text/event-stream")

    async def _follow(self, request: Request) -> AsyncIterator[str]:
        last = ""
        with self._client() as client:
            while is_still_open(request) and not await request.is_disconnected():
                try:
                    standing = await asyncio.to_thread(self._stand, request, client)
                except SynodError as error:
                    part = self._pages.render("trouble.html", error=error)
                    has_ended = False
                else:
                    part, has_ended = self._pages.render("progress.html", study=standing), standing.has_ended
                if part != last:
                    yield write_event("part", part)
                last = part
                if has_ended:
                    yield write_event("end", "")
                    return
                await asyncio.sleep(self._live_seconds)

    # Submitting

    def write(self, request: Request) -> Response:
        """The form for a new study."""
        return self._pages.show(request, "submit.html", title="New study", text="")

    def check(self, request: Request) -> Response:
        """Checks a study, from a file or from the field, and shows what it would do."""
        content = read_content(request)
        try:
            draft = read_draft(content)
        except SynodError as error:
            text = content.decode(errors="replace")
            return self._pages.show(request, "submit.html", 400, title="New study", text=text, error=error)
        self._drafts.keep(draft)
        return RedirectResponse(f"/drafts/{draft.hash}", 303)

    def draft(self, request: Request) -> Response:
        """What a study would do, before it is submitted."""
        return self._show_draft(request)

    def rehearse(self, request: Request) -> Response:
        """The same, with a rehearsal and the methods side by side, from here on."""
        draft = self._drafts.find(request.path_params["hash"])
        self._drafts.keep(replace(draft, advice=describe_advice(draft)))
        return RedirectResponse(f"/drafts/{draft.hash}", 303)

    def _show_draft(self, request: Request, status: int = 200, **values: Any) -> Response:
        draft = self._drafts.find(request.path_params["hash"])
        shown = {**describe_draft(draft), **values}
        return self._pages.show(request, "draft.html", status, title=draft.resolved.name, **shown)

    def submit(self, request: Request) -> Response:
        """Hands the study of this hash to the curator."""
        study = self._drafts.find(request.path_params["hash"]).resolved
        try:
            with self._client() as client:
                client.submit(study)
        except SynodError as error:
            return self._show_draft(request, 400, error=error)
        return self._pages.move(request, f"/studies/{study.name}", SUBMITTED)

    # Ending

    def abort(self, request: Request) -> Response:
        """Ends a study for good, if its name was typed."""
        standing = self._stand(request)
        try:
            if text_of(request, "typed") != standing.name:
                raise refused("what was typed is not the study's name. Nothing was aborted.")
            with self._client() as client:
                client.abort(standing.name)
        except SynodError as error:
            return self._show_study(request, 400, error=error)
        return self._pages.move(request, f"/studies/{standing.name}", ABORTED)

    def lose(self, request: Request) -> Response:
        """Declares a party lost, for good."""
        standing = self._stand(request)
        party, reason = text_of(request, "party"), text_of(request, "reason")
        try:
            if not form_of(request).get("sure"):
                raise refused("nobody was declared lost.", "Tick that you mean it, and try again.")
            if not reason or party not in [one.name for one in standing.parties]:
                raise invalid("a party and a reason are needed.", "Choose one, and write why in one line.")
            with self._client() as client:
                effect = client.lose(standing.name, party, reason)
        except SynodError as error:
            return self._show_study(request, 400, error=error)
        return self._pages.move(request, f"/studies/{standing.name}", effect)

    # The release

    def release(self, request: Request) -> Response:
        """The verified release: its report, and its files."""
        standing = self._stand(request)
        fetched = self._releases.find(standing.name, standing.hash)
        return self._pages.show(request, "release.html", title=standing.name, study=standing, fetched=fetched)

    def archive(self, request: Request) -> Response:
        """All files in one."""
        standing = self._stand(request)
        path = self._releases.pack(standing.name, self._releases.find(standing.name, standing.hash))
        return FileResponse(path, media_type="application/zip", filename=f"{standing.name}.zip")

    def file(self, request: Request) -> Response:
        """One file; the report is shown in a frame that runs nothing and has no origin, all others are downloaded."""
        standing = self._stand(request)
        path = self._releases.find(standing.name, standing.hash).path_of(request.path_params["file"])
        if path.name == REPORT_FILE and "save" not in request.query_params:
            headers = {"content-security-policy": REPORT_POLICY, "x-frame-options": "SAMEORIGIN"}
            return FileResponse(path, media_type="text/html", headers=headers)
        return FileResponse(path, media_type="application/octet-stream", filename=path.name)

    # Kits

    def kits(self, request: Request) -> Response:
        """The form for a kit, and the one that was made last."""
        return self._show_kits(request, done=session_of(request).take_note(request.scope["path"]))

    def _show_kits(self, request: Request, status: int = 200, **values: Any) -> Response:
        address, contact, made = self._kit or (self._settings.address, USUAL_CONTACT, None)
        shown = {"address": address, "contact": contact, "can_make": self._curator is not None}
        return self._pages.show(
            request,
            "kits.html",
            status,
            title="Kits",
            made=made,
            made_for=address,
            link=KIT_PATH,
            **{**shown, **values},
        )

    def make_kit(self, request: Request) -> Response:
        """Makes a kit; the page then links it, and has the fingerprint that goes with it."""
        address, contact = text_of(request, "address"), text_of(request, "contact")
        try:
            if self._curator is None:
                raise invalid(
                    "this machine does not have the curator's configuration.", "Run `synod curator kit` there."
                )
            made = make_kit(self._curator, address=address, certificates=contact)
        except SynodError as error:
            return self._show_kits(request, 400, error=error, address=address, contact=contact)
        self._kit = (address, contact, made)
        return self._pages.move(request, "/kits", f"A kit for {address} is made. Save it below.")

    def kit(self, _: Request) -> Response:
        """The kit that was made last, as a file to save."""
        if self._kit is None:
            raise SynodError(Code.NOT_FOUND, "no kit was made yet.", "Make one first.")
        name = {"content-disposition": 'attachment; filename="curator.kit"'}
        return Response(self._kit[2].content, media_type="application/octet-stream", headers=name)


def is_true_of(standing: Standing, note: str) -> bool:
    """Whether what an action did is still to be seen; what follows a loss is the curator's own sentence."""
    if note == SUBMITTED:
        return standing.is_enrolling
    return note != ABORTED or (standing.has_ended and not standing.is_published)


def read_content(request: Request) -> bytes:
    """The study of the form: the file if one was chosen, the text otherwise."""
    chosen = form_of(request).get("file")
    if isinstance(chosen, UploadFile) and chosen.filename:
        return chosen.file.read()
    return text_of(request, "text").encode()


def write_event(kind: str, data: str) -> str:
    """A server-sent event; no line of the data can end it."""
    lines = "".join(f"data: {line}\n" for line in data.splitlines() or [""])
    return f"event: {kind}\n{lines}\n"
