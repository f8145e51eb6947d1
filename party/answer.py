"""Answers: query + codes + coins -> bytes. Pure: no clock, no network, no ledger.

Coins come from the study's secret in the ledger. The noise of an answer depends on the study, the round, Q and the
snapshot, and on nothing that the curator can vary for the same question: the same question always gets the same noise,
even under another transcript.
"""

import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from numpy.typing import NDArray

from synod.common.crypto.canonical import Json, canonical_bytes
from synod.common.crypto.identity import Identity
from synod.common.crypto.packing import pack
from synod.common.crypto.paillier import encrypt_all
from synod.common.models.gaussian import draw_rows
from synod.common.privacy.coins import Coins
from synod.common.protocol.heads import StatedHeads
from synod.common.protocol.queries.base import SumQuery, SumTerms
from synod.common.protocol.queries.marginals import LocalMarginals
from synod.common.protocol.queries.moments import SumMoments, moment_design
from synod.common.protocol.queries.noise_runs import sample_runs
from synod.common.protocol.queries.parents import ChooseParents
from synod.common.protocol.queries.parsing import AnyQuery
from synod.common.protocol.queries.rows import Synthesize
from synod.common.protocol.steps import QueryKind, Step
from synod.common.protocol.transcript import Enrolment, Transcript
from synod.common.study.encoding import CodeColumn
from synod.common.study.study import Study
from synod.party.count.agreements import count_agreements
from synod.party.count.moments import sum_moments
from synod.party.count.parents import choose_parents
from synod.party.count.tables import exact_counts, noisy_counts
from synod.party.masks import blind

Columns = Sequence[CodeColumn]


@dataclass(frozen=True, slots=True)
class Secrets:
    """What a party derives for one study and one snapshot of its table; `root` is the ledger's for that study.

    Guarantee: every derived key has a purpose and its inputs in the HMAC, so no two uses share one. The exchange
    key depends on the snapshot, so masks can never be used twice over different data.
    """

    root: bytes
    study_hash: bytes
    snapshot: bytes

    def __repr__(self) -> str:
        return "Secrets(...)"

    def derive(self, purpose: str, *inputs: Json) -> bytes:
        """32 bytes for one purpose and its inputs."""
        message = canonical_bytes([purpose, self.study_hash.hex(), self.snapshot.hex(), *inputs])
        return hmac.digest(self.root, b"synod/v1/derive\0" + message, "sha256")

    def exchange_key(self) -> bytes:
        """The X25519 private key of this party for this study."""
        return self.derive("exchange")

    def enrolment(self, name: str, identity: Identity, heads: StatedHeads) -> Enrolment:
        """This party's signed keys for the study, and what it states of its ledger; the same whenever it is made."""
        exchange = X25519PrivateKey.from_private_bytes(self.exchange_key()).public_key().public_bytes_raw()
        enrolment = Enrolment(name, identity.public_key, exchange, self.derive("nonce"), heads)
        return enrolment.signed_by(identity, self.study_hash)


@dataclass(frozen=True, slots=True)
class Round:
    """One question as this party sees it, after all its checks."""

    study: Study
    step: Step
    query: AnyQuery
    query_hash: bytes
    transcript: Transcript
    transcript_hash: bytes
    index: int

    def coins(self, purpose: str, secrets: Secrets) -> Coins:
        """The coins of this question for one purpose."""
        return Coins(secrets.derive(purpose, self.step.label, self.query_hash.hex()))


def answer(asked: Round, columns: Columns, *, secrets: Secrets, workers: int) -> bytes:
    """This party's answer to a checked round, as bytes.

    Guarantee: costs the step's cost, which is the approved plan's; sensitivities follow from the question.
    """
    if isinstance(asked.query, SumQuery):
        return answer_sum(asked.query, asked, columns, secrets=secrets, workers=workers)
    return ANSWERS[asked.query.kind](asked.query, asked, columns, secrets)


def answer_sum(query: SumQuery[Any], asked: Round, columns: Columns, *, secrets: Secrets, workers: int) -> bytes:
    """This party's encrypted, blinded, noisy part of a sum: concatenated ciphertexts.

    Guarantee: neighbours differ in the replaced rows of one unit, row counts are public. To the curator, with its
    private key and up to t colluding parties, the answers of S, who are present by the question, reveal nothing but the
    sum over the other parties of S plus at least one full share of noise of the law that the step's cost and the
    query's sensitivity call for. Both come from the approved study, never from the curator.
    """
    assert query.kind is asked.step.kind
    terms = query.terms(asked.step, asked.study)
    values = noisy_values(query, asked.study, columns, terms, coins=asked.coins("noise", secrets))
    key = asked.transcript.key
    plaintexts = blind(
        pack(terms.layout(asked.study.key_bits), values, key.n),
        index=asked.index,
        present=query.places(asked.study),
        secret=secrets.exchange_key(),
        exchanges=[enrolment.exchange for enrolment in asked.transcript.enrolments],
        transcript=asked.transcript_hash,
        label=asked.step.label,
        query=asked.query_hash,
        modulus=key.n,
    )
    inputs = (asked.step.label, asked.query_hash.hex(), asked.transcript_hash.hex())
    return encrypt_all(key, plaintexts, coins=Coins(secrets.derive("encryption", *inputs)), workers=workers)


def noisy_values(
    query: SumQuery[Any], study: Study, columns: Columns, terms: SumTerms, *, coins: Coins
) -> NDArray[np.int64]:
    """The exact numbers of this party's rows plus its share of the noise."""
    values = SUMMANDS[query.kind](query, study, columns)
    values += sample_runs(terms.runs, coins=coins)
    return values


def _sum_moments(query: SumMoments, study: Study, columns: Columns) -> NDArray[np.int64]:
    del query
    return sum_moments(moment_design(study), columns)


def _answer_marginals(query: LocalMarginals, asked: Round, columns: Columns, secrets: Secrets) -> bytes:
    coins = asked.coins("noise", secrets)
    return query.write_answer([noisy_counts(query, asked.step, asked.study, columns, coins=coins)])


def _answer_parents(query: ChooseParents, asked: Round, columns: Columns, secrets: Secrets) -> bytes:
    coins = asked.coins("choice", secrets)
    return query.write_answer(choose_parents(query, asked.step, asked.study, columns, coins=coins))


def _answer_rows(query: Synthesize, asked: Round, columns: Columns, secrets: Secrets) -> bytes:
    """This party's share of synthetic rows, drawn from a public model.

    Guarantee: reads no row, so it costs nothing; the draw is a function of the question.
    """
    del columns
    key = secrets.derive("synthesis", asked.step.label, asked.query_hash.hex())
    rng = np.random.Generator(np.random.PCG64(int.from_bytes(key, "big")))
    return query.write_answer(draw_rows(moment_design(asked.study), query.model, query.rows[asked.index], rng=rng))


SUMMANDS: Mapping[QueryKind, Callable[[Any, Study, Columns], NDArray[np.int64]]] = {
    QueryKind.SUM_MARGINALS: exact_counts,
    QueryKind.SUM_AGREEMENTS: count_agreements,
    QueryKind.SUM_MOMENTS: _sum_moments,
}
ANSWERS: Mapping[QueryKind, Callable[[Any, Round, Columns, Secrets], bytes]] = {
    QueryKind.LOCAL_MARGINALS: _answer_marginals,
    QueryKind.CHOOSE_PARENTS: _answer_parents,
    QueryKind.SYNTHESIZE: _answer_rows,
}
