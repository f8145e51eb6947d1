"""What all sessions of a curator share: the store, its identity, where releases go, and news of changes."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from synod.common.crypto.identity import Identity
from synod.common.study.study import Study
from synod.curator.events.event import Event, EventKind, event_of
from synod.curator.records import State
from synod.curator.store import Store

Subject = bytes | str
"""Whom a change concerns: a study's session, by the study's hash, or a party's long polls, by the party's name."""


class Changes:
    """Wakes those whom a change of the store concerns, and nobody else.

    For the event loop's thread only. `wait` listens from its first instruction on, so that whoever looks at the store
    and then waits, with no `await` in between, misses nothing.
    """

    def __init__(self) -> None:
        self._events: dict[Subject, asyncio.Event] = {}
        self.closed = False

    def announce(self, *subjects: Subject) -> None:
        """The store has changed in a way that may give each of these something to do."""
        for subject in subjects:
            if event := self._events.pop(subject, None):
                event.set()

    def close(self) -> None:
        """Wakes everybody: the curator stops, and long polls end."""
        self.closed = True
        self.announce(*self._events)

    async def wait(self, subject: Subject, seconds: float | None = None) -> None:
        """Waits for a change that concerns the subject, or for the time to pass."""
        event = self._events.setdefault(subject, asyncio.Event())
        try:
            await asyncio.wait_for(event.wait(), seconds)
        except TimeoutError:
            return


@dataclass(frozen=True, slots=True)
class Gathering:
    """Whom a study waits for before its next sum opens, and since when."""

    parties: tuple[str, ...]
    since: int


@dataclass(frozen=True, slots=True)
class Context:
    """What all sessions of a curator share."""

    store: Store
    identity: Identity
    folder: Path
    changes: Changes
    workers: int
    clock: Callable[[], float]
    sightings: dict[str, int] = field(default_factory=dict)
    waiting: dict[bytes, str] = field(default_factory=dict)
    """Why sessions wait before they try again, by the study's hash."""
    skipped: dict[str, set[bytes]] = field(default_factory=dict)
    away: set[str] = field(default_factory=set)
    """Whose last poll was cut off, or who has answered since and not polled again: they may have died."""
    gathering: dict[bytes, Gathering] = field(default_factory=dict)
    tell: Callable[[Event], None] = lambda _: None
    """Who is told of events; it never waits and never fails."""

    def end_study(self, study: Study, outcome: State, reason: str = "") -> None:
        """Ends a study, once, and tells of it."""
        if self.store.end_study(study.digest(), outcome, reason):
            self.tell(event_of(EventKind(outcome.value), study, now=self.clock()))

    def see(self, party: str) -> None:
        """Notes that a party called, which wakes the studies that wait for it; forgotten at a restart, after which
        parties call again within seconds.
        """
        self.sightings[party] = int(self.clock())
        if waiting := [study for study, waited in self.gathering.items() if party in waited.parties]:
            self.changes.announce(*waiting)

    def is_here(self, party: str, study_hash: bytes, seconds: float) -> bool:
        """Whether a party polled so lately, still polls or does what it was told, and would hear of this study."""
        seen = self.sightings.get(party)
        late = seen is None or self.clock() - seen > seconds
        return not late and party not in self.away and study_hash not in self.skipped.get(party, ())

    def release_folder(self, study_hash: bytes) -> Path:
        """Where a study's release is, once there is one."""
        return self.folder / "releases" / study_hash.hex()
