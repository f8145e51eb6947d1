"""All figures of one comparison, and how a machine reads them."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any, Literal

import numpy as np

from synod.common.study.encoding import Codes
from synod.common.study.study import Study
from synod.deploy.evaluate.baseline import draw_baselines, has_all_rows
from synod.deploy.evaluate.classifiers import Misclassification, Target, measure_learned, measure_misclassification
from synod.deploy.evaluate.information import Information, Pairs, measure_information
from synod.deploy.evaluate.marginals import Distances, measure_marginals
from synod.deploy.evaluate.queries import QueryErrors, measure_queries
from synod.deploy.evaluate.tables import Table, fill_columns, make_table, split_bits

ORDERS = (1, 2, 3)
SHOWN_SETS = 5
ALONE = (
    "Columns alone: what is left if each column is published by itself, in the schema's bins, with noise for the "
    "study's whole budget, and rows are drawn column by column; the mean of three draws."
)
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
class BaselineFigures:
    """The figures of columns published independently at the study's whole budget, each the mean of three draws; None
    and empty where an evaluation has none. `distances` are of the same marginals.
    """

    distances: tuple[Distances, ...]
    absolute: float | None
    relative: float | None
    information: float | None
    misclassification: dict[str, float]


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """What was measured; `None` where it was not asked for, or where there is no such marginal. `has_all_rows` says
    whether the real rows are all of the study's.
    """

    real: Table
    synthetic: Table
    cells: Cells
    distances: tuple[Distances, ...]
    queries: QueryErrors | None
    information: Information | None
    misclassification: dict[str, Misclassification]
    alone: BaselineFigures
    has_all_rows: bool

    @property
    def is_worse_than_columns_alone(self) -> bool | None:
        """Whether pairs of columns are further off than if every column had been published by itself; None where the
        real rows are not all of the study's, whose own shares columns alone knows and a release does not.
        """
        if not self.has_all_rows:
            return None
        published, alone = (average(distances[1])[0] for distances in (self.distances, self.alone.distances))
        return published is not None and alone is not None and published > alone


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
        distances.append(_measure_order(left, right, order, request))
    queries = information = None
    if request.queries:
        progress("range queries")
        queries = _measure_queries(*tables, request)
    if request.networks:
        progress("mutual information")
        information = measure_information(request.networks, study, real, synthetic)
    wrong: dict[str, Misclassification] = {}
    if request.targets:
        progress("misclassification")
        wrong = measure_misclassification(*tables, request.targets, rng=_rng_of_targets(request))
    progress("columns alone")
    baselines = draw_baselines(study, tables[0], tables[1].rows)
    alone = _average_draws([_measure_alone(study, real, baseline, request) for baseline in baselines])
    is_whole = has_all_rows(study, tables[0].rows, tables[1].rows)
    return Evaluation(left, right, request.cells, tuple(distances), queries, information, wrong, alone, is_whole)


def _measure_order(left: Table, right: Table, order: int, request: Request) -> Distances:
    return measure_marginals(left, right, order, rng=np.random.default_rng([request.seed, order]))


def _measure_queries(real: Table, other: Table, request: Request) -> QueryErrors:
    return measure_queries(real, other, request.queries, rng=np.random.default_rng([request.seed, 10]))


def _rng_of_targets(request: Request) -> np.random.Generator:
    return np.random.default_rng([request.seed, 11])


def _measure_alone(study: Study, real: Sequence[Codes], baseline: Table, request: Request) -> BaselineFigures:
    """The figures of one draw: the same marginals, queries and tested rows as for the published table."""
    table, columns = make_table(study, real), fill_columns(study, baseline)
    pair = (split_bits(study, real), split_bits(study, columns)) if request.cells == "bits" else (table, baseline)
    asked = _measure_queries(table, baseline, request) if request.queries else None
    held = measure_information(request.networks, study, real, columns) if request.networks else None
    targets = request.targets
    return BaselineFigures(
        tuple(_measure_order(*pair, order, request) for order in ORDERS),
        asked.absolute if asked else None,
        asked.relative if asked else None,
        held.synthetic if held else None,
        measure_learned(table, baseline, targets, rng=_rng_of_targets(request)) if targets else {},
    )


def _average_draws(draws: Sequence[BaselineFigures]) -> BaselineFigures:
    return BaselineFigures(
        tuple(_average_order(order) for order in zip(*(draw.distances for draw in draws), strict=True)),
        _mean([draw.absolute for draw in draws]),
        _mean([draw.relative for draw in draws]),
        _mean([draw.information for draw in draws]),
        {label: fmean(draw.misclassification[label] for draw in draws) for label in draws[0].misclassification},
    )


def _average_order(draws: Sequence[Distances]) -> Distances:
    """For each marginal the mean of its distances."""
    return replace(
        draws[0],
        total_variation=np.mean([draw.total_variation for draw in draws], axis=0),
        hellinger=np.mean([draw.hellinger for draw in draws], axis=0),
    )


def _mean(figures: Sequence[float | None]) -> float | None:
    found = [figure for figure in figures if figure is not None]
    return fmean(found) if found else None


def average(distances: Distances) -> tuple[float | None, float | None]:
    """The mean total variation and Hellinger distance; None where there are fewer attributes than the order."""
    if not distances.sets:
        return None, None
    return float(distances.total_variation.mean()), float(distances.hellinger.mean())


def to_json(study: Study, request: Request, evaluation: Evaluation) -> dict[str, Any]:
    """Everything for a machine; keys that scripts rely on are tvd1, tvd2 and tvd3."""
    return {
        "private": False,
        "note": NOTE,
        "study": study.name,
        "rows": {"real": evaluation.real.rows, "synthetic": evaluation.synthetic.rows},
        "encoding": evaluation.cells,
        "seed": request.seed,
        **_name_distances(evaluation.distances),
        "range_queries": asdict(evaluation.queries) if evaluation.queries else None,
        "mutual_information": asdict(evaluation.information) if evaluation.information else None,
        "misclassification": {label: asdict(wrong) for label, wrong in evaluation.misclassification.items()},
        "marginals": [
            _describe(evaluation.real.names, *pair)
            for pair in zip(evaluation.distances, evaluation.alone.distances, strict=True)
        ],
        "columns_alone": _describe_alone(evaluation),
    }


def _name_distances(distances: Sequence[Distances]) -> dict[str, float | None]:
    """Mean distances under the keys of their orders."""
    averages = [average(own) for own in distances]
    return {
        **{f"tvd{order}": distance for order, (distance, _) in zip(ORDERS, averages, strict=True)},
        **{f"hellinger{order}": distance for order, (_, distance) in zip(ORDERS, averages, strict=True)},
    }


def _describe_alone(evaluation: Evaluation) -> dict[str, Any]:
    """The baseline under the same keys; of figures with several numbers those that the published table decides."""
    alone = evaluation.alone
    queries = {"absolute": alone.absolute, "relative": alone.relative} if evaluation.queries else None
    return {
        "real_rows_are_all": evaluation.has_all_rows,
        "is_better_for_pairs": evaluation.is_worse_than_columns_alone,
        **_name_distances(alone.distances),
        "range_queries": queries,
        "mutual_information": alone.information,
        "misclassification": alone.misclassification,
    }


def _describe(names: Sequence[str], distances: Distances, alone: Distances) -> dict[str, Any]:
    """How many marginals of one order there are, how many of them were measured, and the worst of these, each beside
    columns alone.
    """
    worst: list[dict[str, Any]] = [
        {
            "attributes": [names[attribute] for attribute in distances.sets[place]],
            "tvd": float(distances.total_variation[place]),
            "hellinger": float(distances.hellinger[place]),
            "columns_alone": {
                "tvd": float(alone.total_variation[place]),
                "hellinger": float(alone.hellinger[place]),
            },
        }
        for place in distances.worst(SHOWN_SETS)
    ]
    return {"order": distances.order, "all": distances.all_sets, "measured": len(distances.sets), "worst": worst}
