"""Pairs with too many cells are asked in groups: every pair fits, none is coarser than it must be, others are whole."""

from itertools import combinations, product
from math import prod
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synod.common.protocol.queries.marginals import Grouping, SumMarginals
from synod.common.study.features import sizes_of
from synod.common.study.study import Study
from synod.curator.covers.coarse import ask_views, most_groups
from synod.curator.covers.views import design_views, overlapping_views
from tests.support.studies import categorical, integer, make_study


def study_of(*schema: dict[str, Any]) -> Study:
    return make_study(schema=list(schema), method={"name": "dp-subn", "encoding": "vanilla"})


def test_views_that_fit_are_asked_as_they_are() -> None:
    study = study_of(*(categorical(f"x{i}", size) for i, size in enumerate((16, 7, 41, 2, 14))))
    views = design_views(sizes_of(study), 4096)
    assert ask_views(study, views, 4096).to_json() == SumMarginals(views).to_json()


def test_two_large_features_are_grouped_and_a_small_one_is_not() -> None:
    """8 * 9 is above 30 cells, and so is neither of the pairs with the third feature."""
    study = study_of(integer("a", 0, 7, bins=8), integer("b", 0, 8, bins=9), categorical("c", 3))
    asked = ask_views(study, ((0, 1), (0, 2), (1, 2)), 30)
    assert asked.sets == ((3, 4), (0, 2), (1, 2))
    assert asked.groupings == (Grouping(0, (0, 0, 1, 1, 2, 2, 3, 3)), Grouping(1, (0, 0, 1, 1, 2, 2, 3, 3, 4)))


def test_a_feature_with_small_partners_has_what_the_largest_of_them_leaves() -> None:
    study = study_of(integer("a", 0, 99, bins=100), categorical("b", 2), categorical("c", 5))
    asked = ask_views(study, ((0, 1), (0, 2), (1, 2)), 100)
    assert [one.size for one in asked.groupings] == [20]
    assert asked.sets == ((3, 1), (3, 2), (1, 2))


def test_one_feature_stays_whole_where_the_groups_of_the_other_are_few() -> None:
    """The taxonomy leaves two groups, beside which all 30 bins fit into 64 cells."""
    tree = [[f"a{i}" for i in range(10)], [f"b{i}" for i in range(10)]]
    study = study_of({"name": "a", "type": "categorical", "taxonomy": tree}, integer("b", 0, 29, bins=30))
    asked = ask_views(study, ((0, 1),), 64)
    assert [one.size for one in asked.groupings] == [2, 8]
    assert asked.sets == ((2, 1),)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.integers(2, 40), st.booleans(), st.booleans()), min_size=2, max_size=6), st.integers(4, 300)
)
def test_every_view_fits_and_covers_what_it_covered(shapes: list[tuple[int, bool, bool]], max_cells: int) -> None:
    schema = [
        integer(f"x{i}", 0, size - 1, bins=size, nullable=nullable) if number else categorical(f"x{i}", size)
        for i, (size, number, nullable) in enumerate(shapes)
    ]
    study = study_of(*schema)
    sizes = sizes_of(study)
    for views in (design_views(sizes, max_cells), overlapping_views(sizes, max_cells=max_cells)):
        asked = ask_views(study, views, max_cells)
        asked.check(study)
        assert max(asked.cells(study)) <= max_cells
        features = asked.entry_features(study)
        assert [tuple(features[entry] for entry in entries) for entries in asked.sets] == list(views)
        for view, entries in zip(views, asked.sets, strict=True):
            assert (view == entries) == (prod(sizes[feature] for feature in view) <= max_cells)


@pytest.mark.parametrize("max_cells", [4, 5, 9, 15, 16, 24, 99, 100])
def test_so_many_groups_fit_and_one_more_everywhere_would_not(max_cells: int) -> None:
    """Over all sizes of three features: all pairs fit, and with one more for every grouped feature some would not."""
    for sizes in product((2, 3, 7, 10, 30), repeat=3):
        pairs = [(a, b) for a, b in combinations(range(3), 2) if sizes[a] * sizes[b] > max_cells]
        most = most_groups(pairs, sizes, max_cells)
        assert all(2 <= groups < sizes[feature] for feature, groups in most.items())
        kept = [most.get(feature, size) for feature, size in enumerate(sizes)]
        more = [size + (feature in most) for feature, size in enumerate(kept)]
        assert all(kept[a] * kept[b] <= max_cells for a, b in pairs)
        assert not pairs or any(more[a] * more[b] > max_cells for a, b in pairs)


def test_where_features_have_levels_a_large_pair_is_asked_on_those_that_fit() -> None:
    """Levels of 16 bins are 2 (8 groups), 3 (4) and 4 (2); of 10 bins 5 (5), 6 (3) and 7 (2)."""
    schema = [integer("a", 0, 15, bins=16), integer("b", 0, 9, bins=10)]
    study = make_study(schema=schema, method={"name": "dp-subn", "encoding": "hierarchical"})
    assert sizes_of(study) == (16, 10, 8, 4, 2, 5, 3, 2)
    asked = {cells: ask_views(study, ((0, 1),), cells) for cells in (160, 159, 80, 47, 5, 4)}
    assert {cells: one.sets for cells, one in asked.items()} == {
        160: ((0, 1),),
        159: ((0, 5),),
        80: ((0, 5),),
        47: ((2, 5),),
        5: ((4, 7),),
        4: ((4, 7),),
    }
    for one in asked.values():
        assert not one.groupings
        one.check(study)


def test_where_others_have_levels_flat_categories_are_asked_whole() -> None:
    schema = [integer("a", 0, 15, bins=16), categorical("b", 30), categorical("c", 20)]
    study = make_study(schema=schema, method={"name": "dp-subn", "encoding": "hierarchical"})
    asked = ask_views(study, ((0, 1), (0, 2), (1, 2)), 100)
    assert [prod(sizes_of(study)[entry] for entry in entries) for entries in asked.sets] == [60, 80, 600]
    least = ask_views(study, ((0, 1),), 50)
    assert least.cells(study) == [2 * 30], "no level fits, so the coarsest is asked"
