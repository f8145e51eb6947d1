"""What a party's operator is shown of a study before deciding: pure values, the same for every screen.

Everything is computed here from the resolved study and this party's own ledger. Who else has approved is the only
thing that the curator says, and it is marked so.
"""

from collections.abc import Collection
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from synod.common.privacy.cost import Cost
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.explained import explain_step
from synod.common.protocol.steps import Step
from synod.common.runtime.errors import SynodError
from synod.common.runtime.settings import PartySettings
from synod.common.study.attributes import Attribute, BooleanAttribute, DateAttribute
from synod.common.study.promise import describe_cost, explain_delta, explain_several_rows, name_budget, name_unit
from synod.common.study.schema import CategoricalAttribute
from synod.common.study.study import Study
from synod.party.account import Account
from synod.party.policy import check_policy

WAITING = "waiting"
STATES = {WAITING: "waits for your decision", "open": "approved, not ended"}
OUTSIDE = {
    "refuse": "any other value is refused",
    "clip": "a value outside is moved to the nearest bound",
    "null": "any other value counts as missing",
}
SETTLED_KEYS = frozenset({"name", "type", "nullable", "out_of_domain"})


@dataclass(frozen=True, slots=True)
class CostView:
    """A cost: exactly, as ledger and plan write it, and for people."""

    exact: str
    told: str


@dataclass(frozen=True, slots=True)
class ColumnView:
    """One column that is asked for: its type, its public domain in words, whether values may be missing, and what
    happens to a value outside of the domain.
    """

    name: str
    type: str
    domain: str
    nullable: bool
    outside: str


@dataclass(frozen=True, slots=True)
class StepView:
    """One step that this party answers: what leaves the house, what it costs, and whether all parties answer it."""

    label: str
    phase: str
    query: str
    leaves: str
    cost: CostView
    alone: bool


@dataclass(frozen=True, slots=True)
class RosterView:
    """One party of the roster; `approved` is the curator's word, and None where it has said nothing."""

    name: str
    key: str
    rows: int
    is_own: bool
    approved: bool | None


@dataclass(frozen=True, slots=True)
class BudgetView:
    """What the dataset has spent and holds, the cap, what remains now, and what would remain after this study. `after`
    is None where the study does not fit, or is reserved already.
    """

    spent: CostView
    held: CostView
    cap: CostView
    remains: CostView
    after: CostView | None


@dataclass(frozen=True, slots=True)
class StudyView:
    """A study as this party's operator judges it. `state` is `waiting`, or that of its approval here; `problem` says
    why it could not be approved, and is empty where only the table is still to be checked.
    """

    name: str
    hash: str
    state: str
    method: str
    method_keys: dict[str, Any]
    budget: str
    promises: tuple[str, ...]
    columns: tuple[ColumnView, ...]
    steps: tuple[StepView, ...]
    cost: CostView
    account: BudgetView
    roster: tuple[RosterView, ...]
    synthetic_rows: int
    key_bits: int
    first_heard: int | None
    last_heard: int | None
    problem: str

    def to_json(self) -> dict[str, Any]:
        """For a machine to read."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Heard:
    """When the curator announced a study, first and last, and who has approved it, as it says."""

    first: int
    last: int
    enrolled: Collection[str]


def name_state(state: str) -> str:
    """The state of a study here, for people."""
    return STATES.get(state, state)


def view_study(
    settings: PartySettings, study: Study, account: Account, *, own_key: str, heard: Heard | None
) -> StudyView:
    """A resolved study as this party's operator judges it, beside what the ledger says."""
    delta, approval = settings.shown_delta, account.approvals.get(study.digest().hex())
    plan = plan_study(study)
    cost = plan.cost_of(settings.name)
    problem = "" if approval else _problem(settings, study, account, own_key=own_key)
    assert study.rows is not None
    return StudyView(
        name=study.name,
        hash=study.digest().hex(),
        state=approval.state.value if approval else WAITING,
        method=study.method.name,
        method_keys={key: value for key, value in study.method.model_dump(mode="json").items() if key != "name"},
        budget=name_budget(study),
        promises=tuple(promises_of(study)),
        columns=tuple(view_column(attribute) for attribute in study.attributes),
        steps=tuple(_view_step(step, delta) for step in plan.steps_of(settings.name)),
        cost=_view_cost(cost, delta),
        account=view_budget(settings, account, None if approval or problem else cost),
        roster=tuple(
            RosterView(
                entry.name,
                entry.key,
                entry.rows,
                entry.name == settings.name,
                entry.name in heard.enrolled if heard else None,
            )
            for entry in study.roster
        ),
        synthetic_rows=study.rows,
        key_bits=study.key_bits,
        first_heard=heard.first if heard else None,
        last_heard=heard.last if heard else None,
        problem=problem,
    )


def promises_of(study: Study) -> list[str]:
    """What is promised to the people in the table, and what is taken for granted about the parties."""
    told = [f"Protects any one {name_unit(study)}. {explain_several_rows(study)}"]
    if study.delta is not None:
        told.append(explain_delta(study))
    told.append(
        f"Approving vouches that at most {study.collusion} of these parties may side with the curator."
        if study.collusion
        else "collusion is 0: any single party can subtract its own noise from what is published."
    )
    if study.may_lose:
        told.append(f"The study may go on without up to {study.may_lose} of these parties; the curator says which.")
    return told


def view_column(attribute: Attribute) -> ColumnView:
    """A column and its public domain."""
    outside = OUTSIDE.get(str(getattr(attribute, "out_of_domain", "refuse")), "any other value is refused")
    return ColumnView(attribute.name, attribute.type, _describe_domain(attribute), attribute.nullable, outside)


def _describe_domain(attribute: Attribute) -> str:
    """The whole domain: a bound or a category that is not shown cannot be judged."""
    keys = {key: value for key, value in attribute.model_dump(mode="json").items() if key not in SETTLED_KEYS}
    if isinstance(attribute, CategoricalAttribute):
        grouped = f", grouped as {_write(attribute.taxonomy)}" if attribute.taxonomy is not None else ""
        return f"one of {len(attribute.categories):,}: {', '.join(map(_write, attribute.categories))}{grouped}"
    if isinstance(attribute, BooleanAttribute):
        return "true or false"
    if isinstance(attribute, DateAttribute):
        return f"{attribute.min} to {attribute.max}, counted by {attribute.bins}"
    told = [f"{keys.pop('min')} to {keys.pop('max')}"] if {"min", "max"} <= keys.keys() else []
    if "bins" in keys:
        told.append(f"in {keys.pop('bins')} bins")
    return ", ".join([*told, *(f"{key} {_write(value)}" for key, value in keys.items() if value not in (None, [], ()))])


def _write(value: Any) -> str:
    """A value of the study on a screen: a character that would steer the terminal is shown by its number."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(_write(one) for one in value)}]"
    return "".join(one if one.isprintable() else f"\\u{{{ord(one):x}}}" for one in str(value))


def name_value(value: Any) -> str:
    """The value of a method's key for people."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(name_value, value)) or "none"
    return "none" if value is None else _write(value)


def _view_step(step: Step, delta: Decimal) -> StepView:
    cost = _view_cost(step.cost, delta)
    return StepView(step.label, step.phase, step.kind.value, explain_step(step), cost, len(step.answerers) == 1)


def _view_cost(cost: Cost, delta: Decimal) -> CostView:
    return CostView(str(cost), describe_cost(cost, delta))


def view_budget(settings: PartySettings, account: Account, cost: Cost | None) -> BudgetView:
    """What the dataset has spent, holds and may spend; with a cost, what would be left after it."""
    delta, cap = settings.shown_delta, settings.cap
    spent, held = account.spent(settings.dataset), account.held(settings.dataset)
    remains = cap.left_after(spent + held)
    return BudgetView(
        spent=_view_cost(spent, delta),
        held=_view_cost(held, delta),
        cap=_view_cost(cap, delta),
        remains=_view_cost(remains, delta),
        after=None if cost is None else _view_cost(remains.left_after(cost), delta),
    )


def _problem(settings: PartySettings, study: Study, account: Account, *, own_key: str) -> str:
    """Why the study could not be approved, by policy and budget; the table is read at approval alone."""
    try:
        cost = check_policy(settings, study, own_key=own_key)
        account.check_room(settings.dataset, cost, settings.cap, delta=settings.shown_delta)
    except SynodError as error:
        return str(error)
    return ""
