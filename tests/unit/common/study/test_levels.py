"""Levels by hand: uneven trees, odd numbers of bins, missing values and spikes; and the features made of them."""

from typing import Any

import numpy as np
import pytest

from synod.common.study.encoding import Codes, codings_of
from synod.common.study.features import (
    Feature,
    base_count,
    base_sizes,
    bases_of,
    chains_of,
    features_of,
    sizes_of,
    space_of,
)
from synod.common.study.levels import coarser_levels, join_codes
from synod.common.study.study import Study
from tests.support.studies import categorical, integer, make_study, real


def tree(name: str, taxonomy: list[Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "type": "categorical", "taxonomy": taxonomy, **more}


def study_of(*schema: dict[str, Any], encoding: str = "hierarchical") -> Study:
    return make_study(method={"name": "independent", "encoding": encoding}, schema=list(schema))


def levels_of(attribute: dict[str, Any]) -> list[list[int]]:
    (coding,) = codings_of(study_of(attribute))
    return [list(groups) for groups in coarser_levels(coding)]


def test_sixteen_bins_halve_to_two() -> None:
    found = levels_of(real("x", "0", "1", bins=16))
    assert [max(groups) + 1 for groups in found] == [8, 4, 2]
    assert found[0] == [j // 2 for j in range(16)]
    assert found[2] == [j // 8 for j in range(16)]


@pytest.mark.parametrize(
    ("bins", "sizes"), [(1, []), (2, []), (3, [2]), (5, [3, 2]), (11, [6, 3, 2]), (17, [9, 5, 3, 2])]
)
def test_odd_numbers_of_bins_leave_a_shorter_last_group(bins: int, sizes: list[int]) -> None:
    attribute = real("x", "0", "1", bins=bins, nullable=bins == 1)
    found = levels_of(attribute)
    assert [max(groups) + 1 for groups in found] == sizes
    assert all(groups == [j >> i for j in range(bins)] for i, groups in enumerate(found, 1))


def test_a_missing_value_stays_a_group_of_its_own() -> None:
    assert levels_of(integer("x", 0, 4, bins=5, nullable=True)) == [
        [0, 0, 1, 1, 2, 3],
        [0, 0, 0, 0, 1, 2],
        [0, 0, 0, 0, 0, 1],
    ]
    assert levels_of(tree("x", ["a", ["b", "c"]], nullable=True)) == [[0, 1, 1, 2]]


def test_a_spike_goes_with_its_bin() -> None:
    """Codes 4 and 5 are the spikes 3 (in the first bin) and 30 (in the last)."""
    assert levels_of(integer("x", 0, 39, bins=4, spikes=[3, 30])) == [[0, 0, 1, 1, 0, 1]]


def test_an_uneven_tree_is_cut_at_one_depth_after_the_other() -> None:
    uneven = ["a", ["b", ["c", "d"], [["e", "f"], "g"]], ["h"]]
    assert levels_of(tree("x", uneven)) == [
        [0, 1, 2, 3, 4, 4, 5, 6],
        [0, 1, 2, 2, 3, 3, 3, 4],
        [0, 1, 1, 1, 1, 1, 1, 2],
    ]


def test_cuts_that_join_nothing_or_everything_are_no_levels() -> None:
    assert levels_of(tree("x", [[["a", "b", "c"]]])) == []
    assert levels_of(tree("x", [["a"], ["b"], [["c"]]])) == []
    assert levels_of(tree("x", [[["a"], ["b"]], [["c"], ["d"]]])) == [[0, 0, 1, 1]]
    assert levels_of(categorical("x", 9)) == []
    assert levels_of(integer("x", 3, 3, nullable=True)) == []


# Groups for a table of too many cells


def joined(attribute: dict[str, Any], most: int) -> list[int]:
    (coding,) = codings_of(study_of(attribute))
    return list(join_codes(coding, most))


def test_bins_join_in_equal_runs() -> None:
    assert joined(integer("x", 0, 9, bins=10), 4) == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]
    assert joined(integer("x", 0, 9, bins=10), 3) == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]
    assert joined(integer("x", 0, 9, bins=10, nullable=True), 3) == [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2]
    assert joined(integer("x", 0, 9, bins=10, nullable=True), 2) == [0] * 10 + [1]
    assert joined(integer("x", 0, 39, bins=4, spikes=[3, 30]), 4) == [0, 1, 2, 3, 0, 3]


def test_a_single_bin_and_its_spikes_join_in_runs() -> None:
    assert joined(integer("x", 0, 9, bins=1, spikes=[0, 1, 2, 3, 4]), 3) == [0, 0, 1, 1, 2, 2]


def test_categories_are_cut_along_their_taxonomy() -> None:
    deep = tree("x", [["a", "b", ["c", "d"]], ["e", ["f", "g"]]])
    assert joined(deep, 6) == [0, 1, 2, 2, 3, 4, 4]
    assert joined(deep, 5) == [0, 1, 2, 2, 3, 4, 4]
    assert joined(deep, 4) == [0, 0, 0, 0, 1, 1, 1]
    assert joined({**deep, "nullable": True}, 5) == [0, 0, 0, 0, 1, 1, 1, 2]


def test_where_no_cut_is_coarse_enough_runs_join_what_the_coarsest_tells_apart() -> None:
    assert joined(categorical("x", 7), 3) == [0, 0, 0, 1, 1, 1, 2]
    assert joined(tree("x", [["a", "b"], ["c", "d"], ["e"], ["f", "g"]]), 2) == [0, 0, 0, 0, 1, 1, 1]
    assert joined(tree("x", [[["a", "b"], ["c", "d"], "e"]]), 2) == [0, 0, 0, 0, 1], "the single branch tells nothing"


@pytest.mark.parametrize("most", range(2, 12))
@pytest.mark.parametrize("nullable", [False, True])
def test_there_are_two_groups_at_least_and_no_more_than_may_be(most: int, nullable: bool) -> None:
    for attribute in (categorical("x", 12), integer("x", 0, 11, bins=12), tree("x", [[c] for c in "abcdefghijkl"])):
        groups = joined({**attribute, "nullable": nullable}, most)
        assert len(groups) == 12 + nullable
        assert 2 <= max(groups) + 1 == len(set(groups)) <= most
        assert not nullable or groups.count(groups[-1]) == 1


SCHEMA = (
    integer("age", 0, 7, bins=8),
    integer("always", 5, 5),
    tree("place", ["a", ["b", "c"], ["d", "e"]], nullable=True),
    categorical("sex", 2),
)


def test_base_features_come_first_and_levels_attribute_by_attribute() -> None:
    study = study_of(*SCHEMA)
    assert features_of(study) == (
        Feature(0, 8),
        Feature(2, 6),
        Feature(3, 2),
        Feature(0, 4, level=1, groups=(0, 0, 1, 1, 2, 2, 3, 3)),
        Feature(0, 2, level=2, groups=(0, 0, 0, 0, 1, 1, 1, 1)),
        Feature(2, 4, level=1, groups=(0, 1, 1, 2, 2, 3)),
    )
    assert sizes_of(study) == (8, 6, 2, 4, 2, 4)
    assert (base_count(study), base_sizes(study)) == (3, (8, 6, 2))
    assert chains_of(study) == ((0, 3, 4), (1, 5), (2,))
    assert bases_of(study) == (0, 1, 2, 0, 0, 1)


@pytest.mark.parametrize("encoding", ["vanilla", "binary", "gray"])
def test_elsewhere_every_feature_is_a_base_feature(encoding: str) -> None:
    study = study_of(*SCHEMA, encoding=encoding)
    every = range(len(features_of(study)))
    assert base_count(study) == len(every)
    assert bases_of(study) == tuple(every)
    assert chains_of(study) == tuple((feature,) for feature in every)


def test_levels_are_columns_of_groups_and_codes_come_back() -> None:
    study = study_of(*SCHEMA)
    codes: list[Codes] = [
        np.array([0, 3, 7, 6], dtype=np.uint8),
        np.zeros(4, dtype=np.uint8),
        np.array([5, 1, 2, 0], dtype=np.uint8),
        np.array([0, 1, 1, 0], dtype=np.uint8),
    ]
    encoded = space_of(study).encode(codes)
    assert [column.tolist() for column in encoded[3:]] == [[0, 1, 3, 3], [0, 0, 1, 1], [3, 1, 1, 0]]
    for columns in (encoded, encoded[:3]):
        back = space_of(study).decode(columns, 4)
        assert [column.tolist() for column in back] == [column.tolist() for column in codes]
    assert space_of(study).valid_codes() == {}
