"""The fit against private-pgm (`mbi`): the same loss on the same tree gives the same marginals.

mbi has no prior, so ours counts almost nothing here; both then go from the uniform table towards the minimum.
"""

from typing import Any

import numpy as np
import pytest

from synod.curator.inference.descent import fit
from synod.curator.inference.junction import JunctionTree
from synod.curator.inference.measurements import Measurement, SignedSums
from synod.curator.inference.pairs import pair_tables
from synod.curator.inference.propagation import propagate
from tests.support.joints import random_measurements, random_potentials, tree_of

ROWS = 500.0
NAMES = ["ring", "two parts"]


@pytest.fixture
def mbi(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    return pytest.importorskip("mbi", reason="private-pgm is not installed")


def domain_of(mbi: Any, tree: JunctionTree) -> Any:
    return mbi.Domain([str(attribute) for attribute in range(len(tree.sizes))], list(tree.sizes))


def named(attributes: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(map(str, attributes))


def translate(mbi: Any, measured: Measurement | SignedSums) -> Any:
    deviation = float(np.sqrt(np.max(measured.variance)))
    if isinstance(measured, Measurement):
        return mbi.LinearMeasurement(measured.values.reshape(-1), named(measured.attributes), deviation)
    signs = measured.signs().reshape(len(measured.values), -1)
    return mbi.LinearMeasurement(
        measured.values, named(measured.attributes), deviation, query=lambda factor: signs @ factor.datavector()
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_fit_is_that_of_mbi(mbi: Any, name: str) -> None:
    tree = tree_of(name)
    measurements = [m for m in random_measurements(tree, ROWS, 30) if tree.home(m.attributes) is not None]
    base = [np.full(size, 1 / size) for size in tree.sizes]
    ours = fit(tree, ROWS, measurements, base, 1e-6, iterations=6000)
    translated = [translate(mbi, measured) for measured in measurements]
    theirs = mbi.estimation.MirrorDescent().estimate(domain_of(mbi, tree), translated, known_total=ROWS, iters=1000)
    for pair, table in pair_tables(tree, ours.tables).items():
        found = np.asarray(theirs.project(named(pair)).datavector(flatten=False)) / ROWS
        assert np.abs(table - found).max() < 2e-3, pair


@pytest.mark.parametrize("name", NAMES)
def test_propagation_is_that_of_mbi(mbi: Any, name: str) -> None:
    tree = tree_of(name)
    domain, potentials = domain_of(mbi, tree), random_potentials(tree, 31)
    cliques = [named(clique) for clique in tree.cliques]
    factors = {c: mbi.Factor(domain.project(c), p) for c, p in zip(cliques, potentials, strict=True)}
    theirs = mbi.marginal_oracles.message_passing_shafer_shenoy(mbi.CliqueVector(domain, cliques, factors))
    for clique, table in zip(cliques, propagate(tree, potentials)[1], strict=True):
        assert np.allclose(table, np.asarray(theirs[clique].datavector(flatten=False)), atol=1e-12)
