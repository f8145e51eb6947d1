"""A session through the real store: from enrolment to a release, and over every restart to the same release."""

import asyncio
import errno
import json
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from synod.common.crypto.identity import Identity
from synod.common.protocol.manifest import verify_release
from synod.common.protocol.notices import DeclineReason
from synod.common.protocol.queries.base import SumQuery
from synod.common.protocol.queries.moments import SumMoments, moment_design
from synod.common.protocol.submission import AnsweredStep, digest_of
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.encoding import Codes
from synod.common.study.study import Study
from synod.curator import combine as combine_module
from synod.curator import session as session_module
from synod.curator.context import Context
from synod.curator.methods import hpdp_dp
from synod.curator.party_handler import PartyHandler
from synod.curator.party_store import STORE_FILE
from synod.curator.records import State
from synod.curator.release import files as release
from synod.curator.store import Store
from synod.party import answer
from tests.support.curators import (
    WAIT_SECONDS,
    Clock,
    copy_parties,
    declined,
    hand_in,
    make_context,
    make_moves,
    make_session,
    release_files,
    run_study,
    stored_answer,
)
from tests.support.keys import CURATOR, identity_of, paillier_key
from tests.support.parties import PartyUnderTest, make_transcript, open_parties, seal, sign_asked
from tests.support.studies import LINEAR, make_study


@pytest.fixture(scope="module")
def study() -> Study:
    return make_study(epsilon="50", method=LINEAR)


@pytest.fixture(scope="module")
def ledgers(study: Study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Approved, and not asked anything yet; tests make_moves with copies."""
    folder = tmp_path_factory.mktemp("ledgers")
    for party in open_parties(folder, study.model_copy()):
        party.ledger.close()
    return folder


@pytest.fixture(scope="module")
def straight(study: Study, ledgers: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The release of a run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("straight")
    run_study(folder / "curator", study, copy_parties(study, ledgers, folder / "ledgers"))
    return release_files(folder / "curator", study)


def test_a_study_is_published_and_verifies(study: Study, ledgers: Path, tmp_path: Path) -> None:
    parties = copy_parties(study, ledgers, tmp_path / "ledgers")
    made = run_study(tmp_path / "curator", study, parties)
    names = [entry.name for entry in study.roster]
    kinds = ("enrol", "answer", "answer", "published")
    labels = ("", "moments", "rows", "")
    assert sorted(made) == sorted((n, k, label) for n in names for k, label in zip(kinds, labels, strict=True))
    folder = tmp_path / "curator" / "releases" / study.digest().hex()
    verify_release(folder, {name: identity_of(name).fingerprint for name in (*names, CURATOR)})
    assert (folder / "synthetic.csv").read_text().count("\n") == 151
    store = Store(tmp_path / "curator")
    assert store.state(store.study(study.digest())) is State.PUBLISHED
    assert all(party.charges() == ["moments", "rows"] for party in parties)


@pytest.mark.parametrize("stops", [(n,) for n in range(10)] + [(1,) * 9, (2, 3, 2)], ids=str)
def test_a_restart_anywhere_gives_the_same_release_and_asks_nothing_twice(
    study: Study, ledgers: Path, straight: dict[str, bytes], tmp_path: Path, stops: tuple[int, ...]
) -> None:
    parties = copy_parties(study, ledgers, tmp_path / "ledgers")
    made = run_study(tmp_path / "curator", study, parties, stops)
    assert len(made) == len(set(made)) == 12, "a move was asked for twice"
    assert release_files(tmp_path / "curator", study) == straight
    assert all(party.charges() == ["moments", "rows"] for party in parties)


def test_an_answered_query_comes_from_the_log(
    study: Study, ledgers: Path, straight: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a restart nothing is decrypted or fitted again: the payloads may even be gone, and the library other."""
    parties = copy_parties(study, ledgers, tmp_path / "ledgers")
    folder = tmp_path / "curator"

    async def first_half() -> None:
        context = make_context(folder)
        context.store.add_study(study, now=5)
        task = asyncio.create_task(make_session(context, study).run())
        await make_moves(context, parties, most_moves=7)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        context.store.close()

    asyncio.run(first_half())
    with sqlite3.connect(folder / STORE_FILE) as connection:
        changed = connection.execute("UPDATE submissions SET payload = x'' WHERE label = 'moments'").rowcount
    assert changed == 3

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("done again")

    monkeypatch.setattr(hpdp_dp, "fit_model", refuse)
    monkeypatch.setattr(combine_module, "add_all", refuse)
    run_study(folder, study, parties)
    assert release_files(folder, study) == straight


def test_the_log_holds_the_query_before_anybody_is_asked(study: Study, ledgers: Path, tmp_path: Path) -> None:
    parties = copy_parties(study, ledgers, tmp_path / "ledgers")
    clock = Clock()

    async def scenario() -> None:
        context = make_context(tmp_path / "curator", clock)
        context.store.add_study(study, now=5)
        task = asyncio.create_task(make_session(context, study).run())
        assert context.store.unanswered(study.digest()) is None
        await make_moves(context, parties, most_moves=2)
        await asyncio.sleep(0.02)
        assert context.store.unanswered(study.digest()) is None, "a round is open before all have enrolled"
        clock.now = 2_000.0
        await make_moves(context, parties, most_moves=1)
        for _ in range(200):
            if context.store.unanswered(study.digest()):
                break
            await asyncio.sleep(0.005)
        query = context.store.unanswered(study.digest())
        assert query is not None
        assert (query.label, query.sequence, query.opened) == ("moments", 1, 2_000)
        assert context.store.query(study.digest(), "moments") == b'{"kind":"sum-moments"}'
        signature = sign_asked(study, seal(make_transcript(study, parties)), SumMoments(), "moments")
        assert context.store.query_signature(study.digest(), "moments") == signature
        assert all(party.charges() == [] for party in parties)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(asyncio.wait_for(scenario(), WAIT_SECONDS))


def outcome_of(folder: Path, study: Study) -> tuple[State | None, str]:
    store = Store(folder)
    record = store.study(study.digest())
    store.close()
    return record.outcome, record.reason


def test_a_curator_with_another_identity_waits_for_its_own(
    study: Study, ledgers: Path, straight: dict[str, bytes], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It could neither ask nor seal: the parties have agreed on the first one. Nothing is spent or ended by it."""
    parties = copy_parties(study, ledgers, tmp_path / "ledgers")
    folder = tmp_path / "curator"

    async def run_for(most_moves: int, identity: Identity) -> None:
        context = make_context(folder, identity=identity)
        context.store.add_study(study, now=5)
        task = asyncio.create_task(make_session(context, study).run())
        if most_moves:
            await make_moves(context, parties, most_moves=most_moves)
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        context.store.close()

    asyncio.run(asyncio.wait_for(run_for(4, identity_of(CURATOR)), WAIT_SECONDS))
    asyncio.run(asyncio.wait_for(run_for(0, identity_of("other")), WAIT_SECONDS))
    assert "another identity of this curator" in str([vars(record).get("why") for record in caplog.records])
    assert outcome_of(folder, study)[0] is None
    run_study(folder, study, parties)
    assert release_files(folder, study) == straight


def test_a_replay_that_asks_otherwise_stops_the_study(study: Study, ledgers: Path, tmp_path: Path) -> None:
    parties = copy_parties(study, ledgers, tmp_path / "ledgers")
    folder = tmp_path / "curator"

    async def scenario() -> None:
        context = make_context(folder)
        context.store.add_study(study, now=5)
        context.store.open_query(study.digest(), "moments", b'{"kind": "sum-moments"}', signature=b"signed", now=6)
        task = asyncio.create_task(make_session(context, study).run())
        with suppress(SynodError):  # a party that is faster than the session sees a query that nobody signed
            await make_moves(context, parties)
        await task

    asyncio.run(asyncio.wait_for(scenario(), WAIT_SECONDS))
    outcome, reason = outcome_of(folder, study)
    assert outcome is State.ABORTED
    assert "not the logged one" in reason
    assert [party.charges() for party in parties] == [[], [], []]


def spoil_masks(party: PartyUnderTest, parties: Sequence[PartyUnderTest], context: Context) -> None:
    """An answer of the right form under the party's own signature, whose masks are of another transcript."""
    study = party.study
    transcript = make_transcript(study, parties, paillier_key(2))
    other = replace(transcript, key=paillier_key().public)
    changed = other.enrolments[0]
    swapped = replace(changed, nonce=bytes(32)).signed_by(identity_of(changed.name), study.digest())
    party.answer(seal(replace(other, enrolments=(swapped, *other.enrolments[1:]))))
    submission, payload = stored_answer(party, "moments")
    right = make_transcript(study, parties).digest(study)
    steps = [AnsweredStep("moments", submission.query.hex(), study.budget)]
    bound = replace(submission, transcript=right, digest=digest_of(payload))
    signed = bound.signed_by(identity_of(party.name), party.name, transcript.curator, steps)
    hand_in(PartyHandler(context), party.name, signed, payload)


def test_a_sum_that_does_not_come_out_ends_the_study_for_good(study: Study, ledgers: Path, tmp_path: Path) -> None:
    """Nothing is asked again: one bad party must not drain the others' budgets."""
    parties = copy_parties(study, ledgers, tmp_path / "ledgers")
    folder = tmp_path / "curator"

    async def scenario() -> list[tuple[str, str, str]]:
        context = make_context(folder)
        context.store.add_study(study, now=5)
        task = asyncio.create_task(make_session(context, study).run())
        await make_moves(context, parties, most_moves=3)
        await asyncio.sleep(0.05)
        spoil_masks(parties[2], parties, context)
        made = await make_moves(context, parties)
        await task
        return made

    made = asyncio.run(asyncio.wait_for(scenario(), WAIT_SECONDS))
    assert sorted(kind for _, kind, _ in made) == ["aborted"] * 3 + ["answer"] * 2
    outcome, reason = outcome_of(folder, study)
    assert outcome is State.ABORTED
    assert "masks did not cancel" in reason
    assert not (folder / "releases").exists()
    assert [party.charges() for party in parties] == [["moments"]] * 3


def test_a_party_that_lies_grossly_ends_the_study(
    study: Study, ledgers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check 6: well packed, masked and signed, but its counts are of a hundred rows more than it has."""
    parties = copy_parties(study, ledgers, tmp_path / "ledgers")
    folder, honest, design = tmp_path / "curator", answer.noisy_values, moment_design(study)
    (_, block), *_ = design.block_slices()
    numbers = np.full((design.width, design.width), -1)
    numbers[design.asked()] = np.arange(design.length)

    def lie(
        query: SumQuery[Any], study: Study, columns: Sequence[Codes], *args: Any, **kwargs: Any
    ) -> NDArray[np.int64]:
        values = honest(query, study, columns, *args, **kwargs)
        if len(columns[0]) == 60:
            values[numbers[block.start, block.start]] += 4 * design.unit**2 * 100
        return values

    monkeypatch.setattr(answer, "noisy_values", lie)
    made = run_study(folder, study, parties)
    assert sorted(kind for _, kind, _ in made) == ["aborted"] * 3 + ["answer"] * 3 + ["enrol"] * 3
    outcome, reason = outcome_of(folder, study)
    assert outcome is State.ABORTED
    assert "do not add up to the row count" in reason


def test_trouble_with_the_disk_is_waited_out(
    study: Study, ledgers: Path, straight: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parties = copy_parties(study, ledgers, tmp_path / "ledgers")
    failures = [SynodError(Code.STORAGE, "the disk is full."), SynodError(Code.STORAGE, "the disk is full.")]
    write = release.write_release

    def fail_first(*args: Any) -> None:
        if failures:
            raise failures.pop()
        write(*args)

    monkeypatch.setattr(session_module, "RETRY_SECONDS", 0.001)
    monkeypatch.setattr(session_module, "write_release", fail_first)
    run_study(tmp_path / "curator", study, parties)
    assert failures == []
    assert release_files(tmp_path / "curator", study) == straight


def test_a_full_disk_under_the_release_is_waited_out(
    study: Study, ledgers: Path, straight: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file system's own error, in the middle of writing."""
    parties = copy_parties(study, ledgers, tmp_path / "ledgers")
    write, failures = Path.write_text, ["model.json", "model.json"]

    def fail_first(path: Path, *args: Any, **kwargs: Any) -> int:
        if path.name in failures:
            failures.remove(path.name)
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, *args, **kwargs)

    monkeypatch.setattr(session_module, "RETRY_SECONDS", 0.001)
    monkeypatch.setattr(Path, "write_text", fail_first)
    run_study(tmp_path / "curator", study, parties)
    assert failures == []
    assert release_files(tmp_path / "curator", study) == straight


@pytest.mark.parametrize("before", [0, 3, 4])
def test_a_session_ends_when_its_study_is_declined(study: Study, ledgers: Path, tmp_path: Path, before: int) -> None:
    """It neither waits for ever nor goes on with a study that has ended."""
    parties = copy_parties(study, ledgers, tmp_path / "ledgers")
    folder = tmp_path / "curator"

    async def scenario() -> None:
        context = make_context(folder)
        context.store.add_study(study, now=5)
        task = asyncio.create_task(make_session(context, study).run())
        await make_moves(context, parties, most_moves=before)
        await asyncio.sleep(0.05)
        revoked = DeclineReason.REVOKED
        PartyHandler(context).decline(declined("harbour", study, revoked), revoked)
        await asyncio.wait_for(task, 10)

    asyncio.run(asyncio.wait_for(scenario(), WAIT_SECONDS))
    outcome, reason = outcome_of(folder, study)
    assert (outcome, reason) == (State.ABORTED, "harbour declined: its operator revoked the approval.")


def test_a_seed_is_drawn_once_and_logged(ledgers: Path, study: Study, tmp_path: Path) -> None:
    """With `seed: null` a restart goes on with the seed that the log has."""
    unseeded = make_study(seed=None, method=LINEAR)
    context = make_context(tmp_path)
    context.store.add_study(unseeded, now=5)
    drawn = {asyncio.run(make_session(context, unseeded)._seed()) for _ in range(5)}
    assert len(drawn) == 1
    assert context.store.note(unseeded.digest(), "seed") == drawn.pop()


def test_the_release_says_which_seed_it_was(straight: dict[str, bytes]) -> None:
    assert json.loads(straight["manifest.json"])["seed"] == 7
