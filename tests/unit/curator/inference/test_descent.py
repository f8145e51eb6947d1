"""The fit against slow twins: the loss number by number, descent and minimum on the full joint table."""

import numpy as np
import pytest
from scipy.optimize import minimize

from synod.curator.inference.descent import Fitted, fit
from synod.curator.inference.junction import JunctionTree, build_tree, expand_table
from synod.curator.inference.loss import make_loss
from synod.curator.inference.measurements import Measurement, SignedSums, choose_factors, make_layout
from synod.curator.inference.pairs import pair_tables
from tests.support.joints import SHAPES, Floats, loss_of, normalize, random_measurements, sum_out, tree_of

ROWS = 500.0
Measured = list[Measurement | SignedSums]


@pytest.fixture(params=SHAPES)
def tree(request: pytest.FixtureRequest) -> JunctionTree:
    return tree_of(request.param)


def inside(tree: JunctionTree, measurements: Measured) -> Measured:
    return [measured for measured in measurements if tree.home(measured.attributes) is not None]


def base_of(tree: JunctionTree) -> list[Floats]:
    rng = np.random.default_rng(10)
    return [rng.dirichlet(np.full(size, 3.0)) for size in tree.sizes]


def product_of(base: list[Floats]) -> Floats:
    """The logarithm of the product of one-way tables."""
    everything = tuple(range(len(base)))
    return np.asarray(sum(expand_table(np.log(shares), (a,), everything) for a, shares in enumerate(base)))


def gradient_of(joint: Floats, measurements: Measured) -> Floats:
    """The derivative of the loss by the count of each possible row, number by number."""
    everything, total = tuple(range(joint.ndim)), np.zeros(joint.shape)
    for measured in measurements:
        table = ROWS * sum_out(joint, measured.attributes)
        if isinstance(measured, SignedSums):
            residual = np.einsum("ki,ij,kj->k", measured.left, table, measured.right) - measured.values
            slope = np.einsum("k,ki,kj->ij", residual / measured.variance, measured.left, measured.right)
        else:
            slope = (table - measured.values) / measured.variance
        total = total + expand_table(slope, measured.attributes, everything)
    return total


def objective_of(potential: Floats, product: Floats, measurements: Measured, weight: float) -> float:
    joint = normalize(potential)
    return loss_of(joint, ROWS, measurements) + weight * float((joint * (np.log(joint) - product)).sum())


def descend_slowly(tree: JunctionTree, measurements: Measured, weight: float, iterations: int) -> tuple[float, Floats]:
    """Mirror descent with one potential for each possible row."""
    product = product_of(base_of(tree))
    potential = np.zeros(tree.sizes)
    step = 1 / (ROWS * sum(1 / float(np.min(measured.variance)) for measured in measurements))
    objective = objective_of(product, product, measurements, weight)
    for _ in range(iterations):
        gradient = gradient_of(normalize(product + potential), measurements)
        candidate = (potential - step * gradient) / (1 + step * weight / ROWS)
        reached = objective_of(product + candidate, product, measurements, weight)
        if reached <= objective:
            potential, objective, step = candidate, reached, step * 1.3
        else:
            step *= 0.5
    return objective, normalize(product + potential)


def test_the_fit_takes_the_steps_of_its_slow_twin(tree: JunctionTree) -> None:
    measurements = random_measurements(tree, ROWS, 11)
    fitted = fit(tree, ROWS, measurements, base_of(tree), 40.0, iterations=30)
    objective, joint = descend_slowly(tree, inside(tree, measurements), 40.0, 30)
    assert fitted.iterations == 30
    assert fitted.loss == pytest.approx(objective, rel=1e-9)
    for clique, table in zip(tree.cliques, fitted.tables, strict=True):
        assert np.allclose(table, sum_out(joint, clique), atol=1e-9)


def test_the_fit_ends_at_the_minimum(tree: JunctionTree) -> None:
    measurements = random_measurements(tree, ROWS, 12)
    used, product = inside(tree, measurements), product_of(base_of(tree))
    fitted = fit(tree, ROWS, measurements, base_of(tree), 40.0, iterations=3000)

    def value(flat: Floats) -> tuple[float, Floats]:
        joint = normalize(flat.reshape(tree.sizes))
        slope = ROWS * gradient_of(joint, used) + 40.0 * (np.log(joint) - product)
        return objective_of(flat.reshape(tree.sizes), product, used, 40.0), (
            joint * (slope - float((joint * slope).sum()))
        ).reshape(-1)

    found = minimize(value, product.reshape(-1), jac=True, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-14})
    assert fitted.loss == pytest.approx(found.fun, rel=1e-4)
    for clique, table in zip(tree.cliques, fitted.tables, strict=True):
        assert np.allclose(table, sum_out(normalize(found.x.reshape(tree.sizes)), clique), atol=2e-3)


def test_the_loss_and_its_derivative(tree: JunctionTree) -> None:
    measurements = random_measurements(tree, ROWS, 13)
    joint = normalize(np.random.default_rng(13).normal(size=tree.sizes))
    factors = [tuple(reversed(factor)) for factor in choose_factors(tree, measurements)]
    layout = make_layout(tree.sizes, factors)
    loss = make_loss(layout, measurements)
    counts = np.concatenate([ROWS * sum_out(joint, factor).reshape(-1) for factor in factors])
    value, gradient = loss.evaluate(counts)
    assert value == pytest.approx(loss_of(joint, ROWS, inside(tree, measurements)), rel=1e-10)
    for cell in range(0, layout.cells, 3):
        moved = counts.copy()
        moved[cell] += 1e-3
        up = loss.evaluate(moved)[0]
        moved[cell] -= 2e-3
        assert gradient[cell] == pytest.approx((up - loss.evaluate(moved)[0]) / 2e-3, rel=1e-5, abs=1e-6)


def test_tables_of_three_attributes_are_fitted() -> None:
    tree = tree_of("triples")
    truth = normalize(np.random.default_rng(14).normal(size=tree.sizes))
    exact = Measurement((0, 1, 2), ROWS * sum_out(truth, (0, 1, 2)), 0.01)
    fitted = fit(tree, ROWS, [exact], base_of(tree), 1e-6, iterations=3000)
    home = tree.cliques.index((0, 1, 2))
    assert np.allclose(fitted.tables[home], sum_out(truth, (0, 1, 2)), atol=1e-4)


def test_without_measurements_the_base_comes_back(tree: JunctionTree) -> None:
    base = base_of(tree)
    fitted = fit(tree, ROWS, [], base, iterations=50)
    assert fitted.loss == pytest.approx(0, abs=1e-9)
    for (a, b), table in pair_tables(tree, fitted.tables).items():
        assert np.allclose(table, np.outer(base[a], base[b]))


def joint_of(fitted: Fitted, base: list[Floats]) -> Floats:
    """The model as its docstring says: the base times exp(sum of potentials)."""
    everything, total = tuple(range(len(base))), product_of(base)
    for attributes, table in fitted.potentials.items():
        total = total + expand_table(table, attributes, everything)
    return normalize(total)


def test_an_earlier_model_is_taken_over_on_a_larger_tree(tree: JunctionTree) -> None:
    measurements, base = random_measurements(tree, ROWS, 15), base_of(tree)
    earlier = fit(tree, ROWS, measurements, base, iterations=40)
    last = len(tree.sizes) - 1
    larger = build_tree(tree.sizes, [*tree.cliques, (0, last)])
    again = fit(larger, ROWS, measurements, base, iterations=0, start=earlier)
    joint = joint_of(earlier, base)
    assert np.allclose(joint_of(again, base), joint, atol=1e-12)
    for clique, table in zip(larger.cliques, again.tables, strict=True):
        assert np.allclose(table, sum_out(joint, clique), atol=1e-12)
    assert again.step >= 0.3 * earlier.step


def test_the_same_numbers_give_the_same_bytes() -> None:
    tree = tree_of("ring")
    measurements = random_measurements(tree, ROWS, 16)
    one, two = (fit(tree, ROWS, measurements, base_of(tree), iterations=60) for _ in range(2))
    assert [table.tobytes() for table in one.tables] == [table.tobytes() for table in two.tables]
    assert (one.loss, one.step) == (two.loss, two.step)
