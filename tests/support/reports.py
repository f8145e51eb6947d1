"""A press for reports: a recipe over tables in memory, its queries noted, and the page as a tree."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from synod.common.crypto.canonical import Json
from synod.common.models.gaussian import GaussianModel
from synod.common.protocol.answers import Choice
from synod.common.protocol.queries import (
    ChooseParents,
    LocalMarginals,
    Query,
    SumMarginals,
    SumMoments,
    Synthesize,
    share_rows,
)
from synod.common.study.encoding import Codes
from synod.common.study.study import Study
from synod.curator.methods import RECIPES
from synod.curator.methods.base import Parties, Publication, Sets
from synod.curator.release.report.page import write_report
from synod.curator.release.report.sections import Imprint
from synod.deploy.simulate import InProcessParties
from tests.support.parties import draw_columns, seeded

IMPRINT = Imprint("sha256:" + "ab" * 32, "cd" * 32, 7, "9.8.7")
T = TypeVar("T")


@dataclass
class Noting:
    """Parties in process that note each question."""

    inner: InProcessParties
    queries: dict[str, Query] = field(default_factory=dict)

    async def sum_moments(self, label: str) -> NDArray[np.int64]:
        self.queries[label] = SumMoments()
        return await self.inner.sum_moments(label)

    async def sum_marginals(self, label: str, sets: Sets) -> list[NDArray[np.int64]]:
        self.queries[label] = SumMarginals(sets)
        return await self.inner.sum_marginals(label, sets)

    async def local_marginals(self, label: str, sets: Sets) -> list[NDArray[np.int64]]:
        self.queries[label] = LocalMarginals(sets)
        return await self.inner.local_marginals(label, sets)

    async def choose_parents(self, label: str, query: ChooseParents) -> list[Choice]:
        self.queries[label] = query
        return await self.inner.choose_parents(label, query)

    async def synthesize(self, label: str, model: GaussianModel) -> list[Codes]:
        self.queries[label] = Synthesize(model, share_rows(self.inner.study))
        return await self.inner.synthesize(label, model)

    async def compute(self, work: Callable[[], T]) -> T:
        return work()

    async def remember(self, label: str, compute: Callable[[], Json]) -> Json:
        return compute()


@dataclass(frozen=True)
class Print:
    """A page and what it was made from."""

    study: Study
    publication: Publication
    queries: dict[str, Query]

    @property
    def page(self) -> str:
        return write_report(self.study, self.publication, self.queries, IMPRINT)

    @property
    def tree(self) -> ElementTree.Element:
        """The page is well-formed, so that nothing of it can be read in two ways."""
        return ElementTree.fromstring(self.page.removeprefix("<!DOCTYPE html>\n"))


def print_study(study: Study, tables: Sequence[Sequence[Codes]] | None = None, seed: int = 1) -> Print:
    rng = np.random.default_rng(seed)
    tables = tables or [draw_columns(study, entry.name) for entry in study.roster]
    noting = Noting(InProcessParties(study, tables, seeded(seed), rng))
    parties: Parties = noting

    async def run() -> Publication:
        return await RECIPES[study.method.name](study, parties, rng=rng)

    return Print(study, asyncio.run(run()), noting.queries)


def text_of(element: ElementTree.Element | None) -> str:
    assert element is not None
    return " ".join("".join(element.itertext()).replace("\u00a0", " ").split())


def section(tree: ElementTree.Element, key: str) -> ElementTree.Element:
    found = tree.find(f".//section[@id='{key}']")
    assert found is not None
    return found


def cards(tree: ElementTree.Element) -> list[ElementTree.Element]:
    return [element for element in tree.iter("article") if "data-attribute" in element.attrib]


def edges(tree: ElementTree.Element) -> Iterator[tuple[int, int]]:
    for element in tree.iter("g"):
        if "data-edge" in element.attrib:
            parent, child = element.attrib["data-edge"].split("-")
            yield int(parent), int(child)
