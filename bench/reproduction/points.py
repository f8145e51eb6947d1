"""The points of the grid: what is measured once with one seed, and the key under which its result is kept."""

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

EPSILONS = ("0.05", "0.1", "0.2", "0.4", "0.8", "1.6")
PARTIES = (2, 4, 6, 8, 10)
USUAL_PARTIES = 3
USUAL_EPSILON = "0.2"
COMPONENTS_EPSILON = "0.5"
CONTRIBUTIONS = ("0.3", "0.5", "0.6", "0.7", "0.8", "0.9", "0.95", "1")
FEATURES = (8, 12, 16, 20, 24, 28, 32, 40, 48, 52, 64, 80, 100)
TABLES = ("nltcs", "adult")


@dataclass(frozen=True, slots=True)
class Method:
    """What a study's `method` says; with `on_bits` every attribute is cut into bits first, as the papers do."""

    keys: Mapping[str, Any]
    on_bits: bool = False


METHODS = {
    "dp-subn": Method({"name": "dp-subn", "encoding": "binary"}),
    "dp-subn, joint": Method({"name": "dp-subn", "update": "joint", "encoding": "binary"}),
    "dp-subn, paper's split": Method({"name": "dp-subn", "split": "paper", "encoding": "binary"}),
    "independent": Method({"name": "independent", "encoding": "binary"}),
    "dp-ccbn": Method({"name": "dp-ccbn"}),
    "hpdp-dp": Method({"name": "hpdp-dp"}),
    "hpdp-dp, linear on bits": Method({"name": "hpdp-dp", "link": "linear"}, on_bits=True),
}
PAPER_HPDP = "hpdp-dp, linear on bits"
PAPER_CONTRIBUTIONS = {"nltcs": "0.8", "adult": "0.95"}
"""The cumulative contribution rate c that the HPDP-DP paper sets for each table (section 5)."""

COVERS = ("NOCD", "chosen", "overlapping, width 8", "overlapping, best width")


@dataclass(frozen=True, slots=True)
class Point:
    """One measurement. `kind` is `release`, `candidates`, `views` or `cover`; what a kind does not need is left empty.

    `source` tells tables apart: the digest of a given table, or `made`.
    """

    kind: str
    method: str
    table: str = ""
    source: str = ""
    parties: int = 0
    epsilon: str = ""
    contribution: str = ""
    features: int = 0
    seed: int = 0

    @property
    def key(self) -> str:
        """The settings with the seed, the same in every run."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Grid:
    """How much of the grid is measured, and how often each table."""

    runs: Mapping[str, int]
    methods: tuple[str, ...] = tuple(METHODS)
    epsilons: tuple[str, ...] = EPSILONS
    parties: tuple[int, ...] = PARTIES
    contributions: tuple[str, ...] = CONTRIBUTIONS
    features: tuple[int, ...] = FEATURES

    def points(self, sources: Mapping[str, str]) -> list[Point]:
        """All points, one run of everything before the next, so that a grid cut short is thin but whole."""
        drawn = [p for table, runs in self.runs.items() for p in self._of_table(table, sources[table], runs)]
        fixed = [Point("cover", cover, features=count) for cover in COVERS for count in self.features]
        return [*fixed, *sorted(drawn, key=lambda point: point.seed)]

    def _of_table(self, table: str, source: str, runs: int) -> Iterator[Point]:
        """The points of one table: those that need no seed once, the others for each seed."""
        settings = self._settings()
        for parties, epsilon in settings:
            yield Point("candidates", "dp-ccbn", table, source, parties, epsilon)
        for seed in range(runs):
            for method, (parties, epsilon) in itertools.product(self.methods, settings):
                yield Point("release", method, table, source, parties, epsilon, seed=seed)
            for contribution in self.contributions:
                yield Point("release", PAPER_HPDP, table, source, 3, COMPONENTS_EPSILON, contribution, seed=seed)
            for cover, epsilon in itertools.product(COVERS, self.epsilons):
                yield Point("views", cover, table, source, epsilon=epsilon, seed=seed)

    def _settings(self) -> list[tuple[int, str]]:
        """Numbers of parties with epsilons: all epsilons at three parties, all numbers of parties at one epsilon."""
        by_epsilon = [(USUAL_PARTIES, epsilon) for epsilon in self.epsilons]
        return by_epsilon + [(parties, USUAL_EPSILON) for parties in self.parties]


def full_grid(nltcs_runs: int, adult_runs: int) -> Grid:
    """The whole grid."""
    return Grid({"nltcs": nltcs_runs, "adult": adult_runs})


def quick_grid() -> Grid:
    """A few points with one seed, on the smaller table."""
    return Grid({"nltcs": 1}, epsilons=("0.2", "0.8"), parties=(2, 6), contributions=("0.5", "1"), features=(16, 52))
