"""What each kind of experiment measures at a point: figures by metric, none where a method refuses."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np

from bench.reproduction.experiments.hpdp import count_growth, measure_covariance, measure_kept
from bench.reproduction.experiments.joint import measure_areas, measure_joint
from bench.reproduction.experiments.kernel import wrong_by_kernel
from bench.reproduction.experiments.places import Released, release
from bench.reproduction.experiments.plans import DISTDIFFGEN, EXACT_CHOICE, LATER_METHODS
from bench.reproduction.learning import measure_wrong
from bench.reproduction.messages import formula_of_updates
from bench.reproduction.noisyviews import MAKERS
from bench.reproduction.points import METHODS, Method, Point
from bench.reproduction.tables import Rows, study_for
from bench.rivals.answers import mean_distance
from bench.rivals.catalog import measure_classifier, measure_rival
from bench.rivals.classifiers import split_rows
from bench.rivals.covers import cover_features
from bench.rivals.priview import publish_views
from synod.common.models.usefulness import LARGEST_TABLE
from synod.common.runtime.errors import SynodError
from synod.common.study.attributes import plain
from synod.common.study.schema import CategoricalAttribute
from synod.curator.network.evidence import network_from_json
from synod.deploy.evaluate.information import measure_information
from synod.deploy.evaluate.marginals import measure_marginals
from synod.deploy.evaluate.tables import Table, make_table, split_bits

Figures = dict[str, float]
ORDERS = {"nltcs": (3, 4), "adult": (2, 3)}
"""The PrivBayes paper's sets of marginals, over attributes as they are."""
BIT_ORDERS = (2, 3)
JOINT_ATTRIBUTES = ("age", "workclass", "education", "relationship", "sex")
PERSONAL_LEFT_OUT = "income"
AREAS = ("sex", "relationship")
DEGREE = {"degree": 4}
"""Of all networks of the HPPrivBayes paper but those of its figure 3."""
TUNED_TARGETS = {"nltcs": "outside", "adult": "gender"}
"""The classification task for beta and theta, one a table (figures 9 and 10 of the PrivBayes paper)."""


def measure_experiment(point: Point, rows: Rows) -> Figures:
    """The figures of a point of an experiment."""
    try:
        return MEASURES[point.kind](point, rows)
    except SynodError:
        return {}


def method_of(point: Point) -> Method:
    """What a point's study says."""
    return LATER_METHODS.get(point.method) or METHODS[point.method]


def attributes_of(rows: Rows) -> Table:
    """The real rows in the schema's cells."""
    return make_table(rows.study, rows.columns)


# Rivals


def measure_rival_point(point: Point, rows: Rows) -> Figures:
    """The mean distance of all marginals of one order, over attributes."""
    return measure_rival(
        point.method, attributes_of(rows), (int(point.setting),), float(point.epsilon), seed=point.seed
    )


def measure_rival_bits(point: Point, rows: Rows) -> Figures:
    """The mean distances of all 2- and 3-way marginals of bits, out of one release of views."""
    bits = split_bits(rows.study, rows.columns)
    cover, *how = point.method.split(", ")
    count = len(bits.sizes)
    views = cover_features(count, 2 if "pairs" in how else 3) if cover == "PriView" else MAKERS[cover](bits.sizes)
    rng = np.random.default_rng(point.seed)
    published = publish_views(bits, views, float(point.epsilon), is_rippled="ripple" in how, rng=rng)
    distances = {f"tvd{order}": mean_distance(bits, order, published.answer(order)) for order in BIT_ORDERS}
    return {**distances, "views": float(len(views))}


def measure_rival_trained(point: Point, rows: Rows) -> Figures:
    """The misclassification of a classifier that is trained with noise."""
    targets = rows.with_four_targets().parse_targets()
    return measure_classifier(point.method, attributes_of(rows), targets, float(point.epsilon), seed=point.seed)


# Methods in one place


def measure_place(point: Point, rows: Rows, extra: Mapping[str, Any] | None = None) -> Figures:
    """Distances over attributes, and the sum of information of the network, of a release of all rows."""
    method = method_of(point)
    keys = {**method.keys, **(extra or {})}
    made = release(rows, keys, point.parties, point.epsilon, seed=point.seed, unlimited=method.unlimited)
    return {**compare_attributes(rows, made, point), **sum_information(rows, made)}


def compare_attributes(rows: Rows, made: Released, point: Point) -> Figures:
    """The mean distances of the PrivBayes paper's marginals."""
    real, synthetic = attributes_of(rows), make_table(rows.study, made.columns)
    rng = np.random.default_rng(point.seed)
    found = {order: measure_marginals(real, synthetic, order, rng=rng) for order in ORDERS[point.table]}
    return {f"tvd{order}": float(distances.total_variation.mean()) for order, distances in found.items()}


def sum_information(rows: Rows, made: Released) -> Figures:
    """The sum of I(X; parents of X) on the real rows, where the model has a network."""
    model = made.publication.model
    if not isinstance(model, dict) or "network" not in model:
        return {}
    pairs = network_from_json(model["network"], made.study).pairs
    network = tuple((pair.feature, pair.parents) for pair in pairs)
    return {"information": measure_information((network,), made.study, rows.columns, made.columns).real}


def measure_trained(
    point: Point, rows: Rows, extra: Mapping[str, Any] | None = None, target: str | None = None
) -> Figures:
    """Misclassification of the other fifth of the rows after a release of four fifths: of four targets, or of one."""
    rng = np.random.default_rng([point.seed, 11])
    trained, _ = split_rows(rows.count, rng=rng)
    asked, method = rows.with_four_targets(), method_of(point)
    if target:
        asked = replace(asked, targets={target: asked.targets[target]})
    keys = {**method.keys, **(extra or {})}
    made = release(rows, keys, point.parties, point.epsilon, seed=point.seed, kept=trained, unlimited=method.unlimited)
    return measure_wrong(asked, made.columns, point.seed)


def measure_setting(point: Point, rows: Rows) -> Figures:
    """A release with one key changed, its counting and its classification task: beta and theta are decimals."""
    extra = {point.kind: point.setting}
    wrong = measure_trained(point, rows, extra, TUNED_TARGETS[point.table])
    return {**measure_place(point, rows, extra), **{name: wrong[name] for name in wrong if name.startswith("wrong ")}}


def measure_degree(point: Point, rows: Rows) -> Figures:
    """The information of networks whose features have at most so many parents, however large their tables become."""
    keys = {"degree": int(point.setting), "parameter_cells": LARGEST_TABLE}
    return measure_place(point, _without_income(rows), keys)


def measure_personal(point: Point, rows: Rows) -> Figures:
    """Distances over attributes, and the misclassification of education."""
    return {**measure_place(point, _without_income(rows), DEGREE), **measure_ratio(point, rows)}


def measure_ratio(point: Point, rows: Rows) -> Figures:
    """The misclassification of education, by a linear and by a kernel machine."""
    kept, method = _without_income(rows), method_of(point)
    trained, _ = split_rows(rows.count, rng=np.random.default_rng([point.seed, 11]))
    keys = {**method.keys, **DEGREE}
    made = release(kept, keys, point.parties, point.epsilon, seed=point.seed, kept=trained, unlimited=method.unlimited)
    education = replace(kept, targets={"education": rows.targets["education"]})
    return {**measure_wrong(education, made.columns, point.seed), **judge_kernel(education, made, point.seed)}


def judge_kernel(rows: Rows, made: Released, seed: int) -> Figures:
    """The wrong share of a kernel machine that learned from released rows, on the same fifth of the real ones."""
    real, synthetic = attributes_of(rows), make_table(rows.study, made.columns)
    _, tested = split_rows(rows.count, rng=np.random.default_rng([seed, 11]))
    return {
        f"wrong {target.label}, kernel": wrong_by_kernel(
            real, synthetic, target, tested, rng=np.random.default_rng(seed)
        )
        for target in rows.parse_targets()
    }


def _without_income(rows: Rows) -> Rows:
    """The 14 attributes of the HPPrivBayes paper, in our bins; made rows lose their last attribute as well."""
    names = [attribute.name for attribute in rows.study.attributes]
    return rows.of_attributes([name for name in names if name != (PERSONAL_LEFT_OUT if rows.file else names[-1])])


def measure_joint_point(point: Point, rows: Rows) -> Figures:
    """The joint table of five attributes after a release of all rows, and areas under ROC after one of four fifths."""
    names = [attribute.name for attribute in rows.study.attributes]
    wanted = JOINT_ATTRIBUTES if rows.file else [names[place] for place in (0, 1, 3, 7, 9)]
    five = rows.of_attributes(wanted)
    keys, real = method_of(point).keys, attributes_of(five)
    every = release(five, keys, point.parties, point.epsilon, seed=point.seed)
    figures = measure_joint(real, make_table(five.study, every.columns), rng=np.random.default_rng(point.seed))
    trained, tested = split_rows(rows.count, rng=np.random.default_rng([point.seed, 11]))
    part = release(five, keys, point.parties, point.epsilon, seed=point.seed, kept=trained)
    taught = Table(real.names, real.sizes, real.values, tuple(column[trained] for column in real.columns))
    for label, attribute in zip(AREAS, (4, 3), strict=True):
        own = measure_areas(real, make_table(five.study, part.columns), attribute, tested)
        best = measure_areas(real, taught, attribute, tested)
        figures |= {f"area {label}, {name}": value for name, value in own.items()}
        figures |= {f"real area {label}, {name}": value for name, value in best.items()}
    return figures


# Several parties


def measure_two(point: Point, rows: Rows) -> Figures:
    """Misclassification and bytes of two parties; DistDiffGen publishes once for each target, with half of epsilon."""
    method = method_of(point)
    if point.method not in {DISTDIFFGEN, EXACT_CHOICE}:
        made = [release(rows, method.keys, point.parties, point.epsilon, seed=point.seed)]
        wrong = measure_wrong(rows, made[0].columns, point.seed)
    else:
        half = str(Decimal(point.epsilon) / 2)
        wrong, made = {}, []
        for label, target in class_targets(rows).items():
            keys = {**method.keys, "target": target}
            own = release(rows, keys, point.parties, half, seed=point.seed, unlimited=method.unlimited)
            made.append(own)
            asked = Rows(rows.name, rows.data, rows.columns, {label: rows.targets[label]}, rows.file)
            wrong |= measure_wrong(asked, own.columns, point.seed)
    if method.unlimited:  # steps without limit are not counted
        return wrong
    sizes = {
        "bytes": float(sum(sum(own.parties.sent) for own in made)),
        "paper_bytes": float(sum(sum(own.parties.paper_sent) for own in made)),
    }
    return {**wrong, **sizes}


def class_targets(rows: Rows) -> dict[str, Any]:
    """The targets of a table as the key `target`: an attribute, or one with its categories in two classes."""
    found: dict[str, Any] = {}
    for label, text in rows.targets.items():
        name, _, chosen = text.partition("=")
        if not chosen:
            found[label] = name
            continue
        attribute = plain(next(own for own in rows.study.attributes if own.name == name))
        assert isinstance(attribute, CategoricalAttribute)
        first = chosen.split("|")
        rest = [category for category in attribute.categories if category not in first]
        found[label] = {"attribute": name, "classes": [first, rest]}
    return found


def measure_rounds(point: Point, rows: Rows) -> Figures:
    """How many rounds a run has, and the cells of the first and the last party's search frontier."""
    made = release(rows, method_of(point).keys, point.parties, point.epsilon, seed=point.seed)
    asked = zip(made.parties.labels, made.parties.paper_sent, strict=True)
    updates = [sent for label, sent in asked if label.startswith("update")]
    figures = {"rounds": float(len(made.parties.labels)), "paper_bytes": float(sum(made.parties.paper_sent))}
    if len(updates) < 2:
        return figures
    return {**figures, "first frontier": float(updates[0]), "last frontier": float(updates[-1])}


def measure_seconds(point: Point, rows: Rows) -> Figures:
    """How long a release takes, in seconds of the processor."""
    start = time.process_time()
    release(rows, method_of(point).keys, point.parties, point.epsilon, seed=point.seed)
    return {"seconds": time.process_time() - start}


def measure_formula(point: Point, rows: Rows) -> Figures:
    """The paper's size of a run's messages, from the study alone."""
    return {"formula": formula_of_updates(study_for(rows, dict(method_of(point).keys), point.parties, point.epsilon))}


MEASURES: Mapping[str, Callable[[Point, Rows], Figures]] = {
    "rival": measure_rival_point,
    "rival-bits": measure_rival_bits,
    "rival-trained": measure_rival_trained,
    "place": measure_place,
    "place-trained": measure_trained,
    "beta": measure_setting,
    "theta": measure_setting,
    "joint": measure_joint_point,
    "degree": measure_degree,
    "personal": measure_personal,
    "ratio": measure_ratio,
    "two": measure_two,
    "rounds": measure_rounds,
    "formula": measure_formula,
    "kept": measure_kept,
    "covariance": measure_covariance,
    "growth": count_growth,
    "seconds": measure_seconds,
}
