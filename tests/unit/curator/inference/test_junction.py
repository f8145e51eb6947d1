"""Junction trees against the definition: covering, maximal, connected; elimination against a slow twin."""

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synod.curator.inference.junction import (
    JunctionTree,
    build_tree,
    expand_table,
    reduce_table,
    tree_cells,
    triangulate,
)
from tests.support.joints import SHAPES

Graph = tuple[list[int], list[tuple[int, ...]]]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    sizes = draw(st.lists(st.sampled_from([1, 2, 3, 5]), min_size=1, max_size=9))
    attributes = st.integers(0, len(sizes) - 1)
    sets = draw(
        st.lists(st.sets(attributes, min_size=1, max_size=3).map(lambda held: tuple(sorted(held))), max_size=14)
    )
    return sizes, sets


def eliminate_slowly(sizes: list[int], sets: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Elimination on sets of edges, with every clique looked for in every other."""
    around = {a: {b for held in sets if a in held for b in held} - {a} for a in range(len(sizes))}
    cliques: list[set[int]] = []
    while around:
        chosen = min(around, key=lambda a: (prod(sizes[b] for b in around[a] | {a}), a))
        left = around.pop(chosen)
        cliques.append(left | {chosen})
        for other in left:
            around[other] = (around[other] | left) - {other, chosen}
    earlier = [clique for place, clique in enumerate(cliques) if not any(clique <= c for c in cliques[:place])]
    return [tuple(sorted(clique)) for clique in earlier]


def check_tree(tree: JunctionTree, sets: list[tuple[int, ...]]) -> None:
    """The definition: sets and attributes covered, cliques maximal, those of one attribute connected."""
    cliques = [set(clique) for clique in tree.cliques]
    assert all(any(set(held) <= clique for clique in cliques) for held in sets)
    assert set().union(*cliques) == set(range(len(tree.sizes)))
    assert not any(a <= b for i, a in enumerate(cliques) for j, b in enumerate(cliques) if i != j)
    seen: set[int] = set()
    for number, place in enumerate(tree.order):
        parent = tree.parents[place]
        if number:
            assert parent in tree.order[:number]
            assert place in tree.children[parent]
            # What a clique shares with anything before it, it shares with its parent: running intersection.
            assert tree.separators[place] == tuple(sorted(cliques[place] & seen))
            assert set(tree.separators[place]) <= cliques[parent]
        seen |= cliques[place]
    assert sorted(tree.order) == list(range(len(cliques)))


@given(graphs())
def test_a_tree_is_a_junction_tree(graph: Graph) -> None:
    sizes, sets = graph
    check_tree(build_tree(sizes, sets), sets)


@given(graphs())
def test_elimination_is_that_of_its_slow_twin(graph: Graph) -> None:
    sizes, sets = graph
    cliques = triangulate(sizes, sets)
    assert cliques == eliminate_slowly(sizes, sets)
    cells = sum(prod(sizes[a] for a in clique) for clique in cliques)
    assert tree_cells(sizes, sets) == cells == build_tree(sizes, sets).cells


@given(graphs(), st.integers(0, 200))
def test_counting_ends_early_only_above_the_bound(graph: Graph, most: int) -> None:
    whole, early = tree_cells(*graph), tree_cells(*graph, most)
    assert early == whole if whole <= most else most < early <= whole


@pytest.mark.parametrize("seed", range(40))
def test_dense_graphs_are_eliminated_as_by_the_slow_twin(seed: int) -> None:
    """Many cliques of several attributes, which small random graphs seldom have."""
    rng = np.random.default_rng(seed)
    sizes = [int(size) for size in rng.choice([1, 2, 3, 5, 7], size=12)]
    sets = [tuple(int(a) for a in rng.choice(12, size=2, replace=False)) for _ in range(5 + seed // 2)]
    cliques = triangulate(sizes, sets)
    assert cliques == eliminate_slowly(sizes, sets)
    cells = [prod(sizes[a] for a in clique) for clique in cliques]
    assert tree_cells(sizes, sets) == sum(cells)
    check_tree(build_tree(sizes, sets), sets)
    for place in range(1, len(cells)):
        assert tree_cells(sizes, sets, sum(cells[:place])) == sum(cells[: place + 1])


@pytest.mark.parametrize("name", SHAPES)
def test_a_home_is_the_smallest_clique_that_holds_all(name: str) -> None:
    tree = build_tree(*SHAPES[name])
    for clique in tree.cliques:
        for wanted in (clique, clique[:1], clique[-2:]):
            home = tree.home(wanted)
            assert home is not None
            holding = [prod(tree.shape(held)) for held in tree.cliques if set(wanted) <= set(held)]
            assert set(wanted) <= set(tree.cliques[home])
            assert prod(tree.shape(tree.cliques[home])) == min(holding)


def test_attributes_of_no_common_clique_have_no_home() -> None:
    assert build_tree(*SHAPES["chain"]).home((0, 3)) is None


def test_the_root_is_the_largest_clique() -> None:
    tree = build_tree((2, 2, 9, 9, 2), ((0, 1), (1, 2), (2, 3), (3, 4)))
    assert tree.cliques[tree.order[0]] == (2, 3)
    assert tree.neighbours(tree.order[0]) == tree.children[tree.order[0]]


def test_tables_are_reduced_and_expanded_by_attributes() -> None:
    table = np.arange(24.0).reshape(2, 3, 4)
    assert np.array_equal(reduce_table(table, (1, 4, 6), (6, 1)), table.sum(axis=1))
    assert reduce_table(table, (1, 4, 6), (1, 4, 6)) is table
    assert expand_table(table.sum(axis=1), (1, 6), (1, 4, 6)).shape == (2, 1, 4)
