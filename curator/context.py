"""What all sessions of a curator share: the store, its identity, where releases go, and news of changes."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from synod.common.crypto.identity import Identity
from synod.curator.store import Store


class Changes:
    """Wakes everybody who waits for the store to change."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def announce(self) -> None:
        """The store has changed."""
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self, seconds: float | None = None) -> None:
        """Waits for a change, or for the time to pass."""
        try:
            await asyncio.wait_for(self._event.wait(), seconds)
        except TimeoutError:
            return


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

    def see(self, party: str) -> None:
        """Notes that a party called; forgotten at a restart, after which parties call again within seconds."""
        self.sightings[party] = int(self.clock())

    def release_folder(self, study_hash: bytes) -> Path:
        """Where a study's release is, once there is one."""
        return self.folder / "releases" / study_hash.hex()
