"""Sessions that end without an end of their study: the operator is told, and nobody waits for ever."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from synod.common.crypto.canonical import canonical_bytes
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.files import write_private_file
from synod.common.study.study import Study
from synod.curator.context import Context
from synod.curator.records import State
from synod.curator.session import Session
from synod.curator.study_handler import StudyHandler
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
    (status,) = handler.status(study.name)
    return status


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
