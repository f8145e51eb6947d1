"""Trees over codes: by hand, and that splitting never loses or doubles a code."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synod.common.models.trees import Interval, Tree, children_of, codes_of, tree_of
from synod.common.study.encoding import codings_of
from tests.support.studies import binary, categorical, integer, make_study, real

GROWN = [["federal", "state", "local"], "private", ["inc", ["one", "two"]]]


def tree(attribute: dict[str, Any]) -> Tree:
    study = make_study(schema=[attribute, binary("other")], method={"name": "distdiffgen"})
    return tree_of(codings_of(study)[0])


def taxonomy(nested: list[Any], *, nullable: bool = False) -> dict[str, Any]:
    return {"name": "a", "type": "categorical", "taxonomy": nested, "nullable": nullable}


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        (categorical("a", 3), (0, 1, 2)),
        (categorical("a", 3, nullable=True), (0, 1, 2, 3)),
        (categorical("a", 1), 0),
        (categorical("a", 1, nullable=True), (0, 1)),
        (taxonomy(GROWN), ((0, 1, 2), 3, (4, (5, 6)))),
        (taxonomy(GROWN, nullable=True), ((0, 1, 2), 3, (4, (5, 6)), 7)),
        (taxonomy([["x"], [["y", "z"]], []]), (0, (1, 2))),
        (taxonomy([[["x", "y"]]]), (0, 1)),
        (integer("a", 0, 4), Interval((0, 1, 2, 3, 4))),
        (integer("a", 0, 4, nullable=True), (Interval((0, 1)), Interval((2, 3, 4)), 5)),
        (integer("a", 3, 3, nullable=True), (0, 1)),
        (real("a", "0", "1", bins=1), 0),
        (real("a", "0", "1", bins=2), Interval((0, 1))),
        (integer("a", 0, 99, bins=4, spikes=[0, 50]), Interval((4, 0, 1, 5, 2, 3))),
    ],
)
def test_by_hand(attribute: dict[str, Any], expected: Tree) -> None:
    assert tree(attribute) == expected


def test_a_number_splits_in_the_middle() -> None:
    five = Interval((0, 1, 2, 3, 4))
    assert children_of(five) == (Interval((0, 1)), Interval((2, 3, 4)))
    assert children_of(Interval((7, 9))) == (7, 9)
    assert children_of(7) == ()


def every_node(node: Tree) -> list[Tree]:
    return [node, *(below for child in children_of(node) for below in every_node(child))]


nested = st.recursive(st.just("leaf"), lambda inner: st.lists(inner, max_size=4), max_leaves=12)


def name_leaves(node: Any, names: list[str]) -> Any:
    if isinstance(node, str):
        names.append(f"c{len(names)}")
        return names[-1]
    return [name_leaves(branch, names) for branch in node]


@given(st.lists(nested, min_size=1, max_size=4), st.booleans())
def test_children_partition_their_node_and_are_two_or_more(shape: list[Any], nullable: bool) -> None:
    names: list[str] = []
    written = name_leaves(shape, names)
    if not names:
        return
    root = tree(taxonomy(written, nullable=nullable))
    assert sorted(codes_of(root)) == list(range(len(names) + nullable))
    for node in every_node(root):
        children = children_of(node)
        assert (len(children) >= 2) == (len(codes_of(node)) >= 2)
        if children:
            assert [code for child in children for code in codes_of(child)] == codes_of(node)
