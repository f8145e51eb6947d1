"""Recipes run over tables in memory: each question held to what a party would check, each publication to its schema."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from synod.common.crypto.canonical import Json, canonical_bytes
from synod.common.privacy.coins import Coins
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.base import Query, check_within
from synod.common.protocol.queries.parsing import parse_query, read_query
from synod.common.protocol.steps import QueryKind
from synod.common.study.encoding import Codes, codings_of
from synod.common.study.study import Study
from synod.curator.methods import base
from synod.curator.methods.base import Parties, Publication
from synod.curator.release.files import decode_table
from synod.deploy.simulate import InProcessParties
from tests.support.keys import seeded
from tests.support.studies import draw_columns

T = TypeVar("T")
AnswerT = TypeVar("AnswerT")


def draw_tables(study: Study) -> list[tuple[Codes, ...]]:
    """Random codes for everybody's table."""
    return [draw_columns(study, entry.name) for entry in study.roster]


def check_publication(study: Study, publication: Publication) -> pa.Table:
    """Schema, types and domains are the study's, and the model is fit for canonical JSON."""
    codings = codings_of(study)
    assert [column.dtype for column in publication.columns] == [coding.dtype for coding in codings]
    assert all(int(c.max()) < coding.size for c, coding in zip(publication.columns, codings, strict=True))
    assert canonical_bytes(publication.model)
    table = decode_table(study, publication.columns, coins=Coins.public(2, "values"))
    assert table.num_rows == study.rows
    assert table.column_names == [attribute.name for attribute in study.attributes]
    for attribute, column in zip(study.attributes, table.columns, strict=True):
        assert attribute.nullable or column.null_count == 0
        values = {value for value in column.to_pylist() if value is not None}
        match attribute.type:
            case "categorical":
                assert column.type == pa.string()
                assert values <= set(attribute.categories)
            case "integer":
                assert column.type == pa.int64()
                assert all(attribute.min <= value <= attribute.max for value in values)
            case "real":
                assert column.type == pa.float64()
                assert all(float(attribute.min) <= value <= float(attribute.max) for value in values)
            case "date":
                assert column.type == pa.date32()
                assert all(attribute.min <= value <= attribute.max for value in values)
            case "boolean":
                assert column.type == pa.bool_()
    return table


@dataclass
class Recorder(Parties):
    """Parties in process that note each question, and hold it to what a real party would check."""

    inner: InProcessParties
    asked: list[tuple[str, QueryKind]] = field(default_factory=list)
    remembered: list[str] = field(default_factory=list)
    queries: list[Query[Any]] = field(default_factory=list)

    async def ask(self, label: str, query: Query[AnswerT]) -> AnswerT:
        """Checks the query as a party does, and asks it."""
        study = self.inner.study
        assert parse_query(query.to_proto(), study) == query
        assert read_query(query.to_json(), study) == query
        check_within(query, plan_study(study).step(label), study)
        self.asked.append((label, query.kind))
        self.queries.append(query)
        return await self.inner.ask(label, query)

    async def compute(self, work: Callable[[], T]) -> T:
        """Computes at once."""
        return await self.inner.compute(work)

    async def remember(self, label: str, compute: Callable[[], Json]) -> Json:
        """Notes the label."""
        self.remembered.append(label)
        return await self.inner.remember(label, compute)


def record(study: Study, tables: Sequence[Sequence[Codes]]) -> tuple[Publication, Recorder]:
    """Runs the study's recipe over these tables."""
    recorder = Recorder(InProcessParties(study, tables, seeded(1), np.random.default_rng(1)))
    parties: Parties = recorder

    async def run() -> Publication:
        return await base.publish(study, parties, seed=1)

    return asyncio.run(run()), recorder


def check_run(study: Study) -> Publication:
    """A run over random tables: the planned steps, in order, each once; and a sound publication."""
    tables = draw_tables(study)
    publication, recorder = record(study, tables)
    assert recorder.asked == [(step.label, step.kind) for step in plan_study(study).steps]
    assert len(set(recorder.remembered)) == len(recorder.remembered)
    check_publication(study, publication)
    return publication
