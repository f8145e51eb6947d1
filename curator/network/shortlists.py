"""Candidate parents: near columns, or those that tell most where that was released, as many as leave few enough
options.
"""

from collections.abc import Callable, Sequence
from functools import partial

from synod.common.models.candidates import count_options, shortlist_length
from synod.common.study.features import base_count, base_sizes, chains_of, sizes_of
from synod.common.study.study import Study
from synod.curator.network.information import most_correlated
from synod.curator.network.tables import Floats

Features = tuple[int, ...]
Shortlists = tuple[tuple[int, Features], ...]


def shortlist_without_data(features: int, first: int, length: int) -> Shortlists:
    """Candidate parents where no correlation was released: the first feature that is placed, and the nearest ones in
    the schema's order, `length` in all.
    """
    shortlists = []
    for x in range(features):
        if x != first:
            ranked = sorted((i != first, abs(i - x), i) for i in range(features) if i != x)
            shortlists.append((x, tuple(sorted(i for _, _, i in ranked[:length]))))
    return tuple(shortlists)


def shortlist_parents(
    study: Study, first: int, cells: int, max_candidates: int, max_parents: int | None = None
) -> Shortlists:
    """The longest such lists that leave any draw at most `max_candidates` options.

    More placed features never leave fewer options, so those with all placed are counted. A list has one parent at
    least, however many options that leaves.
    """
    make_lists = partial(shortlist_without_data, base_count(study), first)
    return _longest_lists(study, make_lists, cells, max_candidates, max_parents)


def shortlist_earlier(
    study: Study,
    order: Sequence[int],
    information: Floats | None,
    cells: int,
    max_candidates: int,
    max_parents: int | None = None,
) -> Shortlists:
    """For each feature but the first, in this order, those before it that were released to tell most about it, or the
    nearest ones where no information was released; as many as leave any draw at most `max_candidates` options.
    """

    def make_lists(length: int) -> Shortlists:
        found = []
        for place, feature in enumerate(order):
            if place and information is not None:
                found.append((feature, most_correlated(information, feature, order[:place], length)))
            elif place:
                found.append((feature, tuple(sorted(order[max(0, place - length) : place]))))
        return tuple(found)

    return _longest_lists(study, make_lists, cells, max_candidates, max_parents)


def _longest_lists(
    study: Study, make_lists: Callable[[int], Shortlists], cells: int, max_candidates: int, max_parents: int | None
) -> Shortlists:
    """The lists that are made of the greatest length that leaves few enough options."""
    count = base_count(study)
    if count == len(sizes_of(study)):
        return make_lists(shortlist_length(base_sizes(study), cells, max_candidates))
    kept = make_lists(1)
    for length in range(2, count):
        longer = make_lists(length)
        options = count_options(longer, sizes_of(study), chains_of(study), cells, max_parents, most=max_candidates)
        if options > max_candidates:
            break
        kept = longer
    return kept
