"""The curator's handler: which move a party gets in every situation, and what it takes from whom."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from synod.common.crypto.canonical import canonical_bytes
from synod.common.protocol.heads import Head
from synod.common.protocol.notices import DeclineReason, require_announcement, require_end
from synod.common.protocol.queries.moments import SumMoments
from synod.common.protocol.queries.parsing import AnyQuery, parse_query, read_query
from synod.common.protocol.queries.rows import Synthesize, share_rows
from synod.common.protocol.signed_query import SignedQuery
from synod.common.protocol.submission import digest_of
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.study import Study
from synod.curator import party_handler as handler_module
from synod.curator.context import Context
from synod.curator.party_handler import DocumentKind, MoveKind, NextMove, Notice, PartyHandler
from synod.curator.records import SeenHead, State
from tests.support.curators import (
    Clock,
    acknowledged,
    declined,
    enrol_all,
    hand_in,
    make_context,
    open_moments,
    stored_answer,
)
from tests.support.keys import identity_of, paillier_key
from tests.support.parties import PartyUnderTest, make_transcript, open_parties, seal
from tests.support.studies import WIDE_SCHEMA, make_model, make_study

CURATOR_KEY = identity_of("curator").public_key


@pytest.fixture(scope="module")
def study() -> Study:
    return make_study(schema=WIDE_SCHEMA)


@pytest.fixture(scope="module")
def parties(study: Study, tmp_path_factory: pytest.TempPathFactory) -> list[PartyUnderTest]:
    """Everybody has answered the first round, in their own ledgers."""
    made = open_parties(tmp_path_factory.mktemp("ledgers"), study)
    document = seal(make_transcript(study, made))
    for party in made:
        party.answer(document)
    return made


@pytest.fixture
def context(tmp_path: Path, study: Study) -> Context:
    async def make() -> Context:
        return make_context(tmp_path, Clock())

    context = asyncio.run(make())
    context.store.add_study(study, now=5)
    return context


@pytest.fixture
def handler(context: Context) -> PartyHandler:
    return PartyHandler(context)


def kinds(handler: PartyHandler, *parties: str) -> list[str]:
    return ["/".join(f"{m.kind.value} {m.label}".strip() for m in moves_of(handler, party, set())) for party in parties]


def moves_of(handler: PartyHandler, party: str, skip: set[bytes]) -> list[NextMove]:
    """The moves of a party that has signed its head."""
    return handler.moves(party, identity_of(party).fingerprint, skip)


def refusal(code: Code, call: object) -> str:
    assert callable(call)
    with pytest.raises(SynodError) as caught:
        call()
    assert caught.value.code is code
    return str(caught.value)


# Moves


def test_moves_through_a_study(
    handler: PartyHandler, context: Context, study: Study, parties: list[PartyUnderTest]
) -> None:
    everybody = ("north", "harbour", "valley")
    assert kinds(handler, *everybody, "ghost") == ["enrol"] * 3 + [""]
    handler.enrol(study.digest(), parties[0].enrolment())
    assert kinds(handler, *everybody) == ["", "enrol", "enrol"]
    enrol_all(handler, study, parties)
    assert kinds(handler, *everybody) == [""] * 3
    open_moments(context, study, parties)
    assert kinds(handler, *everybody, "ghost") == ["answer moments"] * 3 + [""]
    hand_in(handler, "harbour", *stored_answer(parties[1], "moments"))
    assert kinds(handler, *everybody) == ["answer moments", "", "answer moments"]
    context.store.close_query(study.digest(), "moments", b"sum")
    assert kinds(handler, *everybody) == [""] * 3
    context.store.end_study(study.digest(), State.PUBLISHED)
    assert kinds(handler, *everybody, "ghost") == ["published"] * 3 + [""]
    handler.acknowledge(acknowledged("valley", study, "published"))
    assert kinds(handler, *everybody) == ["published", "published", ""]


def test_an_aborted_study_is_told_to_those_who_never_enrolled_too(
    handler: PartyHandler, context: Context, study: Study
) -> None:
    context.store.end_study(study.digest(), State.ABORTED, "why")
    assert kinds(handler, "north", "harbour") == ["aborted", "aborted"]


def test_one_move_for_each_study_and_none_for_those_to_skip(
    handler: PartyHandler, context: Context, study: Study
) -> None:
    second = make_study(name="second", names=("north", "desert"), rows=(40, 7))
    context.store.add_study(second, now=9)
    found = moves_of(handler, "north", set())
    assert [replace(move, signature=b"") for move in found] == [
        NextMove(second.digest(), "second", MoveKind.ENROL),
        NextMove(study.digest(), "care-survey", MoveKind.ENROL),
    ]
    assert [move.name for move in moves_of(handler, "north", {second.digest()})] == ["care-survey"]
    assert [move.name for move in moves_of(handler, "desert", set())] == ["second"]
    assert [move.name for move in moves_of(handler, "valley", set())] == ["care-survey"]
    assert [move.name for move in handler.moves("valley", "", set())] == ["care-survey"], "also without a ledger"


def test_a_study_and_its_end_are_announced_with_the_curator_s_signature(
    handler: PartyHandler, context: Context, study: Study
) -> None:
    (announced,) = moves_of(handler, "north", set())
    require_announcement(CURATOR_KEY, study.digest(), announced.signature)
    context.store.end_study(study.digest(), State.ABORTED, "why")
    (ended,) = moves_of(handler, "north", set())
    require_end(CURATOR_KEY, study.digest(), "aborted", ended.signature)


def test_an_end_is_told_to_the_identity_that_can_acknowledge_it(
    handler: PartyHandler, context: Context, study: Study
) -> None:
    """A party with a new identity, or without one, would be told for ever."""
    context.store.end_study(study.digest(), State.PUBLISHED)
    for signer in ("", identity_of("valley").fingerprint, identity_of("north's next").fingerprint):
        assert handler.moves("north", signer, set()) == []
    assert [move.kind for move in moves_of(handler, "north", set())] == [MoveKind.CLOSE_PUBLISHED]


# Who is on the roster


def test_who_is_not_on_the_roster_gets_nothing(
    handler: PartyHandler, context: Context, study: Study, parties: list[PartyUnderTest]
) -> None:
    open_moments(context, study, parties)
    key = study.digest()
    submission, _ = stored_answer(parties[0], "moments")
    ghost = replace(parties[0].enrolment(), name="ghost")
    for call in (
        lambda: handler.document("ghost", key, DocumentKind.STUDY),
        lambda: handler.document("ghost", key, DocumentKind.TRANSCRIPT),
        lambda: handler.query("ghost", key, "moments"),
        lambda: handler.open_round("ghost", submission),
        lambda: handler.enrol(key, ghost),
        lambda: handler.decline(declined("ghost", study, DeclineReason.CHECK_FAILED), DeclineReason.CHECK_FAILED),
        lambda: handler.acknowledge(acknowledged("ghost", study, "aborted")),
    ):
        assert "ghost is not on the roster" in refusal(Code.NOT_ON_ROSTER, call)
    assert context.store.study(key).outcome is None


def test_unknown_studies(handler: PartyHandler) -> None:
    for call in (
        lambda: handler.document("north", bytes(32), DocumentKind.STUDY),
        lambda: handler.query("north", bytes(32), "moments"),
        lambda: handler.decline(Notice("north", bytes(32), b"", b""), DeclineReason.CHECK_FAILED),
        lambda: handler.acknowledge(Notice("north", bytes(32), b"", b"")),
    ):
        refusal(Code.NOT_FOUND, call)


# Enrolment


def test_an_enrolment_is_believed_as_far_as_the_pinned_key_signed_it(
    handler: PartyHandler, context: Context, study: Study, parties: list[PartyUnderTest]
) -> None:
    key, own = study.digest(), parties[0].enrolment()
    for bad in (
        replace(own, signature=bytes(64)),
        replace(own, exchange=bytes(32)),
        replace(own, name="harbour"),
        replace(own, identity=identity_of("ghost").public_key).signed_by(identity_of("ghost"), key),
        own.signed_by(identity_of("north"), bytes(32)),
    ):
        refusal(Code.CHECK_FAILED, lambda bad=bad: handler.enrol(key, bad))
    assert context.store.enrolments(key) == {}
    handler.enrol(key, own)
    handler.enrol(key, own)
    other = replace(own, nonce=bytes(32)).signed_by(identity_of("north"), key)
    assert "other keys already" in refusal(Code.CONFLICT, lambda: handler.enrol(key, other))
    assert context.store.enrolments(key) == {"north": own}


def test_nobody_enrols_in_a_study_that_has_ended(
    handler: PartyHandler, context: Context, study: Study, parties: list[PartyUnderTest]
) -> None:
    context.store.end_study(study.digest(), State.ABORTED, "why")
    own = parties[0].enrolment()
    assert "has ended" in refusal(Code.NOT_READY, lambda: handler.enrol(study.digest(), own))


# Documents


def test_documents(handler: PartyHandler, context: Context, study: Study, parties: list[PartyUnderTest]) -> None:
    key = study.digest()
    assert handler.document("north", key, DocumentKind.STUDY) == canonical_bytes(study.to_json())
    refusal(Code.NOT_READY, lambda: handler.document("north", key, DocumentKind.TRANSCRIPT))
    refusal(Code.NOT_FOUND, lambda: handler.query("north", key, "moments"))
    open_moments(context, study, parties)
    assert json.loads(handler.document("north", key, DocumentKind.TRANSCRIPT))["study"] == key.hex()
    assert handler.query("north", key, "moments") == SignedQuery(SumMoments(), b"signed")


def test_what_a_party_is_told_is_the_logged_query(
    handler: PartyHandler, context: Context, study: Study, parties: list[PartyUnderTest]
) -> None:
    """The message on the wire and the log's canonical form are one question, with one Q."""
    open_moments(context, study, parties)
    key, asked = study.digest(), Synthesize(make_model(study), share_rows(study))
    context.store.close_query(key, "moments", b"")
    refusal(Code.NOT_FOUND, lambda: handler.query("north", key, "rows"))
    context.store.open_query(key, "rows", canonical_bytes(asked.to_json()), signature=b"signed", now=7)
    for label in ("moments", "rows"):
        logged = context.store.query(key, label)
        for party in ("north", "harbour", "valley"):
            told = handler.query(party, key, label).query
            assert canonical_bytes(told.to_json()) == logged
            assert canonical_bytes(parse_query(told.to_proto(), study).to_json()) == logged


def test_a_rounds_query_is_read_once_however_many_answer(
    handler: PartyHandler,
    context: Context,
    study: Study,
    parties: list[PartyUnderTest],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[Any] = []

    def counted(data: Any, study: Study) -> AnyQuery:
        read.append(data)
        return read_query(data, study)

    monkeypatch.setattr(handler_module, "read_query", counted)
    open_moments(context, study, parties)
    for party in parties:
        handler.query(party.name, study.digest(), "moments")
        hand_in(handler, party.name, *stored_answer(party, "moments"))
        hand_in(handler, party.name, *stored_answer(party, "moments"))
    assert context.store.submitters(study.digest(), "moments") == {"north", "harbour", "valley"}
    assert read == [{"kind": "sum-moments"}]
    context.store.close_query(study.digest(), "moments", b"")
    rows = Synthesize(make_model(study), share_rows(study))
    context.store.open_query(study.digest(), "rows", canonical_bytes(rows.to_json()), signature=b"signed", now=7)
    for party in parties:
        handler.query(party.name, study.digest(), "rows")
        handler.query(party.name, study.digest(), "moments")
    assert read[1:] == [json.loads(canonical_bytes(rows.to_json()))]


def test_queries_that_are_kept_are_few_and_never_mixed_up(
    handler: PartyHandler, context: Context, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler_module, "MOST_ROUNDS", 2)
    studies = [study, *(make_study(name=f"study-{i}", rows=(40 + i, 50, 60)) for i in range(4))]
    for number, other in enumerate(studies):
        context.store.add_study(other, now=9)
        rows = Synthesize(make_model(other), share_rows(other))
        context.store.open_query(
            other.digest(), "rows", canonical_bytes(rows.to_json()), signature=b"signed", now=10 + number
        )
    for other in (*studies, *reversed(studies), *studies):
        told = handler.query("north", other.digest(), "rows").query
        assert isinstance(told, Synthesize)
        assert told.rows == share_rows(other)
        assert len(handler._queries) <= 2


# Submissions


def test_a_replayed_submission_is_welcome_and_changes_nothing(
    handler: PartyHandler, context: Context, study: Study, parties: list[PartyUnderTest]
) -> None:
    open_moments(context, study, parties)
    submission, payload = stored_answer(parties[0], "moments")
    for _ in range(3):
        hand_in(handler, "north", submission, payload)
    assert context.store.submitters(study.digest(), "moments") == {"north"}
    assert list(context.store.payloads(study.digest(), "moments", ["north"])) == [payload]


def test_a_lost_reply_is_made_good_after_the_end(
    handler: PartyHandler, context: Context, study: Study, parties: list[PartyUnderTest]
) -> None:
    open_moments(context, study, parties)
    hand_in(handler, "north", *stored_answer(parties[0], "moments"))
    context.store.end_study(study.digest(), State.ABORTED, "why")
    hand_in(handler, "north", *stored_answer(parties[0], "moments"))
    assert "no such round" in refusal(
        Code.NOT_READY, lambda: hand_in(handler, "harbour", *stored_answer(parties[1], "moments"))
    )


def test_another_partys_submission_cannot_be_replayed(
    handler: PartyHandler, context: Context, study: Study, parties: list[PartyUnderTest]
) -> None:
    open_moments(context, study, parties)
    refusal(Code.CHECK_FAILED, lambda: hand_in(handler, "harbour", *stored_answer(parties[0], "moments")))
    assert context.store.submitters(study.digest(), "moments") == set()


def test_altered_submissions_are_refused_and_not_stored(
    handler: PartyHandler, context: Context, study: Study, parties: list[PartyUnderTest]
) -> None:
    open_moments(context, study, parties)
    submission, payload = stored_answer(parties[0], "moments")
    flipped = payload[:-1] + bytes([payload[-1] ^ 1])
    for header, body in (
        (submission, flipped),
        (submission, payload[:-1]),
        (replace(submission, digest=digest_of(flipped)), flipped),
        (replace(submission, account_signature=bytes(64)), payload),
        (replace(submission, signature=bytes(64)), payload),
    ):
        refusal(Code.CHECK_FAILED, lambda h=header, b=body: hand_in(handler, "north", h, b))
    assert context.store.submitters(study.digest(), "moments") == set()
    hand_in(handler, "north", submission, payload)


def test_a_second_answer_of_the_same_party_is_refused(
    handler: PartyHandler, context: Context, study: Study, parties: list[PartyUnderTest]
) -> None:
    """Check 5: even one that is sound and signed."""
    open_moments(context, study, parties)
    submission, payload = stored_answer(parties[0], "moments")
    hand_in(handler, "north", submission, payload)
    size = paillier_key().public.ciphertext_bytes
    assert len(payload) > 2 * size
    swapped = payload[size : 2 * size] + payload[:size] + payload[2 * size :]
    asked = handler.open_round("north", submission)
    second = replace(submission, digest=digest_of(swapped))
    signed = second.signed_by(identity_of("north"), "north", CURATOR_KEY, handler._steps_so_far("north", asked))
    assert "another answer stored" in refusal(Code.CONFLICT, lambda: hand_in(handler, "north", signed, swapped))
    assert list(context.store.payloads(study.digest(), "moments", ["north"])) == [payload]


def test_a_round_must_be_open(
    handler: PartyHandler, context: Context, study: Study, parties: list[PartyUnderTest]
) -> None:
    submission, payload = stored_answer(parties[0], "moments")
    refusal(Code.NOT_READY, lambda: hand_in(handler, "north", submission, payload))
    open_moments(context, study, parties)
    unknown = replace(submission, label="more")
    refusal(Code.NOT_READY, lambda: hand_in(handler, "north", unknown, payload))
    early = replace(submission, label="rows").signed_by(identity_of("north"), "north", CURATOR_KEY, [])
    refusal(Code.NOT_FOUND, lambda: hand_in(handler, "north", early, payload))


# Declines


def test_not_approved_is_noted_and_may_change(
    handler: PartyHandler, context: Context, study: Study, parties: list[PartyUnderTest]
) -> None:
    handler.decline(Notice("north", study.digest(), b"", b""), DeclineReason.NOT_APPROVED)
    assert context.store.said_not_approved(study.digest(), "north")
    assert context.store.study(study.digest()).outcome is None
    assert kinds(handler, "north") == ["enrol"]
    enrol_all(handler, study, parties)


def test_any_other_decline_ends_the_study_and_says_who(handler: PartyHandler, context: Context, study: Study) -> None:
    revoked, failed = DeclineReason.REVOKED, DeclineReason.CHECK_FAILED
    for notice in (
        declined("north", study, failed, signer="valley"),
        replace(declined("north", study, failed), signature=b""),
        declined("north", study, revoked),
    ):
        refusal(Code.CHECK_FAILED, lambda notice=notice: handler.decline(notice, failed))
    assert context.store.study(study.digest()).outcome is None
    handler.decline(declined("north", study, revoked), revoked)
    handler.decline(declined("valley", study, failed), failed)
    record = context.store.study(study.digest())
    assert (record.outcome, record.reason) == (State.ABORTED, "north declined: its operator revoked the approval.")
    assert kinds(handler, "harbour") == ["aborted"]


def test_a_published_study_stays_published(handler: PartyHandler, context: Context, study: Study) -> None:
    context.store.end_study(study.digest(), State.PUBLISHED)
    handler.decline(declined("north", study, DeclineReason.REVOKED), DeclineReason.REVOKED)
    assert context.store.study(study.digest()).outcome is State.PUBLISHED


# Ends


def test_an_end_is_acknowledged_after_it_and_by_the_identity_on_the_roster(
    handler: PartyHandler, context: Context, study: Study
) -> None:
    own = acknowledged("north", study, "aborted")
    assert "has not ended" in refusal(Code.NOT_READY, lambda: handler.acknowledge(own))
    context.store.end_study(study.digest(), State.ABORTED, "why")
    assert kinds(handler, "north") == ["aborted"]
    for notice in (
        acknowledged("north", study, "aborted", signer="valley"),
        acknowledged("north", study, "published"),
        replace(own, signature=b""),
    ):
        refusal(Code.CHECK_FAILED, lambda notice=notice: handler.acknowledge(notice))
        assert kinds(handler, "north") == ["aborted"]
    handler.acknowledge(own)
    handler.acknowledge(own)
    assert kinds(handler, "north", "valley") == ["", "aborted"]


# Heads of ledgers


def make_head(signer: str, sequence: int, ledger: bytes = b"l" * 32) -> SeenHead:
    statement = Head(sequence, b"h" * 32, ledger).statement()
    return SeenHead(ledger, sequence, b"h" * 32, identity_of(signer).sign("head", statement))


def test_heads_are_kept_only_if_a_pinned_identity_signed_them(
    handler: PartyHandler, context: Context, study: Study
) -> None:
    key, ledger = identity_of("north").public_key, b"l" * 32
    sound = make_head("north", 9)
    for party, signer, head in (
        ("north", "ghost", make_head("ghost", 9)),
        ("north", "harbour", make_head("harbour", 9)),
        ("harbour", "north", sound),
        ("north", "north", make_head("ghost", 9)),
        ("north", "north", replace(sound, sequence=10)),
        ("north", "north", replace(sound, hash=bytes(32))),
        ("north", "north", replace(sound, ledger=bytes(32))),
        ("north", "north", make_head("north", 0)),
        ("north", "north", replace(sound, sequence=2**64 - 1)),
        ("north", "north", make_head("north", 9, b"l" * 33)),
        ("north", "north", SeenHead(b"", 0, b"", b"")),
    ):
        assert handler.see(party, identity_of(signer).public_key, head) == ""
        for identity in (key, identity_of("ghost").public_key, identity_of("harbour").public_key):
            assert context.store.highest_head(identity, ledger) is None
    assert context.sightings == {"north": 1_000, "harbour": 1_000}


def test_the_highest_head_of_each_ledger_stays(handler: PartyHandler, context: Context, study: Study) -> None:
    key = identity_of("north").public_key
    for head in (make_head("north", 4), make_head("north", 3), make_head("north", 1, b"m" * 32)):
        assert handler.see("north", key, head) == identity_of("north").fingerprint
    assert context.store.highest_head(key, b"l" * 32) == make_head("north", 4)
    assert context.store.highest_head(key, b"m" * 32) == make_head("north", 1, b"m" * 32)


def test_the_highest_head_is_told_to_the_identity_that_signs_and_to_nobody_else(
    handler: PartyHandler, study: Study
) -> None:
    key, ghost = identity_of("north").public_key, identity_of("ghost").public_key
    now = make_head("north", 4)

    def told(party: str, identity: bytes, head: SeenHead) -> SeenHead | None:
        return handler.greet(party, identity, head, ()).highest

    assert told("north", key, now) is None
    assert told("north", key, make_head("north", 2)) == now
    assert told("harbour", key, make_head("north", 2)) is None, "the certificate is another's"
    assert told("north", key, replace(make_head("north", 2), signature=bytes(64))) is None
    assert told("north", key, SeenHead(b"l" * 32, 0, b"", b"")) is None, "the certificate alone"
    assert told("north", ghost, make_head("ghost", 2)) is None


def test_whoever_has_answered_is_here_again_when_it_asks_what_is_next(
    handler: PartyHandler, context: Context, study: Study, parties: list[PartyUnderTest]
) -> None:
    """One that dies after its answer would block the next sum for good."""
    open_moments(context, study, parties)
    signer = identity_of("north").fingerprint
    context.see("north")
    handler.moves("north", signer, set())
    assert context.is_here("north", study.digest(), 60)
    hand_in(handler, "north", *stored_answer(parties[0], "moments"))
    context.see("north")
    assert not context.is_here("north", study.digest(), 60)
    handler.moves("north", signer, set())
    assert context.is_here("north", study.digest(), 60)
    handler.leave("north")
    assert not context.is_here("north", study.digest(), 60), "its poll was cut off"


def test_whoever_only_greets_is_not_here_for_a_sum(handler: PartyHandler, context: Context, study: Study) -> None:
    """A daemon whose ledger is behind greets and ends; a sum that was opened with it would wait for ever."""
    key, head = identity_of("north").public_key, make_head("north", 4)
    handler.greet("north", key, head, ())
    assert not context.is_here("north", study.digest(), 60)
    handler.see("north", key, head)
    assert context.is_here("north", study.digest(), 60)
