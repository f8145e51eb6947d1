"""Pairs of features that have too many cells for a view are counted in groups of values.

Groups follow from the schema alone, so they are public: the levels of features, or, where they have none, groupings of
the query's own (`join_codes`). A query has one grouping of a feature at most, and all pairs that need one share it.
"""

from collections.abc import Sequence
from itertools import product
from math import isqrt, prod

from synod.common.protocol.queries.marginals import Grouping, SumMarginals
from synod.common.study.encoding import codings_of
from synod.common.study.features import chains_of, features_of, sizes_of
from synod.common.study.levels import join_codes
from synod.common.study.study import Study
from synod.curator.covers.search import View


def ask_views(study: Study, views: Sequence[View], max_cells: int) -> SumMarginals:
    """The query for these views of base features; one with more than `max_cells` cells, which is a pair, is asked in
    the most groups of values that fit. Where features have levels and none is coarse enough, it is asked on the
    coarsest.
    """
    sizes, chains = sizes_of(study), chains_of(study)
    large = [view for view in views if prod(sizes[feature] for feature in view) > max_cells]
    has_levels = len(chains) < len(sizes)
    most = {} if has_levels else most_groups(large, sizes, max_cells)
    groupings = tuple(_group(study, feature, groups) for feature, groups in most.items())
    grouped = {one.feature: (len(sizes) + place,) for place, one in enumerate(groupings)}
    known = (*sizes, *(one.size for one in groupings))

    def count_cells(entries: View) -> int:
        return prod(known[entry] for entry in entries)

    def ask(view: View) -> View:
        """Of all versions of a view that fit the one with most cells, or else the coarsest."""
        versions = list(product(*((*chains[feature], *grouped.get(feature, ())) for feature in view)))
        fitting = [version for version in versions if count_cells(version) <= max_cells]
        return max(fitting or versions[-1:], key=count_cells)

    return SumMarginals(tuple(ask(view) if view in large else view for view in views), groupings)


def most_groups(pairs: Sequence[View], sizes: Sequence[int], max_cells: int) -> dict[int, int]:
    """How many groups a feature of these pairs may have so that each of them fits: none is named that may stay whole.

    Let r be the root of `max_cells`, rounded down. Two features of more than r values may have r groups each; a feature
    of more than r values whose partners all have at most r is left what the largest of them leaves it.
    """
    root, found = isqrt(max_cells), {}
    for feature in sorted({feature for pair in pairs for feature in pair if sizes[feature] > root}):
        partners = [sizes[other] for pair in pairs if feature in pair for other in pair if other != feature]
        found[feature] = root if max(partners) > root else max_cells // max(partners)
    return found


def _group(study: Study, feature: int, most: int) -> Grouping:
    coding = codings_of(study)[features_of(study)[feature].attribute]
    return Grouping(feature, join_codes(coding, most))
