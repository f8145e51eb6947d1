"""Reports to look into: a recipe run over tables in memory, its queries recorded, and the page as a tree."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from xml.etree import ElementTree

import numpy as np

from synod.common.crypto.canonical import Json
from synod.common.privacy.coins import Coins
from synod.common.protocol.queries.base import Query
from synod.common.protocol.queries.parsing import AnyQuery
from synod.common.study.study import Study
from synod.curator.methods.base import Parties, Publication, publish
from synod.curator.release.files import decode_table, first_rows
from synod.curator.release.report.page import write_report
from synod.curator.release.report.sections import Imprint
from synod.deploy.simulate import InProcessParties
from tests.support.keys import seeded
from tests.support.studies import Table, draw_columns

IMPRINT = Imprint("sha256:" + "ab" * 32, "cd" * 32, 7, "9.8.7", "2026-11-18")
T = TypeVar("T")
AnswerT = TypeVar("AnswerT")


@dataclass
class RecordingParties(Parties):
    """Parties in process that record each query."""

    inner: InProcessParties
    queries: dict[str, AnyQuery] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)

    async def ask(self, label: str, query: Query[AnswerT]) -> AnswerT:
        """Records the query, and asks it."""
        self.queries[label] = query
        self.answers[label] = await self.inner.ask(label, query)
        answer: AnswerT = self.answers[label]
        return answer

    async def compute(self, work: Callable[[], T]) -> T:
        """Computes at once."""
        return work()

    async def remember(self, label: str, compute: Callable[[], Json]) -> Json:
        """Remembers nothing."""
        return compute()


@dataclass(frozen=True)
class RenderedReport:
    """A report and what it was made from."""

    study: Study
    publication: Publication
    queries: dict[str, AnyQuery]
    answers: dict[str, Any]

    @property
    def page(self) -> str:
        """The page as it is written to disk."""
        rows = first_rows(decode_table(self.study, self.publication.columns, coins=Coins.public(7, "values")))
        return write_report(self.study, self.publication, self.queries, IMPRINT, answers=self.answers, preview=rows)

    @property
    def tree(self) -> ElementTree.Element:
        """The page is well-formed, so that nothing of it can be read in two ways."""
        return ElementTree.fromstring(self.page.removeprefix("<!DOCTYPE html>\n"))


def render_report(study: Study, tables: Sequence[Table] | None = None, seed: int = 1) -> RenderedReport:
    """Runs the study's recipe over `tables`, random ones unless given, and keeps what its report is made from."""
    tables = tables or [draw_columns(study, entry.name) for entry in study.roster]
    recording = RecordingParties(InProcessParties(study, tables, seeded(seed), np.random.default_rng(seed)))
    parties: Parties = recording

    async def run() -> Publication:
        return await publish(study, parties, seed=seed)

    return RenderedReport(study, asyncio.run(run()), recording.queries, recording.answers)


def text_of(element: ElementTree.Element | None) -> str:
    """An element's text, with single spaces."""
    assert element is not None
    return " ".join("".join(element.itertext()).replace("\u00a0", " ").split())


def section(tree: ElementTree.Element, key: str) -> ElementTree.Element:
    """One section of a page."""
    found = tree.find(f".//section[@id='{key}']")
    assert found is not None
    return found


def cards(tree: ElementTree.Element) -> list[ElementTree.Element]:
    """The cards of a page's attributes."""
    return [element for element in tree.iter("article") if "data-attribute" in element.attrib]


def edges(tree: ElementTree.Element) -> Iterator[tuple[int, int]]:
    """The arrows of a page's graph: parent, child."""
    for element in tree.iter("g"):
        if "data-edge" in element.attrib:
            parent, child = element.attrib["data-edge"].split("-")
            yield int(parent), int(child)
