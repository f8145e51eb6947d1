"""Trees over an attribute's codes: into which parts a node may be split. They follow from the public schema alone.

A node of a taxonomy splits into its branches, categories without a taxonomy all at once, and a number in the middle of
its bins. A missing value never shares a part with values once the attribute is split.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from synod.common.study.encoding import Coding
from synod.common.study.schema import CategoricalAttribute


@dataclass(frozen=True, slots=True)
class Interval:
    """Two or more codes of a number, in the order of the numbers."""

    codes: tuple[int, ...]


Tree: TypeAlias = "int | Interval | tuple[Tree, ...]"


def tree_of(coding: Coding) -> Tree:
    """The tree over all codes of an attribute; a code alone is its own tree."""
    attribute = coding.attribute
    if not isinstance(attribute, CategoricalAttribute):
        values = _join(tuple(coding.in_order()))
    elif attribute.taxonomy is None:
        values = _fold(tuple(range(coding.value_codes)))
    else:
        values = _number_leaves(attribute.taxonomy, iter(range(coding.value_codes)))
    return (*(children_of(values) or (values,)), coding.null_code) if attribute.nullable else values


def children_of(tree: Tree) -> tuple[Tree, ...]:
    """The parts that a node splits into; none where it is a single code."""
    if isinstance(tree, Interval):
        middle = len(tree.codes) // 2
        return _join(tree.codes[:middle]), _join(tree.codes[middle:])
    return tree if isinstance(tree, tuple) else ()


def codes_of(tree: Tree) -> list[int]:
    """All codes of a node, in its own order."""
    if isinstance(tree, int):
        return [tree]
    if isinstance(tree, Interval):
        return list(tree.codes)
    return [code for child in tree for code in codes_of(child)]


def _join(codes: tuple[int, ...]) -> Tree:
    return Interval(codes) if len(codes) > 1 else codes[0]


def _fold(children: tuple[Tree, ...]) -> Tree:
    """A node of one child is that child: to split it would tell nothing."""
    return children if len(children) > 1 else children[0]


def _number_leaves(taxonomy: Any, codes: Iterator[int]) -> Tree:
    """A taxonomy with codes in the place of its leaves, without branches that hold nothing."""
    if isinstance(taxonomy, str):
        return next(codes)
    return _fold(tuple(_number_leaves(branch, codes) for branch in taxonomy if _holds_a_leaf(branch)))


def _holds_a_leaf(taxonomy: Any) -> bool:
    return isinstance(taxonomy, str) or any(_holds_a_leaf(branch) for branch in taxonomy)
