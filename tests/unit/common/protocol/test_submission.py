"""What a party signs: every field of an answer, and all of its account."""

import hashlib
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

import pytest

from synod.common.crypto.canonical import canonical_bytes
from synod.common.crypto.identity import Identity, fingerprint, verify
from synod.common.privacy.cost import FREE, Cost
from synod.common.protocol.submission import AnsweredStep, Submission, account_statement, digest_of
from synod.common.runtime.errors import Code, SynodError

IDENTITY = Identity.generate()
CURATOR = Identity.generate().public_key
STEPS = [AnsweredStep("moments", "aa" * 32, Cost(Fraction(4, 5))), AnsweredStep("rows", "bb" * 32, FREE)]
SUBMISSION = Submission(
    study_hash=bytes([1]) * 32,
    transcript=bytes([2]) * 32,
    label="rows",
    query=bytes([3]) * 32,
    key_id=bytes([4]) * 8,
    length=5,
    digest=digest_of(b"hello"),
).signed_by(IDENTITY, "north", CURATOR, STEPS)
SIGNED = [field.name for field in fields(Submission) if not field.name.endswith("signature")]


def is_valid(submission: Submission, party: str = "north") -> bool:
    return verify(IDENTITY.public_key, "answer", submission.statement(party), submission.signature)


def is_account_valid(party: str, transcript: bytes, steps: list[AnsweredStep], curator: bytes = CURATOR) -> bool:
    statement = account_statement(party, curator, transcript, steps)
    return verify(IDENTITY.public_key, "account", statement, SUBMISSION.account_signature)


def test_both_signatures_hold() -> None:
    assert is_valid(SUBMISSION)
    assert is_account_valid("north", SUBMISSION.transcript, STEPS)


def test_neither_signature_stands_for_the_other() -> None:
    assert not is_valid(replace(SUBMISSION, signature=SUBMISSION.account_signature))
    statement = account_statement("north", CURATOR, SUBMISSION.transcript, STEPS)
    assert not verify(IDENTITY.public_key, "account", statement, SUBMISSION.signature)


@pytest.mark.parametrize("field", SIGNED)
def test_every_field_is_signed(field: str) -> None:
    old = getattr(SUBMISSION, field)
    new: dict[type, Any] = {bytes: bytes([99]) * 32, str: "moments", int: 6}
    assert not is_valid(replace(SUBMISSION, **{field: new[type(old)]}))


def test_the_party_is_signed() -> None:
    assert not is_valid(SUBMISSION, "south")


@pytest.mark.parametrize(
    ("party", "transcript", "steps"),
    [
        ("south", SUBMISSION.transcript, STEPS),
        ("north", bytes(32), STEPS),
        ("north", SUBMISSION.transcript, STEPS[:1]),
        ("north", SUBMISSION.transcript, STEPS[::-1]),
        ("north", SUBMISSION.transcript, [*STEPS, STEPS[1]]),
        ("north", SUBMISSION.transcript, [replace(STEPS[0], label="views"), STEPS[1]]),
        ("north", SUBMISSION.transcript, [replace(STEPS[0], query="cc" * 32), STEPS[1]]),
        ("north", SUBMISSION.transcript, [replace(STEPS[0], cost=Cost(Fraction(2, 5))), STEPS[1]]),
        ("north", SUBMISSION.transcript, [replace(STEPS[0], cost=FREE), replace(STEPS[1], cost=STEPS[0].cost)]),
    ],
)
def test_every_part_of_the_account_is_signed(party: str, transcript: bytes, steps: list[AnsweredStep]) -> None:
    assert not is_account_valid(party, transcript, steps)


def test_the_curators_fingerprint_is_in_the_account() -> None:
    assert not is_account_valid("north", SUBMISSION.transcript, STEPS, IDENTITY.public_key)
    statement = account_statement("north", CURATOR, SUBMISSION.transcript, STEPS)
    assert isinstance(statement, dict)
    assert statement["curator"] == fingerprint(CURATOR)


def test_the_spend_is_the_sum_of_the_steps() -> None:
    statement = account_statement("north", CURATOR, bytes(32), [*STEPS, replace(STEPS[0], cost=Cost(Fraction(1, 3)))])
    assert isinstance(statement, dict)
    assert statement["spent"] == "epsilon:17/15"


def test_a_stored_header_reads_back() -> None:
    assert Submission.from_json(SUBMISSION.to_json()) == SUBMISSION
    assert canonical_bytes(SUBMISSION.to_json())


def test_digest_is_sha256() -> None:
    assert digest_of(b"hello") == hashlib.sha256(b"hello").digest()


@pytest.mark.parametrize(
    "change",
    [
        {"label": 5},
        {"length": "5"},
        {"length": True},
        {"query": 5},
        {"query": "xy"},
        {"more": "ab"},
        {"study_hash": None},
    ],
)
def test_a_stored_header_that_is_none_is_a_failed_check(change: dict[str, Any]) -> None:
    with pytest.raises(SynodError, match="an answer's header is malformed") as caught:
        Submission.from_json({**SUBMISSION.to_json(), **change})
    assert caught.value.code is Code.CHECK_FAILED
