"""The account: what a chain of ledger entries adds up to. Pure; the ledger folds its entries with it.

An entry is one fact: `opened`, `declared`, `approved`, `charged`, `revoked`, `closed`. Reserved is what open
studies may still charge; spent is what was charged or declared. Neither ever goes down but by a study's end,
which frees the part of its reservation that it did not charge.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import Enum
from typing import Any

from synod.common.privacy.cost import FREE, Cost
from synod.common.runtime.errors import refused
from synod.common.study.promise import USUAL_DELTA, describe_cost

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
    """One approved study: its reservation, its snapshot, and what was charged under it so far."""

    study: str
    name: str
    dataset: str
    reserved: Cost
    snapshot: str
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
    history_lost: bool = False

    def spent(self, dataset: str) -> Cost:
        """What the dataset has spent, over all studies and what was declared."""
        costs = [a.spent for a in self.approvals.values() if a.dataset == dataset]
        return Cost.total([self.declared.get(dataset, FREE), *costs])

    def held(self, dataset: str) -> Cost:
        """What open studies may still charge to the dataset."""
        return Cost.total(a.held for a in self.approvals.values() if a.dataset == dataset)

    def check_room(self, dataset: str, cost: Cost, cap: Cost, *, delta: Decimal = USUAL_DELTA) -> None:
        """Raises unless `cost` fits under the cap beside all that is spent and held; a refusal says rho as the epsilon
        at this delta too.

        Guarantee: called in the transaction that stores the approval, so two studies cannot pass the cap together.
        Each kind of cost has a cap and a sum of its own, which room under the other never makes up for; a kind that the
        study does not ask for is not looked at, so a cap of it that was lowered stops nothing else.
        """
        if self.history_lost and dataset not in self.declared:
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
            return replace(account, declared={**account.declared, entry["dataset"]: cost})
        case "approved":
            approval = Approval(
                entry["study"],
                entry["name"],
                entry["dataset"],
                Cost.parse(entry["reserved"]),
                entry["snapshot"],
            )
            return _with(account, approval)
        case "charged":
            approval = account.approvals[entry["study"]]
            cost, present = Cost.parse(entry["cost"]), tuple(entry.get("present", ()))
            charge = Charge(entry["label"], entry["query"], entry["transcript"], cost, present)
            return _with(account, replace(approval, charges=(*approval.charges, charge)))
        case "revoked" | "closed":
            state = ApprovalState(entry.get("outcome", ApprovalState.REVOKED.value))
            return _with(account, replace(account.approvals[entry["study"]], state=state))
        case kind:
            raise ValueError(f"an entry of unknown kind {kind!r}")


def _with(account: Account, approval: Approval) -> Account:
    return replace(account, approvals={**account.approvals, approval.study: approval})
