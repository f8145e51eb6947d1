"""Small models with awkward trees, and the slow way to everything about them: the full joint table."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from synod.curator.inference.junction import JunctionTree, build_tree, expand_table
from synod.curator.inference.measurements import Measurement, SignedSums

Floats = NDArray[np.float64]
Shape = tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]
SHAPES: dict[str, Shape] = {
    "one attribute": ((3,), ()),
    "nothing joined": ((2, 1, 3), ()),
    "chain": ((1, 2, 3, 5), ((0, 1), (1, 2), (2, 3))),
    "two parts": ((2, 3, 2, 5, 1, 2), ((0, 1), (3, 5), (1, 4))),
    "one clique": ((2, 3, 5), ((0, 1), (1, 2), (0, 2))),
    "ring": ((2, 3, 2, 3, 2), ((0, 1), (1, 2), (2, 3), (3, 4), (0, 4))),
    "deep": ((2, 3, 2, 2, 3, 2, 1, 2), ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (2, 6), (6, 7))),
    "triples": ((2, 2, 3, 2, 2, 3), ((0, 1, 2), (2, 3), (3, 4, 5), (1, 4))),
    "star": ((5, 2, 3, 2, 3), ((0, 4), (1, 4), (2, 4), (3, 4))),
}


def tree_of(name: str) -> JunctionTree:
    """The junction tree of one of the shapes."""
    return build_tree(*SHAPES[name])


def random_potentials(tree: JunctionTree, seed: int, scale: float = 1.5) -> list[Floats]:
    """A potential for each clique."""
    rng = np.random.default_rng(seed)
    return [rng.normal(scale=scale, size=tree.shape(clique)) for clique in tree.cliques]


def join_potentials(tree: JunctionTree, potentials: Sequence[Floats]) -> Floats:
    """The sum of clique potentials for every possible row."""
    everything = tuple(range(len(tree.sizes)))
    total = np.zeros(tree.sizes)
    for clique, potential in zip(tree.cliques, potentials, strict=True):
        total = total + expand_table(potential, clique, everything)
    return total


def normalize(potential: Floats) -> Floats:
    """The probabilities of every possible row."""
    table = np.exp(potential - potential.max())
    shares: Floats = table / table.sum()
    return shares


def sum_out(joint: Floats, attributes: Sequence[int]) -> Floats:
    """The marginal of a full joint table, axes in the order given."""
    dropped = tuple(axis for axis in range(joint.ndim) if axis not in attributes)
    kept = sorted(attributes)
    summed: Floats = np.asarray(joint.sum(axis=dropped))
    return summed.transpose([kept.index(attribute) for attribute in attributes])


def random_measurements(tree: JunctionTree, rows: float, seed: int) -> list[Measurement | SignedSums]:
    """One-way tables twice, tables and signed sums of every other pair, with noise around a random truth."""
    rng = np.random.default_rng(seed)
    truth = rows * normalize(rng.normal(size=tree.sizes))
    found: list[Measurement | SignedSums] = []
    for attribute, size in enumerate(tree.sizes):
        counts = sum_out(truth, [attribute])
        found.append(Measurement((attribute,), counts + rng.normal(scale=3, size=size), 9.0))
        found.append(Measurement((attribute,), counts + rng.normal(scale=5, size=size), np.full(size, 25.0)))
    for number, (first, second) in enumerate(combinations(range(len(tree.sizes)), 2)):
        counts = sum_out(truth, [first, second])
        if number % 3 < 2:
            found.append(Measurement((first, second), counts + rng.normal(scale=4, size=counts.shape), 16.0))
        if number % 2 < 1:
            left, right = (rng.choice([-1.0, 1.0], size=(3, size)) for size in counts.shape)
            sums = np.einsum("ki,ij,kj->k", left, counts, right) + rng.normal(scale=8, size=3)
            found.append(SignedSums((first, second), left, right, sums, 64.0))
    return found


def loss_of(joint: Floats, rows: float, measurements: Sequence[Measurement | SignedSums]) -> float:
    """The sum of squared residual / (2 variance), number by number."""
    total = 0.0
    for measured in measurements:
        table = rows * sum_out(joint, measured.attributes)
        if isinstance(measured, SignedSums):
            found = np.array([x @ table @ y for x, y in zip(measured.left, measured.right, strict=True)])
        else:
            found = table
        total += float(((found - measured.values) ** 2 / (2 * measured.variance)).sum())
    return total
