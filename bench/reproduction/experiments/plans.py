"""The points of each experiment, by kind. A method that this version does not have is left out until it is registered.

A point's `setting` is what an experiment varies besides epsilon: the order of marginals, beta, theta, a degree, or a
number of components or rows.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from bench.reproduction.points import (
    COMPONENTS_EPSILON,
    EPSILONS,
    PAPER_HPDP,
    PARTIES,
    USUAL_EPSILON,
    USUAL_PARTIES,
    Method,
    Point,
)
from bench.rivals.catalog import CLASSIFIERS, CUT_CONTINGENCY, RIVALS
from synod.common.study.study import known_methods

PRIVBAYES, HPPRIVBAYES, DPCOCGEN, HISTOGRAM, DISTDIFFGEN = (
    "privbayes",
    "hpprivbayes",
    "dpcocgen",
    "histogram",
    "distdiffgen",
)
EXACT_NETWORK, EXACT_TABLES = "privbayes, exact network", "privbayes, exact tables"
MOST_INFORMATION = "privbayes, I, exact network"
VANILLA = "privbayes, vanilla"
EXACT_CHOICE = "distdiffgen, exact choice"
EXACT_ORDER = "hpprivbayes, exact order"
ENCODINGS = ("binary", "gray", "vanilla", "hierarchical")
GRANULARITIES = (144, 576, 2304)
RATIOS = ("1/6", "1/4", "1/2")
WEIGHTS = ("none",)
PERSONAL = {"name": HPPRIVBAYES, "sensitive_to": "occupation", "degree": 4}
READING, LEFT = 0.1, 0.9
STRUCTURE = 0.3


def _ratio_split(ratio: str) -> list[str]:
    """The parts of the budget with L2 : L3 in this ratio: reading, structure, group A, group B."""
    above, _, below = ratio.partition("/")
    tables = LEFT - STRUCTURE
    first = round(tables * int(above) / (int(above) + int(below)), 4)
    return [f"{part:.4f}" for part in (READING, STRUCTURE, first, tables - first)]


LATER_METHODS: Mapping[str, Method] = {
    PRIVBAYES: Method({"name": PRIVBAYES}),
    EXACT_NETWORK: Method({"name": PRIVBAYES}, unlimited="structure"),
    EXACT_TABLES: Method({"name": PRIVBAYES}, unlimited="parameters"),
    **{f"privbayes, {score}": Method({"name": PRIVBAYES, "encoding": "vanilla", "score": score}) for score in "FRI"},
    **{f"privbayes, {encoding}": Method({"name": PRIVBAYES, "encoding": encoding}) for encoding in ENCODINGS},
    MOST_INFORMATION: Method({"name": PRIVBAYES, "encoding": "vanilla", "score": "I"}, unlimited="structure"),
    HPPRIVBAYES: Method({**PERSONAL, "weights": "rare"}),
    EXACT_ORDER: Method({**PERSONAL, "weights": "rare"}, unlimited="reading"),
    **{f"hpprivbayes, {weights}": Method({**PERSONAL, "weights": weights}) for weights in WEIGHTS},
    **{f"hpprivbayes, r = {r}": Method({**PERSONAL, "weights": "rare", "split": _ratio_split(r)}) for r in RATIOS},
    HISTOGRAM: Method({"name": HISTOGRAM}),
    DPCOCGEN: Method({"name": DPCOCGEN}),
    "dpcocgen, modl": Method({"name": DPCOCGEN, "parts": "modl"}),
    **{f"dpcocgen, {parts} parts": Method({"name": DPCOCGEN, "parts": parts}) for parts in GRANULARITIES},
    DISTDIFFGEN: Method({"name": DISTDIFFGEN}),
    EXACT_CHOICE: Method({"name": DISTDIFFGEN}, unlimited="classes"),
}
"""What a study says for each; with `unlimited`, steps whose label begins so are answered nearly without noise."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """Every method of a table at every epsilon, number of parties and setting, once for each seed."""

    kind: str
    methods: Mapping[str, tuple[str, ...]]
    epsilons: tuple[str, ...] = EPSILONS
    parties: tuple[int, ...] = (1,)
    settings: tuple[str, ...] = ("",)

    def points(self, table: str, source: str, seed: int, only: Collection[str] | None) -> Iterator[Point]:
        """The points of one run, of methods that are here; where `only` is given, at these epsilons and one setting."""
        wanted = [epsilon for epsilon in self.epsilons if only is None or epsilon in only]
        settings = self.settings if only is None else self.settings[:1]
        found = [method for method in self.methods.get(table, ()) if is_here(method)]
        for method, parties, epsilon, setting in product(found, self.parties, wanted, settings):
            yield Point(self.kind, method, table, source, parties, epsilon, setting=setting, seed=seed)


def is_here(method: str) -> bool:
    """Whether a study could be run with this method; rivals always can."""
    return method not in LATER_METHODS or str(LATER_METHODS[method].keys["name"]) in known_methods()


PRIVIEW = tuple(name for name in RIVALS if name.startswith("PriView"))
CONSISTENT_COVERS = ("NOCD, consistent", "NOCD, consistent, ripple", "chosen, consistent", "chosen, consistent, ripple")
PLAIN = ("Laplace", "Fourier", "Uniform")
DENSE = ("Contingency", CUT_CONTINGENCY, "MWEM")
FEW = ("0.2", "0.8")
THIN = ("0.05", "0.2", "0.8")
"""For bits of Adult, whose networks take ten times as long as those of whole codes, half a minute at epsilon 1.6."""
ON_BITS = ("privbayes, binary", "privbayes, gray")
PERSONAL_EPSILONS = ("0.2", "0.4", "0.6", "0.8", "1")
RATIO_EPSILONS = ("0.2", "0.6", "1")
BETAS = ("0.05", "0.1", "0.2", "0.3", "0.5", "0.9")
THETAS = ("1", "2", "3", "4", "6", "12")
DEGREE_EPSILONS = ("0.8",)
DEGREES = ("1", "2", "3", "4")
KEPT = ("5", "10", "15", "20", "25", "30", "35", "40")
"""The HPDP-DP paper's numbers of components on Adult (figure 3)."""
MEAN_COVARIANCE = "weighted mean of local covariances"
GROWN = ("13 attributes", "52 attributes")
ROW_COUNTS = ("11305", "22611", "45222")
JOINT = (HISTOGRAM, DPCOCGEN, "dpcocgen, modl", *(f"dpcocgen, {parts} parts" for parts in GRANULARITIES), PRIVBAYES)

EXPERIMENTS = (
    Experiment("rival", {"nltcs": (*PLAIN, *DENSE, *PRIVIEW)}, settings=("3", "4")),
    Experiment("rival", {"adult": PLAIN}, settings=("2", "3")),
    Experiment("rival-bits", dict.fromkeys(("nltcs", "adult"), (*PRIVIEW, *CONSISTENT_COVERS))),
    Experiment("rival-trained", dict.fromkeys(("nltcs", "adult"), tuple(CLASSIFIERS))),
    Experiment(
        "place",
        {
            "nltcs": (
                PRIVBAYES,
                EXACT_NETWORK,
                EXACT_TABLES,
                *(f"privbayes, {score}" for score in "FRI"),
                MOST_INFORMATION,
            ),
            "adult": (
                PRIVBAYES,
                EXACT_NETWORK,
                EXACT_TABLES,
                VANILLA,
                "privbayes, hierarchical",
                "privbayes, R",
                "privbayes, I",
                MOST_INFORMATION,
            ),
        },
    ),
    Experiment(
        "place-trained",
        {
            "nltcs": (PRIVBAYES,),
            "adult": (VANILLA, "privbayes, hierarchical"),
        },
    ),
    Experiment("place-trained", dict.fromkeys(("nltcs", "adult"), (EXACT_NETWORK, EXACT_TABLES)), FEW),
    Experiment("place", {"adult": ON_BITS}, THIN),
    Experiment("place-trained", {"adult": ON_BITS}, (USUAL_EPSILON,)),
    Experiment("beta", dict.fromkeys(("nltcs", "adult"), (PRIVBAYES,)), FEW, settings=BETAS),
    Experiment("theta", dict.fromkeys(("nltcs", "adult"), (PRIVBAYES,)), FEW, settings=THETAS),
    Experiment("joint", {"adult": JOINT}, ("0.05", "0.1", "0.2", "0.5", "1")),
    Experiment("degree", {"adult": (VANILLA, HPPRIVBAYES, EXACT_ORDER)}, DEGREE_EPSILONS, settings=DEGREES),
    Experiment(
        "personal",
        {"adult": (VANILLA, HPPRIVBAYES, *(f"hpprivbayes, {weights}" for weights in WEIGHTS))},
        PERSONAL_EPSILONS,
    ),
    Experiment("ratio", {"adult": tuple(f"hpprivbayes, r = {ratio}" for ratio in RATIOS)}, RATIO_EPSILONS),
    Experiment("two", {"adult": ("dp-subn", DISTDIFFGEN, EXACT_CHOICE)}, parties=(2,)),
    Experiment("rounds", {"adult": ("dp-subn",)}, FEW, parties=(2, 6, 10)),
    Experiment("formula", {"adult": ("dp-subn",)}, FEW, parties=(2, 6, 10)),
    Experiment("kept", {"adult": (PAPER_HPDP,)}, (COMPONENTS_EPSILON,), (USUAL_PARTIES,), settings=KEPT),
    Experiment("covariance", dict.fromkeys(("nltcs", "adult"), (MEAN_COVARIANCE,)), ("",), parties=PARTIES),
    Experiment("growth", {"adult": GROWN}, (COMPONENTS_EPSILON,), (USUAL_PARTIES,), settings=ROW_COUNTS),
    Experiment("seconds", {"nltcs": tuple(f"privbayes, {score}" for score in "FRI")}, FEW),
)
KINDS = tuple(dict.fromkeys(experiment.kind for experiment in EXPERIMENTS))
