"""Who was lost in a run, as a manifest states it: what follows from it for each step, and whether it holds together.

Who takes part in a sum is in its query. A step of one party that has no query was skipped.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from synod.common.crypto.canonical import Json
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.parsing import AnyQuery, answerers_of
from synod.common.protocol.steps import Step
from synod.common.runtime.errors import check_failed
from synod.common.study.study import Study

Queries = Mapping[str, AnyQuery]
MALFORMED = "the manifest's list of lost parties is malformed."


@dataclass(frozen=True, slots=True)
class LostParty:
    """A party that a study went on without: the first step without it, why, and when that was declared."""

    party: str
    since: str
    reason: str
    unix_seconds: int

    def to_json(self) -> dict[str, Json]:
        """As the manifest holds it."""
        return asdict(self)


def steps_answered(study: Study, queries: Queries, party: str) -> tuple[Step, ...]:
    """The steps that a party took part in, in the plan's order."""
    return tuple(
        step
        for step in plan_study(study).steps_of(party)
        if step.label in queries and party in answerers_of(queries[step.label], step, study)
    )


def first_without(study: Study, queries: Queries, party: str) -> str:
    """The label of the first of a party's steps that went without it; empty if there is none."""
    planned, answered = plan_study(study).steps_of(party), steps_answered(study, queries, party)
    return next((step.label for step in planned if step not in answered), "")


def check_losses_stated(study: Study, queries: Queries, stated: Any) -> tuple[LostParty, ...]:
    """The lost parties that a manifest states, if they explain who is missing from which step.

    1. they are parties of the roster, each once, and no more than the study may lose; 2. whoever is missing from a step
    is one of them; 3. a party that is missing from a step takes part in no later one; 4. the first step without each is
    the one that is stated.
    """
    lost = _read_losses(stated)
    names = {one.party for one in lost}
    # 1
    if len(names) != len(lost) or not names <= set(study.party_names) or len(lost) > study.may_lose:
        raise check_failed("the manifest's lost parties are not some that the study may lose.")
    for party in study.party_names:
        planned, answered = plan_study(study).steps_of(party), steps_answered(study, queries, party)
        # 2
        if len(answered) < len(planned) and party not in names:
            raise check_failed(f"{party} is missing from a step, and is not among the lost parties.")
        # 3
        if answered != planned[: len(answered)]:
            raise check_failed(f"{party} takes part in a step after it was lost.")
    # 4
    for one in lost:
        if one.since != first_without(study, queries, one.party):
            raise check_failed(f"{one.party} was lost at another step than the manifest states.")
    return lost


def _read_losses(stated: Any) -> tuple[LostParty, ...]:
    """The list as values; each text is a text, and the time a whole number."""
    try:
        lost = tuple(LostParty(**one) for one in stated)
    except TypeError:
        raise check_failed(MALFORMED) from None
    texts = all(isinstance(text, str) for one in lost for text in (one.party, one.since, one.reason))
    if not texts or not all(type(one.unix_seconds) is int for one in lost):
        raise check_failed(MALFORMED)
    return lost
