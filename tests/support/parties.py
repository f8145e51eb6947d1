"""Parties under test: in memory, or with a ledger of their own and all the checks of the daemon, but no wire."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synod.common.crypto.canonical import Json, canonical_bytes
from synod.common.crypto.identity import Identity
from synod.common.crypto.paillier import SecretKey
from synod.common.privacy.cost import Cost
from synod.common.protocol.envelope import sign_document
from synod.common.protocol.heads import Head, StatedHeads
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.moments import SumMoments
from synod.common.protocol.queries.parsing import AnyQuery, parse_query, query_digest
from synod.common.protocol.signed_query import SignedQuery, sign_query
from synod.common.protocol.transcript import Enrolment, Transcript, parse_transcript
from synod.common.runtime.errors import SynodError
from synod.common.runtime.settings import Database, PartySettings, TlsFiles
from synod.common.study.study import Study
from synod.party.answer import Round, Secrets
from synod.party.ledger import LEDGER_FILE, Ledger, StoredAnswer
from synod.party.rounds import Responder, answer_round, check_round, open_approval
from synod.party.table.snapshot import Snapshot
from synod.v1 import query_pb2 as pb
from tests.support.keys import CURATOR, identity_of, paillier_key, seed_bytes
from tests.support.studies import NAMES, Table, draw_columns

NOW = 1_700_000_000
DATASET = "table"
MAX_CELLS = 1_000_000
MOMENTS = SumMoments().to_proto()


def file_of(settings: PartySettings) -> Path:
    """The file that a party's table is in."""
    return as_file(settings.source)


def as_file(source: Path | Database) -> Path:
    """A source that is one."""
    assert isinstance(source, Path)
    return source


@dataclass(frozen=True, slots=True, eq=False)
class PartyInMemory:
    """A party's name, its table of codes, and the secrets that it derives from its ledger's root of the study."""

    study: Study
    name: str
    snapshot: Snapshot
    root: bytes

    @property
    def table(self) -> Table:
        """The party's codes, column by column."""
        return self.snapshot.columns

    @property
    def identity(self) -> Identity:
        """The party's identity."""
        return identity_of(self.name)

    @property
    def secrets(self) -> Secrets:
        """What the party derives masks, noise and exchange keys from."""
        return Secrets(self.root, self.study.digest(), self.snapshot.digest())

    def enrolment(self) -> Enrolment:
        """The party's signed keys for the study."""
        return self.secrets.enrolment(self.name, self.identity, heads_of(self.name, self.study))


@dataclass(frozen=True, slots=True, eq=False)
class PartyUnderTest(PartyInMemory):
    """A party that has approved the study in a ledger on disk, and answers as its daemon does."""

    ledger: Ledger
    folder: Path

    def enrolment(self) -> Enrolment:
        """The party's signed keys for the study, and the heads of its ledger."""
        return self.secrets.enrolment(self.name, self.identity, self.ledger.stated_heads(self.study.digest()))

    @property
    def responder(self) -> Responder:
        """What checks and answers a round."""
        curator = identity_of(CURATOR).fingerprint
        return Responder(self.name, self.identity, self.ledger, curator, 1, MAX_CELLS)

    def check(
        self, envelope: bytes, query: pb.Query = MOMENTS, label: str = "moments", signature: bytes | None = None
    ) -> Round:
        """Checks a round, without an answer; the question is signed by the curator unless a signature is given."""
        approval = open_approval(self.ledger, self.study.digest())
        parsed = parse_query(query, self.study)
        if signature is None:
            signature = sign_asked(self.study, envelope, parsed, label)
        return check_round(self.responder, approval, self.study, label, envelope, SignedQuery(parsed, signature))

    def answer(
        self,
        envelope: bytes,
        query: pb.Query = MOMENTS,
        label: str = "moments",
        signature: bytes | None = None,
        *,
        now: int = NOW,
    ) -> StoredAnswer:
        """Checks and answers a round, or raises; an answer that is in the ledger is handed out again."""
        stored = self.ledger.answer(self.study.digest(), label)
        if stored is None:
            asked = self.check(envelope, query, label, signature)
            approval = open_approval(self.ledger, self.study.digest())
            answer_round(self.responder, approval, asked, self.snapshot, now=now)
            stored = self.ledger.answer(self.study.digest(), label)
        assert stored is not None
        return stored

    def spent(self) -> Cost:
        """What the party's table has spent."""
        return self.ledger.account().spent(DATASET)

    def charges(self) -> list[str]:
        """The labels that the ledger was charged for, in order."""
        return [entry["label"] for entry in self.ledger.entries() if entry["kind"] == "charged"]


def heads_of(name: str, study: Study) -> StatedHeads:
    """What a party without a ledger states of it: one that was made for this study."""
    return StatedHeads(Head(2, seed_bytes("head", name, study.digest()), seed_bytes("ledger", name, study.digest())))


def parties_in_memory(study: Study, tables: Sequence[Table]) -> list[PartyInMemory]:
    """The roster's parties with these tables; a root is its party's, whatever the study."""
    return [
        PartyInMemory(study, entry.name, Snapshot(tuple(table)), seed_bytes("root", entry.name))
        for entry, table in zip(study.roster, tables, strict=True)
    ]


def open_party(folder: Path, study: Study, name: str, table: Table | None = None) -> PartyUnderTest:
    """The party whose ledger is in `folder`; if there is none, it is made and the study is approved in it.

    Its table is random unless given, and the study may spend exactly what is planned.
    """
    snapshot = Snapshot(tuple(draw_columns(study, name) if table is None else table))
    if (folder / LEDGER_FILE).exists():
        ledger = Ledger.open(folder)
    else:
        folder.mkdir(parents=True, exist_ok=True)
        ledger = Ledger.create(folder, history_lost=False, now=NOW)
        cost = plan_study(study).cost_of(name)
        ledger.approve(study, dataset=DATASET, cost=cost, cap=cost, snapshot=snapshot.digest(), source=(), now=NOW)
    return PartyUnderTest(study, name, snapshot, ledger.study_root(study.digest()), ledger, folder)


def open_parties(folder: Path, study: Study) -> list[PartyUnderTest]:
    """Everybody on the roster, each with a folder of its name."""
    return [open_party(folder / entry.name, study, entry.name) for entry in study.roster]


def make_transcript(
    study: Study, parties: Sequence[PartyInMemory], key: SecretKey | None = None, curator: str = CURATOR
) -> Transcript:
    """What an honest curator tells everybody."""
    public, curator_key = (key or paillier_key()).public, identity_of(curator).public_key
    return Transcript(study.digest(), public, curator_key, tuple(party.enrolment() for party in parties))


def sign_asked(study: Study, envelope: bytes, query: AnyQuery, label: str, signer: str = CURATOR) -> bytes:
    """What the curator signs of a question under the transcript in an envelope; nothing where there is no T or Q."""
    try:
        transcript = parse_transcript(json.loads(envelope)).digest(study)
        query_hash = query_digest(query, plan_study(study).step(label), study)
    except (SynodError, LookupError, TypeError, ValueError, RecursionError, AssertionError, StopIteration):
        return b""
    return sign_query(identity_of(signer), transcript, label, query_hash)


def seal(transcript: Transcript, /, signer: str = CURATOR, **changes: Json) -> bytes:
    """The transcript as the curator hands it out, signed by `signer`; `changes` are made after signing."""
    return canonical_bytes({**sign_document("transcript", transcript.to_json(), identity_of(signer)), **changes})


def make_settings(folder: Path, name: str = NAMES[0], **changes: Any) -> PartySettings:
    """A party's configuration with everything below `folder`; its table is `table.csv`."""
    values = {
        "tls": TlsFiles(ca=folder / "ca.pem", certificate=folder / "own.pem", key=folder / "own.key"),
        "name": name,
        "address": "localhost:1",
        "state": folder / "state",
        "curator": identity_of(CURATOR).fingerprint,
        "dataset": DATASET,
        "source": folder / "table.csv",
        "max_epsilon_total": "2",
        "min_key_bits": 2048,
        **changes,
    }
    return PartySettings.model_validate(values)
