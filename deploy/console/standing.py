"""How a study stands, as the curator's console shows it: the command line's words, with times apart. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from synod.deploy.cli.progress import state_name
from synod.deploy.cli.study import loss_hints, loss_line, name_wait
from synod.v1 import study_pb2 as pb

ENDED = (pb.STUDY_STATE_PUBLISHED, pb.STUDY_STATE_ABORTED)


@dataclass(frozen=True, slots=True)
class PartyPart:
    """One party's part: what is waited for, since when, and when it last called; 0 where there is no such time."""

    name: str
    told: str
    is_awaited: bool
    since: int
    last_seen: int
    is_lost: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """One study: its state in words, its rounds (`over`, `now`, `ahead`), its parties, and what may be done."""

    name: str
    hash: str
    state: str
    remark: str
    is_enrolling: bool
    has_ended: bool
    is_published: bool
    rounds: tuple[str, ...]
    parties: tuple[PartyPart, ...]
    hints: tuple[str, ...]


def view_standing(study: pb.StudyStatus) -> Standing:
    """A status for people."""
    lost = {loss.party: loss_line(loss) for loss in study.losses}
    waits = study.halted and f"halted: {study.halted}"
    return Standing(
        name=study.name,
        hash=study.study_hash.hex(),
        state=state_name(study),
        remark=study.reason or waits or (study.waiting and f"waits and tries again: {study.waiting}"),
        is_enrolling=study.state == pb.STUDY_STATE_ENROLLING,
        has_ended=study.state in ENDED,
        is_published=study.state == pb.STUDY_STATE_PUBLISHED,
        rounds=tuple(_name_round(study, number) for number in range(1, study.rounds + 1)),
        parties=tuple(_view_party(party, study.gathering, lost.get(party.name, "")) for party in study.parties),
        hints=tuple(loss_hints(study)),
    )


def _name_round(study: pb.StudyStatus, number: int) -> str:
    if study.state == pb.STUDY_STATE_PUBLISHED or number < study.round:
        return "over"
    return "now" if number == study.round and study.state == pb.STUDY_STATE_RUNNING else "ahead"


def _view_party(party: pb.PartyStatus, gathering: Sequence[str], lost: str) -> PartyPart:
    told = lost or name_wait(party, gathering)
    is_awaited = party.awaited and not lost
    return PartyPart(
        party.name, told, is_awaited, party.awaited_since if is_awaited else 0, party.last_seen, bool(lost)
    )
