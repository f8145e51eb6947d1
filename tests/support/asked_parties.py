"""A party with a real ledger, asked by whoever holds the curator's key: what the daemon does, without the wire."""

from dataclasses import dataclass
from pathlib import Path

from synod.common.crypto.canonical import canonical_bytes
from synod.common.privacy.cost import Cost
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries import SumMoments
from synod.common.protocol.transcript import Transcript
from synod.common.study.study import Study
from synod.curator.session import seal_transcript
from synod.party.ledger import Ledger, StoredAnswer
from synod.party.rounds import Responder, answer_round, check_round, expected_query, open_approval, secrets_of
from synod.party.table.snapshot import Snapshot
from tests.support.rosters import Member, Table, make_identity

CURATOR = make_identity("curator")
NOW = 1_700_000_000
MAX_CELLS = 1_000_000
MOMENTS = canonical_bytes(SumMoments().to_json())


def seal(transcript: Transcript) -> bytes:
    """The transcript with the signature of the curator that parties expect."""
    return seal_transcript(transcript, CURATOR)


@dataclass(frozen=True)
class House:
    """One party's ledger, table and identity."""

    folder: Path
    study: Study
    index: int
    table: Table
    ledger: Ledger

    @property
    def name(self) -> str:
        return self.study.roster[self.index].name

    @property
    def responder(self) -> Responder:
        return Responder(self.name, make_identity(self.name), self.ledger, CURATOR.fingerprint, 1, MAX_CELLS)

    def member(self) -> Member:
        """The party as others see it."""
        approval = open_approval(self.ledger, self.study.digest())
        return Member(self.name, self.table, secrets_of(self.responder, approval))

    def approve(self) -> None:
        cost = plan_study(self.study).cost_of(self.name)
        digest = Snapshot(tuple(self.table)).digest()
        self.ledger.approve(self.study, dataset="ward", cost=cost, cap=cost, snapshot=digest, now=NOW)

    def hear(self, envelope: bytes, query: bytes = MOMENTS, label: str = "moments") -> StoredAnswer:
        """Answers the curator's question, or raises; what was answered before is handed out again."""
        study_hash = self.study.digest()
        stored = self.ledger.answer(study_hash, label)
        if stored is None:
            approval = open_approval(self.ledger, study_hash)
            asked = check_round(self.responder, approval, self.study, label, (envelope, query))
            expected = expected_query(asked.step, self.study, query)
            answer_round(self.responder, approval, asked, expected, Snapshot(tuple(self.table)), now=NOW)
            stored = self.ledger.answer(study_hash, label)
        assert stored is not None
        return stored

    def spent(self) -> Cost:
        return self.ledger.account().spent("ward")


def open_house(folder: Path, study: Study, index: int, table: Table) -> House:
    """A house whose ledger is in `folder`; made and approved if there is none."""
    if (folder / "ledger.sqlite").exists():
        return House(folder, study, index, table, Ledger.open(folder))
    house = House(folder, study, index, table, Ledger.create(folder, history_lost=False, now=NOW))
    house.approve()
    return house
