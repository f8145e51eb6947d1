"""A roster in memory: parties with keys, secrets and tables of codes, and questions put to them. No wire, no ledger."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from numpy.typing import NDArray

from synod.common.crypto.identity import Identity
from synod.common.crypto.packing import SlotLayout, unpack
from synod.common.crypto.paillier import SecretKey, add_all, decrypt_all, generate_key
from synod.common.privacy.coins import Coins
from synod.common.protocol.plan import Step, plan_study
from synod.common.protocol.queries import SumMoments, query_digest, sum_terms
from synod.common.protocol.transcript import Enrolment, Transcript
from synod.common.study.encoding import Codes, codings_of
from synod.common.study.study import Study, parse_study
from synod.party.answer import Round, Secrets, answer_sum
from synod.party.table.snapshot import Snapshot

KEY_BITS = 2048
Table = Sequence[Codes]


def seed_bytes(*parts: object) -> bytes:
    """32 bytes that are a function of `parts`: what a test draws, it draws the same every time."""
    return hashlib.sha256(repr(parts).encode()).digest()


@cache
def make_key(number: int = 0) -> SecretKey:
    """One of the curator's Paillier keys."""
    return generate_key(KEY_BITS, coins=Coins(seed_bytes("paillier", number)))


@cache
def make_identity(name: str) -> Identity:
    """A party's identity, the same whenever it is asked for."""
    return Identity(Ed25519PrivateKey.from_private_bytes(seed_bytes("identity", name)))


def binary(name: str) -> dict[str, Any]:
    """An attribute with two categories."""
    return {"name": name, "type": "categorical", "categories": ["no", "yes"]}


def make_study(rows: Sequence[int], schema: Sequence[dict[str, Any]], **changes: Any) -> Study:
    """A resolved study of one party for each row count: party-0, party-1, ..."""
    names = [f"party-{index}" for index in range(len(rows))]
    content: dict[str, Any] = {
        "name": "survey",
        "method": {"name": "hpdp-dp", "link": "linear"},
        "epsilon": 1,
        "collusion": min(1, len(rows) - 1),
        "key_bits": KEY_BITS,
        "seed": 7,
        "roster": [
            {"name": name, "key": make_identity(name).fingerprint, "rows": count}
            for name, count in zip(names, rows, strict=True)
        ],
        "schema": list(schema),
    }
    return parse_study({**content, **changes}, "the test").resolve()


def fill_table(study: Study, codes: Sequence[int], rows: int) -> list[Codes]:
    """`rows` equal rows: each attribute has one of the given codes."""
    return [
        np.full(rows, code % coding.size, dtype=coding.dtype)
        for coding, code in zip(codings_of(study), codes, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Member:
    """One party: its name, its table, and what it derives from the secret of its ledger."""

    name: str
    table: Table
    secrets: Secrets

    @property
    def identity(self) -> Identity:
        """The party's identity."""
        return make_identity(self.name)

    def enrolment(self) -> Enrolment:
        """The party's signed keys for the study."""
        return self.secrets.enrolment(self.name, self.identity)


def make_members(study: Study, tables: Sequence[Table]) -> list[Member]:
    """The roster's parties with these tables; a ledger's secret is its party's, whatever the study."""
    return [
        Member(
            entry.name,
            table,
            Secrets(seed_bytes("root", entry.name), study.digest(), Snapshot(tuple(table)).digest()),
        )
        for entry, table in zip(study.roster, tables, strict=True)
    ]


def make_transcript(study: Study, members: Sequence[Member], key: SecretKey) -> Transcript:
    """What an honest curator tells everybody."""
    enrolments = tuple(member.enrolment() for member in members)
    return Transcript(study.digest(), key.public.n, key.public.h_s, enrolments)


def sum_step(study: Study) -> Step:
    """The step that asks for the encrypted sum."""
    return plan_study(study).step("moments")


def ask(study: Study, transcript: Transcript, index: int, **changes: Any) -> Round:
    """The planned question as the party at `index` sees it; `changes` are what it was told otherwise."""
    step = sum_step(study)
    digest = query_digest(SumMoments(), step, study)
    return replace(Round(study, step, digest, transcript, transcript.digest(study), index), **changes)


def answer(member: Member, asked: Round) -> bytes:
    """The party's answer to a question."""
    return answer_sum(SumMoments(), asked, member.table, secrets=member.secrets, workers=1)


def answer_all(
    study: Study,
    members: Sequence[Member],
    transcript: Transcript,
    told: Callable[[int, Round], Round] = lambda _, asked: asked,
) -> list[bytes]:
    """Everybody's answers; `told` is what the curator makes of the question on its way to the party at an index."""
    return [answer(member, told(index, ask(study, transcript, index))) for index, member in enumerate(members)]


def layout_of(study: Study) -> SlotLayout:
    """How the study's sums are packed."""
    return sum_terms(SumMoments(), sum_step(study), study).layout(study.key_bits)


def open_sum(study: Study, key: SecretKey, answers: Sequence[bytes]) -> NDArray[np.int64]:
    """What the curator gets of these answers: multiplied, decrypted, unpacked."""
    total = decrypt_all(key, add_all(key.public, answers), workers=1)
    return unpack(layout_of(study), total, key.public.n)
