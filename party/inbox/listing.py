"""Reads the studies that a party's operator may look at: those that are announced, and those that are in the ledger.

Nothing is written, and the daemon may run meanwhile.
"""

import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from synod.common.runtime.errors import Code, SynodError, invalid, refused
from synod.common.runtime.settings import PartySettings
from synod.party.account import ApprovalState
from synod.party.approval import load_identity
from synod.party.inbox.announced import Announced, list_announced
from synod.party.inbox.views import WAITING, Heard, StudyView, view_study
from synod.party.ledger import Ledger

SHORTEST_PREFIX = 16
HASH_DIGITS = 64
SEE = "See `synod party studies`."


def list_views(settings: PartySettings, *, ended: bool) -> list[StudyView]:
    """All studies that wait here or are open, those that wait first; with `ended`, also those that are over."""
    return _view_all(settings, lambda study: ended or study.state in (WAITING, ApprovalState.OPEN.value))


def find_view(settings: PartySettings, name: str) -> StudyView:
    """The study of this name, or whose hash begins so; one that waits, before one that is open, before one that is
    over.
    """
    found = _view_all(settings, lambda study: study.name == name)
    if not found and re.fullmatch(rf"[0-9a-f]{{8,{HASH_DIGITS}}}", name):
        found = _view_all(settings, lambda study: study.hash.startswith(name))
    if not found:
        raise SynodError(Code.NOT_FOUND, f"no study named {name} was announced to this party or approved here.", SEE)
    waiting = [view for view in found if view.state == WAITING]
    if len(waiting) > 1:
        hashes = ", ".join(view.hash[:SHORTEST_PREFIX] for view in waiting)
        raise SynodError(
            Code.CONFLICT, f"{len(waiting)} studies named {name} wait here: {hashes}.", "Name one by its hash."
        )
    return found[0]


@dataclass(frozen=True, slots=True)
class _Known:
    """A study that this party has heard of: its state here is `waiting`, or that of its approval."""

    name: str
    hash: str
    state: str


def _view_all(settings: PartySettings, wanted: Callable[[_Known], bool]) -> list[StudyView]:
    """The wanted studies: those that wait, those that are open, those that are over, each the latest first. No other is
    read or planned.
    """
    own_key = load_identity(settings).fingerprint
    announced = {one.study.digest().hex(): one for one in list_announced(settings.state, settings.curator)}
    with closing(Ledger.open(settings.state, tidies=False)) as ledger:
        account = ledger.account()
        known = [_Known(a.name, a.study, a.state.value) for a in reversed(list(account.approvals.values()))]
        waiting = [_Known(one.study.name, key, WAITING) for key, one in announced.items()]
        waiting = [one for one in waiting if one.hash not in account.approvals]
        known.sort(key=lambda one: one.state != ApprovalState.OPEN.value)
        chosen = [one for one in (*waiting, *known) if wanted(one)]
        studies = {
            one.hash: announced[one.hash].study if one in waiting else ledger.study(bytes.fromhex(one.hash))
            for one in chosen
        }
    return [
        view_study(settings, study, account, own_key=own_key, heard=heard_of(announced.get(key)))
        for key, study in studies.items()
    ]


def heard_of(announced: Announced | None) -> Heard | None:
    """What the curator says of a study beside the study itself, if it announces it."""
    if announced is None:
        return None
    return Heard(announced.first_heard, announced.last_heard, announced.enrolled)


def announced_study(settings: PartySettings, name: str, prefix: str | None) -> Announced:
    """The announced study to approve: of this name, and of the hash that the operator has seen.

    Guarantee: with a prefix, another study that the curator announces under the same name meanwhile is not the one.
    """
    view = find_view(settings, name)
    check_prefix(view.hash, prefix, view.name)
    for one in list_announced(settings.state, settings.curator):
        if one.study.digest().hex() == view.hash:
            return one
    raise SynodError(Code.NOT_FOUND, f"{view.name} is not announced any more; it is {view.state} here.", SEE)


def check_prefix(study_hash: str, prefix: str | None, name: str) -> None:
    """Refuses a study whose hash does not begin as the operator says; a short beginning would prove little."""
    if prefix is None:
        return
    if not re.fullmatch(rf"[0-9a-f]{{{SHORTEST_PREFIX},{HASH_DIGITS}}}", prefix):
        raise invalid(
            f"`--hash` takes the first {SHORTEST_PREFIX} to {HASH_DIGITS} digits of the study's hash.",
            f"Copy them from `synod party show {name}`.",
        )
    if not study_hash.startswith(prefix):
        raise refused(
            f"the hash of {name} is {study_hash}, which does not begin with what `--hash` says. Nothing was reserved.",
            "Look at the study again, and ask the curator's operator why it changed.",
        )
