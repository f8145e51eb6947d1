"""The points of the grid: what is measured once with one seed, and the key under which its result is kept."""

import json
from collections.abc import Mapping
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
    """What a study's `method` says; with `on_bits` every attribute is cut into bits first, as the papers do.

    Steps whose label begins with `unlimited`, where that is not empty, have all the budget that they could want: such
    a run is not private, and shows what the noise of the other steps does.
    """

    keys: Mapping[str, Any]
    on_bits: bool = False
    unlimited: str = ""


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
    """One measurement. `kind` is `release`, `candidates`, `views`, `cover`, or that of an experiment
    (experiments/plans.py), which may vary a `setting`; what a kind does not need is left empty.

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
    setting: str = ""

    @property
    def key(self) -> str:
        """The settings with the seed, the same in every run. An empty `setting`, which is newer than kept results,
        does not show.
        """
        shown = {name: value for name, value in asdict(self).items() if name != "setting" or value}
        return json.dumps(shown, sort_keys=True, separators=(",", ":"))
