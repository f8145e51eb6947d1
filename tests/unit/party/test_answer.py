"""Answers are functions of the question: the same question gets the same bytes, another one gets other coins."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synod.common.crypto.canonical import Json
from synod.common.crypto.paillier import SecretKey, decrypt_all
from synod.common.privacy.coins import Coins
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.marginals import LocalMarginals
from synod.common.protocol.queries.moments import SumMoments, moment_design
from synod.common.protocol.queries.parents import ChooseParents
from synod.common.protocol.queries.parsing import AnyQuery, query_digest
from synod.common.protocol.queries.rows import Synthesize, share_rows
from synod.common.protocol.steps import Step
from synod.common.study.encoding import codings_of
from synod.common.study.study import Study
from synod.party import answer as answers
from synod.party.answer import Round, Secrets, noisy_values
from synod.party.answer import answer as answer_round
from synod.party.count.moments import sum_moments
from synod.party.table.snapshot import Snapshot
from synod.v1 import query_pb2 as pb
from tests.support.encrypted_sums import answer, ask, open_sum
from tests.support.keys import identity_of, paillier_key
from tests.support.parties import PartyUnderTest, heads_of, make_transcript, open_parties
from tests.support.studies import WIDE_SCHEMA, binary, make_model, make_study


@pytest.fixture(scope="module")
def study() -> Study:
    return make_study(schema=WIDE_SCHEMA)


@pytest.fixture(scope="module")
def parties(study: Study, tmp_path_factory: pytest.TempPathFactory) -> list[PartyUnderTest]:
    return open_parties(tmp_path_factory.mktemp("ledgers"), study)


def make_round(study: Study, parties: list[PartyUnderTest], index: int, key: SecretKey | None = None) -> Round:
    return ask(study, make_transcript(study, parties, key), index)


def decrypt_sum(asked: Round, payloads: list[bytes], key: SecretKey | None = None) -> list[int]:
    return [int(value) for value in open_sum(asked.study, key or paillier_key(), payloads)]


def plain_sum(asked: Round, parties: list[PartyUnderTest]) -> list[int]:
    """The slow twin: everybody's noisy values, added in the clear."""
    total = np.zeros(moment_design(asked.study).length, dtype=np.int64)
    for party in parties:
        coins = Coins(party.secrets.derive("noise", "moments", asked.query_hash.hex()))
        terms = SumMoments().terms(asked.step, asked.study)
        total += noisy_values(SumMoments(), asked.study, party.table, terms, coins=coins)
    return [int(value) for value in total]


def test_the_decrypted_sum_is_the_plain_sum_of_noisy_moments(study: Study, parties: list[PartyUnderTest]) -> None:
    rounds = [make_round(study, parties, index) for index in range(3)]
    payloads = [answer(party, asked) for party, asked in zip(parties, rounds, strict=True)]
    assert decrypt_sum(rounds[0], payloads) == plain_sum(rounds[0], parties)


def test_values_are_the_exact_moments_plus_noise_of_the_right_size(study: Study, parties: list[PartyUnderTest]) -> None:
    asked = make_round(study, parties, 0)
    terms = SumMoments().terms(asked.step, study)
    columns = parties[0].table
    noisy = noisy_values(SumMoments(), study, columns, terms, coins=Coins(bytes(32)))
    noise = noisy - sum_moments(moment_design(study), columns)
    assert noise.any()
    assert np.abs(noise).max() <= terms.noise_bound
    assert (noise % 2).any()
    assert 0.05 < noise.var() / (terms.variance / 3) < 20


def test_the_same_question_gets_the_same_bytes(study: Study, parties: list[PartyUnderTest]) -> None:
    asked = make_round(study, parties, 1)
    assert answer(parties[1], asked) == answer(parties[1], make_round(study, parties, 1))


def test_noise_does_not_depend_on_the_transcript_and_encryption_does(
    study: Study, parties: list[PartyUnderTest]
) -> None:
    """A curator that shows two keys or rosters of keys gets the same noise twice: no average, no difference."""
    other_key = paillier_key(2)
    first = [make_round(study, parties, index) for index in range(3)]
    second = [make_round(study, parties, index, other_key) for index in range(3)]
    assert first[0].transcript_hash != second[0].transcript_hash
    payloads = [answer(party, asked) for party, asked in zip(parties, first, strict=True)]
    others = [answer(party, asked) for party, asked in zip(parties, second, strict=True)]
    assert all(a != b for a, b in zip(payloads, others, strict=True))
    assert decrypt_sum(first[0], payloads) == decrypt_sum(second[0], others, other_key)


def test_encryption_coins_depend_on_the_transcript(study: Study, parties: list[PartyUnderTest]) -> None:
    """The same modulus under another T: other masks and other obfuscators, so no quotient tells anything."""
    asked = make_round(study, parties, 0)
    enrolments = asked.transcript.enrolments
    changed = replace(enrolments[2], nonce=bytes(32)).signed_by(identity_of("valley"), study.digest())
    transcript = replace(asked.transcript, enrolments=(*enrolments[:2], changed))
    other = replace(asked, transcript=transcript, transcript_hash=transcript.digest(study))
    public = paillier_key().public
    size = public.ciphertext_bytes
    first, second = answer(parties[0], asked), answer(parties[0], other)
    for at in range(0, len(first), size):
        a, b = (int.from_bytes(payload[at : at + size], "big") for payload in (first, second))
        assert a % public.n != b % public.n, "the obfuscator stands in the residue modulo n"
    assert decrypt_all(paillier_key(), first, 1) != decrypt_all(paillier_key(), second, 1)


@pytest.mark.parametrize("change", ["study", "snapshot", "ledger"])
def test_noise_differs_by_study_snapshot_and_ledger(study: Study, parties: list[PartyUnderTest], change: str) -> None:
    asked = make_round(study, parties, 0)
    secrets = parties[0].secrets
    other = {
        "study": replace(secrets, study_hash=make_study(name="another").digest()),
        "snapshot": replace(secrets, snapshot=bytes(32)),
        "ledger": replace(secrets, root=bytes(32)),
    }[change]
    terms = SumMoments().terms(asked.step, study)
    coins = [Coins(s.derive("noise", "moments", "q")) for s in (secrets, other)]
    columns = parties[0].table
    drawn = [noisy_values(SumMoments(), study, columns, terms, coins=each).tolist() for each in coins]
    assert drawn[0] != drawn[1]


# Answers of one party's own


def local_rounds(study: Study, parties: list[PartyUnderTest]) -> dict[str, Round]:
    """A round of each kind that a party answers on its own, as `north` sees it, under two questions each."""
    transcript = make_transcript(study, parties)
    tables, choices = plan_study(study).step("tables-north"), plan_study(study).step("choose-north")
    candidates = tuple((x, tuple(range(x))) for x in range(1, 6))
    asked: dict[str, tuple[Step, AnyQuery]] = {
        "tables": (tables, LocalMarginals(((0, 1), (2,)))),
        "other tables": (tables, LocalMarginals(((0, 1), (3,)))),
        "choices": (choices, ChooseParents((0,), candidates, 5, 4, "F")),
        "other choices": (choices, ChooseParents((0,), candidates, 5, 2, "F")),
    }
    return {
        name: Round(study, step, query, query_digest(query, step, study), transcript, transcript.digest(study), index=0)
        for name, (step, query) in asked.items()
    }


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[PartyUnderTest], dict[str, Round]]:
    study = make_study(schema=[binary(f"x{i}") for i in range(6)], method={"name": "independent"}, rows=(4000, 50, 60))
    parties = open_parties(tmp_path_factory.mktemp("ledgers"), study)
    return parties, local_rounds(study, parties)


@pytest.mark.parametrize(("one", "other"), [("tables", "other tables"), ("choices", "other choices")])
def test_the_coins_of_a_partys_own_answer_follow_round_and_q_and_not_the_transcript(
    network: tuple[list[PartyUnderTest], dict[str, Round]], monkeypatch: pytest.MonkeyPatch, one: str, other: str
) -> None:
    """Under another T the same question gets the same bytes, so no average; under another Q all coins are others, so
    no difference of two answers is free of noise.
    """
    parties, rounds = network
    used: list[bytes] = []

    def draw(asked: Round) -> tuple[bytes, bytes]:
        """The answer, and the first of the coins that it was made with."""
        payload = answer_round(asked, parties[0].table, secrets=parties[0].secrets, workers=1)
        return payload, used[-1]

    class Watched(Coins):
        def __init__(self, key: bytes) -> None:
            super().__init__(key)
            used.append(key)

    monkeypatch.setattr(answers, "Coins", Watched)
    first = draw(rounds[one])
    assert first == draw(rounds[one])
    assert first == draw(replace(rounds[one], transcript_hash=bytes(32)))
    keys = {first[1], draw(rounds[other])[1], draw(replace(rounds[one], query_hash=bytes(32)))[1]}
    keys.add(draw(replace(rounds[one], step=replace(rounds[one].step, label="another")))[1])
    assert len(keys) == 4


def test_noise_on_the_same_table_under_two_questions_is_not_the_same(
    network: tuple[list[PartyUnderTest], dict[str, Round]],
) -> None:
    """Both ask for (0, 1) first: equal noise would cancel in the difference."""
    parties, rounds = network
    counts = []
    for name in ("tables", "other tables"):
        payload = answer_round(rounds[name], parties[0].table, secrets=parties[0].secrets, workers=1)
        counts.append(rounds[name].query.read_answer(payload, rounds[name].study)[0].tolist())
    assert counts[0] != counts[1]


# Secrets

SECRETS = Secrets(b"r" * 32, b"s" * 32, b"t" * 32)
inputs = st.lists(st.one_of(st.text(max_size=8), st.integers(-5, 5), st.none()), max_size=3)
questions = st.tuples(st.sampled_from(["noise", "encryption", "exchange", "nonce", "synthesis", ""]), inputs)


@given(first=questions, second=questions)
def test_derived_keys_are_equal_only_for_equal_questions(
    first: tuple[str, list[Json]], second: tuple[str, list[Json]]
) -> None:
    keys = [SECRETS.derive(purpose, *rest) for purpose, rest in (first, second)]
    assert (keys[0] == keys[1]) == (first == second)
    assert len(keys[0]) == 32


def test_every_use_has_a_key_of_its_own() -> None:
    variants = [
        SECRETS,
        replace(SECRETS, root=b"R" * 32),
        replace(SECRETS, study_hash=b"S" * 32),
        replace(SECRETS, snapshot=b"T" * 32),
        replace(SECRETS, study_hash=SECRETS.snapshot, snapshot=SECRETS.study_hash),
    ]
    keys = {
        secrets.derive(purpose, *rest)
        for secrets in variants
        for purpose, *rest in (
            ("exchange",), ("nonce",), ("noise", "moments", "aa"), ("noise", "moments", "ab"), ("noise", "rows", "aa"),
            ("noise", "momentsaa"), ("encryption", "moments", "aa"), ("encryption", "moments", "aa", "bb"),
            ("synthesis", "rows", "aa"),
        )
    }  # fmt: skip
    assert len(keys) == 9 * len(variants)


def test_another_snapshot_gives_another_exchange_key_and_nonce(study: Study) -> None:
    """So masks are never used twice over different data."""
    tables = [Snapshot((np.array([code], dtype=np.uint8),)).digest() for code in range(3)]
    heads = heads_of("north", study)
    made = [
        Secrets(b"r" * 32, study.digest(), table).enrolment("north", identity_of("north"), heads) for table in tables
    ]
    for a, b in combinations(made, 2):
        assert a.exchange != b.exchange
        assert a.nonce != b.nonce
    again = Secrets(b"r" * 32, study.digest(), tables[0]).enrolment("north", identity_of("north"), heads)
    assert again == made[0]


def test_secrets_do_not_show_themselves() -> None:
    assert repr(SECRETS) == "Secrets(...)"
    assert "rrr" not in str(SECRETS)


# Synthetic rows


def test_synthetic_rows_follow_the_question_and_read_no_row(study: Study, parties: list[PartyUnderTest]) -> None:
    query = Synthesize(make_model(study), share_rows(study))
    step = plan_study(study).step("rows")
    base = make_round(study, parties, 2)
    asked = replace(base, step=step, query=query, query_hash=query_digest(query, step, study))

    def draw(asked: Round, party: int = 2, table: int = 2) -> bytes:
        return answer_round(asked, parties[table].table, secrets=parties[party].secrets, workers=1)

    payload = draw(asked)
    assert payload == draw(replace(asked, transcript_hash=bytes(32))) == draw(asked, table=0)
    assert payload != draw(replace(asked, query_hash=bytes(32)))
    assert payload != draw(asked, party=1)
    message = pb.SyntheticRows.FromString(payload)
    assert message.SerializeToString(deterministic=True) == payload
    for column, coding in zip(message.columns, codings_of(study), strict=True):
        codes = np.frombuffer(column, coding.dtype)
        assert len(codes) == 60
        assert codes.max() < coding.size
        assert len(set(codes.tolist())) > 1
