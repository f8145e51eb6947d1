"""A party's checks before it answers: each of the eight fails on its own tampering, and then nothing is charged."""

import json
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from synod.common.crypto.canonical import canonical_bytes
from synod.common.crypto.identity import verify
from synod.common.crypto.paillier import PublicKey
from synod.common.models.gaussian import GRID
from synod.common.protocol.envelope import sign_document
from synod.common.protocol.queries.marginals import LocalMarginals, SumMarginals
from synod.common.protocol.queries.moments import SumMoments
from synod.common.protocol.queries.parsing import parse_query
from synod.common.protocol.queries.rows import Synthesize, share_rows
from synod.common.protocol.signed_query import query_statement, sign_query
from synod.common.protocol.submission import AnsweredStep, Submission, account_statement, digest_of
from synod.common.protocol.transcript import Enrolment, Transcript
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.study import Study
from synod.party.account import ApprovalState
from synod.party.rounds import next_step, open_approval
from synod.v1 import query_pb2 as pb
from tests.support.keys import identity_of, paillier_key
from tests.support.parties import MOMENTS, PartyUnderTest, make_transcript, open_parties, open_party, seal, sign_asked
from tests.support.studies import draw_columns, make_model, make_study


@pytest.fixture
def study() -> Study:
    return make_study()


@pytest.fixture
def parties(study: Study, tmp_path: Path) -> list[PartyUnderTest]:
    return open_parties(tmp_path, study)


@pytest.fixture
def transcript(study: Study, parties: list[PartyUnderTest]) -> Transcript:
    return make_transcript(study, parties)


def refusal(party: PartyUnderTest, document: bytes, query: pb.Query = MOMENTS, label: str = "moments") -> SynodError:
    before = party.ledger.entries()
    with pytest.raises(SynodError) as caught:
        party.check(document, query, label)
    assert party.ledger.entries() == before
    return caught.value


def rows_query(study: Study) -> pb.Query:
    return Synthesize(make_model(study), share_rows(study)).to_proto()


def test_a_sound_round_passes(study: Study, parties: list[PartyUnderTest], transcript: Transcript) -> None:
    asked = parties[1].check(seal(transcript))
    assert (asked.step.label, asked.index, asked.transcript_hash) == ("moments", 1, transcript.digest(study))


# 1. signed by the pinned curator


def test_1_another_curator(parties: list[PartyUnderTest], transcript: Transcript) -> None:
    for named, signer, sentence in (
        ("curator", "impostor", "not signed by the curator that it names"),
        ("impostor", "curator", "not signed by the curator that it names"),
        ("impostor", "impostor", "not from the curator that `curator` pins"),
    ):
        error = refusal(parties[0], seal(replace(transcript, curator=identity_of(named).public_key), signer=signer))
        assert sentence in str(error)
        assert error.code is Code.CHECK_FAILED


@pytest.mark.parametrize("signature", ["", "00" * 64])
def test_1_no_signature(parties: list[PartyUnderTest], transcript: Transcript, signature: str) -> None:
    assert "signature on the transcript is not valid" in str(refusal(parties[0], seal(transcript, signature=signature)))


def test_1_a_signature_of_another_context(parties: list[PartyUnderTest], transcript: Transcript) -> None:
    signature = sign_document("manifest", transcript.to_json(), identity_of("curator"))["signature"]
    assert "signature on the transcript is not valid" in str(refusal(parties[0], seal(transcript, signature=signature)))


def test_1_altered_after_signing(parties: list[PartyUnderTest], transcript: Transcript) -> None:
    altered: Any = PublicKey(transcript.key.n, transcript.key.h_s + 1).to_json()
    assert "signature on the transcript is not valid" in str(refusal(parties[0], seal(transcript, key=altered)))


MALFORMED: dict[str, bytes] = {
    "no JSON": b"{",
    "no text": b"\xff\xfe",
    "a list": b"[]",
    "a number": b"7",
    "empty": b"{}",
    "too deep": b"[" * 100_000,
    "no signer": b'{"signature":"00","study":"00"}',
    "no signature": b'{"signer":"00","study":"00"}',
    "no hex": b'{"signer":"xyz","signature":"00","study":"00"}',
    "numbers for hex": b'{"signer":1,"signature":2,"study":"00"}',
}


@pytest.mark.parametrize("document", MALFORMED.values(), ids=MALFORMED.keys())
def test_1_malformed_envelopes(parties: list[PartyUnderTest], document: bytes) -> None:
    assert refusal(parties[0], document).code is Code.CHECK_FAILED


@pytest.mark.parametrize(
    "change",
    [
        {"protocol": "synod/v2"},
        {"enrolments": 7},
        {"enrolments": [7]},
        {"key": 5},
        {"key": ""},
        {"key": {"n": 5, "h_s": 7}},
        {"key": {"n": "", "h_s": ""}},
        {"key": {"n": "05", "h_s": "7"}},
        {"key": {"n": "5", "h_s": "7", "more": "1"}},
        {"study": "zz"},
        {"curator": "zz"},
        {"curator": 5},
    ],
    ids=str,
)
def test_1_malformed_transcripts(parties: list[PartyUnderTest], transcript: Transcript, change: dict[str, Any]) -> None:
    document = sign_document("transcript", {**transcript.to_json(), **change}, identity_of("curator"))
    error = refusal(parties[0], canonical_bytes(document))
    assert error.code is Code.CHECK_FAILED
    assert "malformed" in str(error) or "another protocol version" in str(error)


def test_1_a_transcript_with_a_number_that_cannot_be_signed(
    parties: list[PartyUnderTest], transcript: Transcript
) -> None:
    document = json.loads(seal(transcript))
    document["weight"] = 0.5
    assert refusal(parties[0], json.dumps(document).encode()).code is Code.CHECK_FAILED


# 2. of the approved study and roster


def test_2_another_study(study: Study, parties: list[PartyUnderTest], transcript: Transcript) -> None:
    other = replace(transcript, study_hash=make_study(name="another").digest())
    assert "another study" in str(refusal(parties[0], seal(other)))


Tampering = Callable[[tuple[Enrolment, ...]], tuple[Enrolment, ...]]
ROSTERS: dict[str, Tampering] = {
    "a party less": lambda e: e[:2],
    "a party more": lambda e: (*e, replace(e[2], name="ghost")),
    "another order": lambda e: (e[0], e[2], e[1]),
    "one twice": lambda e: (e[0], e[1], e[1]),
    "an invented party": lambda e: (e[0], e[1], replace(e[2], name="ghost")),
}


@pytest.mark.parametrize("tampering", ROSTERS.values(), ids=ROSTERS.keys())
def test_2_another_roster(parties: list[PartyUnderTest], transcript: Transcript, tampering: Tampering) -> None:
    changed = replace(transcript, enrolments=tampering(transcript.enrolments))
    assert "roster" in str(refusal(parties[0], seal(changed)))


def forge(transcript: Transcript, study: Study, signer: str, **changes: Any) -> Transcript:
    """The last party's enrolment with other contents, signed by `signer`."""
    enrolment = replace(transcript.enrolments[2], **changes).signed_by(identity_of(signer), study.digest())
    return replace(transcript, enrolments=(*transcript.enrolments[:2], enrolment))


def test_2_a_party_with_the_curators_keys(study: Study, parties: list[PartyUnderTest], transcript: Transcript) -> None:
    """Whoever has the transport authority cannot put a key of its own beside a roster's name."""
    own_key = forge(transcript, study, "impostor", identity=identity_of("impostor").public_key, exchange=b"\1" * 32)
    assert "identity key of valley" in str(refusal(parties[0], seal(own_key)))
    unsigned = forge(transcript, study, "impostor", exchange=b"\1" * 32)
    assert "signature of valley" in str(refusal(parties[0], seal(unsigned)))
    other_study = replace(
        transcript,
        enrolments=(
            *transcript.enrolments[:2],
            replace(transcript.enrolments[2], nonce=b"\1" * 32).signed_by(identity_of("valley"), bytes(32)),
        ),
    )
    assert "signature of valley" in str(refusal(parties[0], seal(other_study)))


def test_2_keys_of_the_wrong_size_or_twice(study: Study, parties: list[PartyUnderTest], transcript: Transcript) -> None:
    short = forge(transcript, study, "valley", nonce=b"short")
    assert "wrong size" in str(refusal(parties[0], seal(short)))
    twice = forge(transcript, study, "valley", exchange=transcript.enrolments[1].exchange)
    assert "same exchange key" in str(refusal(parties[0], seal(twice)))


# 3. this party's own entry


def test_3_own_keys_must_be_the_enrolled_ones(study: Study, parties: list[PartyUnderTest], tmp_path: Path) -> None:
    """Signed by this very party, but from a ledger with another table."""
    stale = open_party(tmp_path / "stale", study, "north", draw_columns(study, "north", seed=5))
    transcript = make_transcript(study, [stale, *parties[1:]])
    assert "other keys than this party enrolled with" in str(refusal(parties[0], seal(transcript)))
    parties[1].check(seal(transcript))


# 4. the Paillier key


def test_4_a_weak_key(study: Study, parties: list[PartyUnderTest], transcript: Transcript) -> None:
    weak = paillier_key(3, bits=1024).public
    error = refusal(parties[0], seal(replace(transcript, key=weak)))
    assert "2048 bits" in str(error)
    assert error.code is Code.CHECK_FAILED


KEYS: dict[str, Callable[[int, int], tuple[int, int]]] = {
    "even": lambda n, h: (n - 1, h),
    "negative": lambda n, h: (-n, h),
    "h is 1": lambda n, h: (n, 1),
    "h is 0": lambda n, h: (n, 0),
    "h too great": lambda n, h: (n, n * n),
    "h shares a factor": lambda n, h: (n, n * 7),
}


@pytest.mark.parametrize("change", KEYS.values(), ids=KEYS.keys())
def test_4_an_unsound_key(
    parties: list[PartyUnderTest], transcript: Transcript, change: Callable[..., tuple[int, int]]
) -> None:
    modulus, generator = change(transcript.key.n, transcript.key.h_s)
    error = refusal(parties[0], seal(replace(transcript, key=PublicKey(modulus, generator))))
    assert error.code is Code.CHECK_FAILED


# 5. one transcript for a study


def test_5_a_second_transcript(study: Study, parties: list[PartyUnderTest], transcript: Transcript) -> None:
    parties[0].answer(seal(transcript))
    second = seal(make_transcript(study, parties, paillier_key(2)))
    query = rows_query(study)
    assert "another transcript" in str(refusal(parties[0], second, query, "rows"))
    assert "another transcript" in str(refusal(parties[0], second))
    parties[0].check(seal(transcript), query, "rows")


# 6. the next planned step


@pytest.mark.parametrize("label", ["rows", "moments2", "Moments", "", "moments\0"])
def test_6_an_unplanned_label(study: Study, parties: list[PartyUnderTest], transcript: Transcript, label: str) -> None:
    error = refusal(parties[0], seal(transcript), label=label)
    assert error.code is Code.REFUSED
    assert "not the next step" in str(error)


def test_6_steps_come_in_order_and_once(study: Study, parties: list[PartyUnderTest], transcript: Transcript) -> None:
    party, document = parties[0], seal(transcript)
    party.answer(document)
    assert "not the next step" in str(refusal(party, document))
    party.answer(document, rows_query(study), "rows")
    for label, query in (("moments", MOMENTS), ("rows", rows_query(study))):
        assert "not the next step" in str(refusal(party, document, query, label))
    charges = [(entry["label"], entry["cost"]) for entry in party.ledger.entries() if entry["kind"] == "charged"]
    assert charges == [("moments", "epsilon:1"), ("rows", "epsilon:0")]


# 7. the planned query

MORE = b"\x98\x06\x01"  # field 99 of any message: the number 1
QUERIES: dict[str, pb.Query] = {
    "no kind": pb.Query(),
    "an unknown kind": pb.Query.FromString(b"\x9a\x06\x00"),
    "an unknown kind beside it": pb.Query.FromString(MOMENTS.SerializeToString() + b"\x9a\x06\x00"),
    "another kind": pb.Query(synthesize=pb.Synthesize()),
    "a sum of another kind": SumMarginals(((0,),)).to_proto(),
    "counts of its own": LocalMarginals(((0,),)).to_proto(),
    "a field more": pb.Query(sum_moments=pb.SumMoments.FromString(MORE)),
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES.keys())
def test_7_an_unplanned_query(parties: list[PartyUnderTest], transcript: Transcript, query: pb.Query) -> None:
    error = refusal(parties[0], seal(transcript), query)
    assert error.code in (Code.REFUSED, Code.INVALID)


def test_7_another_spelling_of_the_same_query(parties: list[PartyUnderTest], transcript: Transcript) -> None:
    """Q is a hash over what was parsed, so that there is no second Q for the same question."""
    once, rows = MOMENTS.SerializeToString(), pb.Query(synthesize=pb.Synthesize()).SerializeToString()
    planned = parties[0].check(seal(transcript))
    for spelled in (once + once, rows + once):
        asked = parties[0].check(seal(transcript), pb.Query.FromString(spelled))
        assert (asked.query, asked.query_hash) == (planned.query, planned.query_hash)


def test_7_a_step_of_the_other_kind(study: Study, parties: list[PartyUnderTest], transcript: Transcript) -> None:
    """A planned, free label does not carry a query that reads rows."""
    document = seal(transcript)
    query = rows_query(study)
    assert "not of the kind" in str(refusal(parties[0], document, query))
    parties[0].answer(document)
    assert "not of the kind" in str(refusal(parties[0], document, MOMENTS, "rows"))


Change = Callable[[pb.Synthesize], object]


def change_model(study: Study, change: Change) -> pb.Query:
    query = rows_query(study)
    change(query.synthesize)
    return query


HALF = b"\x11" + struct.pack("<d", 0.5)  # a double where `noise` is
MODELS: dict[str, Change] = {
    "another row count": lambda q: q.MergeFrom(pb.Synthesize(rows=[0])),
    "other shares": lambda q: q.rows.__setitem__(slice(None), [150, 0, 0]),
    "no model": lambda q: q.ClearField("model"),
    "no loadings": lambda q: q.model.ClearField("loadings"),
    "too few columns": lambda q: q.model.shift.pop(),
    "too many columns": lambda q: q.model.spread.append(7),
    "negative noise": lambda q: setattr(q.model, "noise", -1),
    "a fraction": lambda q: q.model.MergeFromString(HALF),
    "ragged": lambda q: q.model.loadings[0].values.append(1),
    "the largest integer": lambda q: q.model.shift.__setitem__(0, 2**63 - 1),
    "beyond the canonical form": lambda q: q.model.shift.__setitem__(0, 2**60),
    "a field more": lambda q: q.model.MergeFromString(MORE),
    "a field more in a row": lambda q: q.model.loadings[0].MergeFromString(MORE),
}


@pytest.mark.parametrize("change", MODELS.values(), ids=MODELS.keys())
def test_7_a_model_that_is_none(
    study: Study, parties: list[PartyUnderTest], transcript: Transcript, change: Change
) -> None:
    document = seal(transcript)
    parties[0].answer(document)
    error = refusal(parties[0], document, change_model(study, change), "rows")
    assert error.code in (Code.REFUSED, Code.INVALID)
    assert GRID == 10**9


# 8. signed by the curator


def test_8_a_query_that_the_curator_did_not_sign(
    study: Study, parties: list[PartyUnderTest], transcript: Transcript
) -> None:
    party, document = parties[0], seal(transcript)
    other = seal(make_transcript(study, parties, paillier_key(2)))
    rows = parse_query(rows_query(study), study)
    moments = SumMoments()
    signatures = {
        "none": b"",
        "zeros": bytes(64),
        "a party's": sign_asked(study, document, moments, "moments", signer="north"),
        "of another transcript": sign_asked(study, other, moments, "moments"),
        "of another round and query": sign_asked(study, document, rows, "rows"),
        "of another label": sign_query(
            identity_of("curator"), transcript.digest(study), "rows", party.check(document).query_hash
        ),
        "of another context": identity_of("curator").sign(
            "answer", query_statement(transcript.digest(study), "moments", party.check(document).query_hash)
        ),
    }
    before = party.ledger.entries()
    for name, signature in signatures.items():
        with pytest.raises(SynodError, match="signature of the curator on query") as caught:
            party.check(document, signature=signature)
        assert caught.value.code is Code.CHECK_FAILED, name
    assert party.ledger.entries() == before
    party.check(document, signature=sign_asked(study, document, moments, "moments"))


# What is stored


def test_an_answer_is_signed_bound_and_stored_with_its_charge(
    study: Study, parties: list[PartyUnderTest], transcript: Transcript
) -> None:
    party = parties[1]
    asked = party.check(seal(transcript))
    party.answer(seal(transcript), now=77)
    stored = party.ledger.answer(study.digest(), "moments")
    assert stored is not None
    submission = Submission.from_json(stored.header)
    assert submission.digest == digest_of(stored.payload)
    assert submission.length == len(stored.payload)
    assert (submission.transcript, submission.query) == (asked.transcript_hash, asked.query_hash)
    assert submission.key_id.hex() == paillier_key().public.key_id
    key = identity_of("harbour").public_key
    assert verify(key, "answer", submission.statement("harbour"), submission.signature)
    steps = [AnsweredStep("moments", asked.query_hash.hex(), study.budget)]
    statement = account_statement("harbour", identity_of("curator").public_key, asked.transcript_hash, steps)
    assert verify(key, "account", statement, submission.account_signature)
    entry = party.ledger.entries()[-1]
    assert (entry["kind"], entry["cost"], entry["time"]) == ("charged", "epsilon:1", 77)
    assert entry["transcript"] == asked.transcript_hash.hex()
    assert entry["answer"] == submission.digest.hex()


def test_a_clone_gives_the_same_answer(
    study: Study, parties: list[PartyUnderTest], transcript: Transcript, tmp_path: Path
) -> None:
    """A restored ledger cannot be asked for fresh noise."""
    party = parties[0]
    before = party.ledger.entries()
    party.answer(seal(transcript))
    stored = party.ledger.answer(study.digest(), "moments")
    connection = party.ledger._connection
    connection.execute("DELETE FROM entries WHERE sequence > 2")
    connection.execute("DELETE FROM answers")
    assert party.ledger.entries() == before
    party.answer(seal(transcript))
    assert party.ledger.answer(study.digest(), "moments") == stored


def test_an_ended_approval_answers_nothing(study: Study, parties: list[PartyUnderTest]) -> None:
    ledger = parties[0].ledger
    with pytest.raises(SynodError) as caught:
        open_approval(ledger, bytes(32))
    assert caught.value.code is Code.NOT_READY
    ledger.end_study(study.digest(), ApprovalState.REVOKED, now=4)
    with pytest.raises(SynodError, match="revoked") as caught:
        open_approval(ledger, study.digest())
    assert caught.value.code is Code.REFUSED


def test_the_plan_is_this_partys_own(study: Study, parties: list[PartyUnderTest]) -> None:
    approval = open_approval(parties[0].ledger, study.digest())
    assert next_step(parties[0].responder, approval, study, "moments").cost == study.budget
