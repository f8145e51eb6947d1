"""What the party's pages show is what the command line shows, and what they do is in the ledger."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from synod.common.study.study import Study
from synod.party.inbox.announced import hear_again
from synod.party.inbox.listing import find_view
from synod.party.ledger import LEDGER_FILE
from tests.support.commands import synod
from tests.support.consoles import House, Served, Visitor, make_house
from tests.support.parties import file_of


@pytest.fixture
def house(tmp_path: Path) -> House:
    return make_house(tmp_path)


@pytest.fixture
def served(house: House) -> Iterator[Served]:
    with house.serving() as served:
        yield served


@pytest.fixture
def visitor(served: Served) -> Visitor:
    return served.entered()


def path_of(study: Study) -> str:
    return f"/studies/{study.digest().hex()}"


def test_nothing_waits(visitor: Visitor) -> None:
    assert "No study waits here. The daemon lists what the curator announces while it runs." in visitor.ask("/").text
    unknown = visitor.ask(f"/studies/{'0' * 64}")
    assert unknown.status == 404
    assert visitor.ask("/studies/care").status == 400
    assert visitor.ask("/nowhere").status == 404


def test_a_study_is_shown_whole(house: House, visitor: Visitor) -> None:
    study = house.announce("care", max_rows_per_unit=1)
    hear_again(house.settings.state, study.digest(), ["valley"], now=1_700_000_030)
    view, shown = find_view(house.settings, "care"), visitor.ask(path_of(study)).text
    inbox = visitor.ask("/").text
    assert "waits for your decision" in inbox
    assert f"Costs {view.cost.told}; patients has {view.account.remains.told} left." in inbox
    for column in view.columns:
        assert f"{column.name} {column.type} {column.domain}" in shown
    for step in view.steps:
        assert step.leaves in shown
        assert f"step {step.label}" in shown
    for promise in view.promises:
        assert promise in shown
    for entry in view.roster:
        assert f"{entry.name} {entry.key}" in shown
    assert "7 has approved" in shown
    assert "3 this party" in shown
    assert "epsilon: 0 % spent, 50 % asked for by this study" in shown


def test_one_column_and_the_keys_of_a_method_in_words(house: House, visitor: Visitor) -> None:
    schema = [{"name": "sex", "type": "categorical", "categories": ["F", "M"]}]
    study = house.announce("care", schema=schema, method={"name": "histogram"})
    assert "1 column, 2 parties, histogram" in visitor.ask("/").text
    assert "1 column of your table." in visitor.ask(path_of(study)).text
    shown = visitor.ask(path_of(house.announce("more", method={"name": "histogram"}))).text
    assert "attributes sex, age, income, ward max_cells" in shown


def test_a_study_is_approved_by_its_first_characters_and_revoked(house: House, visitor: Visitor) -> None:
    study = house.announce("care")
    path = path_of(study)
    page = visitor.ask(path)
    assert f"<b>{study.digest().hex()[:8]}</b>" in page.body
    done = visitor.ask(f"{path}/approve", {"form": page.form(f"{path}/approve"), "typed": study.digest().hex()[:8]})
    assert (done.status, done.headers["location"]) == (303, path)
    assert house.kinds() == ["opened", "approved"]
    assert (house.settings.state / "snapshots" / study.digest().hex()).is_dir()
    after = visitor.ask(path)
    assert "Approved: what the study costs is reserved" in after.text
    assert "Approved:" not in visitor.ask(path).text, "it is said once"
    assert "approved, not ended" in after.text
    assert "form for" not in after.text
    assert "epsilon: 0 % spent, 50 % held for approved studies, of what" in after.text
    assert f"{path}/approve" not in after.body, "there is nothing left to approve"

    unsure = visitor.send(path, f"{path}/revoke")
    assert unsure.status == 400
    assert house.kinds() == ["opened", "approved"]
    assert visitor.send(path, f"{path}/revoke", sure="yes").status == 303
    assert house.kinds() == ["opened", "approved", "revoked"]
    assert "revoked" in visitor.ask("/?all").text
    entries = visitor.ask("/ledger").text
    assert "approved: epsilon 1 reserved, for patients" in entries
    assert "2023-11-14 22:14 UTC" in entries
    listed = synod("party", "ledger", "--config", house.config).out
    for words in ("this ledger was made", "approval revoked here; what was not spent is free again"):
        assert words in entries
        assert words in listed


def test_that_it_was_approved_is_not_the_addresss_word_and_ends_with_the_approval(
    house: House, visitor: Visitor
) -> None:
    study = house.announce("care")
    path = path_of(study)
    assert "Approved:" not in visitor.ask(f"{path}?done=approved").text
    form = {"form": visitor.ask(path).form(f"{path}/approve"), "typed": study.digest().hex()[:8]}
    assert visitor.ask(f"{path}/approve", form).status == 303
    twice = visitor.ask(f"{path}/approve", form)
    assert twice.status == 403
    assert "This time nothing was done; load its page again to see what the first one did." in twice.text
    assert "Approved:" not in visitor.ask("/").text, "another page does not say it, nor use it up"
    assert synod("party", "revoke", "care", "--config", house.config).code == 0
    assert "Approved:" not in visitor.ask(path).text


@pytest.mark.parametrize("typed", ["", "0", "{7}", "{9}", "{other}"])
def test_a_wrong_beginning_reserves_nothing(house: House, visitor: Visitor, typed: str) -> None:
    study = house.announce("care")
    whole = study.digest().hex()
    wrong = {"{7}": whole[:7], "{9}": whole[:9], "{other}": whole[1:9]}.get(typed, typed)
    answer = visitor.send(path_of(study), f"{path_of(study)}/approve", typed=wrong)
    assert answer.status == 400
    assert "Nothing was reserved." in answer.text
    assert house.kinds() == ["opened"]


def test_over_budget(house: House, visitor: Visitor) -> None:
    study = house.announce("greedy", epsilon="5")
    path = path_of(study)
    assert "It cannot be approved here: the study asks for epsilon 5" in visitor.ask(path).text
    answer = visitor.send(path, f"{path}/approve", typed=study.digest().hex()[:8])
    assert (answer.status, house.kinds()) == (400, ["opened"])
    assert "Ask for less, or raise" in answer.text


def test_a_table_that_does_not_fit_is_told_by_counts_and_by_values_on_request(house: House, visitor: Visitor) -> None:
    table = file_of(house.settings)
    table.write_text(table.read_text().replace("F,30,500,a", "Q4711,30,500,a"))
    path = path_of(house.announce("care"))
    counted = visitor.send(path, f"{path}/table")
    assert counted.status == 400
    assert "the table does not fit the study's schema." in counted.text
    assert "sex outside the domain 1" in counted.text
    assert "4711" not in counted.body, "no value unless it is asked for"
    assert "4711" in visitor.send(path, f"{path}/table", values="yes").body
    typed = path.removeprefix("/studies/")[:8]
    refused = visitor.send(path, f"{path}/approve", typed=typed)
    assert "4711" not in refused.body
    assert (refused.status, house.kinds()) == (400, ["opened"])


def test_a_study_that_was_exchanged_is_not_the_one_on_the_page(house: House, visitor: Visitor) -> None:
    seen = house.announce("care")
    house.announce("care", epsilon="1.5")
    form = visitor.ask(path_of(seen)).form(f"{path_of(seen)}/approve")
    answer = visitor.ask(f"{path_of(seen)}/approve", {"form": form, "typed": seen.digest().hex()[:8]})
    assert answer.status == 303
    (approval,) = json.loads(synod("party", "ledger", "--json", "--config", house.config).out)["studies"]
    assert (approval["hash"], approval["reserved"]) == (seen.digest().hex(), "epsilon:1")


def test_names_of_others_are_text(house: House, visitor: Visitor) -> None:
    nasty = "<script>alert(1)</script>"
    schema = [{"name": "sex", "type": "categorical", "categories": ["F", nasty]}]
    page = visitor.ask(path_of(house.announce("care", schema=schema)))
    assert page.status == 200
    assert nasty not in page.body
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page.body


def test_the_doctor_says_what_the_command_says(house: House, visitor: Visitor) -> None:
    shown = visitor.ask("/doctor").text
    assert "certificate FAIL" in shown
    for line in synod("party", "doctor", "--config", house.config).out.splitlines():
        mark, _, rest = line.partition(" ")
        what, _, told = rest.strip().partition(": ")
        assert f"{what} {mark.strip()} {' '.join(told.split())}" in shown


def test_settings_are_read_anew(house: House, visitor: Visitor) -> None:
    house.announce("care")
    assert "cannot be approved" not in visitor.ask("/").text
    house.change(max_epsilon_total="0.5")
    assert "It cannot be approved here" in visitor.ask("/").text


def test_a_lost_ledger_is_one_sentence(house: House, visitor: Visitor) -> None:
    (house.settings.state / "ledger.sqlite").unlink()
    answer = visitor.ask("/ledger")
    assert answer.status == 400
    assert "there is no ledger at" in answer.text


def test_whoever_looks_waits_for_nobody_who_writes(house: House, visitor: Visitor) -> None:
    """A daemon, or another console, may be in the middle of a transaction: pages are answered meanwhile."""
    path = path_of(house.announce("care"))
    writer = sqlite3.connect(house.settings.state / LEDGER_FILE, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("CREATE TABLE unfinished (one)")
    try:
        # As long as the transaction is open, whoever needed its lock would wait for half a minute.
        assert [visitor.ask(one, seconds=10).status for one in ("/", path, "/ledger", "/doctor")] == [200] * 4
    finally:
        writer.execute("ROLLBACK")
        writer.close()


def test_two_consoles_see_each_others_decisions(house: House, visitor: Visitor) -> None:
    study = house.announce("care")
    path = path_of(study)
    with house.serving() as other:
        second = other.entered()
        stale = second.ask(path).form(f"{path}/approve")
        assert visitor.send(path, f"{path}/approve", typed=study.digest().hex()[:8]).status == 303
        again = second.ask(f"{path}/approve", {"form": stale, "typed": study.digest().hex()[:8]})
        assert again.status == 400
        assert "in the ledger already" in again.text or "not announced any more" in again.text
        assert "approved, not ended" in second.ask("/").text
    assert house.kinds() == ["opened", "approved"]
