"""What a party's monitoring sees: certificates, contact, what waits, and the budget of its dataset.

Nothing here depends on a row: the numbers come from the ledger's costs, the configuration and the calendar.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from synod.common.privacy.cost import Cost
from synod.common.runtime.metrics import Metric, Sample, certificate_metric, whole_minutes
from synod.common.runtime.settings import PartySettings
from synod.party.account import Account, ApprovalState


@dataclass(slots=True)
class Contact:
    """Whether the daemon is in touch with the curator, and when it last was; 0 if not since it started."""

    clock: Callable[[], float]
    in_touch: bool = False
    last: int = 0

    def tell(self, well: bool) -> None:
        """Notes how the last talk went."""
        self.in_touch = well
        if well:
            self.last = whole_minutes(self.clock())


def describe_party(
    settings: PartySettings,
    account: Account,
    *,
    days_left: Mapping[str, int],
    contact: Contact,
    waiting_since: Iterable[int],
) -> list[Metric]:
    """The metrics of a party.

    Guarantee: equal for neighbouring tables. Costs are those of approved plans, which do not depend on rows.
    """
    waiting = sorted(whole_minutes(since) for since in waiting_since)
    states = Counter(approval.state for approval in account.approvals.values())
    return [
        certificate_metric(days_left),
        Metric("synod_party_in_touch", "1 if the last talk with the curator went well.", _one(int(contact.in_touch))),
        Metric(
            "synod_party_last_contact_timestamp_seconds",
            "When the curator last answered, in whole minutes; 0 if not since the start.",
            _one(contact.last),
        ),
        Metric(
            "synod_party_studies_waiting",
            "Studies that wait for something here, such as an approval.",
            _one(len(waiting)),
        ),
        Metric(
            "synod_party_studies_waiting_since_timestamp_seconds",
            "Since when the first of them waits, in whole minutes; 0 if none does.",
            _one(waiting[0] if waiting else 0),
        ),
        Metric(
            "synod_party_studies",
            "Studies in the ledger, by how they stand.",
            tuple(Sample(states[state], {"state": state.value}) for state in ApprovalState),
        ),
        *_budget(settings, account),
    ]


def _one(value: int) -> tuple[Sample, ...]:
    return (Sample(value),)


def _budget(settings: PartySettings, account: Account) -> list[Metric]:
    dataset = settings.dataset
    costs: dict[str, tuple[str, Cost]] = {
        "spent": ("has spent, over all studies", account.spent(dataset)),
        "held": ("holds for open studies", account.held(dataset)),
        "cap": ("may ever spend", settings.cap),
    }
    kinds: dict[str, Callable[[Cost], Fraction]] = {
        "epsilon": lambda cost: Fraction(cost.epsilon),
        "rho": lambda cost: Fraction(cost.rho),
    }
    return [
        Metric(
            f"synod_party_{kind}_{which}",
            f"What the dataset {meaning}, as {kind}.",
            (Sample(value_of(cost), {"dataset": dataset}),),
        )
        for kind, value_of in kinds.items()
        for which, (meaning, cost) in costs.items()
    ]
