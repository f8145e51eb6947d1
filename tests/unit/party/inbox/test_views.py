"""What an operator is shown of a study is the study: every column, domain, step and cost, compared with the plan."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from synod.common.privacy.cost import Cost
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.explained import LEAVES, explain_step
from synod.common.protocol.steps import QueryKind
from synod.common.study.promise import USUAL_DELTA
from synod.common.study.schema import CategoricalAttribute
from synod.common.study.study import Study, known_methods
from synod.party.account import Account, fold
from synod.party.inbox.entries import TELL, view_entries
from synod.party.inbox.views import WAITING, Heard, StudyView, view_column, view_study
from tests.support.keys import identity_of
from tests.support.parties import DATASET, make_settings
from tests.support.studies import SCHEMA, binary, categorical, integer, make_study, real

OWN_KEY = identity_of("north").fingerprint
HEARD = Heard(10, 20, ("valley",))
BINARY = [binary(f"q{number}") for number in range(4)]


def study_of(method: str) -> Study:
    """A study of a method with its defaults: over columns of every type, or two-valued ones if it needs these."""
    options: list[dict[str, Any]] = [{}, {"delta": "1e-9"}]
    for changes in options:
        for schema in (list(SCHEMA), BINARY):
            try:
                study = make_study(method={"name": method}, schema=schema, **changes)
                plan_study(study)
            except Exception:  # noqa: BLE001  (the method takes other columns)
                continue
            return study
    raise AssertionError(f"no study of {method} could be made")


def view_of(study: Study, folder: Path, account: Account | None = None, **changes: Any) -> StudyView:
    settings = make_settings(folder, **{"allow_local_queries": True, "max_epsilon_total": "2", **changes})
    return view_study(settings, study, account or Account(), own_key=OWN_KEY, heard=HEARD)


@pytest.mark.parametrize("method", sorted(known_methods()))
def test_the_view_is_the_plan(method: str, tmp_path: Path) -> None:
    study = study_of(method)
    view = view_of(study, tmp_path)
    steps = plan_study(study).steps_of("north")
    assert [(s.label, s.phase, s.query, s.cost.exact) for s in view.steps] == [
        (s.label, s.phase, s.kind.value, str(s.cost)) for s in steps
    ]
    assert [step.leaves for step in view.steps] == [explain_step(step) for step in steps]
    assert view.cost.exact == str(plan_study(study).cost_of("north"))
    assert str(Cost.total(Cost.parse(step.cost.exact) for step in view.steps)) == view.cost.exact
    assert [column.name for column in view.columns] == [attribute.name for attribute in study.attributes]
    assert [(entry.name, entry.key, entry.rows) for entry in view.roster] == [
        (entry.name, entry.key, entry.rows) for entry in study.roster
    ]
    assert (view.name, view.hash, view.method) == (study.name, study.digest().hex(), method)
    assert view.method_keys | {"name": method} == study.method.model_dump(mode="json")
    assert (view.synthetic_rows, view.key_bits) == (study.rows, study.key_bits)


def test_every_kind_of_query_says_what_leaves_and_how_much() -> None:
    assert set(LEAVES) == set(QueryKind)
    assert len(set(LEAVES.values())) == len(LEAVES)
    study = make_study()
    step = plan_study(study).steps[0]
    assert f"{step.limit.numbers:,} numbers" in explain_step(step)
    assert "1 number in" in explain_step(replace(step, limit=replace(step.limit, numbers=1)))
    for kind in QueryKind:
        told = explain_step(replace(step, kind=kind))
        assert "{" not in told
        assert ("encrypted" in told) is kind.is_sum
        assert ("curator sees" in told) is kind.is_local


def test_every_bound_and_every_category_is_shown(tmp_path: Path) -> None:
    schema = [
        categorical("ward", [f"w{number}" for number in range(300)]),
        {"name": "work", "type": "categorical", "taxonomy": [["federal", "state"], "private"]},
        integer("age", 17, 90, bins=10, spikes=[17, 65], out_of_domain="clip"),
        real("income", "-0.5", "250000.25", nullable=True, out_of_domain="null"),
    ]
    ward, work, age, income = view_of(make_study(method={"name": "dp-subn"}, schema=schema), tmp_path).columns
    assert ward.domain == "one of 300: " + ", ".join(f"w{number}" for number in range(300))
    assert work.domain == "one of 3: federal, state, private, grouped as [[federal, state], private]"
    assert (age.type, age.domain) == ("integer", "17 to 90, in 10 bins, spikes [17, 65]")
    assert (age.outside, age.nullable) == ("a value outside is moved to the nearest bound", False)
    assert (income.domain, income.nullable) == ("-0.5 to 250000.25, in 16 bins", True)
    assert income.outside == "any other value counts as missing"
    assert ward.outside == "any other value is refused"


def test_a_category_cannot_steer_the_terminal() -> None:
    attribute = CategoricalAttribute(name="ward", type="categorical", categories=("a\x1b[2J", "b\u202ec", "d\ne"))
    assert view_column(attribute).domain == "one of 3: a\\u{1b}[2J, b\\u{202e}c, d\\u{a}e"


def test_what_is_left_is_exact(tmp_path: Path) -> None:
    account = fold(
        [
            {"kind": "opened", "history_lost": False},
            {"kind": "declared", "dataset": DATASET, "spent": "epsilon:1/3"},
        ]
    )
    view = view_of(make_study(epsilon="1"), tmp_path, account)
    assert view.problem == ""
    assert [one and one.exact for one in (view.account.spent, view.account.remains, view.account.after)] == [
        "epsilon:1/3",
        "epsilon:5/3",
        "epsilon:2/3",
    ]
    too_much = view_of(make_study(epsilon="1.9"), tmp_path, account)
    assert "max_epsilon_total" in too_much.problem
    assert too_much.account.after is None
    lowered = view_of(make_study(epsilon="1"), tmp_path, account, max_epsilon_total="0.25")
    assert lowered.account.remains.exact == "epsilon:0"


def test_a_policy_that_forbids_it_is_said_before_anything_is_read(tmp_path: Path) -> None:
    study = make_study()
    assert "`methods`" in view_of(study, tmp_path, methods=["none"]).problem
    assert "is not on the roster" in view_of(study, tmp_path, name="stranger").problem
    assert view_of(study, tmp_path, name="stranger").steps == ()
    other = view_study(make_settings(tmp_path), study, Account(), own_key=identity_of("valley").fingerprint, heard=None)
    assert "pins another key" in other.problem


def test_who_approved_is_the_curators_word_or_unknown(tmp_path: Path) -> None:
    study = make_study()
    view = view_of(study, tmp_path)
    assert [(e.name, e.approved, e.is_own) for e in view.roster] == [
        ("north", False, True),
        ("harbour", False, False),
        ("valley", True, False),
    ]
    assert (view.state, view.first_heard, view.last_heard) == (WAITING, 10, 20)
    unheard = view_study(make_settings(tmp_path), study, Account(), own_key=OWN_KEY, heard=None)
    assert {entry.approved for entry in unheard.roster} == {None}


def test_every_kind_of_entry_is_told() -> None:
    study = "ab" * 32
    base: dict[str, Any] = {"time": 5, "study": study}
    entries = [
        {"kind": "opened", "history_lost": True, "time": 4},
        {"kind": "declared", "dataset": "d", "spent": "epsilon:1/2", "time": 5},
        {"kind": "renamed", "dataset": "d", "to": "e", "time": 5},
        {**base, "kind": "approved", "name": "survey", "dataset": "e", "reserved": "epsilon:1"},
        {**base, "kind": "charged", "label": "pairs", "cost": "epsilon:1/4"},
        {**base, "kind": "revoked"},
        {**base, "kind": "closed", "outcome": "lost"},
        {**base, "kind": "later"},
    ]
    views = list(view_entries([{"sequence": i, **e} for i, e in enumerate(entries, 1)], delta=USUAL_DELTA))
    assert [view.sequence for view in views] == list(range(1, 9))
    assert [view.cost for view in views] == ["", "epsilon:1/2", "", "epsilon:1", "epsilon:1/4", "", "", ""]
    assert [view.study for view in views] == ["", "", "", *["survey"] * 5]
    told = [view.told for view in views]
    assert told[0].startswith("this ledger was made; an earlier one is lost")
    assert told[1] == "declared: d had spent epsilon 0.5 before this ledger"
    assert told[3:5] == ["approved: epsilon 1 reserved, for e", "answered pairs: epsilon 0.25 spent"]
    assert "goes on without this party" in told[6]
    assert "does not know" in told[7]
    assert set(TELL) == {"opened", "declared", "renamed", "rotated", "approved", "charged", "revoked", "closed"}
