"""What a recipe sees of the parties, what it ends with, and the registry of recipes.

The curator's session asks the parties over the wire, an in-process session for tests and benchmarks. A recipe is the
same for both; it imports no network, no clock and no asyncio.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from synod.common.crypto.canonical import Json
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.base import Query
from synod.common.protocol.queries.marginals import SumMarginals
from synod.common.runtime.discovery import load_modules
from synod.common.runtime.errors import invalid
from synod.common.study.encoding import Codes
from synod.common.study.study import Study
from synod.curator.drawing.base import Answers, RowModel

T = TypeVar("T")
AnswerT = TypeVar("AnswerT")
Numbers = Mapping[str, NDArray[np.float64]]  # the values of each numeric attribute, by its name


class Parties(Protocol):
    """The roster of a study, as a recipe may talk to it. Labels are those of the study's plan."""

    async def ask(self, label: str, query: Query[AnswerT]) -> AnswerT:
        """The answer to a planned query that all parties answer who are present. Sums of fewer than all come in
        proportion to the rows of the whole roster, so that a recipe never mixes counts of different rows.
        """
        ...

    async def ask_one(self, label: str, query: Query[AnswerT]) -> AnswerT | None:
        """One party's own answer to a planned query; None if the party is lost, so that there will be none."""
        return await self.ask(label, query)

    def present(self, label: str) -> tuple[int, ...]:
        """The places of those who took part in a sum that was answered; empty where everybody did."""
        del label
        return ()

    async def compute(self, work: Callable[[], T]) -> T:
        """The result of long work, done where it holds up nobody else."""
        ...

    async def remember(self, label: str, compute: Callable[[], Json]) -> Json:
        """A value that is computed once: after a restart it is read from the log, so that floating-point work
        never has to come out the same twice.
        """
        ...


def sum_variances(study: Study, parties: Parties, label: str, query: SumMarginals) -> list[float]:
    """The variance of the noise on a cell of each table of an answered sum, as `Parties.ask` gives it."""
    asked = query.asked_of(parties.present(label), study)
    scale = asked.scale(study) ** 2
    return [variance * scale for variance in asked.variances(plan_study(study).step(label), study)]


@dataclass(frozen=True, slots=True)
class Released:
    """One released table: how many rows it counts, the variance of a cell's noise, which is one number or one for each
    cell, and whose rows if one party's.
    """

    features: tuple[int, ...]
    counts: NDArray[np.float64]
    rows: int
    variance: float | NDArray[np.float64]
    party: str = ""

    @property
    def mean_variance(self) -> float:
        """The variance of a cell's noise, on average."""
        return float(np.mean(self.variance))

    @property
    def variances(self) -> NDArray[np.float64]:
        """The variance of the noise on each cell."""
        return np.broadcast_to(np.asarray(self.variance, dtype=np.float64), self.counts.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Publication:
    """What a recipe ends with: rows as codes in the schema's order, the model that they come from, and the noisy
    numbers that the model was fitted to, for whoever wants to compare: pooled moments, with who was present for them
    where not everybody was, or tables.
    """

    columns: list[Codes]
    model: Json
    moments: NDArray[np.int64] | None = None
    present: tuple[int, ...] = ()
    tables: Sequence[Released] = ()


@dataclass(frozen=True, slots=True)
class CountError:
    """The root mean square, in rows, of the noise of a count of two values together, over the `covered` pairs of
    columns or features that the model has such counts of, among all `pairs`. `deviation` is None where there are none,
    and `otherwise` says why. Some parties alone counted `partial` other pairs, which says nothing about all rows.
    `counted` says what such a count is of.
    """

    deviation: float | None
    pairs: int
    covered: int
    counted: str
    otherwise: str = ""
    partial: int = 0
    is_of_bits: bool = False


@dataclass(frozen=True, slots=True)
class ModelSection:
    """The part of the report that shows the model: its title, and its content; text that is no markup is escaped."""

    title: str
    content: str


class Recipe(Protocol):
    """The curator's side of a method."""

    async def __call__(self, study: Study, parties: Parties, *, rng: np.random.Generator) -> Publication:
        """Asks, post-processes, publishes."""
        ...


@dataclass(frozen=True, slots=True)
class Publisher:
    """All that the curator knows of a method.

    `title` names it for people. `publish` is the recipe. `describe` shows the model in the report, `expected_error`
    says how far off counts are because of the noise, `warnings` what the model cannot express. `typical_queries` are
    what a forecast takes for the queries of the plan's steps, as far as they are known beforehand; `alternatives` is a
    table with headings that compares ways to ask, for the forecast, where there are any. `advise` gives sentences for
    the forecast: which columns the model would draw wrongly, by the schema alone or by the numbers of real rows. `draw`
    draws the rows from the published model and the seed alone, so that anyone can draw them again; without it the rows
    are the recipe's. `open_model` opens the published model for whoever wants other rows of it, or rows under
    conditions; it may read released answers. `keeps_shapes` says that skewed numbers and spikes come back as they are;
    methods that cannot keep them name those that do.

    Guarantee: what `advise` says of real rows is not private. Nothing that publishes calls it.
    """

    title: str
    publish: Recipe
    describe: Callable[[Study, Publication], ModelSection]
    expected_error: Callable[[Study, Publication], CountError]
    warnings: Callable[[Study], Sequence[str]]
    typical_queries: Callable[[Study], Mapping[str, Query[Any]]]
    alternatives: Callable[[Study], tuple[Sequence[str], Sequence[Sequence[str]]] | None] = lambda _: None
    advise: Callable[[Study, Numbers | None], Sequence[str]] = lambda _study, _numbers: ()
    draw: Callable[[Study, Json, int], list[Codes]] | None = None
    open_model: Callable[[Study, Json, Answers], RowModel] | None = None
    keeps_shapes: bool = False


_PUBLISHERS: dict[str, Publisher] = {}


def register(name: str, publisher: Publisher) -> None:
    """Adds a method's publisher; each recipe's file does so when it is loaded."""
    assert name not in _PUBLISHERS
    _PUBLISHERS[name] = publisher


def shape_keepers() -> list[str]:
    """The methods that keep the shapes of numbers, for those that do not to name."""
    load_modules("synod.curator.methods")
    return sorted(name for name, publisher in _PUBLISHERS.items() if publisher.keeps_shapes)


def method_titles() -> dict[str, str]:
    """What each method is called for people, by the name that studies write."""
    load_modules("synod.curator.methods")
    return {name: _PUBLISHERS[name].title for name in sorted(_PUBLISHERS)}


def publisher_of(study: Study) -> Publisher:
    """The publisher of a study's method."""
    load_modules("synod.curator.methods")
    if study.method.name not in _PUBLISHERS:
        raise invalid(f"this curator has no recipe for the method {study.method.name}.", "Update Synod.")
    return _PUBLISHERS[study.method.name]


async def publish(study: Study, parties: Parties, *, seed: int) -> Publication:
    """Runs the recipe of a study's method with the study's public randomness."""
    publisher = publisher_of(study)
    publication = await publisher.publish(study, parties, rng=np.random.default_rng(seed))
    if publisher.draw is None:
        return publication
    columns = await parties.compute(partial(publisher.draw, study, publication.model, seed))
    return replace(publication, columns=columns)


def finish_at_once(recipe: Coroutine[Any, Any, T]) -> T:
    """The result of a recipe whose parties never make it wait: they answer from memory or from a file."""
    try:
        recipe.send(None)
    except StopIteration as ended:
        result: T = ended.value
        return result
    raise AssertionError("the parties answer at once")
