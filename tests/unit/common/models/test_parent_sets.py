"""Maximal parent sets over levels: Algorithm 6, brute force over all sets, and the local test must agree."""

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synod.common.models import candidates
from synod.common.models.candidates import ParentOptions, ParentSets, is_maximal, maximal_sets

# Features 0 to 3 are bases with chains of sizes (4, 2), (5, 3, 2), (2) and (6, 3); 4 to 7 their levels; 8 the child.
SIZES = (4, 5, 2, 6, 2, 3, 2, 3, 1)
CHAINS = ((0, 4), (1, 5, 6), (2,), (3, 7))
CHILD = 8
ALLOWED = (0, 1, 2, 3)


def all_sets(max_parents: int | None) -> list[tuple[int, ...]]:
    """Every choice of one level or none of each feature."""
    chosen = product(*((None, *chain) for chain in CHAINS))
    sets = [tuple(level for level in one if level is not None) for one in chosen]
    return [parents for parents in sets if max_parents is None or len(parents) <= max_parents]


def tells_more(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether `other` has each parent of `one` on the same or a finer level, and is another set."""

    def has(parent: int) -> bool:
        chain = next(chain for chain in CHAINS if parent in chain)
        return any(finer in other for finer in chain[: chain.index(parent) + 1])

    return one != other and all(map(has, one))


def find_slowly(room: int, max_parents: int | None) -> set[tuple[int, ...]]:
    """All sets that fit and that no other fitting set tells more than; the empty set needs no room."""
    fitting = [parents for parents in all_sets(max_parents) if not parents or prod(SIZES[p] for p in parents) <= room]
    return {one for one in fitting if not any(tells_more(one, other) for other in fitting)}


@pytest.mark.parametrize("max_parents", [None, 1, 2, 3, 4, 9])
def test_algorithm_6_brute_force_and_the_local_test_agree(max_parents: int | None) -> None:
    sets = ParentSets(ALLOWED, SIZES, CHAINS, max_parents)
    for room in range(130):
        expected = find_slowly(room, max_parents)
        found = sets.within(room)
        assert len(found) == len(set(found))
        assert set(found) == expected
        local = {
            parents for parents in all_sets(None)
            if is_maximal(CHILD, parents, ALLOWED, SIZES, room, CHAINS, max_parents)
        }  # fmt: skip
        assert local == expected


@pytest.mark.parametrize("max_parents", [None, 1, 2, 3])
def test_counting_ends_at_what_was_asked_about(max_parents: int | None) -> None:
    for room in range(130):
        sets = ParentSets(ALLOWED, SIZES, CHAINS, max_parents)
        count = len(find_slowly(room, max_parents))
        for most in range(1, count + 3):
            assert sets.count(room, most) == min(count, most + 1)
        assert set(sets.within(room)) == find_slowly(room, max_parents), "what was cut short is not kept"


def test_very_many_sets_are_not_listed_to_be_counted() -> None:
    """Thirty features of 16, 8, 4 and 2 values: listing all sets within 4,096 cells takes more memory than there is."""
    chains = [tuple(range(4 * i, 4 * i + 4)) for i in range(30)]
    assert ParentSets(range(29), (16, 8, 4, 2) * 30, chains).count(4_096, 1_000) == 1_001


def test_the_room_is_what_the_child_leaves() -> None:
    sizes = (*SIZES[:-1], 3)
    for cells in range(130):
        expected = find_slowly(cells // 3, None)
        local = {one for one in all_sets(None) if is_maximal(CHILD, one, ALLOWED, sizes, cells, CHAINS)}
        assert set(ParentSets(ALLOWED, sizes, CHAINS).within(cells // 3)) == expected == local


def test_parents_come_in_the_order_of_their_base_features() -> None:
    assert ParentSets((2, 0), SIZES, CHAINS).within(4) == [(0,), (4, 2)]
    assert is_maximal(CHILD, (4, 2), (0, 2), SIZES, 4, CHAINS)
    assert not is_maximal(CHILD, (2, 4), (0, 2), SIZES, 4, CHAINS)
    assert not is_maximal(CHILD, (0, 4), (0, 2), SIZES, 100, CHAINS)
    assert not is_maximal(CHILD, (1,), (0, 2), SIZES, 5, CHAINS)


@given(st.lists(st.integers(2, 7), min_size=1, max_size=7), st.integers(0, 300))
def test_without_levels_they_are_those_of_algorithm_5(sizes: list[int], max_cells: int) -> None:
    others = list(range(1, len(sizes)))
    """In the same order, too: a draw's coins are read in it."""
    found = ParentSets(others, sizes).within(max_cells // sizes[0])
    assert found == list(maximal_sets(0, others, sizes, max_cells))


@given(st.integers(2, 4), st.integers(0, 7), st.integers(0, 300), st.none() | st.integers(1, 8))
def test_features_of_one_size_are_listed_as_any_others(
    size: int, count: int, room: int, max_parents: int | None
) -> None:
    """The shortcut beside the recursion, which a feature of another size that never fits leads to."""
    fast = ParentSets(range(count), (size,) * count, (), max_parents)
    slow = ParentSets(range(count + 1), (*(size,) * count, 1000), (), max_parents)
    assert fast.within(room) == slow.within(room)
    for most in (1, 3, 50):
        assert fast.count(room, most) == slow.count(room, most)


def test_options_are_those_of_every_draw_alone() -> None:
    """What is kept from draw to draw is what a new list would have."""
    shortlists = [(CHILD, (0, 1, 2)), (3, (1, 2)), (2, (0, 1))]
    kept = ParentOptions(SIZES, CHAINS, 40)
    for placed in ({0}, {0}, {0, 1}, {1, 2}, {0, 1, 2}):
        listed = [one for one in shortlists if one[0] not in placed]
        alone = [
            (feature, parents)
            for feature, shortlist in listed
            for parents in ParentSets(sorted(placed & set(shortlist)), SIZES, CHAINS).within(40 // SIZES[feature])
        ]
        assert kept.of(listed, placed) == alone == ParentOptions(SIZES, CHAINS, 40).of(listed, placed)


def test_a_list_is_made_again_only_where_a_candidate_was_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[int, ...]] = []

    class Recorded(ParentSets):
        def __init__(self, allowed: Sequence[int], *rest: Any) -> None:
            made.append(tuple(allowed))
            super().__init__(allowed, *rest)

    monkeypatch.setattr(candidates, "ParentSets", Recorded)
    options = ParentOptions((2,) * 6, [(i,) for i in range(6)], 8)
    shortlists = [(3, (0, 1)), (4, (0, 1, 2)), (5, (0, 1))]
    options.of(shortlists, {0, 1})
    assert made == [(0, 1)]
    options.of(shortlists[:2], {0, 1, 2})
    assert made == [(0, 1), (0, 1, 2)]


def test_more_features_never_have_fewer_sets() -> None:
    """What is placed later only adds options, so that all features placed bound every draw."""
    for room in range(1, 130):
        counts = [len(ParentSets(ALLOWED[:count], SIZES, CHAINS).within(room)) for count in range(5)]
        assert counts == sorted(counts)
