"""What the tests of party and curator are played with: a study, identities, tables, keys and transcripts.

Everything is a function of its arguments, so that two sides of a test can build the same thing.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from synod.common.crypto.canonical import Json, canonical_bytes
from synod.common.crypto.identity import Identity
from synod.common.crypto.paillier import SecretKey, generate_key
from synod.common.privacy.coins import Coins
from synod.common.privacy.cost import Cost
from synod.common.protocol.queries import Query
from synod.common.protocol.transcript import Transcript
from synod.common.runtime.settings import PartySettings, TlsFiles
from synod.common.study.encoding import Codes, codings_of
from synod.common.study.study import Study, parse_study
from synod.party.answer import Secrets
from synod.party.ledger import Ledger
from synod.party.rounds import Responder, answer_round, check_round, expected_query, open_approval
from synod.party.table.snapshot import Snapshot

NAMES = ("north", "harbour", "valley")
ROWS = (40, 50, 60)
SCHEMA: tuple[dict[str, Any], ...] = (
    {"name": "sex", "type": "categorical", "categories": ["F", "M"]},
    {"name": "age", "type": "integer", "min": 0, "max": 100},
    {"name": "income", "type": "real", "min": "0", "max": "1000", "nullable": True},
    {"name": "ward", "type": "categorical", "categories": ["a", "b", "c"]},
)
WIDE = (*SCHEMA, {"name": "region", "type": "categorical", "categories": [f"r{i}" for i in range(24)]})
"""The same and one more: its moments need several ciphertexts."""
CURATOR = "curator"
MAX_CELLS = 1_000_000


def seeded(seed: int) -> Coins:
    return Coins(seed.to_bytes(32, "big"))


@cache
def paillier_key(seed: int = 1, bits: int = 2048) -> SecretKey:
    return generate_key(bits, coins=seeded(seed))


@cache
def identity_of(name: str) -> Identity:
    return Identity(Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode()).digest()))


def make_study(
    *,
    names: Sequence[str] = NAMES,
    rows: Sequence[int] = ROWS,
    schema: Sequence[Mapping[str, Any]] = SCHEMA,
    **changes: Any,
) -> Study:
    """A resolved study whose roster pins `identity_of(name)`."""
    roster = [{"name": n, "key": identity_of(n).fingerprint, "rows": r} for n, r in zip(names, rows, strict=False)]
    data = {
        "name": "checked",
        "method": {"name": "hpdp-dp"},
        "epsilon": "1",
        "key_bits": 2048,
        "seed": 7,
        "roster": roster,
        "schema": list(schema),
        **changes,
    }
    return parse_study(data, "the test's study").resolve()


def draw_columns(study: Study, name: str, seed: int = 0) -> tuple[Codes, ...]:
    """Random codes for one party's table."""
    index = study.index_of(name)
    rng = np.random.default_rng([seed, index])
    rows = study.roster[index].rows
    return tuple(rng.integers(0, coding.size, rows).astype(coding.dtype) for coding in codings_of(study))


def make_settings(folder: Path, name: str = NAMES[0], **changes: Any) -> PartySettings:
    """A party's configuration with everything below `folder`; its table is `table.csv`."""
    values = {
        "tls": TlsFiles(ca=folder / "ca.pem", certificate=folder / "own.pem", key=folder / "own.key"),
        "name": name,
        "address": "localhost:1",
        "state": folder / "state",
        "curator": identity_of(CURATOR).fingerprint,
        "dataset": "table",
        "source": folder / "table.csv",
        "max_epsilon_total": "2",
        "min_key_bits": 2048,
        **changes,
    }
    return PartySettings.model_validate(values)


@dataclass(frozen=True, slots=True, eq=False)
class Actor:
    """One party with an approved study in a ledger of its own."""

    responder: Responder
    study: Study
    snapshot: Snapshot

    @property
    def name(self) -> str:
        return self.responder.name

    @property
    def ledger(self) -> Ledger:
        return self.responder.ledger

    @property
    def secrets(self) -> Secrets:
        return Secrets(self.ledger.secret(), self.study.digest(), self.snapshot.digest())

    def answer(self, label: str, query: Query, transcript_document: bytes, *, now: int = 3) -> None:
        """Checks and answers a round as the daemon does."""
        approval = open_approval(self.ledger, self.study.digest())
        document = canonical_bytes(query.to_json())
        asked = check_round(self.responder, approval, self.study, label, (transcript_document, document))
        parsed = expected_query(asked.step, self.study, document)
        answer_round(self.responder, approval, asked, parsed, self.snapshot, now=now)


def make_actor(folder: Path, study: Study, name: str, *, seed: int = 0, cap: str = "1000") -> Actor:
    folder.mkdir(parents=True, exist_ok=True)
    ledger = Ledger.create(folder, history_lost=False, now=1)
    snapshot = Snapshot(draw_columns(study, name, seed))
    cost = study.budget
    ledger.approve(study, dataset="table", cost=cost, cap=Cost.parse(cap), snapshot=snapshot.digest(), now=2)
    return Actor(
        Responder(name, identity_of(name), ledger, identity_of(CURATOR).fingerprint, 1, MAX_CELLS), study, snapshot
    )


def make_actors(folder: Path, study: Study) -> list[Actor]:
    return [make_actor(folder / entry.name, study, entry.name) for entry in study.roster]


def make_transcript(study: Study, actors: Sequence[Actor], key: SecretKey | None = None) -> Transcript:
    public = (key or paillier_key()).public
    enrolments = tuple(actor.secrets.enrolment(actor.name, identity_of(actor.name)) for actor in actors)
    return Transcript(study.digest(), public.n, public.h_s, enrolments)


def seal(transcript: Transcript, /, signer: str = CURATOR, **changes: Json) -> bytes:
    """The transcript as the curator hands it out, signed by `signer`; `changes` are made after signing."""
    identity = identity_of(signer)
    content = transcript.to_json()
    signature = identity.sign("transcript", content).hex()
    envelope: dict[str, Json] = {
        "transcript": content,
        "curator": identity.public_key.hex(),
        "signature": signature,
        **changes,
    }
    return canonical_bytes(envelope)
