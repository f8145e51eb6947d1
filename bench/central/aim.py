"""AIM, central: McKenna, Mullins, Sheldon and Miklau, "AIM: an adaptive and iterative mechanism", 2022.

All one-way tables first; then round by round one table of the workload's attributes or pairs, chosen by how far the
model is from it less what its noise would add, and measured. When a round teaches less than its noise, the next ones
get four times the rho. The workload is all 1-way and 2-way marginals.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from bench.central.place import (
    MEAN_ABSOLUTE,
    Floats,
    Integers,
    Place,
    base_of,
    draw,
    fit_measured,
    marginals_of,
    ones_and_pairs,
)
from synod.curator.inference.junction import Attributes, tree_cells
from synod.curator.inference.measurements import Measurement

ROUNDS_PER_ATTRIBUTE = 16
MEASURED_PART = 0.9
ANNEALING = 4.0
MODEL_CELLS = 1_000_000
ROUND_ITERATIONS = 150
LAST_ITERATIONS = 1_000


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds the time of a run: cells of the junction tree, and the iterations of each fit and of the last."""

    model_cells: int = MODEL_CELLS
    round_iterations: int = ROUND_ITERATIONS
    last_iterations: int = LAST_ITERATIONS


USUAL_LIMITS = Limits()


def publish_aim(place: Place, limits: Limits = USUAL_LIMITS) -> list[Integers]:
    """As many rows as there are, in the columns' own codes."""
    features = len(place.sizes)
    rho = place.rho / (ROUNDS_PER_ATTRIBUTE * features)
    measured = [place.measure((feature,), MEASURED_PART * rho) for feature in range(features)]
    base = base_of(measured, place.rows)
    model = fit_measured(place.sizes, place.rows, measured, base, iterations=limits.round_iterations)
    found = marginals_of(model)
    is_last = False
    while not is_last:
        left = place.rho - place.spent
        is_last = left <= 2 * rho
        rho = left if is_last else rho
        chosen = choose_table(place, measured, found, rho, limits.model_cells)
        measured.append(place.measure(chosen, MEASURED_PART * rho))
        iterations = limits.last_iterations if is_last else limits.round_iterations
        model = fit_measured(place.sizes, place.rows, measured, base, iterations=iterations, start=model)
        before, found = found, marginals_of(model)
        if teaches_little(place, before[chosen], found[chosen], rho):
            rho *= ANNEALING
    return draw(model.tree, model.tables, place.rows, rng=place.rng)


def choose_table(
    place: Place, measured: Sequence[Measurement], found: Mapping[Attributes, Floats], rho: float, cells: int
) -> Attributes:
    """The table that the model misses most, privately, among those that keep the model small: of the limit, only the
    part that was spent of rho may be used.

    Guarantee: a score moves by at most its weight times `absolute` with one row.
    """
    deviation = place.deviation(MEASURED_PART * rho)
    most = cells * (place.spent + rho) / place.rho
    asked = [one.attributes for one in measured]
    scores = {
        own: weigh(own, len(place.sizes)) * score_table(place, own, found[own], deviation)
        for own in ones_and_pairs(len(place.sizes))
        if len(own) == 1 or own in asked or tree_cells(place.sizes, [*asked, own], int(most)) <= most
    }
    sensitivity = place.neighbours.absolute * max(weigh(own, len(place.sizes)) for own in scores)
    return place.choose(scores, sensitivity, (1 - MEASURED_PART) * rho)


def weigh(attributes: Attributes, features: int) -> int:
    """How much of the workload is about these attributes: the attributes that each of its tables shares with them."""
    return sum(len(set(attributes) & set(own)) for own in ones_and_pairs(features))


def score_table(place: Place, attributes: Attributes, shares: Floats, deviation: float) -> float:
    """The L1 distance of the model's table from the true one, less the noise that is expected in a measured one."""
    missed = float(np.abs(place.count(attributes) - place.rows * shares).sum())
    return missed - MEAN_ABSOLUTE * deviation * prod(shares.shape)


def teaches_little(place: Place, before: Floats, after: Floats, rho: float) -> bool:
    """Whether a measured table moved the model by less than its noise."""
    noise = MEAN_ABSOLUTE * place.deviation(MEASURED_PART * rho) * after.size
    return float(np.abs(after - before).sum()) * place.rows <= noise
