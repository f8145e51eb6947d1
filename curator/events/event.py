"""An event in the life of a study, as others are told of it: names and times, and never a number of an answer. Pure."""

from dataclasses import dataclass
from enum import Enum

from synod.common.crypto.canonical import Json
from synod.common.study.study import Study


class EventKind(Enum):
    """What happened: a study waits for approvals, a party has approved it, it was aborted, or published."""

    WAITING = "waiting"
    APPROVED = "approved"
    ABORTED = "aborted"
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class Event:
    """One event; `party` is who approved, `waits_for` whose approval is still missing."""

    kind: EventKind
    study: str
    study_hash: bytes
    unix_seconds: int
    party: str = ""
    waits_for: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """What is sent.

        Guarantee: whoever runs the curator knows all of it, and `synod study status` shows it; reasons of an end, which
        people write, are not in it.
        """
        return {
            "event": self.kind.value,
            "study": self.study,
            "hash": self.study_hash.hex(),
            "party": self.party,
            "waits_for": list(self.waits_for),
            "unix_seconds": self.unix_seconds,
        }


def event_of(kind: EventKind, study: Study, *, now: float, party: str = "", enrolled: set[str] | None = None) -> Event:
    """An event of a study; `enrolled` are those who have approved, where approvals are still missing."""
    missing = () if enrolled is None else tuple(name for name in study.party_names if name not in enrolled)
    return Event(kind, study.name, study.digest(), int(now), party, missing)
