"""The grid: which points are measured, and how often."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bench.reproduction.experiments import plans
from bench.reproduction.experiments.plans import EXPERIMENTS
from bench.reproduction.points import (
    COMPONENTS_EPSILON,
    CONTRIBUTIONS,
    COVERS,
    EPSILONS,
    FEATURES,
    METHODS,
    PAPER_HPDP,
    PARTIES,
    USUAL_EPSILON,
    USUAL_PARTIES,
    Point,
)

KINDS = ("cover", "candidates", "release", "views", *plans.KINDS)


@dataclass(frozen=True, slots=True)
class Grid:
    """How much of the grid is measured, and how often each table; where `kinds` is not empty, these alone. With a
    `first_seed` the runs before it are not measured.
    """

    runs: Mapping[str, int]
    methods: tuple[str, ...] = tuple(METHODS)
    epsilons: tuple[str, ...] = EPSILONS
    parties: tuple[int, ...] = PARTIES
    contributions: tuple[str, ...] = CONTRIBUTIONS
    features: tuple[int, ...] = FEATURES
    experiment_epsilons: tuple[str, ...] | None = None
    kinds: tuple[str, ...] = ()
    first_seed: int = 0

    def points(self, sources: Mapping[str, str]) -> list[Point]:
        """All points, one run of everything before the next, so that a grid cut short is thin but whole."""
        drawn = [p for table, runs in self.runs.items() for p in self._of_table(table, sources[table], runs)]
        covers = [Point("cover", cover, features=count) for cover in COVERS for count in self.features]
        points = [*([] if self.first_seed else covers), *sorted(drawn, key=lambda point: point.seed)]
        return [point for point in points if not self.kinds or point.kind in self.kinds]

    def _of_table(self, table: str, source: str, runs: int) -> Iterator[Point]:
        """The points of one table: those that need no seed once, the others for each seed."""
        settings = self._settings()
        for parties, epsilon in settings if not self.first_seed else ():
            yield Point("candidates", "dp-ccbn", table, source, parties, epsilon)
        for seed in range(self.first_seed, runs):
            for method, (parties, epsilon) in itertools.product(self.methods, settings):
                yield Point("release", method, table, source, parties, epsilon, seed=seed)
            for contribution in self.contributions:
                yield Point("release", PAPER_HPDP, table, source, 3, COMPONENTS_EPSILON, contribution, seed=seed)
            for cover, epsilon in itertools.product(COVERS, self.epsilons):
                yield Point("views", cover, table, source, epsilon=epsilon, seed=seed)
            for experiment in EXPERIMENTS:
                yield from experiment.points(table, source, seed, self.experiment_epsilons)

    def _settings(self) -> list[tuple[int, str]]:
        """Numbers of parties with epsilons: all epsilons at three parties, all numbers of parties at one epsilon."""
        by_epsilon = [(USUAL_PARTIES, epsilon) for epsilon in self.epsilons]
        return by_epsilon + [(parties, USUAL_EPSILON) for parties in self.parties]


def full_grid(nltcs_runs: int, adult_runs: int) -> Grid:
    """The whole grid."""
    return Grid({"nltcs": nltcs_runs, "adult": adult_runs})


def quick_grid() -> Grid:
    """A few points with one seed, on the smaller table."""
    return Grid(
        {"nltcs": 1},
        epsilons=("0.2", "0.8"),
        parties=(2, 6),
        contributions=("0.5", "1"),
        features=(16, 52),
        experiment_epsilons=("0.8",),
    )
