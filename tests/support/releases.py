"""A study in which all parties have answered, but whose release is not written: `write` makes that."""

import asyncio
from pathlib import Path

import numpy as np

from synod.common.crypto.canonical import canonical_bytes
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.moments import SumMoments, moment_design
from synod.common.protocol.queries.parsing import AnyQuery
from synod.common.protocol.queries.rows import Synthesize, share_rows
from synod.common.protocol.transcript import Transcript
from synod.common.study.study import Study
from synod.curator.combine import combine
from synod.curator.context import Context
from synod.curator.methods.base import Publication
from synod.curator.release.files import write_release
from synod.party.count.moments import sum_moments
from tests.support.curators import make_context, release_files, stored_answer
from tests.support.keys import paillier_key
from tests.support.parties import make_transcript, open_parties, seal, sign_asked
from tests.support.studies import make_model


class AnsweredStudy:
    """A study whose parties have all answered, and a publication."""

    def __init__(self, folder: Path, study: Study) -> None:
        self.study = study
        self.folder = folder / "curator"
        parties = open_parties(folder / "ledgers", self.study)
        self.transcript: Transcript = make_transcript(self.study, parties)
        model = make_model(study)
        columns = [np.concatenate(parts) for parts in zip(*(party.table for party in parties), strict=True)]
        moments = sum_moments(moment_design(self.study), columns)
        self.publication = Publication(columns, model.to_json(), moments=moments)
        context = self.context()
        context.store.add_study(self.study, now=5)
        envelope = seal(self.transcript)
        context.store.fix_transcript(self.study.digest(), envelope)
        queries: dict[str, AnyQuery] = {"moments": SumMoments(), "rows": Synthesize(model, share_rows(self.study))}
        for label, query in queries.items():
            body, signature = canonical_bytes(query.to_json()), sign_asked(self.study, envelope, query, label)
            context.store.open_query(self.study.digest(), label, body, signature=signature, now=6)
            for party in parties:
                party.answer(envelope, query.to_proto(), label)
                context.store.add_submission(party.name, *stored_answer(party, label))
            step = plan_study(study).step(label)
            payloads = context.store.payloads(self.study.digest(), label, step.answerers)
            answer = combine(query, step, self.study, payloads, key=paillier_key(), workers=1)
            context.store.close_query(self.study.digest(), label, query.write_answer(answer))
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
        write_release(self.context(), self.study, self.publication, 7)
        return release_files(self.folder, self.study)
