"""The same table under a new name of its dataset: the account would start at nothing spent, so it is refused until the
operator says that the two names are one dataset, which carries over all that was spent.
"""

import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet
import pytest

from synod.common.crypto.identity import Identity
from synod.common.privacy.cost import Cost
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.settings import Database, PartySettings
from synod.common.study.study import Study
from synod.party.account import Account
from synod.party.approval import check_study, identity_path, initialize, rename_dataset, reserve, revoke
from synod.party.ledger import Ledger
from tests.support.databases import duckdb_table
from tests.support.parties import file_of, make_settings
from tests.support.studies import SCHEMA, make_study

LINES = ("sex,age,income,ward", "F,30,500,a", "M,40,,b", "F,50,1000,c")
OTHERS = ("sex,age,income,ward", "M,31,500,a", "M,41,,b", "F,51,1000,c")


def write(path: Path, lines: tuple[str, ...] = LINES) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def settings(tmp_path: Path) -> PartySettings:
    """A party that has reserved epsilon 1.5 of 2 for its dataset."""
    made = make_settings(tmp_path, dataset="stays")
    write(file_of(made))
    initialize(made, spent=None, now=5)
    approve(made, study_for(made, name="first", epsilon="1.5"))
    return made


def study_for(settings: PartySettings, **changes: Any) -> Study:
    key = Identity.load(identity_path(settings)).fingerprint
    study = make_study(rows=(3, 5, 5), **changes)
    first, *rest = study.roster
    return study.model_copy(update={"roster": (first.model_copy(update={"key": key}), *rest), "rows": 13}).resolve()


def approve(settings: PartySettings, study: Study) -> None:
    reserve(settings, check_study(settings, study), now=6)


def account(settings: PartySettings) -> Account:
    ledger = Ledger.open(settings.state)
    try:
        return ledger.account()
    finally:
        ledger.close()


def renamed(settings: PartySettings, **changes: Any) -> PartySettings:
    return settings.model_copy(update={"dataset": "visits", **changes})


def same_file(settings: PartySettings) -> Path:
    return file_of(settings)


def linked(settings: PartySettings) -> Path:
    path = file_of(settings).with_name("link.csv")
    path.symlink_to(file_of(settings))
    return path


def linked_and_changed(settings: PartySettings) -> Path:
    write(file_of(settings), OTHERS)
    return linked(settings)


def changed_in_place(settings: PartySettings) -> Path:
    return write(file_of(settings), OTHERS)


def copied(settings: PartySettings) -> Path:
    return Path(shutil.copy(file_of(settings), file_of(settings).with_name("copy.csv")))


def moved(settings: PartySettings) -> Path:
    return file_of(settings).rename(file_of(settings).with_name("moved.csv"))


def converted(settings: PartySettings) -> Path:
    path = file_of(settings).with_name("table.parquet")
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(file_of(settings)), path)
    return path


def reordered(settings: PartySettings) -> Path:
    return write(file_of(settings).with_name("reordered.csv"), (LINES[0], *LINES[:0:-1]))


def in_a_database(settings: PartySettings) -> Database:
    rows = ["'M', 40, NULL, 'b'", "'F', 50, 1000, 'c'", "'F', 30, 500, 'a'"]
    return duckdb_table(file_of(settings).parent, "sex varchar, age integer, income double, ward varchar", rows)


SAME = [same_file, linked, linked_and_changed, changed_in_place, copied, moved, converted, reordered, in_a_database]


@pytest.mark.parametrize("source", SAME)
def test_a_new_name_for_the_same_table_is_refused(settings: PartySettings, source: Any) -> None:
    attacker = renamed(settings, source=source(settings))
    study = study_for(settings, name="second")
    with pytest.raises(SynodError, match="was approved as the dataset stays") as caught:
        check_study(attacker, study)
    assert caught.value.code is Code.REFUSED
    assert "synod party rename-dataset stays visits" in str(caught.value)
    assert len(account(settings).approvals) == 1


@pytest.mark.parametrize("source", [copied, moved])
def test_a_copy_is_known_to_a_study_of_other_columns(settings: PartySettings, source: Any) -> None:
    """Of which other codes are read."""
    attacker = renamed(settings, source=source(settings))
    with pytest.raises(SynodError, match="was approved as the dataset stays"):
        check_study(attacker, study_for(settings, name="second", schema=list(SCHEMA[:2])))


def test_with_the_check_taken_out_the_budget_starts_anew(
    settings: PartySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Account, "check_source", lambda *_: None)
    approve(renamed(settings), study_for(settings, name="second", epsilon="1.5"))
    assert account(settings).held("stays") == account(settings).held("visits") == Cost.pure(Fraction(3, 2))


def test_the_check_is_made_again_where_it_is_reserved(settings: PartySettings) -> None:
    """Two studies that were checked side by side: the second to be reserved finds the table taken."""
    fresh = settings.model_copy(update={"source": write(file_of(settings).with_name("new.csv"), OTHERS)})
    one, other = (fresh.model_copy(update={"dataset": name}) for name in ("stays", "visits"))
    first = check_study(one, study_for(settings, name="second", epsilon="0.1"))
    second = check_study(other, study_for(settings, name="third", epsilon="0.1"))
    reserve(one, first, now=6)
    with pytest.raises(SynodError, match="was approved as the dataset stays"):
        reserve(other, second, now=6)


def test_an_end_or_a_revocation_does_not_forget_the_table(settings: PartySettings) -> None:
    (approval,) = account(settings).approvals.values()
    revoke(settings, bytes.fromhex(approval.study), now=6)
    with pytest.raises(SynodError, match="was approved as the dataset stays"):
        check_study(renamed(settings), study_for(settings, name="second"))


def test_other_rows_in_another_file_are_another_dataset(settings: PartySettings) -> None:
    source = write(file_of(settings).with_name("others.csv"), OTHERS)
    approve(renamed(settings, source=source), study_for(settings, name="second", epsilon="1.5"))
    assert account(settings).held("visits") == Cost.pure(Fraction(3, 2))


def test_the_same_name_goes_on_wherever_its_table_is(settings: PartySettings) -> None:
    for number, source in enumerate((copied(settings), write(file_of(settings).with_name("more.csv"), OTHERS))):
        study = study_for(settings, name=f"more-{number}", epsilon="0.1")
        approve(settings.model_copy(update={"source": source}), study)


def test_a_renamed_dataset_keeps_what_was_spent(settings: PartySettings) -> None:
    rename_dataset(settings, "stays", "visits", now=7)
    attacker = renamed(settings)
    assert account(settings).held("visits") == Cost.pure(Fraction(3, 2))
    with pytest.raises(SynodError, match=r"visits has spent epsilon 0 and holds epsilon 1\.5"):
        check_study(attacker, study_for(settings, name="second", epsilon="0.6"))
    approve(attacker, study_for(settings, name="second", epsilon="0.5"))
    assert account(settings).held("stays") == account(settings).held("visits") == Cost.pure(Fraction(2))


def test_going_back_to_the_old_name_forgets_nothing(settings: PartySettings) -> None:
    rename_dataset(settings, "stays", "visits", now=7)
    with pytest.raises(SynodError, match="stays has spent"):
        check_study(settings, study_for(settings, name="second", epsilon="0.6"))
    elsewhere = settings.model_copy(update={"source": write(file_of(settings).with_name("others.csv"), OTHERS)})
    with pytest.raises(SynodError, match="stays has spent"):
        check_study(elsewhere, study_for(settings, name="second", epsilon="0.6"))
    with pytest.raises(SynodError, match="are one dataset already"):
        rename_dataset(settings, "visits", "stays", now=7)


def test_two_accounts_that_become_one_add_up(settings: PartySettings) -> None:
    source = write(file_of(settings).with_name("others.csv"), OTHERS)
    approve(renamed(settings, source=source), study_for(settings, name="second", epsilon="0.25"))
    initialize(settings, spent=Cost.pure(Fraction(1, 8)), now=7)
    initialize(renamed(settings), spent=Cost.pure(Fraction(1, 16)), now=7)
    rename_dataset(settings, "stays", "visits", now=8)
    for name in ("stays", "visits"):
        assert account(settings).held(name) == Cost.pure(Fraction(7, 4))
        assert account(settings).spent(name) == Cost.pure(Fraction(3, 16))
    with pytest.raises(SynodError, match="never comes back"):
        initialize(renamed(settings), spent=Cost.pure(Fraction(1, 8)), now=9)


def test_a_name_that_the_ledger_does_not_know_is_not_renamed(settings: PartySettings) -> None:
    with pytest.raises(SynodError, match="has no dataset stay") as caught:
        rename_dataset(settings, "stay", "visits", now=7)
    assert caught.value.code is Code.NOT_FOUND


def test_marks_are_sealed(settings: PartySettings) -> None:
    """An export tells nobody where the table is, and confirms no guess at its rows."""
    (approval,) = account(settings).approvals.values()
    assert len(set(approval.source)) == 3
    ledger = Ledger.open(settings.state)
    try:
        written = str(ledger.entries())
    finally:
        ledger.close()
    assert file_of(settings).name not in written
    other = make_settings(settings.state.parent / "other", dataset="stays")
    other.state.parent.mkdir()
    write(file_of(other))
    initialize(other, spent=None, now=5)
    approve(other, study_for(other, name="first"))
    (elsewhere,) = account(other).approvals.values()
    assert not set(approval.source) & set(elsewhere.source)
