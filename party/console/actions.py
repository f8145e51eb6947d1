"""What the party's operator can do in the console: the command line's own steps, one request each.

No ledger stays open between two requests, and nothing is kept here that a killed process could lose.
"""

import re

from synod.common.runtime.errors import invalid, refused
from synod.common.runtime.settings import PartySettings
from synod.common.study.study import Study
from synod.party.approval import CheckedStudy, check_study, reserve, revoke
from synod.party.inbox.listing import HASH_DIGITS, announced_study

TYPED_DIGITS = 8


def read_hash(text: str) -> str:
    """A whole hash, as the pages write it into their addresses."""
    if not re.fullmatch(rf"[0-9a-f]{{{HASH_DIGITS}}}", text):
        raise invalid("that is no hash of a study.", "Choose a study from the inbox.")
    return text


def find_announced(settings: PartySettings, study_hash: str) -> Study:
    """The announced study of this whole hash, which the operator was shown."""
    return announced_study(settings, study_hash, study_hash).study


def try_table(settings: PartySettings, study_hash: str, *, show_values: bool) -> CheckedStudy:
    """Checks policy, budget and table, and reserves nothing."""
    return check_study(settings, find_announced(settings, study_hash), show_values=show_values)


def approve(settings: PartySettings, study_hash: str, typed: str, *, now: int) -> CheckedStudy:
    """Approves the study of this hash, if the operator has typed how it begins.

    Guarantee: what is reserved is for the very study that was on the page, whatever is announced under its name since.
    """
    check_typed(study_hash, typed)
    checked = try_table(settings, study_hash, show_values=False)
    reserve(settings, checked, now=now)
    return checked


def check_typed(study_hash: str, typed: str) -> None:
    """Refuses where the first characters of the hash were not typed, or others were."""
    if typed.lower() != study_hash[:TYPED_DIGITS]:
        raise refused(
            f"what was typed is not how the hash begins, its first {TYPED_DIGITS} characters. Nothing was reserved.",
            "Compare the hash with the other parties, then type how it begins.",
        )


def end_approval(settings: PartySettings, study_hash: str, *, is_sure: bool, now: int) -> None:
    """Revokes an approval, if the operator has said that it is meant."""
    if not is_sure:
        raise refused("nothing was revoked.", "Tick that you mean it, and try again.")
    revoke(settings, bytes.fromhex(study_hash), now=now)
