"""Lost parties in the report: who is missing from which rounds, and whose rows the table describes."""

from collections.abc import Mapping, Sequence

from synod.common.protocol.losses import LostParty, steps_answered
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.base import SharedQuery
from synod.common.protocol.queries.parsing import AnyQuery
from synod.common.study.study import RosterEntry, Study
from synod.curator.release.report.wording import listed, whole


def describe_losses(study: Study, queries: Mapping[str, AnyQuery], lost: Sequence[LostParty]) -> list[str]:
    """A sentence for each party that is missing from a round, and one that says of how many rows each sum is."""
    told = [_describe_loss(study, queries, one) for one in lost if one.since]
    if not told:
        return []
    rows = [
        f"{step.label} {whole(query.present_rows(study))}"
        for step in plan_study(study).steps
        if isinstance(query := queries.get(step.label), SharedQuery) and step.kind.is_sum
    ]
    stayed = [name for name in study.party_names if name not in {one.party for one in lost if one.since}]
    last = f"From then on the table describes the rows of {listed(stayed)}."
    return [*told, f"{last} Rows behind each sum: {listed(rows)}." if rows else last]


def list_members(study: Study, queries: Mapping[str, AnyQuery], lost: Sequence[LostParty]) -> list[RosterEntry]:
    """The parties behind the release: all but those that were lost before their first answer."""
    never = {one.party for one in lost if not steps_answered(study, queries, one.party)}
    return [entry for entry in study.roster if entry.name not in never]


def _describe_loss(study: Study, queries: Mapping[str, AnyQuery], one: LostParty) -> str:
    inside = [step.label for step in steps_answered(study, queries, one.party)]
    outside = [step.label for step in plan_study(study).steps_of(one.party) if step.label not in inside]
    rounds = "round" if len(inside) == 1 else "rounds"
    took_part = f"is in the {rounds} {listed(inside)} and not in {listed(outside)}" if inside else "is in no round"
    return f"{one.party} was lost ({one.reason.rstrip('.')}): it {took_part}."
