"""A party whose ledger was set back to a backup, and a curator that keeps silent about what it has seen of it.

Neither the party's own operator nor its policy can tell. The other parties can: the heads of all ledgers are in T, and
each party remembers them.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from synod.common.privacy.cost import Cost
from synod.common.protocol.heads import MOST_OPEN_HEADS, Head, LedgerBehindError, StatedHeads, check_not_rolled_back
from synod.common.protocol.plan import plan_study
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.study import Study
from synod.party.account import ApprovalState
from synod.party.ledger import MOST_WITNESSED_HEADS, MOST_WITNESSED_LEDGERS, Ledger
from synod.party.table.snapshot import Snapshot
from tests.support.parties import DATASET, NOW, PartyUnderTest, make_transcript, seal
from tests.support.studies import NAMES, draw_columns, make_study

MUCH = Cost.pure(Fraction(100))
BEHIND = "the ledger of harbour is behind, or beside, what this party has witnessed of it"


class Consortium:
    """Three parties with one ledger each, for study after study; harbour's can be set back."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ledgers = {}
        for name in NAMES:
            (folder / name).mkdir()
            self.ledgers[name] = Ledger.create(folder / name, history_lost=False, now=NOW)

    def approve(self, name: str, study: Study) -> PartyUnderTest:
        """One party approves a study."""
        ledger, snapshot = self.ledgers[name], Snapshot(tuple(draw_columns(study, name)))
        cost = plan_study(study).cost_of(name)
        ledger.approve(study, dataset=DATASET, cost=cost, cap=MUCH, snapshot=snapshot.digest(), source=(), now=NOW)
        return self.party(name, study)

    def party(self, name: str, study: Study) -> PartyUnderTest:
        """A party that has approved a study."""
        snapshot, ledger = Snapshot(tuple(draw_columns(study, name))), self.ledgers[name]
        return PartyUnderTest(study, name, snapshot, ledger.study_root(study.digest()), ledger, self.folder / name)

    def approve_all(self, study: Study) -> list[PartyUnderTest]:
        """Everybody approves a study, and so states a head of its ledger."""
        return [self.approve(name, study) for name in NAMES]

    def run(self, study: Study) -> None:
        """Everybody approves, answers the first round, and is told that the study was aborted."""
        parties = self.approve_all(study)
        answer_all(parties)
        for party in parties:
            party.ledger.end_study(study.digest(), ApprovalState.ABORTED, now=NOW)

    def back_up(self) -> Path:
        """A copy of harbour's ledger as it is now."""
        self.ledgers["harbour"].close()
        target = self.folder / f"backup-{len(list(self.folder.iterdir()))}"
        shutil.copytree(self.folder / "harbour", target)
        self.ledgers["harbour"] = Ledger.open(self.folder / "harbour")
        return target

    def restore(self, backup: Path) -> None:
        """Harbour's ledger as it was; the curator does not say a word."""
        self.ledgers["harbour"].close()
        shutil.rmtree(self.folder / "harbour")
        shutil.copytree(backup, self.folder / "harbour")
        self.ledgers["harbour"] = Ledger.open(self.folder / "harbour")

    def close(self) -> None:
        """Closes all ledgers."""
        for ledger in self.ledgers.values():
            ledger.close()


@pytest.fixture
def consortium(tmp_path: Path) -> Iterator[Consortium]:
    consortium = Consortium(tmp_path)
    yield consortium
    consortium.close()


def study_of(name: str) -> Study:
    return make_study(name=name)


def answer_all(parties: Sequence[PartyUnderTest]) -> None:
    envelope = seal(make_transcript(parties[0].study, parties))
    for party in parties:
        party.answer(envelope)


def north_answers(parties: Sequence[PartyUnderTest]) -> bool:
    """Whether the honest peer takes part under this transcript."""
    return bool(parties[0].answer(seal(make_transcript(parties[0].study, parties))).payload)


# Caught by an honest peer


def set_back(consortium: Consortium) -> list[PartyUnderTest]:
    """Harbour answers two studies, is set back to before either, and approves a third."""
    backup = consortium.back_up()
    consortium.run(study_of("first"))
    consortium.run(study_of("second"))
    spent = consortium.ledgers["harbour"].account().spent(DATASET)
    consortium.restore(backup)
    parties = consortium.approve_all(study_of("third"))
    assert parties[1].spent() != spent, "it has forgotten what it spent, and notices nothing"
    return parties


def test_a_ledger_that_was_set_back_is_caught_by_an_honest_peer_at_the_next_study(consortium: Consortium) -> None:
    parties = set_back(consortium)
    before = parties[0].ledger.head()
    with pytest.raises(SynodError, match=BEHIND) as caught:
        north_answers(parties)
    assert caught.value.code is Code.REFUSED
    assert "restore its newest ledger; nothing was spent here" in caught.value.hint
    assert parties[0].ledger.head() == before, "a refusal spends nothing"


def test_without_the_check_it_goes_on_with_what_it_forgot(
    consortium: Consortium, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("synod.party.rounds.check_not_rolled_back", lambda *_: None)
    assert north_answers(set_back(consortium))


def test_without_a_memory_of_heads_it_goes_on_too(consortium: Consortium, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ledger, "witness", lambda *_: None)
    assert north_answers(set_back(consortium))


def test_a_ledger_as_long_as_before_is_caught_by_its_hash(consortium: Consortium) -> None:
    """Set back by one approval, and approved again: as many entries, another salt."""
    backup = consortium.back_up()
    consortium.run(study_of("first"))
    consortium.restore(backup)
    parties = consortium.approve_all(study_of("second"))
    stated, known = parties[1].enrolment().heads.approved, parties[0].ledger.witnessed
    (witnessed,) = known(parties[1].identity.public_key, stated.ledger)
    assert (witnessed.sequence, witnessed.hash != stated.hash) == (stated.sequence, True)
    with pytest.raises(SynodError, match=BEHIND):
        north_answers(parties)


def test_the_newest_ledger_goes_on_and_so_does_a_new_one_after_a_loss(consortium: Consortium) -> None:
    """A new ledger is another one, whose dataset counts as spent until its operator says what was."""
    consortium.run(study_of("first"))
    newest = consortium.back_up()
    consortium.restore(newest)
    assert north_answers(consortium.approve_all(study_of("second")))
    consortium.ledgers["harbour"].close()
    shutil.rmtree(consortium.folder / "harbour")
    (consortium.folder / "harbour").mkdir()
    consortium.ledgers["harbour"] = Ledger.create(consortium.folder / "harbour", history_lost=False, now=NOW)
    assert north_answers(consortium.approve_all(study_of("third")))


@pytest.mark.parametrize("order", ["as approved", "the other way round"])
def test_studies_that_run_side_by_side_accuse_nobody(consortium: Consortium, order: str) -> None:
    """Transcripts come in another order than approvals: the later approval has stated the earlier one's head."""
    studies = [study_of(name) for name in ("first", "second", "third")]
    for study in studies:
        consortium.approve_all(study)
    for study in studies if order == "as approved" else studies[::-1]:
        assert north_answers([consortium.party(name, study) for name in NAMES])


def test_without_the_heads_of_open_studies_the_honest_are_accused(
    consortium: Consortium, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the list is there for."""
    monkeypatch.setattr(StatedHeads, "of", lambda heads: StatedHeads(heads[-1]))
    studies = [study_of(name) for name in ("first", "second")]
    for study in studies:
        consortium.approve_all(study)
    assert north_answers([consortium.party(name, studies[1]) for name in NAMES])
    with pytest.raises(SynodError, match="is behind, or beside"):
        north_answers([consortium.party(name, studies[0]) for name in NAMES])


def test_nobody_states_heads_in_the_name_of_another(consortium: Consortium) -> None:
    """Valley claims harbour's ledger with many entries: it is remembered for valley's identity, and harbour goes on."""
    parties = consortium.approve_all(study_of("first"))
    transcript = make_transcript(parties[0].study, parties)
    claimed = StatedHeads(Head(1000, bytes(32), parties[1].enrolment().heads.approved.ledger))
    lying = replace(transcript.enrolments[2], heads=claimed).signed_by(parties[2].identity, parties[2].study.digest())
    parties[0].answer(seal(replace(transcript, enrolments=(*transcript.enrolments[:2], lying))))
    assert north_answers(consortium.approve_all(study_of("second")))


# One's own ledger


def test_a_transcript_of_one_s_own_signature_shows_that_the_ledger_is_behind(consortium: Consortium) -> None:
    """Set back to before the approval, which was then given again; the curator shows the transcript of before."""
    backup = consortium.back_up()
    parties = consortium.approve_all(study_of("first"))
    envelope = seal(make_transcript(parties[0].study, parties))
    consortium.restore(backup)
    harbour = consortium.approve("harbour", study_of("first"))
    with pytest.raises(LedgerBehindError, match="behind, or beside, what the transcript of a study shows") as caught:
        harbour.answer(envelope)
    assert "restore the newest ledger" in caught.value.hint
    assert harbour.charges() == []


# What is remembered


KNOWN = [Head(sequence, bytes([sequence]) * 32, b"l" * 32) for sequence in (3, 5, 9)]
STATED: dict[str, tuple[StatedHeads, bool]] = {
    "further": (StatedHeads(Head(12, b"x" * 32, b"l" * 32)), True),
    "the same": (StatedHeads(KNOWN[2]), True),
    "an earlier one that was stated": (StatedHeads(KNOWN[1]), True),
    "an earlier one that was not": (StatedHeads(Head(4, b"x" * 32, b"l" * 32)), False),
    "the furthest with another hash": (StatedHeads(Head(9, b"x" * 32, b"l" * 32)), False),
    "an earlier one with another hash": (StatedHeads(Head(5, b"x" * 32, b"l" * 32)), False),
    "further, over another past": (
        StatedHeads(Head(12, b"x" * 32, b"l" * 32), (Head(5, b"y" * 32, b"l" * 32),)),
        False,
    ),
    "another ledger": (StatedHeads(Head(1, b"x" * 32, b"m" * 32)), True),
}


@pytest.mark.parametrize("case", STATED)
def test_what_is_behind_or_beside(case: str) -> None:
    stated, passes = STATED[case]
    check: Callable[[], None] = lambda: check_not_rolled_back("harbour", stated, KNOWN)  # noqa: E731
    if passes:
        check()
    else:
        with pytest.raises(SynodError, match=BEHIND):
            check()


def test_what_a_party_remembers_is_bounded_and_the_furthest_stays(consortium: Consortium) -> None:
    ledger, identity = consortium.ledgers["north"], b"i" * 32
    for sequence in range(1, MOST_WITNESSED_HEADS + 20):
        ledger.witness({identity: StatedHeads(Head(sequence, bytes(32), b"l" * 32))})
    known = {head.sequence for head in ledger.witnessed(identity, b"l" * 32)}
    assert known == set(range(20, MOST_WITNESSED_HEADS + 20))
    for number in range(2 * MOST_WITNESSED_LEDGERS):
        ledger.witness({identity: StatedHeads(Head(1, bytes(32), bytes([number]) * 32))})
        ledger.witness({identity: StatedHeads(Head(1000 + number, bytes(32), b"l" * 32))})
    kept = [number for number in range(2 * MOST_WITNESSED_LEDGERS) if ledger.witnessed(identity, bytes([number]) * 32)]
    assert kept == list(range(MOST_WITNESSED_LEDGERS + 1, 2 * MOST_WITNESSED_LEDGERS))
    assert ledger.witnessed(identity, b"l" * 32), "one that goes on is kept"


def test_an_enrolment_states_the_same_heads_whatever_happened_since(consortium: Consortium) -> None:
    """A crash between enrolment and its reply, further approvals, ends: the bytes are the same."""
    first, second = study_of("first"), study_of("second")
    consortium.approve("north", first)
    stated = consortium.approve("north", second).enrolment()
    assert [head.sequence for head in stated.heads.all] == [3, 2]
    consortium.approve("north", study_of("third"))
    consortium.ledgers["north"].end_study(first.digest(), ApprovalState.REVOKED, now=NOW)
    consortium.ledgers["north"].close()
    consortium.ledgers["north"] = Ledger.open(consortium.folder / "north")
    assert consortium.party("north", second).enrolment() == stated
    fourth = consortium.approve("north", study_of("fourth")).enrolment()
    assert [head.sequence for head in fourth.heads.all] == [6, 3, 4], "the first has ended"


def test_an_enrolment_states_the_last_of_many_open_studies(consortium: Consortium) -> None:
    for number in range(MOST_OPEN_HEADS + 3):
        last = consortium.approve("north", make_study(name=f"study-{number}", epsilon="0.01"))
    heads = last.enrolment().heads
    assert heads.is_sound()
    assert [head.sequence for head in heads.open] == list(range(4, MOST_OPEN_HEADS + 4))
