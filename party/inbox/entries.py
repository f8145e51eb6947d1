"""The entries of a ledger in plain words, one line each, for whoever looks back at what was decided and spent. Pure."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from synod.common.privacy.cost import Cost
from synod.common.protocol.rotation import recall_rotation
from synod.common.study.promise import describe_cost
from synod.common.study.study import CURATOR_NAME
from synod.party.account import ApprovalState, Entry

ENDS = {
    ApprovalState.REVOKED.value: "approval revoked here; what was not spent is free again",
    ApprovalState.PUBLISHED.value: "published; what was not spent is free again",
    ApprovalState.ABORTED.value: "aborted; what was not spent is free again",
    ApprovalState.LOST.value: "goes on without this party; what was not spent is free again",
}


@dataclass(frozen=True, slots=True)
class EntryView:
    """One entry: its number in the chain, when it was made (seconds since 1970), its kind, the study's name and hash if
    it is about one, what it says in words, and the exact cost that it reserves, spends or declares, if any.
    """

    sequence: int
    time: int
    kind: str
    study: str
    hash: str
    told: str
    cost: str


def view_entries(entries: Iterable[Entry], *, delta: Decimal) -> Iterator[EntryView]:
    """Every entry, in order; rho is also told as an epsilon at this delta."""
    names: dict[str, str] = {}
    for entry in entries:
        study, cost = str(entry.get("study", "")), _cost_of(entry)
        if entry["kind"] == "approved":
            names[study] = str(entry["name"])
        told = describe_cost(Cost.parse(cost), delta) if cost else ""
        yield EntryView(
            entry["sequence"], entry["time"], entry["kind"], names.get(study, ""), study, _tell(entry, told), cost
        )


def _cost_of(entry: Entry) -> str:
    return str(next((entry[key] for key in ("spent", "reserved", "cost") if key in entry), ""))


def _tell(entry: Entry, cost: str) -> str:
    tell = TELL.get(entry["kind"])
    return tell(entry, cost) if tell else f"an entry of the kind {entry['kind']}, which this version does not know"


def _tell_opened(entry: Entry, _: str) -> str:
    lost = "; an earlier one is lost, so datasets count as fully spent until what they spent is declared"
    return "this ledger was made" + (lost if entry["history_lost"] else "")


def _tell_rotated(entry: Entry, _: str) -> str:
    whose = "the curator's" if recall_rotation(entry["rotation"]).name == CURATOR_NAME else "this party's"
    return f"{whose} identity key was replaced"


TELL: dict[str, Callable[[Entry, str], str]] = {
    "opened": _tell_opened,
    "declared": lambda entry, cost: f"declared: {entry['dataset']} had spent {cost} before this ledger",
    "renamed": lambda entry, _: f"the dataset {entry['dataset']} is {entry['to']} from here on",
    "rotated": _tell_rotated,
    "approved": lambda entry, cost: f"approved: {cost} reserved, for {entry['dataset']}",
    "charged": lambda entry, cost: f"answered {entry['label']}: {cost} spent",
    "revoked": lambda _, __: ENDS[ApprovalState.REVOKED.value],
    "closed": lambda entry, _: ENDS[entry["outcome"]],
}
