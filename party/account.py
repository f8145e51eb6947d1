"""The account: what a chain of ledger entries adds up to. Pure; the ledger folds its entries with it.

An entry is one fact: `opened`, `declared`, `renamed`, `rotated`, or of a study `approved`, `charged`, `revoked`,
`closed`. Reserved is what open studies may still charge; spent is what was charged or declared. Neither ever goes down
but by a study's end, which frees the part of its reservation that it did not charge.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import Enum
from typing import Any

from synod.common.crypto.identity import fingerprint
from synod.common.privacy.cost import FREE, Cost
from synod.common.protocol.rotation import Rotation, recall_rotation
from synod.common.runtime.errors import refused
from synod.common.study.promise import USUAL_DELTA, describe_cost
from synod.common.study.study import CURATOR_NAME

Entry = Mapping[str, Any]


class ApprovalState(Enum):
    """Where an approved study stands: open, or how it ended."""

    OPEN = "open"
    REVOKED = "revoked"
    PUBLISHED = "published"
    ABORTED = "aborted"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Charge:
    """One answered step; `present` are the places of those who took part in its sum, where not everybody did."""

    label: str
    query: str
    transcript: str
    cost: Cost
    present: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Approval:
    """One approved study: its reservation, its snapshot, the sealed marks of its table, and what was charged so far."""

    study: str
    name: str
    dataset: str
    reserved: Cost
    snapshot: str
    source: tuple[str, ...]
    state: ApprovalState = ApprovalState.OPEN
    charges: tuple[Charge, ...] = ()

    @property
    def spent(self) -> Cost:
        """What its answers cost."""
        return Cost.total(charge.cost for charge in self.charges)

    @property
    def still_present(self) -> tuple[int, ...]:
        """The places of those who took part in the last sum that was answered; empty as long as everybody did. Who is
        left out stays out, so the last list is the shortest.
        """
        return next((charge.present for charge in reversed(self.charges) if charge.present), ())

    @property
    def held(self) -> Cost:
        """What it may still charge."""
        return self.reserved - self.spent if self.state is ApprovalState.OPEN else FREE


@dataclass(frozen=True, slots=True)
class Account:
    """Everything that follows from the chain."""

    approvals: Mapping[str, Approval] = field(default_factory=dict)
    declared: Mapping[str, Cost] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    history_lost: bool = False
    rotations: tuple[Rotation, ...] = ()

    @property
    def own_rotations(self) -> tuple[Rotation, ...]:
        """The rotations of this party's identity, in order."""
        return tuple(rotation for rotation in self.rotations if rotation.name != CURATOR_NAME)

    @property
    def open_approvals(self) -> list[Approval]:
        """The approved studies that have not ended."""
        return [a for a in self.approvals.values() if a.state is ApprovalState.OPEN]

    @property
    def datasets(self) -> frozenset[str]:
        """Every name of a dataset that this ledger knows."""
        approved = (approval.dataset for approval in self.approvals.values())
        return frozenset((*approved, *self.declared, *self.renamed, *self.renamed.values()))

    def current_name(self, dataset: str) -> str:
        """The name that the dataset's account has now."""
        while dataset in self.renamed:
            dataset = self.renamed[dataset]
        return dataset

    def is_declared(self, dataset: str) -> bool:
        """Whether somebody said what the dataset had spent before this ledger."""
        return self.current_name(dataset) in self.declared

    def spent(self, dataset: str) -> Cost:
        """What the dataset has spent, over all studies and what was declared, under whatever name."""
        costs = [a.spent for a in self._approvals_of(dataset)]
        return Cost.total([self.declared.get(self.current_name(dataset), FREE), *costs])

    def held(self, dataset: str) -> Cost:
        """What open studies may still charge to the dataset."""
        return Cost.total(a.held for a in self._approvals_of(dataset))

    def _approvals_of(self, dataset: str) -> list[Approval]:
        name = self.current_name(dataset)
        return [a for a in self.approvals.values() if self.current_name(a.dataset) == name]

    def check_source(self, dataset: str, source: Iterable[bytes]) -> None:
        """Raises if a table with one of these sealed marks was approved under the name of another dataset.

        Guarantee: the same file, or the same content in another place, has one account, unless it was changed and moved
        at once; a new name alone does not start at nothing spent.
        """
        marks, name = {mark.hex() for mark in source}, self.current_name(dataset)
        for approval in self.approvals.values():
            other = self.current_name(approval.dataset)
            if other != name and marks.intersection(approval.source):
                raise refused(
                    f"this table was approved as the dataset {other}, whose spending a new name would forget.",
                    f"Write `dataset: {other}`, or run `synod party rename-dataset {other} {dataset}`, which keeps "
                    "what was spent. Where these are rows of other people, keep them in a file of another name; tables "
                    "of the same rows, in any order, have one account.",
                )

    def check_room(self, dataset: str, cost: Cost, cap: Cost, *, delta: Decimal = USUAL_DELTA) -> None:
        """Raises unless `cost` fits under the cap beside all that is spent and held; a refusal says rho as the epsilon
        at this delta too.

        Guarantee: called in the transaction that stores the approval, so two studies cannot pass the cap together.
        Each kind of cost has a cap and a sum of its own, which room under the other never makes up for; a kind that the
        study does not ask for is not looked at, so a cap of it that was lowered stops nothing else.
        """
        if self.history_lost and not self.is_declared(dataset):
            raise refused(
                f"the earlier ledger of {dataset} is lost, so it counts as fully spent.",
                "Enter what it has spent with `synod party init --spent EPSILON --spent-rho RHO`.",
            )
        sums = cost, self.spent(dataset), self.held(dataset), cap
        kinds = {
            "max_epsilon_total": [Cost.pure(one.epsilon) for one in sums],
            "max_rho_total": [Cost.concentrated(one.rho) for one in sums],
        }
        for key, (asked, spent, held, most) in kinds.items():
            if asked != FREE and not (spent + held + asked).fits_within(most):
                told = [_describe(one, key, delta) for one in (asked, spent, held, most)]
                raise refused(
                    f"the study asks for {told[0]}; {dataset} has spent {told[1]} and holds {told[2]} for open "
                    f"studies, of {told[3]} in all.",
                    f"Ask for less, or raise `{key}` if your policy allows it.",
                )


def _describe(cost: Cost, key: str, delta: Decimal) -> str:
    """A cost of the one kind that the key caps, also where it is nothing."""
    return "rho 0" if cost == FREE and key == "max_rho_total" else describe_cost(cost, delta)


def fold(entries: Iterable[Entry]) -> Account:
    """The account after these entries, in order."""
    account = Account()
    for entry in entries:
        account = _apply(account, entry)
    return account


def _apply(account: Account, entry: Entry) -> Account:
    match entry["kind"]:
        case "opened":
            return replace(account, history_lost=entry["history_lost"])
        case "declared":
            cost = Cost.parse(entry["spent"])
            return replace(account, declared={**account.declared, account.current_name(entry["dataset"]): cost})
        case "renamed":
            return _rename(account, entry["dataset"], entry["to"])
        case "rotated":
            return replace(account, rotations=(*account.rotations, recall_rotation(entry["rotation"])))
        case _:
            approval = _apply_to_study(account.approvals, entry)
            return replace(account, approvals={**account.approvals, approval.study: approval})


def _apply_to_study(approvals: Mapping[str, Approval], entry: Entry) -> Approval:
    match entry["kind"]:
        case "approved":
            return Approval(
                entry["study"],
                entry["name"],
                entry["dataset"],
                Cost.parse(entry["reserved"]),
                entry["snapshot"],
                tuple(entry["source"]),
            )
        case "charged":
            approval = approvals[entry["study"]]
            cost, present = Cost.parse(entry["cost"]), tuple(entry.get("present", ()))
            charge = Charge(entry["label"], entry["query"], entry["transcript"], cost, present)
            return replace(approval, charges=(*approval.charges, charge))
        case "revoked" | "closed":
            state = ApprovalState(entry.get("outcome", ApprovalState.REVOKED.value))
            return replace(approvals[entry["study"]], state=state)
        case kind:
            raise ValueError(f"an entry of unknown kind {kind!r}")


def _rename(account: Account, dataset: str, to: str) -> Account:
    """Two names become one account; what was declared for either was spent."""
    old, new = account.current_name(dataset), account.current_name(to)
    if old == new:
        raise ValueError("a dataset cannot be renamed to itself")
    declared = dict(account.declared)
    if old in declared:
        declared[new] = declared.pop(old) + declared.get(new, FREE)
    return replace(account, declared=declared, renamed={**account.renamed, old: new})


def key_in_use(entries: Sequence[Entry], study: str, name: str, key: str) -> str:
    """The fingerprint that a name had when the study was last approved or answered under it; `key` is the one now."""
    (*_, last) = (i for i, e in enumerate(entries) if e["kind"] in ("approved", "charged") and e["study"] == study)
    later = (recall_rotation(e["rotation"]) for e in entries[last:] if e["kind"] == "rotated")
    return next((fingerprint(rotation.old) for rotation in later if rotation.name == name), key)
