"""Networks refuse cycles; the choice of parents equals an exhaustive one."""

import math
from itertools import chain, combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synod.common.runtime.errors import SynodError
from synod.curator.network.graph import Bound, Features, Network, Pair, select_network
from synod.curator.network.levels import Levels


@st.composite
def networks(draw: st.DrawFn) -> Network:
    order = draw(st.permutations(range(draw(st.integers(1, 7)))))
    parents = [draw(st.permutations(order[:place])) for place in range(len(order))]
    counts = [draw(st.integers(0, min(4, place))) for place in range(len(order))]
    triples = zip(order, parents, counts, strict=True)
    return Network(tuple(Pair(feature, tuple(sets[:count])) for feature, sets, count in triples))


def noisy_score(feature: int, parents: Features) -> float:
    """A fixed but arbitrary number with many ties."""
    return float(np.random.default_rng([feature, *sorted(parents)]).integers(0, 5))


@pytest.mark.parametrize(
    "pairs",
    [
        (Pair(0, (1,)), Pair(1, (0,))),
        (Pair(0, (0,)),),
        (Pair(1, (0,)), Pair(0, ())),
        (Pair(0, ()), Pair(0, ())),
        (Pair(0, ()), Pair(1, (0, 0))),
        (Pair(0, (7,)),),
    ],
)
def test_what_is_not_acyclic_and_in_order_is_refused(pairs: tuple[Pair, ...]) -> None:
    with pytest.raises(SynodError):
        Network(pairs)


def test_a_network_knows_its_edges_and_degree() -> None:
    network = Network((Pair(2, ()), Pair(0, (2,)), Pair(1, (2, 0))))
    assert network.edges == {(2, 0), (2, 1), (0, 1)}
    assert (network.degree, Network(()).degree) == (2, 0)
    assert network.features == (2, 0, 1)
    assert network.pairs[2].family == (1, 2, 0)


def test_the_first_k_tables_follow_from_the_next() -> None:
    network = Network((Pair(3, ()), Pair(1, (3,)), Pair(0, (3, 1)), Pair(2, (1, 3)), Pair(4, (0,))))
    assert network.asked_families() == ((0, 3, 1), (2, 1, 3), (4, 0))


@given(networks())
def test_every_family_lies_in_an_asked_one_and_no_asked_one_in_another(network: Network) -> None:
    asked = [set(family) for family in network.asked_families()]
    assert all(any(set(pair.family) <= family for family in asked) for pair in network.pairs)
    assert not any(i != j and a <= b for i, a in enumerate(asked) for j, b in enumerate(asked))
    assert set(network.asked_families()) <= {pair.family for pair in network.pairs}


@given(networks(), st.integers(0, 3))
def test_the_choice_is_the_best_of_all_subsets(frontier: Network, degree: int) -> None:
    chosen = select_network(frontier, noisy_score, Bound((2,) * len(frontier.pairs), degree))
    assert chosen.features == frontier.features
    assert chosen.degree <= degree
    assert chosen.edges <= frontier.edges
    for pair, wide in zip(chosen.pairs, frontier.pairs, strict=True):
        sets = chain.from_iterable(combinations(sorted(wide.parents), count) for count in range(degree + 1))
        ranked = sorted(sets, key=lambda parents: (-noisy_score(pair.feature, parents), len(parents), parents))
        assert pair.parents == ranked[0]


@given(networks(), st.integers(0, 64))
def test_the_choice_stays_within_cells(frontier: Network, cells: int) -> None:
    sizes = tuple(2 + feature for feature in range(len(frontier.pairs)))
    chosen = select_network(frontier, noisy_score, Bound(sizes, cells=cells))
    for pair in chosen.pairs:
        assert not pair.parents or math.prod(sizes[feature] for feature in pair.family) <= cells


def test_scores_that_differ_in_their_last_digits_are_equal() -> None:
    frontier = Network((Pair(0, ()), Pair(1, ()), Pair(2, (0, 1))))
    scores = {(): 0.0, (0,): 0.3, (1,): 0.1 + 0.2, (0, 1): 0.3 + 1e-12}
    chosen = select_network(
        frontier, lambda feature, parents: scores[parents] if feature == 2 else 0.0, Bound((2,) * 3, 2)
    )
    assert chosen.pairs[2] == Pair(2, (0,))


def test_parents_that_no_table_covers_are_not_chosen() -> None:
    frontier = Network((Pair(0, ()), Pair(1, (0,))))
    assert select_network(frontier, lambda feature, parents: -math.inf, Bound((2,) * 2, 1)).edges == frozenset()


# Levels: features of 4, 6, 2 and 3 values; 4 is a coarser level of the first, 5 and 6 of the second

LEVELS = Levels((0, 1, 2, 3, 0, 1, 1), ((), (), (), (), (0, 0, 1, 1), (0, 0, 1, 1, 2, 2), (0, 0, 0, 0, 1, 1)))
LEVEL_SIZES = (4, 6, 2, 3, 2, 3, 2)


def told(feature: int, parents: Features) -> float:
    """A number that larger and finer sets never have less of, as information does."""
    weights = np.random.default_rng(feature).integers(1, 9, 4)
    return float(sum(weights[LEVELS.base(parent)] * LEVEL_SIZES[parent] for parent in parents))


@pytest.mark.parametrize("cells", range(1, 150))
@pytest.mark.parametrize("finest", [(0, 1, 2), (4, 5, 2), (0, 6, 2), (1,), ()])
def test_the_choice_over_levels_is_the_best_of_all_sets_by_exhaustion(finest: Features, cells: int) -> None:
    bound = Bound(LEVEL_SIZES, cells=cells)
    frontier = Network((Pair(0, ()), Pair(1, ()), Pair(2, ()), Pair(3, finest)), LEVELS)
    chosen = select_network(frontier, told, bound)
    assert chosen.levels == LEVELS
    parents = chosen.pairs[3].parents
    chains = [(None, *(one for one in LEVELS.chain(LEVELS.base(level)) if one >= level)) for level in finest]
    sets = [tuple(one for one in chosen if one is not None) for chosen in product(*chains)]
    admitted = [one for one in sets if bound.admits(3, one)]
    assert parents in [LEVELS.order(one) for one in admitted]
    assert told(3, parents) == max(told(3, one) for one in admitted)
