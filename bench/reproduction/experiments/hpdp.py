"""What the HPDP-DP paper says beside its comparisons: numbers of components, the covariance that it estimates, and how
time and messages grow. All on bits, with its linear model.
"""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.reproduction.experiments.places import Released, release
from bench.reproduction.learning import measure_wrong
from bench.reproduction.points import METHODS, PAPER_HPDP, Point
from bench.reproduction.tables import Rows, deal_rows
from synod.common.models.gaussian import parse_model
from synod.common.protocol.queries.moments import moment_design
from synod.deploy.evaluate.tables import bit_space

Figures = dict[str, float]
Matrix = NDArray[np.float64]
REPEATED = 3


def measure_kept(point: Point, rows: Rows) -> Figures:
    """Misclassification after a release with so many components."""
    made = _release(rows.on_bits(), point, {"components": int(point.setting)})
    return measure_wrong(rows, bit_space(rows.study).decode(made.columns, rows.count), point.seed)


def measure_covariance(point: Point, rows: Rows) -> Figures:
    """How far the weighted mean of owners' own covariances is from that of all rows, in millionths of the latter's
    norm. NOT private: no noise, so that the estimate alone is seen.
    """
    dealt = deal_rows(rows.on_bits().columns, point.parties, rng=np.random.default_rng(point.seed))
    parts = [np.stack(part).astype(np.float64) for part in dealt]
    pooled = _covariance(np.concatenate(parts, axis=1))
    mean = sum(_covariance(part) * part.shape[1] for part in parts) / rows.count
    return {"millionths": float(1e6 * np.linalg.norm(mean - pooled) / np.linalg.norm(pooled))}


def _covariance(columns: Matrix) -> Matrix:
    covariance: Matrix = np.cov(columns, bias=True)
    return covariance


def count_growth(point: Point, rows: Rows) -> Figures:
    """Seconds of the processor for a release of so many attributes (the point's method) and rows (its setting), without
    encryption, the least of a few since other work only adds to them; and the numbers that are sent: scatter matrices,
    models and rows.
    """
    bits, kept = rows.on_bits(), np.arange(int(point.setting) if rows.file else rows.count)
    names = [attribute.name for attribute in bits.study.attributes]
    asked = bits.of_attributes(names[: int(point.method.split()[0])])
    seconds = []
    for _ in range(REPEATED):
        start = time.process_time()
        made = _release(asked, point, {}, kept)
        seconds.append(time.process_time() - start)
    design = moment_design(made.study)
    model = parse_model(made.publication.model, design)
    attributes, components = model.loadings.shape
    return {
        "seconds": min(seconds),
        "components": float(components),
        "matrices": float(point.parties * design.length),
        "models": float(point.parties * (model.loadings.size + attributes + 1)),
        "rows": float(len(kept) * attributes),
    }


def _release(bits: Rows, point: Point, extra: dict[str, Any], kept: NDArray[np.intp] | None = None) -> Released:
    keys = {**METHODS[PAPER_HPDP].keys, **extra}
    return release(bits, keys, point.parties, point.epsilon, seed=point.seed, kept=kept)
