"""Misclassification: is a classifier that learned from synthetic rows as good as one that learned from real rows?

As in the papers, a support vector machine predicts one attribute from all others and is tested on a fifth of the
real rows. Here it is linear, with C = 1 and squared hinge loss, over indicators of the schema's cells. The release has
seen the tested rows too, unless its parties held them back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synod.common.runtime.errors import invalid
from synod.common.study.attributes import plain
from synod.common.study.schema import CategoricalAttribute
from synod.common.study.study import Study
from synod.deploy.evaluate.tables import Table

TEST_SHARE = 0.2
FEWEST_ROWS = 5


@dataclass(frozen=True, slots=True)
class Target:
    """What is predicted: the cell of an attribute, or, where `chosen` is not empty, whether it is one of these."""

    label: str
    attribute: int
    chosen: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Misclassification:
    """Shares of the tested rows that are predicted wrongly; `majority` always says the most frequent class."""

    synthetic: float
    real: float
    majority: float
    tested_rows: int


def require_classifier() -> None:
    """Refuses where scikit-learn is not installed, before any row is read."""
    try:
        import sklearn.svm  # noqa: F401, PLC0415  (an optional package)
    except ImportError:
        raise invalid(
            "--target needs scikit-learn, which is not installed.", "Install Synod's extra `evaluate`, or scikit-learn."
        ) from None


def parse_target(text: str, study: Study, names: Sequence[str]) -> Target:
    """`ATTRIBUTE`, or `ATTRIBUTE=VALUE|VALUE` for whether a category is one of these."""
    if text in names:
        return Target(text, names.index(text))
    attributes = [a for a in study.attributes if a.name in names and text.startswith(f"{a.name}=")]
    if not attributes:
        raise invalid(
            f"{text!r} names no attribute that could be predicted.",
            "Use a name of the study's schema that has two values or more.",
        )
    attribute = plain(max(attributes, key=lambda a: len(a.name)))
    name, values = attribute.name, text[len(attribute.name) + 1 :]
    if not isinstance(attribute, CategoricalAttribute):
        raise invalid(f"{name!r} has no categories to choose from.", "Give its name alone, to predict its bin.")
    unknown = [value for value in values.split("|") if value not in attribute.categories]
    if unknown:
        raise invalid(f"{name!r} has no category {unknown[0]!r}.", "Separate categories by |.")
    chosen = tuple(attribute.categories.index(value) for value in values.split("|"))
    return Target(text, names.index(name), chosen)


def measure_misclassification(
    real: Table, synthetic: Table, targets: Sequence[Target], *, rng: np.random.Generator
) -> dict[str, Misclassification]:
    """For each target, trained on all synthetic rows and on four fifths of the real ones, tested on the last fifth."""
    tested, trained = _split_rows(real, rng=rng)
    return {target.label: _measure_one(real, synthetic, target, trained, tested) for target in targets}


def measure_learned(
    real: Table, synthetic: Table, targets: Sequence[Target], *, rng: np.random.Generator
) -> dict[str, float]:
    """`Misclassification.synthetic` alone, on the same tested rows for the same generator."""
    tested, _ = _split_rows(real, rng=rng)
    return {target.label: _learn(real, synthetic, target, tested) for target in targets}


def _split_rows(real: Table, *, rng: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The tested fifth, and the others."""
    if real.rows < FEWEST_ROWS:
        raise invalid(f"a classifier needs {FEWEST_ROWS} real rows or more.", "Leave --target out.")
    tested, trained = np.split(rng.permutation(real.rows), [int(real.rows * TEST_SHARE)])
    return tested, trained


def _measure_one(
    real: Table, synthetic: Table, target: Target, trained: NDArray[np.intp], tested: NDArray[np.intp]
) -> Misclassification:
    truth, inputs = classes_of(real, target), indicators_of(real, target)
    own = _predict(inputs[trained], truth[trained], inputs[tested])
    majority = np.bincount(truth[trained]).argmax()
    wrong = [float((guess != truth[tested]).mean()) for guess in (own, majority)]
    return Misclassification(_learn(real, synthetic, target, tested), wrong[0], wrong[1], len(tested))


def _learn(real: Table, synthetic: Table, target: Target, tested: NDArray[np.intp]) -> float:
    """The share of the tested real rows that a machine gets wrong which learned from all synthetic rows."""
    inputs = indicators_of(real, target)[tested]
    learned = _predict(indicators_of(synthetic, target), classes_of(synthetic, target), inputs)
    return float((learned != classes_of(real, target)[tested]).mean())


def classes_of(table: Table, target: Target) -> NDArray[np.int64]:
    """The class of each row."""
    codes = table.columns[target.attribute].astype(np.int64)
    return np.isin(codes, target.chosen).astype(np.int64) if target.chosen else codes


def indicators_of(table: Table, target: Target) -> Any:
    """A sparse matrix with one indicator for each cell of every other attribute."""
    from scipy.sparse import csr_matrix  # noqa: PLC0415  (comes with scikit-learn)

    others = [index for index in range(len(table.sizes)) if index != target.attribute]
    starts = np.cumsum([0, *(table.sizes[index] for index in others)])
    places = [table.columns[index] + start for index, start in zip(others, starts[:-1], strict=True)]
    indices = np.stack(places, axis=1).ravel() if others else np.zeros(0, dtype=np.int64)
    pointers = np.arange(table.rows + 1) * len(others)
    return csr_matrix((np.ones(len(indices)), indices, pointers), shape=(table.rows, max(1, int(starts[-1]))))


def _predict(inputs: Any, classes: NDArray[np.int64], tested: Any) -> NDArray[np.int64]:
    """What a machine says that was trained on rows of these classes; a single class needs no machine."""
    from sklearn.svm import LinearSVC  # noqa: PLC0415  (an optional package)

    if (classes == classes[0]).all():
        return np.full(tested.shape[0], classes[0])
    machine = LinearSVC(C=1.0, dual=False)
    guesses: NDArray[np.int64] = machine.fit(inputs, classes).predict(tested)
    return guesses
