"""A ledger restored from a backup, a cloned daemon, and the heads that leave the party: asked twice, a party says the
same thing, and what it says of its ledger tells nothing of its rows.
"""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from synod.common.crypto.canonical import Json, canonical_hash
from synod.common.crypto.paillier import PublicKey
from synod.common.protocol.transcript import Transcript
from synod.common.study.study import Study
from synod.party import ledger as ledger_module
from synod.party.answer import Secrets
from synod.party.ledger import Ledger
from synod.party.table.snapshot import Snapshot
from tests.support.attacks import Numbers, exact_sum, pattern_table, small_case
from tests.support.encrypted_sums import answer, ask, open_sum
from tests.support.keys import paillier_key
from tests.support.parties import NOW, PartyInMemory, PartyUnderTest, make_transcript, open_party, seal
from tests.support.studies import Table

TRANSCRIPTS = 48


def clone(party: PartyUnderTest, folder: Path) -> PartyUnderTest:
    """A party over a copy of the disk as it is now."""
    party.ledger.close()
    shutil.copytree(party.folder, folder)
    return open_party(folder, party.study, party.name, party.table)


def other_transcript(transcript: Transcript, number: int) -> Transcript:
    """The same study and roster under another sound h_s."""
    n, h_s = transcript.key.n, transcript.key.h_s
    return replace(transcript, key=PublicKey(n, pow(h_s, 2 * number + 1, n**2)))


def test_a_clone_and_a_restored_ledger_answer_with_the_same_bytes(tmp_path: Path) -> None:
    study, members = small_case()
    party = open_party(tmp_path / "first", study, members[0].name, members[0].table)
    second = clone(party, tmp_path / "second")
    first = open_party(tmp_path / "first", study, members[0].name, members[0].table)
    envelope = seal(make_transcript(study, [first, *members[1:]]))
    assert first.answer(envelope) == second.answer(envelope)
    assert first.spent() == second.spent()


def ask_under_many_transcripts(study: Study, members: list[PartyInMemory], count: int) -> list[Numbers]:
    """All ledgers are restored again and again, and the curator asks the same question under another T each time."""
    truth = make_transcript(study, members)
    told = [other_transcript(truth, number) for number in range(count)]
    return [
        open_sum(
            study,
            paillier_key(),
            [answer(member, ask(study, transcript, index)) for index, member in enumerate(members)],
        )
        for transcript in told
    ]


def test_asking_under_many_transcripts_averages_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    study, members = small_case()
    truth = exact_sum(study, members)
    sums = ask_under_many_transcripts(study, members, 3)
    assert all((total == sums[0]).all() for total in sums)
    error = np.abs(sums[0] - truth).mean()
    assert error > 0

    _key_noise_by_transcript(monkeypatch)
    average = np.mean(ask_under_many_transcripts(study, members, TRANSCRIPTS), axis=0)
    assert np.abs(average - truth).mean() < error / 2


def _key_noise_by_transcript(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the coins of the noise were derived from T, too; encryption's are, so the last T is known here."""
    derive, asked = Secrets.derive, iter(range(10**6))

    def fresh(self: Secrets, purpose: str, *inputs: Json) -> bytes:
        return derive(self, purpose, *inputs, *([next(asked)] if purpose == "noise" else []))

    monkeypatch.setattr(Secrets, "derive", fresh)


def test_a_restored_ledger_gives_the_same_noise_under_another_transcript(tmp_path: Path) -> None:
    study, members = small_case()
    party = open_party(tmp_path / "now", study, members[0].name, members[0].table)
    restored = clone(party, tmp_path / "restored")
    first = open_party(tmp_path / "now", study, members[0].name, members[0].table)
    truth = make_transcript(study, [first, *members[1:]])
    sums = []
    for copy, transcript in [(first, truth), (restored, other_transcript(truth, 1))]:
        payloads = [copy.answer(seal(transcript)).payload]
        payloads += [answer(member, ask(study, transcript, index)) for index, member in enumerate(members[1:], 1)]
        sums.append(open_sum(study, paillier_key(), payloads).tolist())
    assert first.answer(seal(truth)).payload != restored.answer(seal(truth)).payload
    assert sums[0] == sums[1]


def test_another_snapshot_study_or_ledger_has_other_masks_other_noise_and_another_transcript() -> None:
    _, members = small_case()
    first = members[0].secrets
    others = [replace(first, **{field: bytes(32)}) for field in ("root", "study_hash", "snapshot")]
    for purpose in ("exchange", "nonce", "noise", "encryption", "synthesis"):
        assert len({secrets.derive(purpose) for secrets in (first, *others)}) == 4


# Heads


def guess_entry(ledger: Ledger, table: Table) -> bytes:
    """The head after an approval as the curator would compute it: it saw the head before, and knows all but a row."""
    approved = ledger.entries()[-1]
    public = ("kind", "sequence", "time", "previous", "study", "name", "dataset", "reserved", "source")
    known = {key: approved[key] for key in public}
    return canonical_hash({**known, "snapshot": Snapshot(tuple(table)).digest().hex()})


def guesses_the_last_row(folder: Path) -> list[bool]:
    """Whether each of the two tables that differ in one row is told by the head."""
    study, members = small_case()
    changed = [column.copy() for column in pattern_table(study, 0)]
    changed[2][-1] ^= 1
    tables: list[Table] = [members[0].table, changed]
    verdicts = []
    for number, true in enumerate(tables):
        party = open_party(folder / str(number), study, members[0].name, true)
        guesses = [guess_entry(party.ledger, candidate) for candidate in tables]
        verdicts.append([head == party.ledger.head().hash for head in guesses] == [number == 0, number == 1])
        party.ledger.close()
    return verdicts


def test_the_head_of_the_ledger_confirms_no_guess_at_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert guesses_the_last_row(tmp_path / "salted") == [False, False]
    monkeypatch.setattr(ledger_module, "canonical_hash", _hash_without_salt)
    assert guesses_the_last_row(tmp_path / "bare") == [True, True]


def _hash_without_salt(entry: Json) -> bytes:
    assert isinstance(entry, dict)
    return canonical_hash({key: value for key, value in entry.items() if key != "salt"})


def test_equal_ledgers_have_unequal_heads(tmp_path: Path) -> None:
    heads = [Ledger.create(tmp_path / str(n), history_lost=False, now=NOW).head().hash for n in range(2)]
    assert heads[0] != heads[1]


def test_a_clone_that_went_its_own_way_has_another_head(tmp_path: Path) -> None:
    study, members = small_case()
    party = open_party(tmp_path / "first", study, members[0].name, members[0].table)
    second = clone(party, tmp_path / "second")
    first = open_party(tmp_path / "first", study, members[0].name, members[0].table)
    make: Callable[[PartyUnderTest], bytes] = lambda h: seal(make_transcript(study, [h, *members[1:]]))  # noqa: E731
    assert first.answer(make(first)).payload == second.answer(make(second)).payload
    assert first.ledger.head().sequence == second.ledger.head().sequence
    assert first.ledger.head().hash != second.ledger.head().hash
