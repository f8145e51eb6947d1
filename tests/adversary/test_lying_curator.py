"""What a party refuses to believe: keys, rosters, enrolments, transcripts and questions of a curator that lies.

A refusal comes before anything is charged. Where the lie would pay, the test shows what it pays with the check off.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gmpy2
import pytest

from synod.common.crypto.canonical import canonical_bytes
from synod.common.crypto.paillier import PublicKey, SecretKey, decrypt_all
from synod.common.privacy.cost import FREE
from synod.common.protocol.envelope import sign_document
from synod.common.protocol.queries.marginals import LocalMarginals, SumMarginals
from synod.common.protocol.queries.rows import Synthesize, share_rows
from synod.common.protocol.transcript import Enrolment, Transcript
from synod.common.runtime.errors import SynodError
from synod.common.study.study import Study
from synod.party import masks
from synod.v1 import query_pb2 as pb
from tests.support.attacks import exact_moments, is_near, read_plaintexts, small_case, small_study
from tests.support.encrypted_sums import layout_of
from tests.support.keys import CURATOR, identity_of, paillier_key, seed_bytes
from tests.support.parties import MOMENTS, PartyInMemory, PartyUnderTest, heads_of, make_transcript, open_party, seal
from tests.support.studies import make_model

SIDE = "side"
UNKNOWN_FIELD = bytes([0xFA, 0x01, 1, 9])  # field 31, which no version knows


@pytest.fixture
def party(tmp_path: Path) -> Iterator[PartyUnderTest]:
    """Party 0 with a ledger of its own; 1 and 2 are in memory."""
    study, members = small_case()
    party = open_party(tmp_path, study, members[0].name, members[0].table)
    yield party
    party.ledger.close()


def others() -> list[PartyInMemory]:
    return small_case()[1][1:]


def truth(party: PartyUnderTest) -> Transcript:
    return make_transcript(party.study, [party, *others()])


def enrol_as(name: str, study: Study, exchange: bytes | None = None) -> Enrolment:
    """An enrolment under a roster name, with a key of the curator's own making."""
    key = exchange or seed_bytes("curator's exchange", name)
    enrolment = Enrolment(name, identity_of(SIDE).public_key, key, seed_bytes("nonce"), heads_of(name, study))
    return enrolment.signed_by(identity_of(SIDE), study.digest())


def test_the_truth_is_answered_and_charged_once(party: PartyUnderTest) -> None:
    envelope = seal(truth(party))
    assert party.answer(envelope) == party.answer(envelope)
    assert str(party.spent()) == "epsilon:1"


def with_enrolments(change: Callable[[tuple[Enrolment, ...], Study], tuple[Enrolment, ...]]) -> Callable[..., bytes]:
    def lie(party: PartyUnderTest) -> bytes:
        transcript = truth(party)
        return seal(replace(transcript, enrolments=change(transcript.enrolments, party.study)))

    return lie


def with_key(change: Callable[[int, int, SecretKey], tuple[int, int]]) -> Callable[[PartyUnderTest], bytes]:
    def lie(party: PartyUnderTest) -> bytes:
        transcript = truth(party)
        n, h_s = change(transcript.key.n, transcript.key.h_s, paillier_key())
        return seal(replace(transcript, key=PublicKey(n, h_s)))

    return lie


def resigned(enrolment: Enrolment, study: Study, **changes: Any) -> Enrolment:
    """What a colluding party signs in its own name."""
    return replace(enrolment, **changes).signed_by(identity_of(enrolment.name), study.digest())


def from_another_study(enrolments: tuple[Enrolment, ...], _: Study) -> tuple[Enrolment, ...]:
    other_study, members = small_case(small_study("survey-2"))
    return (*enrolments[:2], make_transcript(other_study, members).enrolments[2])


LIES: dict[str, tuple[Callable[[PartyUnderTest], bytes], str]] = {
    "an invented party": (with_enrolments(lambda e, s: (*e, enrol_as("ghost", s))), "approved roster"),
    "a party left out": (with_enrolments(lambda e, _: e[:2]), "approved roster"),
    "a party in another's place": (with_enrolments(lambda e, s: (*e[:2], enrol_as(e[2].name, s))), "identity key"),
    "swapped parties": (with_enrolments(lambda e, _: (e[0], e[2], e[1])), "approved roster"),
    "swapped enrolments": (
        with_enrolments(lambda e, _: (e[0], replace(e[2], name=e[1].name), replace(e[1], name=e[2].name))),
        "identity key",
    ),
    "swapped exchange keys": (
        with_enrolments(
            lambda e, _: (e[0], replace(e[1], exchange=e[2].exchange), replace(e[2], exchange=e[1].exchange))
        ),
        "signature of party-1",
    ),
    "an altered nonce": (
        with_enrolments(lambda e, _: (*e[:2], replace(e[2], nonce=bytes(32)))),
        "signature of party-2",
    ),
    "an enrolment for another study": (with_enrolments(from_another_study), "signature of party-2"),
    "a key of its own for this party": (
        with_enrolments(lambda e, s: (resigned(e[0], s, exchange=seed_bytes("x")), *e[1:])),
        "other keys than this party",
    ),
    "one exchange key for two": (
        with_enrolments(lambda e, s: (*e[:2], resigned(e[2], s, exchange=e[1].exchange))),
        "same exchange key",
    ),
    "a point of order one": (
        with_enrolments(lambda e, s: (*e[:2], resigned(e[2], s, exchange=bytes(32)))),
        "usable X25519 key",
    ),
    "a point of order four": (
        with_enrolments(lambda e, s: (*e[:2], resigned(e[2], s, exchange=(1).to_bytes(32, "little")))),
        "usable X25519 key",
    ),
    "an exchange key too short": (
        with_enrolments(lambda e, s: (*e[:2], resigned(e[2], s, exchange=bytes(31)))),
        "wrong size",
    ),
    "an even n": (with_key(lambda n, h, _: (n - 1, h)), "even"),
    "a prime n": (with_key(lambda n, h, _: (int(gmpy2.next_prime(n)), h)), "is prime"),
    "a square n": (with_key(lambda _, __, key: (max(key.p, key.q) ** 2, 2)), "perfect power"),
    "an n with a small factor": (with_key(lambda n, h, _: (n - n % 6 + 3, h)), "factor below"),
    "a short n": (with_key(lambda n, h, _: (n >> 1 | 1, 2)), "2048 bits"),
    "a long n": (with_key(lambda n, h, _: (n << 1 | 1, h)), "2048 bits"),
    "a negative n": (with_key(lambda n, h, _: (-n, h)), "2048 bits"),
    "h_s of one": (with_key(lambda n, _, __: (n, 1)), "between 1"),
    "h_s of nothing": (with_key(lambda n, _, __: (n, 0)), "between 1"),
    "h_s beyond the square of n": (with_key(lambda n, h, _: (n, h + n * n)), "between 1"),
    "h_s with a factor of n": (with_key(lambda n, _, key: (n, key.p)), "factor"),
    "another curator's signature": (lambda party: seal(truth(party), SIDE), "curator that it names"),
    "another curator": (
        lambda party: seal(replace(truth(party), curator=identity_of(SIDE).public_key), SIDE),
        "`curator` pins",
    ),
    "another study's hash": (lambda party: seal(replace(truth(party), study_hash=bytes(32))), "another study"),
    "another kind of document": (
        lambda party: canonical_bytes(sign_document("manifest", truth(party).to_json(), identity_of(CURATOR))),
        "signature on the transcript",
    ),
    "what was altered after signing": (
        lambda party: seal(truth(party), study="00" * 32),
        "signature on the transcript",
    ),
    "no signature": (lambda _: b"{}", "not a signed document"),
    "no JSON": (lambda _: b"{", "not JSON"),
    "numbers that nobody can sign": (
        lambda party: seal(truth(party)).replace(b'"protocol":"synod/v1"', b'"protocol":0.5'),
        "not a signed document",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_refused_and_costs_nothing(lie: str, party: PartyUnderTest) -> None:
    make_envelope, sentence = LIES[lie]
    envelope = make_envelope(party)
    head = party.ledger.head()
    with pytest.raises(SynodError, match=sentence):
        party.answer(envelope)
    assert party.ledger.head() == head
    assert party.spent() == FREE
    assert party.ledger.answer(party.study.digest(), "moments") is None
    party.answer(seal(truth(party)))
    assert str(party.spent()) == "epsilon:1"


@pytest.mark.parametrize(
    ("query", "label", "sentence"),
    [
        (MOMENTS, "rows", "next step"),
        (MOMENTS, "anything", "next step"),
        (pb.Query(), "moments", "not one that this version answers"),
        (pb.Query.FromString(UNKNOWN_FIELD), "moments", "not one that this version answers"),
        (pb.Query.FromString(MOMENTS.SerializeToString() + UNKNOWN_FIELD), "moments", "not one that this version"),
        (pb.Query(sum_moments=pb.SumMoments.FromString(UNKNOWN_FIELD)), "moments", "not one that this version"),
        (SumMarginals(((0,),)).to_proto(), "moments", "not of the kind that the plan calls for"),
        (LocalMarginals(((0,),)).to_proto(), "moments", "not of the kind that the plan calls for"),
        (SumMarginals(()).to_proto(), "moments", "asks for no table"),
        (SumMarginals(((0, 9),)).to_proto(), "moments", "not sets of the study's features"),
        (pb.Query(choose_parents=pb.ChooseParents(placed=[0], count=1)), "moments", "not one that this version"),
    ],
)
def test_an_unplanned_question_is_refused_and_costs_nothing(
    query: pb.Query, label: str, sentence: str, party: PartyUnderTest
) -> None:
    envelope = seal(truth(party))
    head = party.ledger.head()
    with pytest.raises(SynodError, match=sentence):
        party.answer(envelope, query, label)
    assert party.ledger.head() == head


def test_a_second_transcript_is_refused_once_one_was_answered(party: PartyUnderTest) -> None:
    first = party.answer(seal(truth(party)))
    public = paillier_key().public
    other = replace(truth(party), key=PublicKey(public.n, pow(public.h_s, 3, public.n**2)))
    assert party.answer(seal(other)) == first
    rows = Synthesize(make_model(party.study), share_rows(party.study)).to_proto()
    with pytest.raises(SynodError, match="another transcript"):
        party.answer(seal(other), rows, "rows")
    party.answer(seal(truth(party)), rows, "rows")


# What the lies would pay


def open_with_own_exchange_keys(party: PartyUnderTest) -> bool:
    """The curator enrols keys of its own under the other parties' names, and takes all masks off party 0's answer."""
    key, study = paillier_key(), party.study
    pretended = [enrol_as(entry.name, study, _public(entry.name)) for entry in study.roster[1:]]
    transcript = replace(truth(party), enrolments=(party.enrolment(), *pretended))
    stored = party.answer(seal(transcript))
    plain = decrypt_all(key, stored.payload, workers=1)
    for index, entry in enumerate(study.roster[1:], 1):
        mask = masks.mask_key(
            seed_bytes("own", entry.name),
            party.enrolment().exchange,
            pair=(0, index),
            transcript=transcript.digest(study),
            label="moments",
            query=bytes.fromhex(stored.header["query"]),
        )
        taken = masks.draw_masks(mask, len(plain), key.public.n)
        plain = [(value - m) % key.public.n for value, m in zip(plain, taken, strict=True)]
    seen = read_plaintexts(study, plain, key.public.n)
    return is_near(study, seen, exact_moments(study, party.table))


def _public(name: str) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    return X25519PrivateKey.from_private_bytes(seed_bytes("own", name)).public_key().public_bytes_raw()


def test_who_could_invent_parties_could_read_one_party(party: PartyUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SynodError, match="identity key of party-1"):
        open_with_own_exchange_keys(party)
    monkeypatch.setattr("synod.party.rounds.check_transcript", lambda *_: None)
    assert open_with_own_exchange_keys(party)


def read_without_key(payload: bytes, public: PublicKey) -> list[int]:
    """For an outsider: with h_s = 1 a ciphertext is 1 + m n."""
    size = public.ciphertext_bytes
    ciphertexts = [int.from_bytes(payload[at : at + size], "big") for at in range(0, len(payload), size)]
    return [(c - 1) // public.n if (c - 1) % public.n == 0 else -1 for c in ciphertexts]


def test_who_could_weaken_h_s_would_open_ciphertexts_to_outsiders(
    party: PartyUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    envelope = seal(replace(truth(party), key=PublicKey(paillier_key().public.n, 1)))
    with pytest.raises(SynodError, match="between 1"):
        party.answer(envelope)
    monkeypatch.setattr("synod.party.rounds.check_public_key", lambda *_: None)
    payload = party.answer(envelope).payload
    seen = read_without_key(payload, paillier_key().public)
    assert seen == decrypt_all(paillier_key(), payload, workers=1)
    assert len(seen) == layout_of(party.study).ciphertexts
