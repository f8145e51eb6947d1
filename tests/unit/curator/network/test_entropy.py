"""Tables of largest entropy: closed forms, a literal twin, many at once as one by one."""

from itertools import combinations, product
from math import prod

import numpy as np
import pytest
from numpy.typing import NDArray

from synod.curator.network.entropy import SWEEPS, fit_largest_entropy

Floats = NDArray[np.float64]
SHAPES = [(2, 3), (2, 2, 2), (3, 2, 4), (2, 3, 2, 2)]


def margins_of(joint: Floats) -> dict[tuple[int, int], Floats]:
    pairs = list(combinations(range(joint.ndim), 2))
    others = [tuple(axis for axis in range(joint.ndim) if axis not in pair) for pair in pairs]
    return {pair: joint.sum(axis=rest)[..., None] for pair, rest in zip(pairs, others, strict=True)}


def fit_by_cells(margins: dict[tuple[int, int], Floats], shape: tuple[int, ...]) -> Floats:
    """The same, cell by cell, for one table."""
    cells = {cell: 1.0 / prod(shape) for cell in product(*map(range, shape))}
    for _ in range(SWEEPS):
        for (i, j), target in margins.items():
            current = {
                codes: sum(mass for cell, mass in cells.items() if (cell[i], cell[j]) == codes)
                for codes in product(range(shape[i]), range(shape[j]))
            }
            for cell in cells:
                codes = cell[i], cell[j]
                cells[cell] *= float(target[codes][0]) / current[codes] if current[codes] else 0.0
    table = np.zeros(shape)
    for cell, mass in cells.items():
        table[cell] = mass
    return table


@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_the_literal_twin(shape: tuple[int, ...]) -> None:
    joint = np.random.default_rng(1).dirichlet(np.full(prod(shape), 0.5)).reshape(shape)
    margins = margins_of(joint)
    assert fit_largest_entropy(margins, shape)[..., 0] == pytest.approx(fit_by_cells(margins, shape), abs=1e-4)


def test_a_chain_has_its_closed_form() -> None:
    """Where x and z are independent given y, the table of largest entropy is p(x, y) p(y, z) / p(y)."""
    rng = np.random.default_rng(2)
    xy, zy = rng.dirichlet(np.ones(6)).reshape(2, 3), rng.dirichlet(np.ones(4), 3)
    joint = xy[:, :, None] * zy[None]
    assert fit_largest_entropy(margins_of(joint), (2, 3, 4), sweeps=200)[..., 0] == pytest.approx(joint, abs=1e-4)


@pytest.mark.parametrize("shape", SHAPES)
def test_many_at_once_are_as_one_by_one(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    all_margins = [margins_of(rng.dirichlet(np.ones(prod(shape))).reshape(shape)) for _ in range(4)]
    stacked = {pair: np.concatenate([own[pair] for own in all_margins], axis=-1) for pair in all_margins[0]}
    together = fit_largest_entropy(stacked, shape)
    for place, own in enumerate(all_margins):
        assert together[..., place] == pytest.approx(fit_largest_entropy(own, shape)[..., 0], abs=1e-4)


def test_a_margin_without_mass_stays_without() -> None:
    joint = np.zeros((2, 2, 2))
    joint[0, 0, 0] = joint[1, 1, 1] = 0.5
    fitted = fit_largest_entropy(margins_of(joint), (2, 2, 2))[..., 0]
    assert fitted == pytest.approx(joint)
    assert np.isfinite(fitted).all()
