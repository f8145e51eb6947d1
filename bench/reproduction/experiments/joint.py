"""The figures of the DPCocGen paper: the joint table of five attributes, range queries over all, areas under ROC."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from synod.deploy.evaluate.classifiers import Target, classes_of, indicators_of
from synod.deploy.evaluate.marginals import hellinger, total_variation
from synod.deploy.evaluate.queries import Interval, Query, answer_query
from synod.deploy.evaluate.tables import Table
from synod.party.count.marginals import count_marginals

QUERIES = 100
MOST_DRAWS = 100_000
Figures = dict[str, float]


def measure_joint(real: Table, synthetic: Table, *, rng: np.random.Generator) -> Figures:
    """Both distances of the tables of all attributes, and the mean relative error of range queries."""
    every = [tuple(range(len(real.sizes)))]
    left, right = (count_marginals(t.columns, t.sizes, every)[0] / t.rows for t in (real, synthetic))
    queries = draw_occupied(real, QUERIES, rng=rng)
    errors = [abs(answer_query(synthetic, own) / answer_query(real, own) - 1) for own in queries]
    return {
        "hellinger": hellinger(left, right),
        "joint tvd": total_variation(left, right),
        "relative": float(np.mean(errors)),
    }


def draw_occupied(table: Table, count: int, *, rng: np.random.Generator) -> list[Query]:
    """Random boxes over all attributes; one without rows has no relative error and is drawn again."""
    found: list[Query] = []
    for _ in range(MOST_DRAWS):
        ends = [sorted(rng.integers(0, values, 2).tolist()) for values in table.values]
        own = tuple(Interval(attribute, low, high) for attribute, (low, high) in enumerate(ends))
        found += [own] if answer_query(table, own) > 0 else []
        if len(found) == count:
            break
    return found


def measure_areas(real: Table, synthetic: Table, attribute: int, tested: NDArray[np.intp]) -> dict[str, float]:
    """The area under ROC of naive Bayes and of a linear machine that learned from synthetic rows, on tested real rows.

    An attribute of several classes is taken one class against the rest; the mean counts classes that are tested.
    """
    from sklearn.naive_bayes import MultinomialNB  # noqa: PLC0415  (an optional package)
    from sklearn.svm import LinearSVC  # noqa: PLC0415

    target = Target("", attribute)
    inputs, truth = indicators_of(real, target)[tested], classes_of(real, target)[tested]
    learned, classes = indicators_of(synthetic, target), classes_of(synthetic, target)
    asked = range(real.sizes[attribute]) if real.sizes[attribute] > 2 else [1]
    areas: dict[str, list[float]] = {"bayes": [], "svm": []}
    for each in (own for own in asked if 0 < (truth == own).mean() < 1):
        wanted = classes == each
        if wanted.all() or not wanted.any():
            areas["bayes"].append(0.5)
            areas["svm"].append(0.5)
            continue
        bayes = MultinomialNB().fit(learned, wanted).predict_log_proba(inputs)
        svm = LinearSVC(C=1.0, dual=False).fit(learned, wanted).decision_function(inputs)
        areas["bayes"].append(area(truth == each, bayes[:, 1] - bayes[:, 0]))
        areas["svm"].append(area(truth == each, svm))
    return {name: float(np.mean(found)) for name, found in areas.items()}


def area(truth: NDArray[np.bool_], scores: NDArray[Any]) -> float:
    """The chance that a row of the class has a higher score than another row; half where they are equal."""
    own, other = np.sort(scores[truth]), scores[~truth]
    below = np.searchsorted(own, other, side="left") + np.searchsorted(own, other, side="right")
    return float(1 - below.mean() / (2 * len(own)))
