"""A study in which all parties have answered, but whose release is not written: `write` makes that."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from synod.common.crypto.canonical import Json, canonical_bytes
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.base import Query
from synod.common.protocol.transcript import Transcript
from synod.common.study.study import Study
from synod.curator.combine import combine
from synod.curator.context import Context
from synod.curator.methods.base import Parties, publish
from synod.curator.release.files import write_release
from tests.support.curators import make_context, release_files, stored_answer
from tests.support.keys import paillier_key
from tests.support.parties import PartyUnderTest, make_transcript, open_parties, seal, sign_asked

SEED = 7
T = TypeVar("T")
AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True)
class AskedAtOnce(Parties):
    """Implements `Parties`: everybody answers at once, and all of it goes into the store."""

    context: Context
    study: Study
    parties: Sequence[PartyUnderTest]
    envelope: bytes

    async def ask(self, label: str, query: Query[AnswerT]) -> AnswerT:
        """Implements `Parties.ask`."""
        store, study_hash, step = self.context.store, self.study.digest(), plan_study(self.study).step(label)
        body, signature = canonical_bytes(query.to_json()), sign_asked(self.study, self.envelope, query, label)
        store.open_query(study_hash, label, body, signature=signature, now=6)
        for party in self.parties:
            if party.name in step.answerers:
                party.answer(self.envelope, query.to_proto(), label)
                store.add_submission(party.name, *stored_answer(party, label))
        payloads = store.payloads(study_hash, label, step.answerers)
        answer: AnswerT = combine(query, step, self.study, payloads, key=paillier_key(), workers=1)
        store.close_query(study_hash, label, query.write_answer(answer))
        return answer

    async def compute(self, work: Callable[[], T]) -> T:
        """Implements `Parties.compute`."""
        return work()

    async def remember(self, label: str, compute: Callable[[], Json]) -> Json:
        """Implements `Parties.remember`."""
        return compute()


class AnsweredStudy:
    """A study whose parties have all answered, and what its method publishes."""

    def __init__(self, folder: Path, study: Study) -> None:
        self.study = study
        self.folder = folder / "curator"
        parties = open_parties(folder / "ledgers", self.study)
        self.transcript: Transcript = make_transcript(self.study, parties)
        context, envelope = self.context(), seal(self.transcript)
        context.store.add_study(self.study, now=5)
        context.store.fix_transcript(self.study.digest(), envelope)
        asked = AskedAtOnce(context, study, parties, envelope)
        self.publication = asyncio.run(publish(study, asked, seed=SEED))
        context.store.close()

    def context(self) -> Context:
        """The curator of this study, opened anew."""

        async def make() -> Context:
            return make_context(self.folder)

        return asyncio.run(make())

    @property
    def target(self) -> Path:
        """Where the release goes."""
        return self.folder / "releases" / self.study.digest().hex()

    def write(self) -> dict[str, bytes]:
        """Writes the release, and gives its files."""
        write_release(self.context(), self.study, self.publication, SEED)
        return release_files(self.folder, self.study)
