"""The fit: a distribution on a junction tree close to all released numbers, and to independence where they are silent.

It minimises sum of squared residual / (2 variance) + prior_weight KL(p || product of the base one-way tables) by
mirror descent with the prior inside the step (composite mirror descent, Duchi et al. 2010; on marginals, McKenna,
Sheldon and Miklau 2019). The potentials move along the loss's derivative, so they stay sums of small tables and
no clique potential is ever kept. Released numbers only: post-processing, free; no randomness.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synod.curator.inference.junction import Attributes, JunctionTree, expand_table
from synod.curator.inference.loss import Loss, make_loss
from synod.curator.inference.measurements import Floats, Layout, Measurement, SignedSums, choose_factors, make_layout
from synod.curator.inference.propagation import propagate
from synod.curator.inference.sweeps import Sweeper, arrange, make_sweeper

SMALLEST_BASE = 1e-12
SMALLEST_WEIGHT = 1e-300  # so that there is a first step where nothing was measured
LENGTHEN, SHORTEN = 1.3, 0.5
WARM_STEP = 0.3  # a step that was right on another tree, with some care
MOST_FAILURES = 20
SETTLED = 1e-6  # a relative gain below this counts as none...
SETTLED_AFTER = 40  # ...once so many iterations were made,
SETTLED_TIMES = 5  # and ends the fit when it happened more often than this in a row.


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A fitted model.

    Attributes:
        tables: each clique's probabilities.
        potentials: small tables by their attributes, ascending; the model is the base times exp(their sum).
        step: the last step, for the next fit.
        iterations: how many were made.
        loss: what was minimised, at the end.
    """

    tree: JunctionTree
    tables: tuple[Floats, ...]
    potentials: dict[Attributes, Floats]
    step: float
    iterations: int
    loss: float


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """What is minimised: `base` holds log-probabilities over the cells of the layout, as `sweeper` adds them up."""

    sweeper: Sweeper
    layout: Layout
    loss: Loss
    base: Floats
    rows: float
    prior_weight: float

    def evaluate(self, potentials: Floats) -> tuple[float, Floats]:
        """The objective, and the loss's derivative by each cell's count."""
        log_total, marginals = self.sweeper.sweep(self.layout.split(self.base + potentials))
        shares = np.concatenate([marginal.reshape(-1) for marginal in marginals])
        divergence = float(potentials @ shares) - log_total
        loss, gradient = self.loss.evaluate(self.rows * shares)
        return loss + self.prior_weight * divergence, gradient


def fit(
    tree: JunctionTree,
    rows: float,
    measurements: Sequence[Measurement | SignedSums],
    base: Sequence[Floats],
    prior_weight: float = 40.0,
    *,
    iterations: int,
    start: Fitted | None = None,
) -> Fitted:
    """The model after at most so many iterations.

    Args:
        tree: its cliques are the model's.
        rows: the public number of rows.
        measurements: those that lie inside no clique are left out.
        base: for each attribute the one-way probabilities of the prior.
        prior_weight: what the divergence from the base counts, in units of the loss.
        iterations: the most; stopping early is wanted, because convergence fits noise.
        start: an earlier model, perhaps on another tree: its potentials are taken over where they fit in a clique.
    """
    problem = _pose(tree, rows, measurements, base, prior_weight)
    potentials = _take_over(problem.layout, tree, start)
    used = [measured for measured in measurements if tree.home(measured.attributes) is not None]
    step = 1 / (rows * sum((1 / float(np.min(measured.variance)) for measured in used), start=SMALLEST_WEIGHT))
    if start is not None:
        step = max(step, WARM_STEP * start.step)
    found, step, made, loss = _descend(problem, potentials, step, iterations)
    tables = tuple(_clique_tables(tree, problem.layout, problem.base + found))
    return Fitted(tree, tables, _name_potentials(problem.layout, found), step, made, loss)


def _pose(
    tree: JunctionTree,
    rows: float,
    measurements: Sequence[Measurement | SignedSums],
    base: Sequence[Floats],
    prior_weight: float,
) -> _Problem:
    sweeper = make_sweeper(tree, choose_factors(tree, measurements))
    layout = make_layout(tree.sizes, [arrange(attributes, sweeper.ranks) for attributes in sweeper.factors])
    logs = np.zeros(layout.cells)
    for attribute, shares in enumerate(base):
        safe = np.maximum(shares, SMALLEST_BASE)
        span, spread = layout.spread(np.log(safe / safe.sum()), attribute)
        logs[span] += spread
    return _Problem(sweeper, layout, make_loss(layout, measurements), logs, rows, prior_weight)


def _descend(problem: _Problem, potentials: Floats, step: float, iterations: int) -> tuple[Floats, float, int, float]:
    """Longer steps after each gain, half the step after each loss, until nothing is gained."""
    objective, gradient = problem.evaluate(potentials)
    shrinkage = problem.prior_weight / problem.rows
    made = failures = settled = 0
    while made < iterations and failures <= MOST_FAILURES and settled <= SETTLED_TIMES:
        made += 1
        candidate = (potentials - step * gradient) / (1 + step * shrinkage)
        reached, slope = problem.evaluate(candidate)
        if not reached <= objective:
            step, failures = step * SHORTEN, failures + 1
            continue
        small = objective - reached < SETTLED * max(abs(reached), 1.0) and made > SETTLED_AFTER
        potentials, objective, gradient = candidate, reached, slope
        step, failures, settled = step * LENGTHEN, 0, settled + 1 if small else 0
    return potentials, step, made, objective


def _take_over(layout: Layout, tree: JunctionTree, start: Fitted | None) -> Floats:
    """The potentials of an earlier model over the cells of this one's factors."""
    taken = np.zeros(layout.cells)
    for attributes, table in start.potentials.items() if start else ():
        held = [factor for factor, cells in enumerate(layout.factors) if set(attributes) <= set(cells)]
        if held:
            axes = layout.factors[held[0]]
            inner = tuple(attribute for attribute in axes if attribute in attributes)
            ordered = table.transpose([attributes.index(attribute) for attribute in inner])
            spread = np.broadcast_to(expand_table(ordered, inner, axes), tree.shape(axes))
            taken[layout.span(held[0])] += spread.reshape(-1)
    return taken


def _name_potentials(layout: Layout, cells: Floats) -> dict[Attributes, Floats]:
    """Each factor's potentials by its attributes, ascending."""
    return {
        tuple(sorted(axes)): np.ascontiguousarray(table.transpose(np.argsort(axes)))
        for axes, table in zip(layout.factors, layout.split(cells), strict=True)
    }


def _clique_tables(tree: JunctionTree, layout: Layout, cells: Floats) -> list[Floats]:
    """The probabilities of every clique, with axes ascending."""
    totals = [np.zeros(tree.shape(clique)) for clique in tree.cliques]
    for attributes, potential in _name_potentials(layout, cells).items():
        home = tree.home(attributes)
        assert home is not None
        totals[home] += expand_table(potential, attributes, tree.cliques[home])
    return propagate(tree, totals)[1]
