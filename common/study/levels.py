"""Levels: coarser versions of an attribute, which the encoding `hierarchical` counts beside the attribute itself.

Neighbouring bins of a number join two by two; a taxonomy is cut at one depth after the other. Levels follow from the
schema alone, so they are public, and each is a function of the one before.
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from synod.common.study.encoding import Coding, encode_numbers
from synod.common.study.schema import CategoricalAttribute

Groups = tuple[int, ...]


def coarser_levels(coding: Coding) -> tuple[Groups, ...]:
    """The group of each code on each coarser level, the finest first.

    A missing value is a group of its own on every level. A level has at least two groups, and fewer than the one
    before; others are left out.
    """
    kept: list[Groups] = []
    size = coding.size
    for labels in _label_levels(coding):
        groups = number_groups([*labels, "missing"] if coding.attribute.nullable else labels)
        if 2 <= max(groups) + 1 < size:
            kept.append(groups)
            size = max(groups) + 1
    return tuple(kept)


def join_codes(coding: Coding, most: int) -> Groups:
    """The group of each code in a grouping into at most `most` groups, two at least.

    Bins join in runs of one length. Categories are cut along their taxonomy, as deep as there is room; where no cut is
    coarse enough, what the coarsest tells apart joins in runs of one length, in the schema's order. A missing value is
    a group of its own.
    """
    attribute = coding.attribute
    assert most >= 2
    room = most - attribute.nullable
    if isinstance(attribute, CategoricalAttribute):
        cuts = [range(len(attribute.categories)), *_cut_taxonomy(attribute.taxonomy)]
        labels = _first_within([cut for cut in cuts if len(set(cut)) > 1], room)
    else:
        bins = _list_bins(coding)
        labels = bins if len(set(bins)) > 1 else range(len(bins))  # a single bin, and its spikes
    numbers = number_groups(labels)
    run = -(-(max(numbers) + 1) // room)
    joined = [number // run for number in numbers]
    return number_groups([*joined, "missing"] if attribute.nullable else joined)


def _first_within(cuts: Sequence[Sequence[Hashable]], room: int) -> Sequence[Hashable]:
    """The first with at most `room` labels, or else the last."""
    return next((cut for cut in cuts if len(set(cut)) <= room), cuts[-1])


def _label_levels(coding: Coding) -> Iterator[Sequence[Hashable]]:
    """A label for each code that stands for a value, level by level; codes with one label are a group."""
    if isinstance(coding.attribute, CategoricalAttribute):
        yield from _cut_taxonomy(coding.attribute.taxonomy)
    elif not coding.is_constant:
        yield from _join_bins(coding)


def _join_bins(coding: Coding) -> Iterator[Sequence[int]]:
    """Level i joins the bins j with equal j // 2^i; a spike goes with the bin that it lies in."""
    bins = _list_bins(coding)
    for level in range(1, len(bins).bit_length() + 1):
        yield [place >> level for place in bins]


def _list_bins(coding: Coding) -> list[int]:
    """The bin of each code that stands for a number."""
    attribute = coding.attribute
    assert not isinstance(attribute, CategoricalAttribute)
    assert coding.levels is None, "only numbers in bins have levels"
    own = encode_numbers(Coding(attribute, None), np.array(coding.spikes, dtype=np.float64))
    return [*range(attribute.bins), *own.tolist()]


def _cut_taxonomy(taxonomy: Any) -> Iterator[Sequence[tuple[int, ...]]]:
    """Level i cuts at depth D - i, D being that of the deepest leaf; a leaf above the cut stands alone."""
    paths = [] if taxonomy is None else list(_find_leaves(taxonomy, ()))
    for depth in range(max(map(len, paths), default=1) - 1, 0, -1):
        yield [path[:depth] for path in paths]


def _find_leaves(tree: Any, path: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The way from the root to each leaf, in the order of the categories."""
    if isinstance(tree, str):
        yield path
        return
    for place, branch in enumerate(tree):
        yield from _find_leaves(branch, (*path, place))


def number_groups(labels: Sequence[Hashable]) -> Groups:
    """The group of each place, those of equal label together, numbered by first occurrence."""
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    return tuple(numbers[label] for label in labels)
