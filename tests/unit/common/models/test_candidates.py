"""Candidate parent sets against their definition by brute force, and shortlists that keep them few."""

from itertools import chain, combinations
from math import prod

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from synod.common.models.candidates import ParentSets, maximal_sets, shortlist_length


def find_slowly(feature: int, allowed: list[int], sizes: list[int], max_cells: int) -> set[tuple[int, ...]]:
    """All subsets that fit and to which nothing can be added; the empty set needs no room."""
    subsets = chain.from_iterable(combinations(sorted(allowed), count) for count in range(len(allowed) + 1))

    def fits(parents: tuple[int, ...]) -> bool:
        return not parents or sizes[feature] * prod(sizes[p] for p in parents) <= max_cells

    fitting = [parents for parents in subsets if fits(parents)]
    return {one for one in fitting if not any(set(one) < set(other) for other in fitting)}


@given(st.lists(st.integers(2, 7), min_size=1, max_size=8), st.integers(0, 300), st.data())
@example([2] * 6, 8, None)
@example([3, 2, 2, 2], 12, None)
@example([5, 2, 3], 4, None)
def test_maximal_sets_are_those_of_the_definition(sizes: list[int], max_cells: int, data: st.DataObject | None) -> None:
    others = list(range(1, len(sizes)))
    allowed = others if data is None else data.draw(st.permutations(others).map(lambda p: p[: len(p) * 3 // 4 + 1]))
    found = list(maximal_sets(0, allowed, sizes, max_cells))
    assert len(found) == len(set(found))
    assert set(found) == find_slowly(0, allowed, sizes, max_cells)
    assert all(parents == tuple(sorted(parents)) for parents in found)


def test_with_binary_features_they_are_all_of_one_size() -> None:
    assert list(maximal_sets(4, [3, 0, 1], [2] * 5, 8)) == [(0, 1), (0, 3), (1, 3)]
    assert list(maximal_sets(4, [3, 0, 1], [2] * 5, 7)) == [(0,), (1,), (3,)]
    assert list(maximal_sets(4, [3, 0, 1], [2] * 5, 1000)) == [(0, 1, 3)]


@pytest.mark.parametrize("max_cells", [0, 1, 2, 3])
def test_where_nothing_fits_there_is_the_empty_set(max_cells: int) -> None:
    assert list(maximal_sets(0, [1, 2], [2, 2, 2], max_cells)) == [()]
    assert list(maximal_sets(0, [1, 2], [2, 3, 2], max_cells)) == [()]
    assert list(maximal_sets(0, [], [2, 3, 2], 100)) == [()]


def count_all(sizes: list[int], length: int, max_cells: int) -> int:
    return sum(len(list(maximal_sets(x, others_of(x, sizes)[:length], sizes, max_cells))) for x in range(len(sizes)))


def others_of(feature: int, sizes: list[int]) -> list[int]:
    return [x for x in range(len(sizes)) if x != feature]


@given(st.integers(2, 14), st.integers(1, 8), st.integers(100, 3000))
def test_a_shortlist_keeps_the_candidates_within_the_limit(d: int, degree: int, limit: int) -> None:
    sizes, max_cells = [2] * d, 2 ** (degree + 1)
    length = shortlist_length(sizes, max_cells, limit)
    assert 1 <= length <= d - 1
    if length > min(degree, d - 1):
        assert count_all(sizes, length, max_cells) <= limit
    # The bound is that of an antichain of sets of any size up to the degree, so it is tight up to half the features.
    if degree <= (d - 1) // 2:
        assert (length == d - 1) == (count_all(sizes, d - 1, max_cells) <= limit or d - 1 <= max(degree, 1))


def test_the_shortlist_of_adult_is_short() -> None:
    assert shortlist_length([2] * 52, 2**3, 500_000) == 51
    assert 5 < shortlist_length([2] * 52, 2**6, 500_000) < 30
    assert shortlist_length([2] * 52, 2**6, 500_000) > shortlist_length([2] * 52, 2**6, 5_000)


@given(st.lists(st.integers(2, 6), min_size=2, max_size=8), st.integers(4, 100), st.integers(100, 400))
def test_the_limit_holds_for_sizes_of_any_kind(sizes: list[int], max_cells: int, limit: int) -> None:
    length = shortlist_length(sizes, max_cells, limit)
    degree = max(
        len(parents) for x in range(len(sizes)) for parents in find_slowly(x, others_of(x, sizes), sizes, max_cells)
    )
    assert length <= max(degree, 1) or count_all(sizes, length, max_cells) <= limit


@given(st.integers(2, 14), st.integers(1, 8), st.integers(1, 8), st.integers(100, 3000))
def test_a_limit_on_parents_leaves_longer_shortlists(d: int, degree: int, most: int, limit: int) -> None:
    """As long as those of tables that have no room for more parents, and within the candidates."""
    sizes = [2] * d
    length = shortlist_length(sizes, 2 ** (degree + 1), limit, most)
    assert length == shortlist_length(sizes, 2 ** (min(degree, most) + 1), limit)
    sets = [ParentSets(others_of(x, sizes)[:length], sizes, (), most).within(2**degree) for x in range(d)]
    assert length == 1 or sum(map(len, sets)) <= limit


def test_a_limit_on_parents_matters_for_many_bits() -> None:
    assert shortlist_length([2] * 52, 2**6, 500_000) < 30
    assert shortlist_length([2] * 52, 2**6, 500_000, 2) == 51
