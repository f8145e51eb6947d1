"""The account is a fold of the chain: compared with hand-made histories, and never above its cap."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synod.common.privacy.cost import FREE, Cost
from synod.common.runtime.errors import Code, SynodError
from synod.party.account import Account, ApprovalState, Charge, Entry, fold

OPENED = {"kind": "opened", "history_lost": False}
LOST = {"kind": "opened", "history_lost": True}


def cost(amount: str) -> Cost:
    return Cost.pure(Fraction(amount))


def approved(study: str, reserved: str, dataset: str = "d") -> dict[str, Any]:
    return {
        "kind": "approved", "study": study, "name": f"name-{study}", "dataset": dataset,
        "reserved": str(cost(reserved)), "snapshot": "00", "source": ["00"],
    }  # fmt: skip


def charged(study: str, amount: str, label: str = "moments") -> dict[str, Any]:
    return {
        "kind": "charged",
        "study": study,
        "label": label,
        "query": "q",
        "transcript": "t",
        "cost": str(cost(amount)),
    }


def declared(spent: str, dataset: str = "d") -> dict[str, Any]:
    return {"kind": "declared", "dataset": dataset, "spent": str(cost(spent))}


def revoked(study: str) -> dict[str, Any]:
    return {"kind": "revoked", "study": study}


def closed(study: str, outcome: str) -> dict[str, Any]:
    return {"kind": "closed", "study": study, "outcome": outcome}


HISTORIES: dict[str, tuple[list[Entry], str, str]] = {
    "nothing": ([OPENED], "0", "0"),
    "declared": ([LOST, declared("1/2")], "1/2", "0"),
    "approved": ([OPENED, approved("a", "4")], "0", "4"),
    "partly charged": ([OPENED, approved("a", "4"), charged("a", "1")], "1", "3"),
    "charged twice": ([OPENED, approved("a", "4"), charged("a", "1"), charged("a", "2", "more")], "3", "1"),
    "free step": ([OPENED, approved("a", "4"), charged("a", "4"), charged("a", "0", "rows")], "4", "0"),
    "revoked": ([OPENED, approved("a", "4"), charged("a", "1"), revoked("a")], "1", "0"),
    "aborted before": ([OPENED, approved("a", "4"), closed("a", "aborted")], "0", "0"),
    "published": ([OPENED, approved("a", "4"), charged("a", "4"), closed("a", "published")], "4", "0"),
    "side by side": (
        [OPENED, approved("a", "4"), approved("b", "16"), charged("b", "8"), revoked("a"), approved("c", "32")],
        "8",
        "40",
    ),
    "another dataset": ([OPENED, approved("a", "4", "other"), charged("a", "4"), declared("9", "other")], "0", "0"),
    "exact thirds": ([OPENED, approved("a", "1"), *(charged("a", "1/3", label) for label in "xyz")], "1", "0"),
}


@pytest.mark.parametrize(("entries", "spent", "held"), HISTORIES.values(), ids=HISTORIES.keys())
def test_histories(entries: list[Entry], spent: str, held: str) -> None:
    account = fold(entries)
    assert account.spent("d") == cost(spent)
    assert account.held("d") == cost(held)


def test_an_approval_remembers_what_was_charged() -> None:
    account = fold([OPENED, approved("a", "4"), charged("a", "1"), closed("a", "published")])
    approval = account.approvals["a"]
    assert approval.charges == (Charge("moments", "q", "t", cost("1")),)
    assert (approval.state, approval.name, approval.dataset, approval.snapshot) == (
        ApprovalState.PUBLISHED,
        "name-a",
        "d",
        "00",
    )


def test_the_states_of_an_approval_are_the_ledgers_words() -> None:
    """What is stored, exported and printed as JSON is not ours to rename."""
    assert [state.value for state in ApprovalState] == ["open", "revoked", "published", "aborted", "lost"]
    entries = [OPENED, *(approved(study, "1") for study in "abcd")]
    ends = [revoked("a"), closed("b", "published"), closed("c", "aborted"), closed("d", "lost")]
    states = [fold([*entries, *ends]).approvals[study].state for study in "abcd"]
    assert states == [ApprovalState.REVOKED, ApprovalState.PUBLISHED, ApprovalState.ABORTED, ApprovalState.LOST]
    with pytest.raises(ValueError, match="forgotten"):
        fold([*entries, closed("a", "forgotten")])


def test_an_unknown_kind_of_entry_is_not_passed_over() -> None:
    with pytest.raises(ValueError, match="unknown kind"):
        fold([OPENED, {"kind": "forgiven", "study": "a"}])


@pytest.mark.parametrize(("asked", "fits"), [("5", True), ("6", True), ("6000001/1000000", False), ("7", False)])
def test_room_is_what_is_neither_spent_nor_held(asked: str, fits: bool) -> None:
    account = fold([OPENED, declared("1"), approved("a", "2"), charged("a", "2"), approved("b", "1")])
    if fits:
        account.check_room("d", cost(asked), cost("10"))
        return
    with pytest.raises(SynodError) as caught:
        account.check_room("d", cost(asked), cost("10"))
    assert caught.value.code is Code.REFUSED
    assert "has spent epsilon 3 and holds epsilon 1 " in str(caught.value)


def test_a_lost_history_is_full_until_it_is_declared() -> None:
    with pytest.raises(SynodError, match="fully spent") as caught:
        fold([LOST]).check_room("d", cost("1/1000"), cost("1000"))
    assert caught.value.code is Code.REFUSED
    with pytest.raises(SynodError, match="fully spent"):
        fold([LOST, declared("0", "other")]).check_room("d", cost("1/1000"), cost("1000"))
    fold([LOST, declared("999")]).check_room("d", cost("1"), cost("1000"))
    with pytest.raises(SynodError, match="has spent epsilon 999"):
        fold([LOST, declared("999")]).check_room("d", cost("2"), cost("1000"))


def both(epsilon: str, rho: str) -> Cost:
    return Cost(Fraction(epsilon), Fraction(rho))


def of_both(kind: str, spent: Cost, study: str = "") -> dict[str, Any]:
    key = {"declared": "spent", "approved": "reserved", "charged": "cost"}[kind]
    usual = {"declared": declared("0"), "approved": approved(study, "0"), "charged": charged(study, "0")}[kind]
    return {**usual, key: str(spent)}


MIXED = fold(
    [
        OPENED,
        of_both("declared", both("1/2", "1/100")),
        of_both("approved", both("0", "3/100"), "a"),
        of_both("charged", both("0", "2/100"), "a"),
        approved("b", "1/4"),
    ]
)


def test_each_kind_adds_up_by_itself() -> None:
    assert MIXED.spent("d") == both("1/2", "3/100")
    assert MIXED.held("d") == both("1/4", "1/100")


@pytest.mark.parametrize(
    ("asked", "key"),
    [
        (both("1/4", "0"), None),
        (both("0", "1/100"), None),
        (both("1/4", "1/100"), None),
        (both("26/100", "0"), "max_epsilon_total"),
        (both("0", "101/10000"), "max_rho_total"),
        (both("26/100", "1/1000"), "max_epsilon_total"),
        (both("1/1000", "101/10000"), "max_rho_total"),
    ],
)
def test_room_of_one_kind_never_makes_up_for_the_other(asked: Cost, key: str | None) -> None:
    cap = both("1", "5/100")
    if key is None:
        MIXED.check_room("d", asked, cap)
        return
    with pytest.raises(SynodError, match=f"raise `{key}`") as caught:
        MIXED.check_room("d", asked, cap)
    assert caught.value.code is Code.REFUSED
    other = {"max_epsilon_total": "rho", "max_rho_total": "epsilon 0.5"}[key]
    assert other not in caught.value.sentence, "only the kind that is refused"


def test_a_cap_of_one_kind_that_was_lowered_does_not_stop_the_other() -> None:
    MIXED.check_room("d", both("1/4", "0"), both("1", "0"))
    MIXED.check_room("d", both("0", "1/100"), both("0", "5/100"))
    with pytest.raises(SynodError, match="raise `max_rho_total`"):
        MIXED.check_room("d", both("0", "1/10000"), both("1", "0"))


mixed_costs = st.builds(Cost, *[st.fractions(min_value=0, max_value=2, max_denominator=5)] * 2)


@settings(deadline=None)
@given(st.lists(mixed_costs, max_size=12), mixed_costs)
def test_no_mix_of_studies_passes_either_cap(asked: list[Cost], cap: Cost) -> None:
    entries: list[Entry] = [OPENED]
    for number, one in enumerate(asked):
        try:
            fold(entries).check_room("d", one, cap)
        except SynodError:
            continue
        entries.append(of_both("approved", one, str(number)))
    assert fold(entries).held("d").fits_within(cap)


amounts = st.fractions(min_value=0, max_value=2, max_denominator=7).map(str)
operations = st.lists(
    st.tuples(st.sampled_from(["approve", "charge", "revoke", "publish", "abort"]), st.integers(0, 5), amounts),
    max_size=40,
)


def take(account: Account, operation: tuple[str, int, str], cap: Cost) -> Entry | None:
    """The entry that a ledger would append for this operation, or None if it refuses."""
    verb, number, amount = operation
    study = str(number)
    approval = account.approvals.get(study)
    if verb == "approve":
        if approval is not None:
            return None
        try:
            account.check_room("d", cost(amount), cap)
        except SynodError:
            return None
        return approved(study, amount)
    if approval is None or approval.state is not ApprovalState.OPEN:
        return None
    if verb == "charge":
        return charged(study, amount, str(len(approval.charges))) if cost(amount).fits_within(approval.held) else None
    return revoked(study) if verb == "revoke" else closed(study, f"{verb}ed")


@given(operations=operations, cap=st.fractions(min_value=0, max_value=4, max_denominator=7))
def test_no_interleaving_passes_the_cap(operations: list[tuple[str, int, str]], cap: Fraction) -> None:
    entries: list[Entry] = [OPENED]
    spent_before = FREE
    for operation in operations:
        entry = take(fold(entries), operation, Cost.pure(cap))
        if entry is not None:
            entries.append(entry)
        account = fold(entries)
        spent = account.spent("d")
        assert (spent + account.held("d")).fits_within(Cost.pure(cap))
        assert spent_before.fits_within(spent), "what is spent never comes back"
        spent_before = spent
    naive = sum((Fraction(e["cost"].removeprefix("epsilon:")) for e in entries if e["kind"] == "charged"), Fraction(0))
    assert fold(entries).spent("d") == Cost.pure(naive)
