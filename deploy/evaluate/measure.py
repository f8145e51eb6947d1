"""All figures of one comparison, and how a machine reads them."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from synod.common.study.encoding import Codes
from synod.common.study.study import Study
from synod.deploy.evaluate.classifiers import Misclassification, Target, measure_misclassification
from synod.deploy.evaluate.information import Information, Pairs, measure_information
from synod.deploy.evaluate.marginals import Distances, measure_marginals
from synod.deploy.evaluate.queries import QueryErrors, measure_queries
from synod.deploy.evaluate.tables import Table, make_table, split_bits

ORDERS = (1, 2, 3)
SHOWN_SETS = 5
NOTE = "These figures were computed from real rows. They are NOT private: keep them where the rows are."

Cells = Literal["bins", "bits"]


@dataclass(frozen=True, slots=True)
class Request:
    """What is measured beside the marginals, in which cells these are compared, and the seed of all that is drawn."""

    cells: Cells
    queries: int
    targets: tuple[Target, ...]
    networks: tuple[Pairs, ...]
    seed: int


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """What was measured; `None` where it was not asked for, or where there is no such marginal."""

    real: Table
    synthetic: Table
    cells: Cells
    distances: tuple[Distances, ...]
    queries: QueryErrors | None
    information: Information | None
    misclassification: dict[str, Misclassification]


def evaluate(
    study: Study,
    real: Sequence[Codes],
    synthetic: Sequence[Codes],
    request: Request,
    *,
    progress: Callable[[str], None],
) -> Evaluation:
    """Compares two tables that are in the schema's bins. Each figure draws from a generator of its own, so that
    asking for one more leaves the others as they are.
    """
    tables = make_table(study, real), make_table(study, synthetic)
    left, right = (split_bits(study, real), split_bits(study, synthetic)) if request.cells == "bits" else tables
    distances = []
    for order in ORDERS:
        progress(f"{order}-way marginals")
        distances.append(measure_marginals(left, right, order, rng=np.random.default_rng([request.seed, order])))
    queries = information = None
    if request.queries:
        progress("range queries")
        queries = measure_queries(*tables, request.queries, rng=np.random.default_rng([request.seed, 10]))
    if request.networks:
        progress("mutual information")
        information = measure_information(request.networks, study, real, synthetic)
    wrong: dict[str, Misclassification] = {}
    if request.targets:
        progress("misclassification")
        wrong = measure_misclassification(*tables, request.targets, rng=np.random.default_rng([request.seed, 11]))
    return Evaluation(left, right, request.cells, tuple(distances), queries, information, wrong)


def average(distances: Distances) -> tuple[float | None, float | None]:
    """The mean total variation and Hellinger distance; None where there are fewer attributes than the order."""
    if not distances.sets:
        return None, None
    return float(distances.total_variation.mean()), float(distances.hellinger.mean())


def to_json(study: Study, request: Request, evaluation: Evaluation) -> dict[str, Any]:
    """Everything for a machine; keys that scripts rely on are tvd1, tvd2 and tvd3."""
    averages = [average(distances) for distances in evaluation.distances]
    return {
        "private": False,
        "note": NOTE,
        "study": study.name,
        "rows": {"real": evaluation.real.rows, "synthetic": evaluation.synthetic.rows},
        "encoding": evaluation.cells,
        "seed": request.seed,
        **{f"tvd{order}": distance for order, (distance, _) in zip(ORDERS, averages, strict=True)},
        **{f"hellinger{order}": distance for order, (_, distance) in zip(ORDERS, averages, strict=True)},
        "range_queries": asdict(evaluation.queries) if evaluation.queries else None,
        "mutual_information": asdict(evaluation.information) if evaluation.information else None,
        "misclassification": {label: asdict(wrong) for label, wrong in evaluation.misclassification.items()},
        "marginals": [_describe(evaluation.real.names, distances) for distances in evaluation.distances],
    }


def _describe(names: Sequence[str], distances: Distances) -> dict[str, Any]:
    """How many marginals of one order there are, how many of them were measured, and the worst of these."""
    worst: list[dict[str, Any]] = [
        {
            "attributes": [names[attribute] for attribute in distances.sets[place]],
            "tvd": float(distances.total_variation[place]),
            "hellinger": float(distances.hellinger[place]),
        }
        for place in distances.worst(SHOWN_SETS)
    ]
    return {"order": distances.order, "all": distances.all_sets, "measured": len(distances.sets), "worst": worst}
