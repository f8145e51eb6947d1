"""The noise on each cell of a table with weights has its own promised law, from rows to the sum over all parties.

What is promised is computed here from the weights alone: scale 2 w_max / (w epsilon_s), or, with a delta, squares of
w_max / (w rho_s). The law of another weight, and scales that are 30 % off, are rejected.
"""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from synod.common.privacy.coins import Coins
from synod.common.privacy.cost import Cost
from synod.common.protocol.queries.marginals import SumMarginals, Weights
from synod.common.protocol.steps import Step
from synod.common.study.study import Study
from synod.curator.network.graph import Network, Pair
from synod.curator.network.groups import ask_tables
from synod.party.answer import noisy_values
from synod.party.count.tables import exact_counts
from tests.support.laws import OFF_BY, accepts, accepts_gaussian
from tests.support.studies import categorical, draw_columns, make_study

pytestmark = pytest.mark.slow

SIZES = (24, 4, 25)
WEIGHTS = (6, 1, 3, 6)
"""Of the second feature, in the middle of the first table and at the end of the second."""
QUERY = SumMarginals(((0, 1, 2), (0, 1)), (), (2, 1), (Weights(1, WEIGHTS), Weights(1, WEIGHTS[::-1])))
DRAWS = 40
EPSILON, RHO = Fraction(3, 2), Fraction(1, 20)


def study_of(parties: int, collusion: int) -> Study:
    names = tuple(f"p{place}" for place in range(parties))
    schema = [categorical(f"x{place}", size) for place, size in enumerate(SIZES)]
    method = {"name": "dp-subn", "encoding": "vanilla"}
    return make_study(names=names, rows=(50,) * parties, schema=schema, method=method, collusion=collusion)


def draw_noise(study: Study, cost: Cost, query: SumMarginals) -> list[NDArray[np.int64]]:
    """Released minus true of each table, one row for each draw."""
    step = Step("asked", "asking", query.kind, study.party_names, cost, query.size(study))
    terms = query.terms(step, study)
    tables = [draw_columns(study, name) for name in study.party_names]
    exact = np.sum([exact_counts(query, study, table) for table in tables], axis=0)
    noise = []
    for number in range(DRAWS):
        keys = [bytes([number, party]).ljust(32, b"\1") for party in range(len(tables))]
        answers = [
            noisy_values(query, study, table, terms, coins=Coins(key)) for table, key in zip(tables, keys, strict=True)
        ]
        noise.append(np.sum(answers, axis=0) - exact)
    return query.split_tables(np.stack(noise, axis=1), study)


def by_weight(
    noise: NDArray[np.int64], shape: tuple[int, ...], weights: tuple[int, ...]
) -> dict[int, NDArray[np.int64]]:
    """The draws of each weight; the weighted feature is the second."""
    cube = noise.reshape(*shape, -1)
    return {
        weight: np.concatenate([cube[:, value].ravel() for value, own in enumerate(weights) if own == weight])
        for weight in set(weights)
    }


@pytest.mark.parametrize(("parties", "collusion"), [(3, 1), (2, 0), (1, 0)])
def test_every_weight_has_its_own_laplace_law(parties: int, collusion: int) -> None:
    first, second = draw_noise(study_of(parties, collusion), Cost.pure(EPSILON), QUERY)
    shape = Fraction(parties, parties - collusion)
    for noise, cells, weights, part in (
        (first, SIZES, WEIGHTS, Fraction(2, 3)),
        (second, SIZES[:2], WEIGHTS[::-1], Fraction(1, 3)),
    ):
        for weight, drawn in by_weight(noise, cells, weights).items():
            scale = 2 * 6 / (weight * EPSILON * part)
            assert accepts(drawn, scale, shape)
            if len(drawn) < 10_000:
                continue  # too few to tell scales apart
            for factor in OFF_BY:
                assert not accepts(drawn, scale * factor, shape)
            for other in set(WEIGHTS) - {weight}:
                assert not accepts(drawn, 2 * 6 / (other * EPSILON * part), shape)


def test_every_weight_has_its_own_gaussian_law() -> None:
    first, _ = draw_noise(study_of(3, 1), Cost.concentrated(RHO), QUERY)
    for weight, drawn in by_weight(first, SIZES, WEIGHTS).items():
        square = Fraction(6) / (weight * RHO * Fraction(2, 3)) / 2
        assert accepts_gaussian(drawn, square, 3)
        for factor in OFF_BY:
            assert not accepts_gaussian(drawn, square * factor, 3)


def test_noise_without_weights_is_told_apart() -> None:
    """So that the tests above can fail: cells of a small weight would have too little noise."""
    first, _ = draw_noise(study_of(3, 1), Cost.pure(EPSILON), replace(QUERY, weights=()))
    scale = 2 / (EPSILON * Fraction(2, 3))
    for weight, drawn in by_weight(first, SIZES, WEIGHTS).items():
        assert accepts(drawn, scale, Fraction(3, 2))
        assert weight == 6 or not accepts(drawn, scale * 6 / weight, Fraction(3, 2))


def test_the_noise_of_two_cells_is_independent() -> None:
    """Draws of one law are made at once and put into many cells; none of them is put into two."""
    first, _ = draw_noise(study_of(1, 0), Cost.pure(EPSILON), QUERY)
    cube = first.reshape(*SIZES, DRAWS)
    left, right = cube[:, 0].ravel().astype(float), cube[:, 3].ravel().astype(float)
    assert abs(np.corrcoef(left, right)[0, 1]) < 4 / np.sqrt(len(left))
    assert abs(np.corrcoef(left[1:], left[:-1])[0, 1]) < 4 / np.sqrt(len(left))


def test_tables_of_a_network_with_groups_have_the_law_of_their_group_and_weight() -> None:
    """The query as hpprivbayes makes it: the sensitive table has a quarter of the cost, the other three quarters, in
    which its child's values have weights. The law of the other group is rejected.
    """
    network = Network((Pair(0, ()), Pair(1, (0,)), Pair(2, (0,))))
    query = ask_tables(network, {2}, {1: WEIGHTS}, (Decimal("0.15"), Decimal("0.45")))
    assert query.sets == ((0, 1), (0, 2))
    other, sensitive = draw_noise(study_of(3, 1), Cost.pure(EPSILON), query)
    shape, quarter = Fraction(3, 2), Fraction(1, 4)
    assert accepts(sensitive.ravel(), 2 / (EPSILON * quarter), shape)
    for factor in (*OFF_BY, quarter / (1 - quarter)):
        assert not accepts(sensitive.ravel(), 2 / (EPSILON * quarter) * factor, shape)
    for weight, drawn in by_weight(other, SIZES[:2], WEIGHTS).items():
        scale = 2 * 6 / (weight * EPSILON * (1 - quarter))
        assert accepts(drawn, scale, shape)
        assert not accepts(drawn, 3 * scale, shape)
