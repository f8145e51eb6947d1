"""A study that has been played to its end, but for the release: `write` makes that."""

import asyncio
from pathlib import Path

import numpy as np

from synod.common.crypto.canonical import canonical_bytes
from synod.common.models.gaussian import GaussianModel
from synod.common.models.moments import sum_moments
from synod.common.protocol.queries import Query, SumMoments, Synthesize, moment_design, share_rows
from synod.common.protocol.transcript import Transcript
from synod.common.study.study import Study
from synod.curator.context import Context
from synod.curator.methods.base import Publication
from synod.curator.release.files import write_release
from tests.support.curators import make_context, stored_answer
from tests.support.parties import draw_columns, make_actors, make_transcript, seal


class Play:
    """A study whose parties have all answered, and a publication."""

    def __init__(self, folder: Path, study: Study) -> None:
        self.study = study
        self.folder = folder / "curator"
        actors = make_actors(folder / "ledgers", self.study)
        self.transcript: Transcript = make_transcript(self.study, actors)
        width = moment_design(self.study).width - 1
        model = GaussianModel(np.full((width, 1), 0.5), 0.5, np.zeros(width), np.full(width, 0.2))
        columns = [
            np.concatenate(parts) for parts in zip(*(draw_columns(self.study, a.name) for a in actors), strict=True)
        ]
        moments = sum_moments(moment_design(self.study), columns)
        self.publication = Publication(columns, model.to_json(), moments=moments)
        context = self.context()
        context.store.add_study(self.study, now=5)
        queries: dict[str, Query] = {"moments": SumMoments(), "rows": Synthesize(model, share_rows(self.study))}
        for label, query in queries.items():
            context.store.open_query(self.study.digest(), label, canonical_bytes(query.to_json()), now=6)
            for actor in actors:
                actor.answer(label, query, seal(self.transcript))
                context.store.add_submission(actor.name, *stored_answer(actor, label))
            context.store.close_query(self.study.digest(), label, b"")
        context.store.close()

    def context(self) -> Context:
        async def make() -> Context:
            return make_context(self.folder)

        return asyncio.run(make())

    @property
    def target(self) -> Path:
        return self.folder / "releases" / self.study.digest().hex()

    def write(self) -> dict[str, bytes]:
        write_release(self.context(), self.study, self.transcript, self.publication, 7)
        return {path.name: path.read_bytes() for path in self.target.iterdir()}
