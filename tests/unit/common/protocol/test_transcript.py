"""The transcript: every field is in T, and every tampering is found."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from synod.common.crypto.canonical import canonical_hash
from synod.common.crypto.identity import Identity
from synod.common.crypto.paillier import PublicKey
from synod.common.protocol.envelope import sign_document
from synod.common.protocol.heads import MOST_OPEN_HEADS, Head, StatedHeads
from synod.common.protocol.transcript import (
    PROTOCOL,
    Enrolment,
    Transcript,
    check_enrolment,
    check_transcript,
    open_transcript,
    parse_transcript,
    read_transcript,
    seal_transcript,
)
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.study import Study
from tests.support.keys import identity_of
from tests.support.studies import NAMES, make_study

IDENTITIES = [identity_of(name) for name in NAMES]
ROWS = (1, 2, 4)
REMOVED = object()
STUDY: Study = make_study(rows=ROWS)
STUDY_HASH = STUDY.digest()
KEY = PublicKey(2**2047 + 9, 3**1200)


def stated_heads(index: int) -> StatedHeads:
    ledger = bytes([index + 100]) * 32
    return StatedHeads(Head(7 + index, b"h" * 32, ledger), (Head(2, b"g" * 32, ledger), Head(5, b"f" * 32, ledger)))


def enrol(index: int, *, study_hash: bytes = STUDY_HASH, identity: Identity | None = None) -> Enrolment:
    signer = identity or IDENTITIES[index]
    exchange = X25519PrivateKey.from_private_bytes(bytes([index + 1]) * 32).public_key().public_bytes_raw()
    nonce, heads = bytes([index]) * 32, stated_heads(index)
    return Enrolment(NAMES[index], signer.public_key, exchange, nonce, heads).signed_by(signer, study_hash)


CURATOR = identity_of("curator")
TRANSCRIPT = Transcript(STUDY_HASH, KEY, CURATOR.public_key, tuple(enrol(i) for i in range(3)))


def resigned(index: int, **changes: Any) -> Enrolment:
    altered = replace(TRANSCRIPT.enrolments[index], **changes)
    return altered.signed_by(IDENTITIES[index], STUDY_HASH)


def with_enrolment(index: int, enrolment: Enrolment) -> Transcript:
    enrolments = list(TRANSCRIPT.enrolments)
    enrolments[index] = enrolment
    return replace(TRANSCRIPT, enrolments=tuple(enrolments))


def failure(action: Callable[[], object]) -> str:
    with pytest.raises(SynodError) as caught:
        action()
    assert caught.value.code is Code.CHECK_FAILED
    return caught.value.sentence


def test_a_sound_transcript_passes_and_travels() -> None:
    check_transcript(TRANSCRIPT, STUDY, STUDY_HASH)
    assert parse_transcript(TRANSCRIPT.to_json()) == TRANSCRIPT


def test_t_is_the_hash_that_the_protocol_states() -> None:
    entries = [
        [
            e.name, e.identity.hex(), e.exchange.hex(), 2**i, e.nonce.hex(),
            {
                "sequence": 7 + i, "hash": (b"h" * 32).hex(), "ledger": (bytes([i + 100]) * 32).hex(),
                "open": [[2, (b"g" * 32).hex()], [5, (b"f" * 32).hex()]],
            },
        ]
        for i, e in enumerate(TRANSCRIPT.enrolments)
    ]  # fmt: skip
    key = {"n": f"{2**2047 + 9:x}", "h_s": f"{3**1200:x}"}
    assert TRANSCRIPT.digest(STUDY) == canonical_hash(
        ["synod/v1", STUDY_HASH.hex(), key, CURATOR.public_key.hex(), entries]
    )


@pytest.mark.parametrize("index", range(3))
@pytest.mark.parametrize("field", ["name", "identity", "exchange", "nonce"])
def test_every_field_of_every_enrolment_changes_t(index: int, field: str) -> None:
    change: dict[str, Any] = {field: "other" if field == "name" else bytes([200]) * 32}
    altered = with_enrolment(index, replace(TRANSCRIPT.enrolments[index], **change))
    assert altered.digest(STUDY) != TRANSCRIPT.digest(STUDY)


@pytest.mark.parametrize("index", range(3))
def test_every_part_of_the_stated_heads_changes_t(index: int) -> None:
    stated = TRANSCRIPT.enrolments[index].heads
    first = stated.open[0]
    altered = [
        *(replace(stated, approved=replace(stated.approved, **change)) for change in HEAD_CHANGES),
        replace(stated, open=stated.open[1:]),
        *(replace(stated, open=(replace(first, **change), *stated.open[1:])) for change in HEAD_CHANGES[:2]),
    ]
    digests = {
        with_enrolment(index, replace(TRANSCRIPT.enrolments[index], heads=heads)).digest(STUDY) for heads in altered
    }
    assert len(digests - {TRANSCRIPT.digest(STUDY)}) == len(altered)


HEAD_CHANGES: list[dict[str, Any]] = [{"sequence": 6}, {"hash": bytes(32)}, {"ledger": bytes(32)}]


def test_every_other_field_changes_t() -> None:
    digests = [
        TRANSCRIPT.digest(STUDY),
        replace(TRANSCRIPT, study_hash=bytes(32)).digest(STUDY),
        replace(TRANSCRIPT, key=PublicKey(KEY.n + 2, KEY.h_s)).digest(STUDY),
        replace(TRANSCRIPT, key=PublicKey(KEY.n, KEY.h_s + 1)).digest(STUDY),
        replace(TRANSCRIPT, key=PublicKey(KEY.h_s, KEY.n)).digest(STUDY),
        replace(TRANSCRIPT, curator=IDENTITIES[0].public_key).digest(STUDY),
        replace(TRANSCRIPT, enrolments=TRANSCRIPT.enrolments[::-1]).digest(STUDY),
        TRANSCRIPT.digest(make_study(rows=(1, 2, 5))),
    ]
    assert len(set(digests)) == len(digests)


def test_t_covers_exactly_the_roster() -> None:
    for enrolments in (TRANSCRIPT.enrolments[:2], (*TRANSCRIPT.enrolments, enrol(0))):
        with pytest.raises(ValueError, match="zip"):
            replace(TRANSCRIPT, enrolments=enrolments).digest(STUDY)


def test_an_envelope_is_signed_by_the_curator_that_it_names() -> None:
    envelope = seal_transcript(TRANSCRIPT, CURATOR)
    assert read_transcript(envelope) == open_transcript(json.loads(envelope)) == TRANSCRIPT
    sentence = "the transcript is not signed by the curator that it names."
    for signer in (IDENTITIES[0], Identity.generate()):
        other = seal_transcript(TRANSCRIPT, signer)
        assert failure(partial(read_transcript, other)) == sentence
        assert failure(partial(open_transcript, json.loads(other))) == sentence
        assert read_transcript(seal_transcript(replace(TRANSCRIPT, curator=signer.public_key), signer))


@pytest.mark.parametrize("change", [{"more": 1}, {"curator": CURATOR.public_key.hex().upper()}, {"study": " 00"}])
def test_an_envelope_holds_the_one_form_of_its_transcript(change: dict[str, Any]) -> None:
    document = sign_document("transcript", {**TRANSCRIPT.to_json(), **change}, CURATOR)
    assert failure(lambda: open_transcript(document)) == "the transcript is not in canonical form."


OWN = stated_heads(1)
UNSOUND = [
    *(replace(OWN, approved=replace(OWN.approved, sequence=sequence)) for sequence in (0, -1, 5)),
    *(replace(OWN, approved=replace(OWN.approved, hash=digest)) for digest in (b"", bytes(31), bytes(33))),
    StatedHeads(replace(OWN.approved, ledger=bytes(33))),
    replace(OWN, open=(replace(OWN.open[0], ledger=bytes(32)),)),
    replace(OWN, open=OWN.open[::-1]),
    StatedHeads(
        Head(1000, bytes(32), OWN.approved.ledger),
        tuple(Head(1 + place, bytes(32), OWN.approved.ledger) for place in range(MOST_OPEN_HEADS + 1)),
    ),
]


def test_enrolments_that_are_not_sound_are_refused() -> None:
    stranger = Identity.generate()
    cases: list[tuple[Enrolment, str]] = [
        (replace(enrol(0), name="east"), "east is not on the roster of care-survey"),
        (enrol(0, identity=stranger), "the identity key of north is not the one on the roster"),
        (replace(enrol(0), name="harbour"), "the identity key of harbour is not the one on the roster"),
        (resigned(1, exchange=bytes(31)), "the enrolment of harbour has keys of the wrong size"),
        (resigned(1, nonce=bytes(33)), "the enrolment of harbour has keys of the wrong size"),
        (resigned(1, nonce=b""), "the enrolment of harbour has keys of the wrong size"),
        *(
            (resigned(1, heads=heads), "the enrolment of harbour states heads that no ledger can have")
            for heads in UNSOUND
        ),
        (replace(enrol(2), heads=enrol(0).heads), "the signature of valley on enrol is not valid"),
        (replace(enrol(2), exchange=enrol(0).exchange), "the signature of valley on enrol is not valid"),
        (replace(enrol(2), nonce=bytes([9]) * 32), "the signature of valley on enrol is not valid"),
        (replace(enrol(2), signature=enrol(1).signature), "the signature of valley on enrol is not valid"),
        (replace(enrol(2), signature=b""), "the signature of valley on enrol is not valid"),
        (enrol(2, study_hash=bytes(32)), "the signature of valley on enrol is not valid"),
    ]
    for enrolment, sentence in cases:
        assert sentence in failure(partial(check_enrolment, enrolment, STUDY, STUDY_HASH))
        index = NAMES.index(enrolment.name) if enrolment.name in NAMES else 0
        assert failure(partial(check_transcript, with_enrolment(index, enrolment), STUDY, STUDY_HASH))


def test_transcripts_that_are_not_of_the_study_are_refused() -> None:
    e = TRANSCRIPT.enrolments
    cases: list[tuple[Transcript, str]] = [
        (replace(TRANSCRIPT, study_hash=bytes(32)), "the transcript is of another study"),
        (replace(TRANSCRIPT, enrolments=e[:2]), "not those of the approved roster"),
        (replace(TRANSCRIPT, enrolments=()), "not those of the approved roster"),
        (replace(TRANSCRIPT, enrolments=(*e, e[0])), "not those of the approved roster"),
        (replace(TRANSCRIPT, enrolments=(e[1], e[0], e[2])), "not those of the approved roster"),
        (replace(TRANSCRIPT, enrolments=(e[0], e[1], e[1])), "not those of the approved roster"),
        (
            with_enrolment(2, resigned(2, exchange=e[0].exchange)),
            "two parties of the transcript have the same exchange",
        ),
        *(
            (replace(TRANSCRIPT, curator=party.public_key), "the curator of the transcript is a party of the roster")
            for party in IDENTITIES
        ),
    ]
    for transcript, sentence in cases:
        assert sentence in failure(partial(check_transcript, transcript, STUDY, STUDY_HASH))


@pytest.mark.parametrize("field", ["protocol", "study", "key", "curator", "enrolments"])
@pytest.mark.parametrize("value", [None, 5, "xyz", [1], {"a": 1}])
def test_malformed_transcripts_are_refused(field: str, value: Any) -> None:
    assert failure(lambda: parse_transcript({**TRANSCRIPT.to_json(), field: value}))


@pytest.mark.parametrize("field", ["protocol", "study", "key", "curator", "enrolments"])
def test_transcripts_without_a_field_are_refused(field: str) -> None:
    whole = TRANSCRIPT.to_json()
    assert "malformed" in failure(lambda: parse_transcript({k: v for k, v in whole.items() if k != field}))


@pytest.mark.parametrize("field", ["n", "h_s"])
@pytest.mark.parametrize("value", [REMOVED, None, 5, "", "xyz", "+3", "0x3", "03", "A", " 3", "3_3", [1], {"a": 1}])
def test_malformed_keys_are_refused(field: str, value: Any) -> None:
    key = {**KEY.to_json(), field: value}
    assert "malformed" in failure(
        lambda: parse_transcript({**TRANSCRIPT.to_json(), "key": {k: v for k, v in key.items() if v is not REMOVED}})
    )


def test_a_key_with_more_than_its_two_numbers_is_refused() -> None:
    key = {**KEY.to_json(), "g": "3"}
    assert "malformed" in failure(lambda: parse_transcript({**TRANSCRIPT.to_json(), "key": key}))


@pytest.mark.parametrize("field", ["name", "identity", "exchange", "nonce", "heads", "signature"])
def test_enrolments_without_a_field_are_refused(field: str) -> None:
    whole: Any = TRANSCRIPT.to_json()
    del whole["enrolments"][1][field]
    assert "malformed" in failure(lambda: parse_transcript(whole))


@pytest.mark.parametrize("data", [None, [], 5, "transcript"])
def test_what_is_no_transcript_is_refused(data: object) -> None:
    assert "malformed" in failure(lambda: parse_transcript(data))


def test_another_protocol_version_says_so() -> None:
    assert PROTOCOL == "synod/v1"
    sentence = failure(lambda: parse_transcript({**TRANSCRIPT.to_json(), "protocol": "synod/v2"}))
    assert "another protocol version" in sentence
