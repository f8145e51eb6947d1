"""What is measured: a method, the parties and how rows lie among them, and the cost.

Every setting has a baseline: columns published independently by the same parties at the same cost.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from synod.common.study.study import Study, parse_study

COLUMNS = "columns published independently"
METHODS: dict[str, dict[str, Any]] = {
    "adaptive": {"name": "adaptive"},
    "adaptive, 3 rounds": {"name": "adaptive", "rounds": 3},
    "hpdp-dp": {"name": "hpdp-dp"},
    "hpdp-dp, linear link": {"name": "hpdp-dp", "link": "linear"},
    "dp-subn, sequential": {"name": "dp-subn"},
    "dp-subn, joint": {"name": "dp-subn", "update": "joint"},
    "dp-subn, sequential, paper's split": {"name": "dp-subn", "split": "paper"},
    "dp-subn, joint, paper's split": {"name": "dp-subn", "update": "joint", "split": "paper"},
    "privbayes": {"name": "privbayes"},
    "hpprivbayes": {"name": "hpprivbayes"},
    "hpprivbayes, rare values": {"name": "hpprivbayes", "weights": "rare"},
    "hpprivbayes, frequent values": {"name": "hpprivbayes", "weights": "frequent"},
    "independent": {"name": "independent"},
    "independent, score R": {"name": "independent", "score": "R"},
}
CENTRAL = {f"{name}, central, {neighbours}": (name, neighbours) for name in ("AIM", "MST") for neighbours in "AR"}
ALIKE = "alike"
PURE = "none"


@dataclass(frozen=True, slots=True)
class Setting:
    """One point of the grid.

    Attributes:
        method: a key of METHODS or CENTRAL, or COLUMNS.
        collusion: t, how many parties may put their shares of the noise together.
        delta: PURE, or a number as a study writes it.
        order: ALIKE, rows dealt at random, or the attribute by whose code rows are sorted before they are cut into
            parties.
    """

    method: str
    parties: int
    collusion: int
    epsilon: str
    delta: str
    order: str = ALIKE

    @property
    def baseline(self) -> "Setting":
        """The setting of the columns at the same cost, which no order of rows changes."""
        return replace(self, method=COLUMNS, order=ALIKE)

    @property
    def is_central(self) -> bool:
        """Whether one place sees all rows."""
        return self.method in CENTRAL

    def describe(self) -> str:
        """In a few words."""
        who = "one place" if self.parties == 1 else f"K {self.parties}, t {self.collusion}"
        rows = "" if self.order == ALIKE else f", sorted by {self.order}"
        return f"{self.method}, {who}{rows}, epsilon {self.epsilon}, delta {self.delta}"


def make_grid(
    methods: Sequence[str],
    parties: Iterable[int],
    collusions: Sequence[int],
    epsilons: Sequence[str],
    deltas: Sequence[str],
    orders: Sequence[str] = (ALIKE,),
) -> Iterator[Setting]:
    """Every combination, but for thresholds that are too high for their parties."""
    for values in itertools.product(methods, parties, collusions, epsilons, deltas, orders):
        if values[2] < values[1]:
            yield Setting(*values)


def make_central(epsilons: Iterable[str], deltas: Iterable[str]) -> Iterator[Setting]:
    """MST and AIM with either neighbours; both count their cost in rho, so they need a delta."""
    for epsilon, delta, method in itertools.product(epsilons, deltas, CENTRAL):
        if delta != PURE:
            yield Setting(method, 1, 0, epsilon, delta)


def with_baselines(settings: Iterable[Setting]) -> list[Setting]:
    """The settings, each once, and the baseline of each."""
    listed = list(settings)
    return list(dict.fromkeys([*listed, *(setting.baseline for setting in listed)]))


def study_of(data: dict[str, Any], rows: int, setting: Setting) -> Study:
    """The study over equal parties; a baseline or a central method takes nothing from it but its cost and schema."""
    shares = [len(part) for part in np.array_split(np.arange(rows), setting.parties)]
    roster = [{"name": f"p{i}", "key": f"sha256:{i:064x}", "rows": share} for i, share in enumerate(shares)]
    method = METHODS.get(setting.method, METHODS["dp-subn, sequential"])
    delta = None if setting.delta == PURE else setting.delta
    changes = {"epsilon": setting.epsilon, "delta": delta, "method": method, "collusion": setting.collusion}
    return parse_study({**data, **changes, "roster": roster}, "bench").resolve()
