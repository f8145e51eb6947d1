"""One point, measured: a release against the real rows, noisy views, a cover, DP-CCBN's messages, an experiment."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.reproduction.experiments.measures import MEASURES, measure_experiment
from bench.reproduction.learning import measure_wrong
from bench.reproduction.messages import CountedParties, forecast_candidates
from bench.reproduction.noisyviews import measure_cover, measure_views
from bench.reproduction.points import METHODS, PAPER_CONTRIBUTIONS, PAPER_HPDP, Point
from bench.reproduction.tables import Rows, deal_rows, load_rows, study_for
from synod.common.models.gaussian import parse_model
from synod.common.privacy.coins import Coins
from synod.common.protocol.queries.moments import moment_design
from synod.common.runtime.errors import SynodError
from synod.common.study.encoding import Codes, to_bins
from synod.common.study.study import Study
from synod.curator.methods.base import Publication, publish
from synod.deploy.evaluate.marginals import measure_marginals
from synod.deploy.evaluate.tables import bit_space, split_bits

MOST_CANDIDATES = 4_000
ORDERS = (2, 3)
Figures = dict[str, float]


def measure_point(point: Point, folder: Path | None) -> Figures:
    """The figures of a point; none where the method refuses it or it would take too long."""
    match point.kind:
        case "cover":
            return measure_cover(point.method, point.features)
        case "views":
            rows = load_rows(point.table, folder)
            bits = split_bits(rows.study, rows.columns)
            return measure_views(point.method, bits, point.epsilon, coins=coins_of(point))
        case "candidates":
            return forecast_candidates(study_of(point, load_rows(point.table, folder)))
    rows = load_rows(point.table, folder)
    return measure_experiment(point, rows) if point.kind in MEASURES else measure_release(point, rows)


def coins_of(point: Point) -> Coins:
    """The noise of a point: a seed is a run, and all methods of a run may share it."""
    return Coins(point.seed.to_bytes(32, "big"))


def study_of(point: Point, rows: Rows) -> Study:
    """The study of a point over its own encoding of the rows."""
    keys = dict(METHODS[point.method].keys)
    if point.method == PAPER_HPDP:
        keys["contribution"] = point.contribution or PAPER_CONTRIBUTIONS[point.table]
    return study_for(rows, keys, point.parties, point.epsilon)


def measure_release(point: Point, rows: Rows) -> Figures:
    """Publishes once and compares with all real rows: marginals on bits, misclassification on the schema's cells."""
    source = rows.on_bits() if METHODS[point.method].on_bits else rows
    study = study_of(point, source)
    if point.method == "dp-ccbn" and forecast_candidates(study)["candidates"] > MOST_CANDIDATES:
        return {}
    rng = np.random.default_rng(point.seed)
    dealt = deal_rows(source.codes_for(study), point.parties, rng=rng)
    parties = CountedParties(study, dealt, coins_of(point), rng)
    try:
        publication = asyncio.run(_publish(study, parties))
    except SynodError:
        return {}
    columns = to_bins(study, publication.columns)
    if source is not rows:
        columns = bit_space(rows.study).decode(columns, len(columns[0]))
    sizes = {"bytes": float(sum(parties.sent)), "paper_bytes": float(sum(parties.paper_sent))}
    return {**compare(rows, columns, point.seed), **sizes, **describe_components(study, publication)}


async def _publish(study: Study, parties: CountedParties) -> Publication:
    return await publish(study, parties, seed=int(parties.rng.integers(2**53)))


def compare(rows: Rows, columns: Sequence[Codes], seed: int) -> Figures:
    """Distances of marginals of bits, and misclassification of the papers' targets."""
    figures: Figures = {}
    real, synthetic = (split_bits(rows.study, side) for side in (rows.columns, columns))
    for order in ORDERS:
        distances = measure_marginals(real, synthetic, order, rng=np.random.default_rng(seed))
        figures[f"tvd{order}"] = float(distances.total_variation.mean())
    return figures | measure_wrong(rows, columns, seed)


def describe_components(study: Study, publication: Publication) -> Figures:
    """How many components an HPDP-DP model has, and what share of the variance the first one holds."""
    if publication.moments is None:
        return {}
    model = parse_model(publication.model, moment_design(study))
    kept = np.square(model.loadings).sum(axis=0) + model.noise**2
    total = np.square(model.loadings).sum() + len(model.loadings) * model.noise**2
    return {"components": float(len(kept)), "first": float(kept[0] / total)}
