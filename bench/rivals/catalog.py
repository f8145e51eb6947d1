"""The rivals by name, and one measurement of each: figures by metric."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Protocol

import numpy as np

from bench.rivals.answers import Answers, mean_distance
from bench.rivals.classifiers import measure_erm, measure_majority
from bench.rivals.fourier import answer_fourier
from bench.rivals.mwem import answer_mwem
from bench.rivals.plain import answer_contingency, answer_laplace, answer_uniform
from bench.rivals.priview import answer_priview
from synod.deploy.evaluate.classifiers import Target
from synod.deploy.evaluate.tables import Table


class Rival(Protocol):
    """Answers all marginals of one order of a table with a budget of epsilon; refuses a table that it cannot hold."""

    def __call__(self, table: Table, order: int, epsilon: float, *, rng: np.random.Generator) -> Answers:
        """One table of shares for each set of attributes, in the order of `list_sets`."""
        ...


CUT_CONTINGENCY = "Contingency, cells cut"
RIVALS: dict[str, Rival] = {
    "Laplace": answer_laplace,
    "Fourier": answer_fourier,
    "Uniform": answer_uniform,
    "Contingency": answer_contingency,
    CUT_CONTINGENCY: partial(answer_contingency, is_cut=True),
    "MWEM": answer_mwem,
    "PriView, pairs": partial(answer_priview, strength=2),
    "PriView, pairs, ripple": partial(answer_priview, strength=2, is_rippled=True),
    "PriView, triples": partial(answer_priview, strength=3),
    "PriView, triples, ripple": partial(answer_priview, strength=3, is_rippled=True),
}
CLASSIFIERS: dict[str, tuple[Callable[..., float], bool]] = {
    "Majority": (measure_majority, True),
    "PrivateERM": (measure_erm, True),
    "PrivateERM (single)": (measure_erm, False),
}
"""How each is measured, and whether all targets share the budget; `single` has all of it for each target."""


def measure_rival(name: str, table: Table, orders: Iterable[int], epsilon: float, *, seed: int) -> dict[str, float]:
    """The mean distance for each order; each is a set of queries of its own, answered with the whole budget."""
    return {
        f"tvd{order}": mean_distance(
            table, order, RIVALS[name](table, order, epsilon, rng=np.random.default_rng([seed, order]))
        )
        for order in orders
    }


def measure_classifier(
    name: str, table: Table, targets: Sequence[Target], epsilon: float, *, seed: int
) -> dict[str, float]:
    """The share of tested rows that a rival gets wrong, for each target."""
    measure, is_shared = CLASSIFIERS[name]
    own = epsilon / len(targets) if is_shared else epsilon
    return {f"wrong {target.label}": measure(table, target, own, seed=seed) for target in targets}
