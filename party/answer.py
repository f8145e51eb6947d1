"""Answers: query + codes + coins -> bytes. Pure: no clock, no network, no ledger.

Coins come from the ledger's secret. The noise of an answer depends on the study, the round, Q and the snapshot, and
on nothing that the curator can vary for the same question: the same question always gets the same noise, even under
another transcript.
"""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from numpy.typing import NDArray

from synod.common.crypto.canonical import Json, canonical_bytes
from synod.common.crypto.identity import Identity
from synod.common.crypto.packing import pack
from synod.common.crypto.paillier import PublicKey, encrypt_all
from synod.common.models.gaussian import draw_rows
from synod.common.models.moments import sum_moments
from synod.common.privacy.coins import Coins
from synod.common.privacy.noise import sample_shares
from synod.common.protocol.answers import write_choices, write_counts, write_rows
from synod.common.protocol.plan import Step
from synod.common.protocol.queries import (
    ChooseParents,
    EncryptedSum,
    LocalMarginals,
    Query,
    SumMarginals,
    SumMoments,
    SumTerms,
    Synthesize,
    moment_design,
    sum_terms,
)
from synod.common.protocol.transcript import Enrolment, Transcript
from synod.common.study.encoding import Codes
from synod.common.study.study import Study
from synod.party.count.parents import choose_parents, exact_counts, noisy_counts
from synod.party.masks import blind


@dataclass(frozen=True, slots=True)
class Secrets:
    """What a party derives from its ledger's secret for one study and one snapshot of its table.

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

    def enrolment(self, name: str, identity: Identity) -> Enrolment:
        """This party's signed keys for the study; the same whenever it is made."""
        exchange = X25519PrivateKey.from_private_bytes(self.exchange_key()).public_key().public_bytes_raw()
        enrolment = Enrolment(name, identity.public_key, exchange, self.derive("nonce"))
        return enrolment.signed_by(identity, self.study_hash)


@dataclass(frozen=True, slots=True)
class Round:
    """One question as this party sees it, after all its checks."""

    study: Study
    step: Step
    query_hash: bytes
    transcript: Transcript
    transcript_hash: bytes
    index: int


def answer(query: Query, asked: Round, columns: Sequence[Codes], *, secrets: Secrets, workers: int) -> bytes:
    """This party's answer to a checked round, as bytes.

    Guarantee: costs the step's epsilon, which is the approved plan's; sensitivities follow from the question.
    """
    match query:
        case SumMoments() | SumMarginals():
            return answer_sum(query, asked, columns, secrets=secrets, workers=workers)
        case LocalMarginals():
            coins = Coins(secrets.derive("noise", asked.step.label, asked.query_hash.hex()))
            return write_counts(noisy_counts(query, asked.step, asked.study, columns, coins=coins))
        case ChooseParents():
            coins = Coins(secrets.derive("choice", asked.step.label, asked.query_hash.hex()))
            return write_choices(choose_parents(query, asked.step, asked.study, columns, coins=coins))
        case Synthesize():
            return answer_synthesize(query, asked, secrets=secrets)


def answer_sum(query: EncryptedSum, asked: Round, columns: Sequence[Codes], *, secrets: Secrets, workers: int) -> bytes:
    """This party's encrypted, blinded, noisy part of a sum: concatenated ciphertexts.

    Guarantee: neighbours differ in one replaced row, row counts are public. To the curator, with its private key
    and up to t colluding parties, the roster's answers reveal nothing but the sum over the other parties plus at
    least one full share of discrete Laplace noise with scale sensitivity/epsilon: the step's cost. Both numbers
    come from the approved study, never from the curator.
    """
    assert query.kind is asked.step.kind
    terms = sum_terms(query, asked.step, asked.study)
    label, query_hash = asked.step.label, asked.query_hash
    noise_coins = Coins(secrets.derive("noise", label, query_hash.hex()))
    values = noisy_values(query, asked.study, columns, terms, coins=noise_coins)
    modulus = asked.transcript.modulus
    plaintexts = blind(
        pack(terms.layout(asked.study.key_bits), values, modulus),
        index=asked.index,
        secret=secrets.exchange_key(),
        exchanges=[enrolment.exchange for enrolment in asked.transcript.enrolments],
        transcript=asked.transcript_hash,
        label=label,
        query=query_hash,
        modulus=modulus,
    )
    coins = Coins(secrets.derive("encryption", label, query_hash.hex(), asked.transcript_hash.hex()))
    public = PublicKey(modulus, asked.transcript.generator)
    return encrypt_all(public, plaintexts, coins=coins, workers=workers)


def noisy_values(
    query: EncryptedSum, study: Study, columns: Sequence[Codes], terms: SumTerms, *, coins: Coins
) -> NDArray[np.int64]:
    """The exact numbers of this party's rows plus its share of the noise."""
    if isinstance(query, SumMoments):
        values = sum_moments(moment_design(study), columns)
    else:
        values = exact_counts(query.sets, study, columns)
    return values + sample_shares(len(values), shape=terms.shape, scale=terms.scale, coins=coins)


def answer_synthesize(query: Synthesize, asked: Round, *, secrets: Secrets) -> bytes:
    """This party's share of synthetic rows, drawn from a public model: column after column of codes.

    Guarantee: reads no row, so it costs nothing; the draw is a function of the question.
    """
    key = secrets.derive("synthesis", asked.step.label, asked.query_hash.hex())
    rng = np.random.Generator(np.random.PCG64(int.from_bytes(key, "big")))
    columns = draw_rows(moment_design(asked.study), query.model, query.rows[asked.index], rng=rng)
    return write_rows(columns)
