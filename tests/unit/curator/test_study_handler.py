"""Sessions that end without an end of their study: the operator is told, and nobody waits for ever."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from synod.common.crypto.canonical import canonical_bytes
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.files import write_private_file
from synod.common.runtime.wire import MESSAGE_BYTES
from synod.common.study.study import Study
from synod.curator import session as session_module
from synod.curator import store, study_handler
from synod.curator.context import Context
from synod.curator.records import State
from synod.curator.session import Session
from synod.curator.study_handler import MOST_LISTED, StudyHandler
from synod.deploy.launch import launcher
from synod.deploy.launch.launcher import launch
from synod.v1 import study_pb2 as pb
from tests.support.curators import make_context
from tests.support.keys import paillier_key
from tests.support.studies import make_study

SECRET = "4711"
SECONDS = 20.0


@pytest.fixture
def study() -> Study:
    return make_study()


@pytest.fixture
def context(tmp_path: Path, study: Study) -> Iterator[Context]:
    """A curator with one study and its key."""
    context = make_context(tmp_path)
    write_private_file(tmp_path / "keys" / f"{study.digest().hex()}.json", canonical_bytes(paillier_key().to_json()))
    context.store.add_study(study, now=1)
    yield context
    context.store.close()


@pytest.fixture
def defective(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every session ends by a defect."""

    async def fail(self: Session) -> None:
        raise ZeroDivisionError(SECRET)

    monkeypatch.setattr(Session, "run", fail)


def run(scene: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scene(), SECONDS))


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def status_of(handler: StudyHandler, study: Study) -> pb.StudyStatus:
    return handler.status(study.name)


@pytest.mark.usefixtures("defective")
def test_a_defect_is_told_and_does_not_end_the_study(context: Context, study: Study) -> None:
    async def scene() -> None:
        handler = StudyHandler(context)
        handler.resume()
        assert status_of(handler, study).halted == ""
        await settle()
        assert status_of(handler, study).halted == "its session ended by a defect (ZeroDivisionError)."
        assert context.store.study(study.digest()).outcome is None
        context.store.end_study(study.digest(), State.ABORTED, "why")
        assert status_of(handler, study).halted == ""

    run(scene)


def test_a_study_that_is_submitted_again_goes_on(
    context: Context, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[str] = []

    async def fail_once(self: Session) -> None:
        runs.append(self.study.name)
        if len(runs) == 1:
            raise ZeroDivisionError(SECRET)
        await asyncio.sleep(SECONDS)

    monkeypatch.setattr(Session, "run", fail_once)

    async def scene() -> None:
        handler = StudyHandler(context)
        handler.resume()
        await settle()
        assert status_of(handler, study).halted
        for _ in range(2):  # the second time it runs already
            await handler.submit(canonical_bytes(study.to_json()))
            await settle()
            assert (runs, status_of(handler, study).halted) == ([study.name] * 2, "")
        handler.abort(study.name, by="the test")
        await settle()

    run(scene)


def test_a_lost_key_is_told(context: Context, study: Study) -> None:
    (context.folder / "keys" / f"{study.digest().hex()}.json").unlink()

    async def scene() -> None:
        handler = StudyHandler(context)
        handler.resume()
        assert "the Paillier key of care-survey is lost. Restore" in status_of(handler, study).halted

    run(scene)


def test_why_a_session_waits_is_told_and_that_it_goes_on(
    context: Context, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trouble with the disk is waited out, and is no halt: nobody has to do anything but make room."""
    full = SynodError(Code.STORAGE, "the disk is full.", "Make room.")
    tries = [full, full]

    async def run_once(self: Session) -> None:
        if tries:
            raise tries.pop()
        await asyncio.sleep(SECONDS)

    monkeypatch.setattr(Session, "_run_once", run_once)
    monkeypatch.setattr(session_module, "RETRY_SECONDS", 0.2)

    async def scene() -> None:
        handler = StudyHandler(context)
        handler.resume()
        told = set()
        while tries or status_of(handler, study).waiting:
            told.add((status_of(handler, study).waiting, status_of(handler, study).halted))
            await asyncio.sleep(0.01)
        assert told - {("", "")} == {("the disk is full. Make room.", "")}
        handler.abort(study.name, by="the test")
        await settle()

    run(scene)


def test_a_study_that_has_ended_waits_for_nothing(context: Context, study: Study) -> None:
    handler = StudyHandler(context)
    context.waiting[study.digest()] = "the disk is full."
    assert status_of(handler, study).waiting == "the disk is full."
    context.store.end_study(study.digest(), State.ABORTED, "why")
    assert status_of(handler, study).waiting == ""


# Many studies


def fill(context: Context, count: int) -> list[str]:
    """Adds studies, two of each second; returns the names of all, newest first, of one second by name."""
    for number in range(count):
        context.store.add_study(make_study(name=f"study-{number:03}"), now=10 + number // 2)
    ordered = sorted(range(count), key=lambda number: (-(number // 2), number))
    return [*(f"study-{number:03}" for number in ordered), "care-survey"]


async def read_pages(handler: StudyHandler) -> list[tuple[list[pb.StudyStatus], int]]:
    pages = [await handler.list_studies(b"")]
    while pages[-1][1]:
        assert len(pages) < SECONDS
        pages.append(await handler.list_studies(pages[-1][0][-1].study_hash))
    return pages


def test_all_studies_are_listed_once_in_pages_newest_first(context: Context) -> None:
    names = fill(context, 2 * MOST_LISTED + 7)

    async def scene() -> None:
        pages = await read_pages(StudyHandler(context))
        assert [len(page) for page, _ in pages] == [MOST_LISTED, MOST_LISTED, 8]
        assert [older for _, older in pages] == [MOST_LISTED + 8, 8, 0]
        assert [status.name for page, _ in pages for status in page] == names

    run(scene)


def test_a_page_fits_into_a_message(context: Context) -> None:
    """With hundreds of parties a status is tens of kilobytes, and fifty of them more than a message holds."""
    names = fill(context, MOST_LISTED - 1)
    for record in context.store.studies():
        context.store.end_study(record.study_hash, State.ABORTED, "why" * 10_000)

    async def scene() -> None:
        pages = await read_pages(StudyHandler(context))
        assert len(pages) == 3
        for page, older in pages:
            assert pb.GetStatusResponse(studies=page, older=older).ByteSize() < MESSAGE_BYTES
        assert [status.name for page, _ in pages for status in page] == names

    run(scene)


def test_a_single_study_is_listed_however_large(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study_handler, "LISTED_BYTES", 1)
    names = fill(context, 3)

    async def scene() -> None:
        pages = await read_pages(StudyHandler(context))
        assert [[status.name for status in page] for page, _ in pages] == [[name] for name in names]
        assert await StudyHandler(context).list_studies(bytes(32)) == ([], 0)

    run(scene)


def test_others_are_served_while_studies_are_listed(context: Context) -> None:
    """One turn of the event loop parses one study, and a page parses no more than it lists."""
    fill(context, 2 * MOST_LISTED)
    turns: list[int] = []
    parsed = store._parse.cache_info

    async def other() -> None:
        while len(turns) < 10 * MOST_LISTED:
            turns.append(parsed().misses)
            await asyncio.sleep(0)

    async def scene() -> None:
        store._parse.cache_clear()
        waiting = asyncio.create_task(other())
        listed, _ = await StudyHandler(context).list_studies(b"")
        waiting.cancel()
        assert (len(listed), parsed().misses) == (MOST_LISTED, MOST_LISTED)

    run(scene)
    assert max(after - before for before, after in pairwise(turns)) == 1
    assert len(turns) >= MOST_LISTED


def test_a_start_parses_open_studies_alone_and_drops_the_keys_of_the_others(context: Context, study: Study) -> None:
    fill(context, 9)
    keys = context.folder / "keys"
    for record in context.store.studies():
        if record.study != study:
            write_private_file(keys / f"{record.study_hash.hex()}.json", b"{}")
            context.store.end_study(record.study_hash, State.ABORTED, "why")
    write_private_file(keys / "copy of a key.json", b"{}")

    async def scene() -> None:
        store._parse.cache_clear()
        handler = StudyHandler(context)
        handler.resume()
        assert store._parse.cache_info().misses == 1
        handler.abort(study.name, by="the test")
        await settle()

    assert len(list(keys.iterdir())) == 11
    run(scene)
    assert [path.name for path in keys.iterdir()] == ["copy of a key.json"]


class Halted:
    """An operator's client whose curator has a session that ended by a defect; asked too often, the test fails."""

    asked = 0

    def __init__(self, status: pb.StudyStatus) -> None:
        self._status = status

    def submit(self, study: Study) -> bytes:
        return study.digest()

    def status(self, name: str) -> list[pb.StudyStatus]:
        self.asked += 1
        assert self.asked < 10, "the launcher waits for ever"
        return [self._status]

    def close(self) -> None:
        return


class Running:
    """Daemons that run on."""

    def start_curator(self) -> None:
        return

    def start_parties(self) -> None:
        return

    def check(self) -> None:
        return


@pytest.mark.usefixtures("defective")
def test_a_launch_ends_with_a_sentence_if_the_curator_does_not_go_on(
    context: Context, study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    statuses: list[pb.StudyStatus] = []

    async def scene() -> None:
        handler = StudyHandler(context)
        handler.resume()
        await settle()
        statuses.append(status_of(handler, study))

    def start(paths: Any) -> AbstractContextManager[Running]:
        return nullcontext(Running())

    run(scene)
    monkeypatch.setattr(launcher, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(launcher, "plan_paths", lambda folder, tables: type("Paths", (), {"operator_config": folder}))
    monkeypatch.setattr(launcher, "prepare", lambda paths, study, unit: study)
    monkeypatch.setattr(launcher, "load_settings", lambda kind, path: None)
    monkeypatch.setattr(launcher, "OperatorClient", lambda settings: Halted(*statuses))
    with pytest.raises(SynodError) as caught:
        launch(study, [], tmp_path / "out", tmp_path, start=start, progress=lambda status: None)
    assert caught.value.code is Code.INTERNAL
    assert caught.value.sentence == (
        "the curator does not go on with care-survey: its session ended by a defect (ZeroDivisionError)."
    )
    assert "--state DIR" in caught.value.hint
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("ends_by", ["abort", "session", "restart"])
def test_the_paillier_key_of_an_ended_study_is_erased(
    context: Context, study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_by: str
) -> None:
    """Its bytes are overwritten, and not only its name is gone."""
    path, other_name = tmp_path / "keys" / f"{study.digest().hex()}.json", tmp_path / "link"
    os.link(path, other_name)

    async def publish(self: Session) -> None:
        context.store.end_study(self.study_hash, State.PUBLISHED)

    async def scene() -> None:
        handler = StudyHandler(context)
        if ends_by == "restart":
            context.store.end_study(study.digest(), State.PUBLISHED)
        if ends_by == "session":
            monkeypatch.setattr(Session, "run", publish)
        handler.resume()
        if ends_by == "abort":
            handler.abort(study.name, by="operator")
        await settle()

    run(scene)
    assert not path.exists()
    assert set(other_name.read_bytes()) == {0}
