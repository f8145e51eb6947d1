"""Candidate parents: as many as leave few enough options; near columns, where no correlation was released."""

from collections.abc import Callable
from functools import partial

from synod.common.models.candidates import count_options, shortlist_length
from synod.common.study.features import base_count, base_sizes, chains_of, sizes_of
from synod.common.study.study import Study

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
    """The longest such lists that leave any draw at most `max_candidates` options."""
    offer = partial(shortlist_without_data, base_count(study), first)
    return fit_shortlists(study, offer, cells, max_candidates, max_parents)


def fit_shortlists(
    study: Study,
    offer: Callable[[int], Shortlists],
    cells: int,
    max_candidates: int,
    max_parents: int | None = None,
) -> Shortlists:
    """Of the lists that are offered by their length, the longest that leave any draw at most `max_candidates` options.

    More placed features never leave fewer options, so those with all placed are counted. A list has one parent at
    least, however many options that leaves.
    """
    count = base_count(study)
    if count == len(sizes_of(study)):
        length = shortlist_length(base_sizes(study), cells, max_candidates, max_parents)
        return offer(length)
    kept = offer(1)
    for length in range(2, count):
        longer = offer(length)
        options = count_options(longer, sizes_of(study), chains_of(study), cells, max_parents, most=max_candidates)
        if options > max_candidates:
            break
        kept = longer
    return kept
