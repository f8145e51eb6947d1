"""How a list of operations may end, and the rules that must hold whatever happens in it."""

from collections.abc import Iterable, Sequence
from typing import Any

from synod.common.privacy.cost import Cost
from synod.common.protocol.steps import Step

PUBLISHED = "published by all"
PUBLISHED_WITHOUT = "published with a party lost"
STUCK_ENROLLING = "given up: a party was gone before it had enrolled"
STUCK_TOO_MANY = "given up: more parties were gone than it may lose"
STUCK_SUM = "given up: a party was gone in the middle of a sum"
ENDINGS = (PUBLISHED, PUBLISHED_WITHOUT, STUCK_ENROLLING, STUCK_TOO_MANY, STUCK_SUM)

CHARGED_TWICE = "a charge was made twice"
ANSWERED_TWICE = "a question was answered twice, or under two transcripts"
COULD_GO_ON = "a study that could go on did not"
REFUSED_IN_VAIN = "a party was refused without a reason"
NOT_CHARGED = "an answer left that is in no ledger"
LOST_WRONGLY = "a party was declared lost against the rules, or could not be"
OTHERWISE_WRONG = "something else is wrong"


class Broken(AssertionError):  # noqa: N818
    """A rule does not hold."""

    def __init__(self, rule: str, details: object = "") -> None:
        super().__init__(f"{rule}: {details}")
        self.rule = rule


def require(holds: bool, rule: str, details: object = "") -> None:
    """Raises `Broken` unless the rule holds."""
    if not holds:
        raise Broken(rule, details)


def check_charges(
    name: str, steps: Sequence[Step], ledgers: Iterable[tuple[Sequence[Any], Cost]]
) -> dict[str, set[tuple[str, str, str]]]:
    """The charges in all copies of a party's ledger, which must agree; each has its planned steps once. A ledger is its
    entries and what it says was spent.
    """
    found: dict[str, set[tuple[str, str, str]]] = {}
    for entries, spent in ledgers:
        charges = [entry for entry in entries if entry["kind"] == "charged"]
        labels = [charge["label"] for charge in charges]
        require(len(labels) == len(set(labels)), CHARGED_TWICE, (name, labels))
        require(spent == Cost.total(step.cost for step in steps if step.label in labels), CHARGED_TWICE, (name, labels))
        require(len({charge["transcript"] for charge in charges}) <= 1, ANSWERED_TWICE, (name, labels))
        for charge in charges:
            facts = (charge["query"], charge["transcript"], charge["answer"])
            found.setdefault(charge["label"], set()).add(facts)
    require(all(len(facts) == 1 for facts in found.values()), ANSWERED_TWICE, (name, sorted(found)))
    return found
