"""Designs and the optimizer: every pair in exactly one view, never worse than NOCD, the figures that were promised."""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations, product
from math import comb, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from synod.curator.covers import mixed
from synod.curator.covers.designs import Split, Transversal, steiner_triples, transversal_points
from synod.curator.covers.galois import build_field, factor_prime_power
from synod.curator.covers.nocd import nocd_views
from synod.curator.covers.search import View, best_cover, lay_cover, list_splits
from synod.curator.covers.views import design_views, expected_variance, overlapping_views, oversized_pairs

ADULT = (16, 7, 16, 16, 16, 7, 14, 6, 5, 2, 16, 16, 16, 41, 2)
PRIME_POWERS = [order for order in range(2, 33) if factor_prime_power(order)]
"""Larger fields take the same path through the code; the designs up to 200 features use them all."""


def times_together(views: Sequence[tuple[int, ...]], count: int) -> NDArray[np.intp]:
    """For each pair of features, in how many views both lie."""
    codes = [np.zeros(0, dtype=np.intp)]
    for width in {len(view) for view in views}:
        rows = np.array([view for view in views if len(view) == width])
        codes += [rows[:, a] * count + rows[:, b] for a, b in combinations(range(width), 2)]
    together = np.bincount(np.concatenate(codes), minlength=count**2).reshape(count, count)
    assert not np.tril(together).any(), "a view's features ascend"
    return together[np.triu_indices(count, 1)]


def test_prime_powers_by_trial() -> None:
    by_trial = {p**m for p in range(2, 300) if all(p % q for q in range(2, p)) for m in range(1, 9) if p**m < 300}
    assert {number for number in range(300) if factor_prime_power(number)} == by_trial


@pytest.mark.parametrize("order", PRIME_POWERS)
def test_field_laws(order: int) -> None:
    field = build_field(order)
    plus, times, elements = field.plus, field.times, np.arange(order)
    assert (plus == plus.T).all()
    assert (times == times.T).all()
    assert (plus[0] == elements).all()
    assert (times[1] == elements).all()
    assert (np.sort(plus, axis=1) == elements).all()
    assert (np.sort(times[1:], axis=1) == elements).all()
    assert (times[times][:, :, elements] == times[elements[:, None, None], times]).all()
    assert (times[elements[:, None, None], plus] == plus[times[:, :, None], times[:, None, :]]).all()


@pytest.mark.parametrize("order", PRIME_POWERS)
def test_points_of_different_groups_meet_in_one_block(order: int) -> None:
    points = transversal_points(order, order + 1)
    for first, second in combinations(range(order + 1), 2):
        assert len(set(zip(points[:, first], points[:, second], strict=True))) == order**2


@pytest.mark.parametrize("order", [order for order in range(3, 200) if order % 6 in {1, 3}])
def test_steiner_triples_hold_every_pair_once(order: int) -> None:
    triples = [tuple(row) for row in steiner_triples(order).tolist()]
    assert len(triples) == order * (order - 1) // 6
    assert (times_together(triples, order) == 1).all()


def splits_up_to(count: int) -> list[tuple[int, Split]]:
    return [(size, split) for size in range(3, count + 1) for split in list_splits(size)]


def test_every_split_holds_every_pair_once_and_is_tallied() -> None:
    for count, split in splits_up_to(40):
        parts = list(split.parts(count))
        assert (times_together(parts, count) == 1).all(), split
        assert Counter(map(len, parts)) == split.tally(count), split


def test_planes_are_transversals() -> None:
    projective = list(Transversal(3, (3, 3, 3, 3), apex=True).parts(13))
    affine = list(Transversal(4, (4, 4, 4, 4), apex=False).parts(16))
    assert Counter(map(len, projective)) == {4: 13}
    assert Counter(map(len, affine)) == {4: 20}


@pytest.mark.parametrize("count", range(1, 201))
def test_every_pair_of_bits_lies_in_exactly_one_view(count: int) -> None:
    views = design_views((2,) * count)
    assert (times_together(views, count) == 1).all()
    assert all(len(view) <= 12 for view in views)
    assert views == tuple(sorted(set(views)))


@pytest.mark.parametrize("count", range(1, 201))
def test_never_worse_than_nocd(count: int) -> None:
    bits = (2,) * count
    cover = best_cover(count, 2)
    laid = list(lay_cover(cover.plan, range(count)))
    assert len(laid) == cover.views
    assert expected_variance(laid, bits) <= expected_variance(nocd_views(count), bits) * (1 + 1e-12)


@lru_cache
def all_covers(count: int, size: int, max_cells: int) -> frozenset[tuple[int, int]]:
    """The slow twin: views and cost of every cover, parts chosen one by one; only dominated ones are dropped."""
    found = {(1, comb(count, 2) * size ** (count - 2))} if size**count <= max_cells or count == 2 else set()
    for split in list_splits(count) if count > 2 else []:
        total = {(0, 0)}
        for part in split.parts(count):
            choices = all_covers(len(part), size, max_cells)
            total = undominated({(a + c, b + d) for (a, b), (c, d) in product(total, choices)})
        found |= total
    return frozenset(undominated(found))


def undominated(points: set[tuple[int, int]]) -> set[tuple[int, int]]:
    kept: list[tuple[int, int]] = []
    for point in sorted(points):
        if not kept or point[1] < kept[-1][1]:
            kept.append(point)
    return set(kept)


@pytest.mark.parametrize(("size", "max_cells"), [(2, 4096), (2, 16), (3, 4096), (4, 300), (6, 4096)])
@pytest.mark.parametrize("count", range(2, 18))
def test_the_cover_is_the_best_of_all_by_exhaustion(count: int, size: int, max_cells: int) -> None:
    cover = best_cover(count, size, max_cells)
    best = min(views**2 * cost for views, cost in all_covers(count, size, max_cells))
    assert cover.views**2 * cover.cost == best


def test_the_figures_for_52_bits() -> None:
    bits = (2,) * 52
    nocd, best = nocd_views(52), design_views(bits)
    mix = list(Transversal(13, (13, 13, 13, 13), apex=False).parts(52))
    plane = list(Transversal(3, (3, 3, 3, 3), apex=True).parts(13))
    groups = [part for part in mix if len(part) == 13]
    inner = [tuple(group[place] for place in line) for group in groups for line in plane]
    fours = [part for part in mix if len(part) == 4] + inner
    assert len(best) == 57
    assert max(map(len, best)) == 8
    assert Counter(map(len, fours)) == {4: 221}
    assert (times_together(fours, 52) == 1).all()
    assert expected_variance(nocd, bits) / expected_variance(best, bits) == pytest.approx(2.03, abs=0.01)
    assert expected_variance(nocd, bits) / expected_variance(fours, bits) == pytest.approx(1.56, abs=0.01)


def test_at_rho_the_variance_grows_with_the_number_of_views_and_not_with_its_square() -> None:
    assert expected_variance(design_views((2,) * 13), (2,) * 13, at_rho=True) == 13 * 4
    assert expected_variance(((0,),) * 3, (5,), at_rho=True) == 3


def test_known_optima() -> None:
    assert expected_variance(design_views((2,) * 13), (2,) * 13) == 13**2 * 4
    assert expected_variance(design_views((2,) * 16), (2,) * 16) == 20**2 * 4
    assert expected_variance(design_views((5,) * 15), (5,) * 15) == 35**2 * 5
    assert design_views((16,) * 6) == tuple(combinations(range(6), 2))


def test_one_feature_too_many_is_peeled_off_a_perfect_design() -> None:
    assert best_cover(46, 4).views == 45 + 45 * 44 // 6


def test_the_smallest_designs() -> None:
    assert design_views((5,)) == ((0,),)
    assert design_views((5, 2)) == ((0, 1),)
    assert design_views((2, 3, 2)) == ((0, 1, 2),)
    assert design_views((90, 2, 100)) == ((0, 1), (0, 2), (1, 2))
    assert design_views((1, 1, 7)) == ((0, 1, 2),)


SIZES = st.lists(st.sampled_from([1, 2, 3, 4, 5, 7, 8, 16, 41, 100]), min_size=1, max_size=24)


@settings(max_examples=60, deadline=None)
@given(SIZES, st.sampled_from([4, 64, 4096]))
def test_mixed_sizes(sizes: list[int], max_cells: int) -> None:
    views = design_views(sizes, max_cells)
    count = len(sizes)
    assert (times_together(views, count) == 1).all()
    assert all(prod(sizes[f] for f in view) <= max_cells for view in views if len(view) > 2)
    large = {view for view in views if len(view) == 2 and sizes[view[0]] * sizes[view[1]] > max_cells}
    assert large == set(oversized_pairs(sizes, max_cells))
    assert expected_variance(views, sizes) <= max(1, comb(count, 2)) ** 2 * (1 + 1e-12)


@settings(max_examples=40, deadline=None)
@given(SIZES)
def test_the_order_of_features_does_not_change_the_variance(sizes: list[int]) -> None:
    shuffled = sorted(sizes)
    assert expected_variance(design_views(shuffled), shuffled) == pytest.approx(
        expected_variance(design_views(sizes), sizes)
    )


@pytest.mark.parametrize("count", [7, 13, 16, 21, 30])
def test_the_priced_search_is_close_to_the_exact_one_on_bits(count: int) -> None:
    bits = (2,) * count
    views = mixed.mixed_views(bits, 4096)
    assert expected_variance(views, bits) <= 1.01 * expected_variance(design_views(bits), bits)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(2, 9), min_size=2, max_size=7), st.integers(1, 500), st.sampled_from([30, 4096]))
def test_a_block_is_priced_as_its_cheapest_chain(sizes: list[int], price: int, max_cells: int) -> None:
    kind = tuple(sorted(sizes, reverse=True))
    chain = list(mixed.lay_chain(range(len(kind)), mixed.chain_depth(kind, price, max_cells)))
    value = mixed.sum_costs(chain, kind) + price * len(chain)
    search = mixed.PricedSearch(max_cells, (price,))
    assert search.price_blocks(np.array([kind, kind])).tolist() == [2 * value]
    assert search.choose(kind).values[0] <= value


def test_adult_in_its_own_codes() -> None:
    views = design_views(ADULT)
    assert oversized_pairs(ADULT) == ()
    assert expected_variance(views, ADULT) <= comb(15, 2) ** 2


def test_mixed_designs_beat_direct_pairs_where_domains_are_small() -> None:
    sizes = (2,) * 8 + (3,) * 3 + (4,) * 4
    assert expected_variance(design_views(sizes), sizes) < comb(15, 2) ** 2 / 4


def test_large_domains_are_kept_apart() -> None:
    sizes = (2,) * 13 + (200,) * 2
    pairs = [(a, b) for a, b in combinations(range(15), 2) if b > 12]
    by_hand = [*pairs, *Transversal(3, (3, 3, 3, 3), apex=True).parts(13)]
    assert expected_variance(design_views(sizes), sizes) <= expected_variance(by_hand, sizes)


def slow_variance(views: tuple[View, ...], sizes: tuple[int, ...]) -> float:
    total = 0.0
    for a, b in combinations(range(len(sizes)), 2):
        holders = [view for view in views if a in view and b in view]
        summed = [prod(sizes[f] for f in view if f not in {a, b}) for view in holders]
        total += len(views) ** 2 / sum(1 / cells for cells in summed)
    return total / comb(len(sizes), 2)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(2, 6), min_size=2, max_size=12), st.integers(3, 8))
def test_the_variance_of_overlapping_views(sizes: list[int], width: int) -> None:
    views = overlapping_views(sizes, width)
    assert (times_together(views, len(sizes)) >= 1).all()
    assert max(map(len, views)) <= width
    assert expected_variance(views, sizes) == pytest.approx(slow_variance(views, tuple(sizes)))


def test_the_variance_is_infinite_where_a_pair_is_missing() -> None:
    assert expected_variance([(0, 1), (1, 2)], (2, 2, 2)) == float("inf")


def test_overlapping_views_respect_the_cells() -> None:
    views = overlapping_views(ADULT, max_cells=512)
    assert (times_together(views, 15) >= 1).all()
    assert all(prod(ADULT[f] for f in view) <= 512 for view in views if len(view) > 2)
    assert overlapping_views((3,)) == ((0,),)
    assert overlapping_views((100, 100), max_cells=50) == ((0, 1),)
