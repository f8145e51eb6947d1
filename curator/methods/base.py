"""What a recipe sees of the parties: the private queries, and a memory that survives a restart.

The curator's session answers them over the wire, an in-process session for tests and benchmarks. A recipe is the
same for both; it imports no network, no clock and no asyncio.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from synod.common.crypto.canonical import Json
from synod.common.models.gaussian import GaussianModel
from synod.common.protocol.answers import Choice
from synod.common.protocol.queries import ChooseParents
from synod.common.study.encoding import Codes

Sets = tuple[tuple[int, ...], ...]
T = TypeVar("T")


class Parties(Protocol):
    """The roster of a study, as a recipe may talk to it. Labels are those of the study's plan."""

    async def sum_moments(self, label: str) -> NDArray[np.int64]:
        """The pooled moments with one share of noise, in integer units."""
        ...

    async def sum_marginals(self, label: str, sets: Sets) -> list[NDArray[np.int64]]:
        """The pooled tables of sets of features with one share of noise."""
        ...

    async def local_marginals(self, label: str, sets: Sets) -> list[NDArray[np.int64]]:
        """One party's tables of sets of features with its own noise."""
        ...

    async def choose_parents(self, label: str, query: ChooseParents) -> list[Choice]:
        """One party's privately drawn features with their parents, in the order of drawing."""
        ...

    async def synthesize(self, label: str, model: GaussianModel) -> list[Codes]:
        """All parties' rows drawn from a public model, in the roster's order."""
        ...

    async def compute(self, work: Callable[[], T]) -> T:
        """The result of long work, done where it holds up nobody else."""
        ...

    async def remember(self, label: str, compute: Callable[[], Json]) -> Json:
        """A value that is computed once: after a restart it is read from the log, so that floating-point work
        never has to come out the same twice.
        """
        ...


@dataclass(frozen=True, slots=True)
class Released:
    """One released table: how many rows it counts, the variance of one cell's noise, and whose rows if one party's."""

    features: tuple[int, ...]
    counts: NDArray[np.float64]
    rows: int
    variance: float
    party: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Publication:
    """What a recipe ends with: rows as codes in the schema's order, the model that they come from, and the noisy
    numbers that the model was fitted to, for whoever wants to compare: pooled moments, or tables.
    """

    columns: list[Codes]
    model: Json
    moments: NDArray[np.int64] | None = None
    tables: Sequence[Released] = ()


Recipe = Callable[..., Awaitable[Publication]]
