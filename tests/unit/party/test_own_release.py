"""A release against one's own ledger: it agrees with the ledger that answered, and with no other."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from synod.common.protocol.manifest import Verdict, verify_release
from synod.common.runtime.errors import Code, SynodError
from synod.party.account import ApprovalState, Entry
from synod.party.ledger import Ledger
from synod.party.release import COMPARED, compare_release
from tests.support.commands import complaint, synod, write_party
from tests.support.keys import CURATOR, identity_of
from tests.support.releases import AnsweredStudy
from tests.support.studies import NAMES, make_study

KEY = identity_of("north").fingerprint
CURATOR_KEY = identity_of(CURATOR).fingerprint


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> AnsweredStudy:
    answered = AnsweredStudy(tmp_path_factory.mktemp("study"), make_study())
    answered.write()
    return answered


@pytest.fixture(scope="module")
def verdict(answered: AnsweredStudy) -> Verdict:
    return verify_release(answered.target, None)


def entries_of(answered: AnsweredStudy, name: str) -> list[Entry]:
    ledger = Ledger.open(answered.folder.parent / "ledgers" / name)
    entries = ledger.entries()
    ledger.close()
    return entries


@pytest.fixture(scope="module")
def entries(answered: AnsweredStudy) -> list[Entry]:
    return entries_of(answered, "north")


def failure(verdict: Verdict, entries: Sequence[Entry], **changes: str) -> str:
    with pytest.raises(SynodError) as caught:
        compare_release(verdict, entries, **{"name": "north", "key": KEY, "curator": CURATOR_KEY, **changes})
    assert caught.value.code is Code.CHECK_FAILED
    return caught.value.sentence


@pytest.mark.parametrize("name", NAMES)
def test_each_party_finds_itself(answered: AnsweredStudy, verdict: Verdict, name: str) -> None:
    key = identity_of(name).fingerprint
    lines = compare_release(verdict, entries_of(answered, name), name=name, key=key, curator=CURATOR_KEY)
    assert "all 2 answers are those that left here, by their hashes, and no other is stated" in lines


def test_1_another_curator(verdict: Verdict, entries: list[Entry]) -> None:
    assert "not from the curator" in failure(verdict, entries, curator=KEY)


def test_2_not_on_the_roster_under_its_own_key(verdict: Verdict, entries: list[Entry]) -> None:
    assert "under its own key" in failure(verdict, entries, key=identity_of("valley").fingerprint)
    assert "does not have desert" in failure(verdict, entries, name="desert")


def test_3_an_old_copy_of_the_ledger(verdict: Verdict, entries: list[Entry]) -> None:
    sentence = "this ledger is behind, or beside, what the release shows of it"
    assert sentence in failure(verdict, entries[:1])
    assert sentence in failure(verdict, [entries[0], {**entries[1], "salt": "00" * 32}, *entries[2:]])


def test_4_not_approved_or_ended_otherwise(answered: AnsweredStudy, verdict: Verdict, entries: list[Entry]) -> None:
    new_ledger = entries_of(answered, "valley")[:1]
    assert "has not approved" in failure(verdict, new_ledger)
    study = verdict.study.digest().hex()
    for outcome in (ApprovalState.REVOKED, ApprovalState.ABORTED):
        ended = [*entries, {"kind": "closed", "study": study, "outcome": outcome.value}]
        assert f"this ledger has it as {outcome.value}" in failure(verdict, ended)
    published = [*entries, {"kind": "closed", "study": study, "outcome": "published"}]
    assert compare_release(verdict, published, name="north", key=KEY, curator=CURATOR_KEY)


OTHERS: dict[str, str] = {"label": "tables", "query": "00" * 32, "transcript": "00" * 32, "cost": "epsilon:1/2"}


@pytest.mark.parametrize("part", COMPARED)
@pytest.mark.parametrize("place", [-1, -2])
def test_5_another_answer(verdict: Verdict, entries: list[Entry], part: str, place: int) -> None:
    changed: list[Any] = list(entries)
    assert changed[place]["kind"] == "charged"
    changed[place] = {**changed[place], part: OTHERS.get(part, "00" * 32)}
    assert "is not what this ledger was charged for" in failure(verdict, changed)


def test_5_an_answer_more_or_less(verdict: Verdict, entries: list[Entry]) -> None:
    assert "of round rows is not what" in failure(verdict, entries[:-1])
    assert "of round moments is not what" in failure(verdict, entries[:-2])
    assert "of round rows is not what" in failure(verdict, [*entries, entries[-1]])


def test_5_charges_of_other_studies_are_not_looked_at(verdict: Verdict, entries: list[Entry]) -> None:
    approval = next(entry for entry in entries if entry["kind"] == "approved")
    other = [{**approval, "study": "ab" * 32, "name": "other"}, {**entries[-1], "study": "ab" * 32}]
    assert compare_release(verdict, [*entries, *other], name="north", key=KEY, curator=CURATOR_KEY)


@pytest.fixture
def config(answered: AnsweredStudy, tmp_path: Path) -> Path:
    state = Path(shutil.copytree(answered.folder.parent / "ledgers" / "north", tmp_path / "own" / "state"))
    identity_of("north").save(state / "identity.pem")
    return write_party(tmp_path / "own", curator=CURATOR_KEY)


def test_the_command_says_what_agrees(answered: AnsweredStudy, config: Path) -> None:
    ending = synod("party", "check-release", answered.target, "--config", config)
    assert (ending.code, ending.err) == (0, "")
    assert "ok  what north spent is what this ledger was charged" in ending.out
    assert "The release says of north what this ledger says." in ending.out


def test_the_command_fails_with_five(answered: AnsweredStudy, config: Path, tmp_path: Path) -> None:
    other = write_party(tmp_path / "own", curator=KEY)
    assert "not from the curator" in complaint(synod("party", "check-release", answered.target, "--config", other), 5)
    broken = Path(shutil.copytree(answered.target, tmp_path / "broken"))
    (broken / "model.json").write_text("{}")
    assert "model.json" in complaint(synod("party", "check-release", broken, "--config", config), 5)
