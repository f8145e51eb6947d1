"""Processes of a simulation: the curator over its store on disk, and databases that can be killed at a commit."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synod.common.runtime.sqlite import open_database
from synod.common.study.study import Study
from synod.curator.context import Changes, Context, Subject
from synod.curator.party_handler import PartyHandler
from synod.curator.records import State
from synod.curator.session import Session
from synod.curator.store import Store
from tests.support.keys import identity_of, paillier_key

SETTLE_SECONDS = 60.0
KILLS = ("before", "after")


class Killed(BaseException):
    """The process died here."""


class WatchedChanges(Changes):
    """Knows whether the session waits for news."""

    def __init__(self) -> None:
        super().__init__()
        self.idle = False

    def announce(self, *subjects: Subject) -> None:
        """The store has changed."""
        self.idle = False
        super().announce(*subjects)

    async def wait(self, subject: Subject, seconds: float | None = None) -> None:
        """Waits for a change."""
        self.idle = True
        await super().wait(subject, seconds)


@dataclass
class Trigger:
    """Kills at the n-th commit from now, on its near or its far side; unset otherwise."""

    when: str = ""
    commits: int = 0

    def due(self) -> str:
        """Counts one commit, and says on which side of it to die, if on any."""
        if not self.when:
            return ""
        self.commits -= 1
        if self.commits >= 0:
            return ""
        when, self.when = self.when, ""
        return when


def open_unsynced(path: Path, **options: Any) -> sqlite3.Connection:
    """A database as it is, but for waiting for the disk: here processes die, not machines."""
    connection = open_database(path, **options)
    connection.execute("PRAGMA synchronous = OFF")
    return connection


def killable(commit: Callable[..., Any], trigger: Trigger, committed: Callable[[], None]) -> Callable[..., Any]:
    """A `_transaction` that may die right before or right after it commits."""

    @contextmanager
    def transact(self: Any) -> Iterator[None]:
        when = trigger.due()
        with commit(self):
            yield
            if when == "before":
                raise Killed
        committed()
        if when == "after":
            raise Killed

    return transact


class Curator:
    """The curator's process: its store on disk, its handler, and the session of one study."""

    def __init__(self, folder: Path, study: Study, *, clock: Callable[[], float]) -> None:
        self.folder, self.study = folder, study
        self._clock = clock
        self._loop = asyncio.new_event_loop()
        self.start()

    def start(self) -> None:
        """Opens the store, and resumes the study if it has not ended."""
        self.store, self.changes = Store(self.folder), WatchedChanges()
        self.context = Context(self.store, identity_of("curator"), self.folder, self.changes, 1, self._clock)
        self.handler = PartyHandler(self.context)
        self.store.add_study(self.study, now=int(self._clock()))
        self.task: asyncio.Task[None] | None = None
        if self.store.study(self.study.digest()).outcome is None:
            self.task = self._loop.create_task(Session(self.context, self.study, paillier_key()).run())

    def stop(self) -> None:
        """Ends the process; what is on disk stays."""
        if self.task is not None and not self.task.done():
            self.task.cancel()
            self._loop.run_until_complete(asyncio.gather(self.task, return_exceptions=True))
        self.store.close()

    def close(self) -> None:
        """Ends everything."""
        self.stop()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def settle(self) -> None:
        """Lets the session go as far as it can; raises what ended it."""
        if self.task is not None and (self.task.done() or not self.changes.idle):
            self._loop.run_until_complete(asyncio.wait_for(self._until_idle(self.task), SETTLE_SECONDS))
            if self.task.done():
                self.task.result()

    async def _until_idle(self, task: "asyncio.Task[None]") -> None:
        while not (self.changes.idle or task.done()):
            await asyncio.sleep(0.0005)

    def state(self) -> State:
        """The study's state."""
        return self.store.state(self.store.study(self.study.digest()))
