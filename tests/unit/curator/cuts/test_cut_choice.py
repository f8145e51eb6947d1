"""The choice of a cut: the score against a literal twin and over all neighbours, the bound, ties, and what decides."""

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement, product
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synod.common.models.trees import Interval, Tree, children_of, codes_of
from synod.curator.cuts.choice import choose_cuts, number_parts, score_split

Row = tuple[int, int]


def literal_max(rows: Sequence[Row], parts: Sequence[Sequence[int]]) -> int:
    """Max as it is written: for each part, how often its most frequent class occurs."""
    total = 0
    for part in parts:
        classes = [own for code, own in rows if code in part]
        total += max((classes.count(own) for own in classes), default=0)
    return total


def count(rows: Sequence[Row], codes: int, classes: int) -> Any:
    table = np.zeros((codes, classes))
    for code, own in rows:
        table[code, own] += 1
    return table


rows_of = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), max_size=30)


@given(rows_of, st.lists(st.integers(0, 2), min_size=6, max_size=6))
def test_max_is_what_its_literal_twin_says(rows: list[Row], owners: list[int]) -> None:
    parts = [[code for code in range(6) if owners[code] == part] for part in sorted(set(owners))]
    assert score_split(parts, count(rows, 6, 3)) == literal_max(rows, parts)


def neighbours(rows: Sequence[Row], domain: Sequence[Row]) -> Iterator[list[Row]]:
    for place, other in product(range(len(rows)), domain):
        yield [*rows[:place], other, *rows[place + 1 :]]


@pytest.mark.parametrize(("children", "classes"), [(2, 2), (3, 2), (2, 3), (3, 3)])
def test_one_replaced_row_changes_max_by_one_and_its_gain_by_two(children: int, classes: int) -> None:
    """Over all pairs of neighbouring tables of four rows."""
    domain, parts = list(product(range(children), range(classes))), [[child] for child in range(children)]
    whole = [list(range(children))]
    changes, gains = set(), set()
    for rows in combinations_with_replacement(domain, 4):
        scores = [score_split(own, count(rows, children, classes)) for own in (parts, whole)]
        for other in neighbours(rows, domain):
            moved = [score_split(own, count(other, children, classes)) for own in (parts, whole)]
            changes.add(abs(scores[0] - moved[0]))
            gains.add(abs(scores[0] - scores[1] - moved[0] + moved[1]))
    assert max(changes) == 1
    assert max(gains) == 2


# The cut


def parts_of(groups: Sequence[int]) -> int:
    return max(groups) + 1


def cut(trees: dict[int, Tree], tables: dict[int, Any], splits: int = 100, most: int = 10**6) -> dict[int, Any]:
    return choose_cuts(trees, tables, specializations=splits, most_parts=most)


trees_of = st.recursive(
    st.just(0), lambda inner: st.lists(inner, min_size=2, max_size=4).map(tuple), max_leaves=9
) | st.integers(2, 9).map(lambda size: Interval(tuple(range(size))))


def number_codes(tree: Any, start: int = 0) -> tuple[Any, int]:
    if isinstance(tree, Interval):
        return Interval(tuple(code + start for code in tree.codes)), start + len(tree.codes)
    if isinstance(tree, int):
        return start, start + 1
    children = []
    for child in tree:
        numbered, start = number_codes(child, start)
        children.append(numbered)
    return tuple(children), start


def literal_cut(trees: dict[int, Tree], tables: dict[int, Any], splits: int, most: int) -> dict[int, list[Tree]]:
    """The slow twin: every node of every cut is scored anew for every split."""
    cuts = {attribute: [tree] for attribute, tree in trees.items()}
    for _ in range(splits):
        options = []
        for attribute, nodes in cuts.items():
            for node in nodes:
                children = children_of(node)
                grown = {**{a: len(own) for a, own in cuts.items()}, attribute: len(nodes) + len(children) - 1}
                if children and prod(grown.values()) <= most:
                    score = score_split([codes_of(child) for child in children], tables[attribute])
                    options.append((-score, attribute, codes_of(node)[0], node))
        if not options:
            break
        _, attribute, _, node = min(options, key=lambda option: option[:3])
        cuts[attribute] = [other for other in cuts[attribute] if other is not node] + list(children_of(node))
    return cuts


@given(st.lists(trees_of, max_size=4), st.integers(0, 8), st.integers(1, 60), st.integers(0, 999))
def test_the_bound_is_never_passed_and_the_slow_twin_agrees(
    shapes: list[Any], splits: int, most: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    numbered = [number_codes(shape) for shape in shapes]
    trees = {3 * place: tree for place, (tree, _) in enumerate(numbered)}
    tables = {3 * place: rng.integers(0, 4, (size, 2)).astype(float) for place, (_, size) in enumerate(numbered)}
    found = cut(trees, tables, splits, most)
    assert prod(map(parts_of, found.values())) <= most
    for attribute, groups in found.items():
        assert list(dict.fromkeys(groups)) == list(range(parts_of(groups))), "numbered by first occurrence"
        assert len(groups) == len(codes_of(trees[attribute]))
    slow = literal_cut(trees, tables, splits, most)
    assert found == {attribute: number_parts([codes_of(tree) for tree in own]) for attribute, own in slow.items()}


def test_without_splits_or_options_every_attribute_is_whole() -> None:
    tables = {0: np.ones((3, 2)), 1: np.ones((4, 2))}
    trees: dict[int, Tree] = {0: (0, 1, 2), 1: Interval((0, 1, 2, 3))}
    assert cut(trees, tables, splits=0) == {0: (0, 0, 0), 1: (0, 0, 0, 0)}
    assert cut(trees, tables, most=1) == {0: (0, 0, 0), 1: (0, 0, 0, 0)}
    assert cut({}, {}) == {}
    assert cut({5: 0}, {5: np.ones((1, 2))}) == {5: (0,)}


def test_the_attribute_that_decides_the_class_is_split_first() -> None:
    rows = np.array([[30.0, 0.0], [0.0, 30.0]])
    told, untold = rows, np.full((2, 2), 15.0)
    assert cut({0: (0, 1), 1: (0, 1)}, {0: untold, 1: told}, splits=1) == {0: (0, 0), 1: (0, 1)}
    assert cut({0: (0, 1), 1: (0, 1)}, {0: told, 1: untold}, splits=1) == {0: (0, 1), 1: (0, 0)}


def test_ties_go_to_the_first_attribute_and_then_to_the_first_code() -> None:
    even = np.ones((4, 2))
    halves: Tree = Interval((0, 1, 2, 3))
    assert cut({0: halves, 1: halves}, {0: even, 1: even}, splits=1) == {0: (0, 0, 1, 1), 1: (0, 0, 0, 0)}
    assert cut({1: halves}, {1: even}, splits=2) == {1: (0, 1, 2, 2)}
    nearly = even + np.array([[0.0], [0.0], [1e-9], [0.0]])
    assert cut({1: halves}, {1: nearly}, splits=2) == {1: (0, 1, 2, 2)}, "what floats may differ in decides nothing"


def test_a_split_that_has_no_room_leaves_room_for_others() -> None:
    wide = np.array([[9.0, 0.0], [0.0, 9.0], [9.0, 0.0], [0.0, 9.0]])
    assert cut({0: (0, 1, 2, 3), 1: (0, 1)}, {0: wide, 1: np.ones((2, 2))}, most=3) == {0: (0,) * 4, 1: (0, 1)}
