"""Majority and PrivateERM: rivals that train one classifier at a time, so that several share the budget.

PrivateERM is objective perturbation (Chaudhuri, Monteleoni, Sarwate 2011, Algorithm 2) of a linear machine with Huber
loss; its neighbours replace one row, as ours do. PrivGene, the PrivBayes paper's other rival, is not here.
"""

from dataclasses import dataclass
from math import exp, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.rivals.answers import Floats
from synod.common.runtime.errors import invalid
from synod.deploy.evaluate.classifiers import TEST_SHARE, Target, classes_of, indicators_of
from synod.deploy.evaluate.tables import Table

COUNT_CHANGE = 1
"""A replaced row changes the number of rows of a class by at most 1."""
HUBER_WIDTH = 0.5
CURVATURE = 1 / (2 * HUBER_WIDTH)
"""The most that the loss bends: Huber loss of width h is quadratic, with second derivative 1/2h, within h of 1."""
MOST_STEPS = 500

Bits = NDArray[np.bool_]


def split_rows(rows: int, *, rng: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Four fifths to learn from and a fifth to test on; a generator of one seed splits alike everywhere."""
    tested, trained = np.split(rng.permutation(rows), [int(rows * TEST_SHARE)])
    return trained, tested


def predict_majority(classes: Bits, epsilon: float, *, rng: np.random.Generator) -> bool:
    """Whether more than half of the rows are of the class, by one noisy count.

    Guarantee: epsilon-differential privacy for a replaced row.
    """
    return bool(classes.sum() + rng.laplace(0.0, COUNT_CHANGE / epsilon) > len(classes) / 2)


@dataclass(frozen=True, slots=True)
class Perturbation:
    """The budget for the noise vector, and what is added to the regularizer, for n rows and a regularizer of 1/n."""

    epsilon: float
    extra: float


def plan_perturbation(epsilon: float, rows: int) -> Perturbation:
    """What Algorithm 2 leaves for the noise vector after the loss's curvature is paid for.

    With C = 1 the regularizer is 1/n, and the curvature costs 2 log(1 + c) = log 4: more than most epsilons here. The
    regularizer is then raised until it costs half.
    """
    regularizer = 1 / rows
    left = epsilon - 2 * log(1 + CURVATURE / (rows * regularizer))
    if left > 0:
        return Perturbation(left, 0.0)
    return Perturbation(epsilon / 2, CURVATURE / (rows * (exp(epsilon / 4) - 1)) - regularizer)


def train_privately(inputs: Any, classes: Bits, epsilon: float, *, rng: np.random.Generator) -> Floats:
    """The weights that minimize regularized Huber loss plus a random linear term.

    Guarantee: epsilon-differential privacy for a replaced row, for rows of norm at most 1 (`scale_rows`), if the
    minimum is found exactly; a numeric optimum is another reason why this is no deployment.
    """
    rows, width = inputs.shape
    plan = plan_perturbation(epsilon, rows)
    noise = draw_direction(width, 2 / plan.epsilon, rng=rng)
    return minimize_loss(inputs, classes, noise / rows, 1 / rows + plan.extra)


def draw_direction(width: int, scale: float, *, rng: np.random.Generator) -> Floats:
    """A vector of density proportional to exp(-norm / scale): an even direction, and a norm of gamma law."""
    direction = rng.normal(size=width)
    drawn: Floats = direction / np.linalg.norm(direction) * rng.gamma(width, scale)
    return drawn


def minimize_loss(inputs: Any, classes: Bits, linear: Floats, regularizer: float) -> Floats:
    """The weights of least mean Huber loss + regularizer / 2 norm^2 + linear term."""
    from scipy.optimize import minimize  # noqa: PLC0415  (comes with scikit-learn)

    signs = np.where(classes, 1.0, -1.0)

    def value(weights: Floats) -> tuple[float, Floats]:
        losses, slopes = huber(signs * (inputs @ weights))
        gradient = inputs.T @ (signs * slopes) / len(signs) + linear + regularizer * weights
        return float(losses.mean() + linear @ weights + regularizer / 2 * weights @ weights), gradient

    found = minimize(value, np.zeros(inputs.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": MOST_STEPS})
    return np.asarray(found.x)


def huber(margins: Floats) -> tuple[Floats, Floats]:
    """The loss at each margin, and its slope: 0 above 1 + h, straight below 1 - h, quadratic between."""
    short = 1 + HUBER_WIDTH - margins
    between = np.abs(1 - margins) <= HUBER_WIDTH
    losses = np.where(between, short**2 / (4 * HUBER_WIDTH), np.maximum(0.0, 1 - margins))
    slopes = np.where(between, -short / (2 * HUBER_WIDTH), np.where(margins < 1, -1.0, 0.0))
    return losses, slopes


def scale_rows(table: Table, target: Target) -> Any:
    """Indicators of all other attributes' cells and a constant; a row has one of each, so the scale gives it norm 1."""
    from scipy.sparse import csr_matrix, hstack  # noqa: PLC0415  (comes with scikit-learn)

    others = indicators_of(table, target)
    return hstack([others, csr_matrix(np.ones((table.rows, 1)))]).tocsr() / sqrt(len(table.sizes))


def measure_majority(table: Table, target: Target, epsilon: float, *, seed: int) -> float:
    """The share of a fifth of the rows that Majority gets wrong."""
    trained, tested = split_rows(table.rows, rng=np.random.default_rng([seed, 11]))
    classes = _two_classes(table, target)
    guess = predict_majority(classes[trained], epsilon, rng=np.random.default_rng(seed))
    return float((classes[tested] != guess).mean())


def measure_erm(table: Table, target: Target, epsilon: float, *, seed: int) -> float:
    """The share of a fifth of the rows that PrivateERM gets wrong."""
    trained, tested = split_rows(table.rows, rng=np.random.default_rng([seed, 11]))
    classes, inputs = _two_classes(table, target), scale_rows(table, target)
    weights = train_privately(inputs[trained], classes[trained], epsilon, rng=np.random.default_rng(seed))
    return float((classes[tested] != (inputs[tested] @ weights > 0)).mean())


def _two_classes(table: Table, target: Target) -> Bits:
    if not target.chosen and table.sizes[target.attribute] != 2:
        raise invalid(f"{target.label!r} has more than two classes.", "Name the categories of one class.")
    return np.equal(classes_of(table, target), 1)
