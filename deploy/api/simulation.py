"""Simulations: a study over tables in memory. One process sees every row, and the seed decides the noise."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from synod.common.crypto.canonical import Json
from synod.common.privacy.coins import Coins
from synod.common.protocol.queries.base import Query
from synod.common.protocol.queries.parsing import AnyQuery, check_feasible
from synod.common.runtime.errors import invalid
from synod.common.study.encoding import codings_of
from synod.common.study.study import Study
from synod.curator.methods.base import Parties, Publication, finish_at_once, publish
from synod.curator.release.files import decode_table
from synod.deploy.api.frames import Tabular, encode_table
from synod.deploy.api.published import Published
from synod.deploy.api.studies import AnyStudy, read_study, with_parties
from synod.deploy.simulate import InProcessParties

T = TypeVar("T")
AnswerT = TypeVar("AnswerT")
NOT_PRIVATE = "NOT PRIVATE: one process saw every row, and whoever knows the seed can take the noise off."


@dataclass(slots=True)
class RecordedParties(Parties):
    """Implements `Parties` over others, and keeps what was asked and answered."""

    parties: Parties
    queries: dict[str, AnyQuery] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)

    async def ask(self, label: str, query: Query[AnswerT]) -> AnswerT:
        """Implements `Parties.ask`."""
        answer = await self.parties.ask(label, query)
        self.queries[label], self.answers[label] = query, answer
        return answer

    async def compute(self, work: Callable[[], T]) -> T:
        """Implements `Parties.compute`."""
        return await self.parties.compute(work)

    async def remember(self, label: str, compute: Callable[[], Json]) -> Json:
        """Implements `Parties.remember`."""
        return await self.parties.remember(label, compute)


class Simulation(Published):
    """What a study would publish about tables in memory: NOT private, and signed by nobody.

    Attributes:
        is_private: False. A release is private; this is not.
        seed: of noise and rows; the same seed gives the same simulation.
    """

    is_private = False

    def __init__(self, study: Study, publication: Publication, asked: RecordedParties, seed: int) -> None:
        super().__init__(study, publication.model)
        self.seed = seed
        self._publication, self._asked = publication, asked

    @property
    def queries(self) -> Mapping[str, AnyQuery]:
        """What was asked, by the label of the round."""
        return self._asked.queries

    def _answer(self, label: str) -> Any:
        return self._asked.answers[label]

    def _rows(self) -> pa.Table:
        return decode_table(self.study, self._publication.columns, coins=Coins.public(self.seed, "values"))

    def __repr__(self) -> str:
        return f"<Simulation {self.study.name}: {self.study.rows:,} rows, {self.study.method.name}. {NOT_PRIVATE}>"


def simulate(study: AnyStudy, tables: Mapping[str, Tabular], *, seed: int | None = None) -> Simulation:
    """Runs a study's method in this process, with the noise that it would have: to see what a release would be like.

    Guarantee: none. One process sees every row, and `seed` decides the noise: keep what comes out where the rows are.
    Releases come from `synod launch` or from daemons of the organizations themselves.

    Args:
        study: the path of a study, or a mapping like its content; its roster, if it has one, is replaced.
        tables: the table of each party, by the party's name: a pandas or polars DataFrame, an Arrow table, or the path
            of a CSV or Parquet file.
        seed: the same seed gives the same simulation, with the same versions; without one it is new each time.

    Raises:
        SynodError: the study is not sound, or a table does not fit its schema.
    """
    if not tables:
        raise invalid("there is no table.", "Give one for each party, such as {'north': north, 'south': south}.")
    written, chosen = read_study(study), secrets.randbits(53) if seed is None else seed
    codings = codings_of(written)
    columns = {name: encode_table(table, name, codings) for name, table in tables.items()}
    resolved = with_parties(written, {name: len(own[0]) for name, own in columns.items()})
    check_feasible(resolved)
    rng = np.random.default_rng(chosen)
    noise = Coins.public(chosen, "simulation")
    parties = RecordedParties(InProcessParties(resolved, list(columns.values()), noise, rng))
    publication = finish_at_once(publish(resolved, parties, seed=int(rng.integers(2**53))))
    return Simulation(resolved, publication, parties, chosen)
