"""Fourier (Barak et al. 2007): noise on the +-1 coefficients of all sets of bits that the marginals need.

An attribute of V values has ceil(log2 V) bits. A character takes a set of bits of each attribute; its coefficient is
the sum over rows of +1 or -1 by the parity of these bits. The characters of at most `order` attributes give all
marginals of that order. Each has one noisy coefficient, whichever marginals use it; the empty one is the public number
of rows. Characters of a set of attributes form a block: an axis for each attribute, without its empty character.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, combinations, product
from math import comb, prod

import numpy as np

from bench.rivals.answers import Answers, Attributes, Floats, clip_and_rescale, count_exactly, list_sets
from synod.deploy.evaluate.tables import Table


def answer_fourier(table: Table, order: int, epsilon: float, *, rng: np.random.Generator) -> Answers:
    """Marginals whose common parts have common noise. The transform is linear, so only the noise goes through it.

    Guarantee: epsilon-differential privacy for a replaced row: noise of scale `sensitivity` / epsilon in every
    coefficient.
    """
    noise = draw_noise(table.sizes, order, sensitivity(table.sizes, order) / epsilon, rng=rng)
    pairs = zip(list_sets(len(table.sizes), order), count_exactly(table, order), strict=True)
    return [clip_and_rescale(counts + spread_noise(own, table.sizes, noise)) for own, counts in pairs]


def count_coefficients(sizes: Sequence[int], order: int) -> int:
    """How many coefficients have noise."""
    return sum(prod(_characters(sizes[a]) for a in own) for own in _subsets(range(len(sizes)), order))


def sensitivity(sizes: Sequence[int], order: int) -> int:
    """The most that a replaced row can change all coefficients in L1: 2 for each character whose parity it turns.

    Of the 2^b - 1 characters of an attribute whose code changes, 2^(b-1) turn, so their signs sum to -1, whatever the
    codes; where it does not change, to 2^b - 1. A set of attributes has as many turned characters as half of what the
    product of these sums lacks. That depends only on how many attributes with so many characters change.
    """
    groups = Counter(map(_characters, sizes))
    every = _elementary(groups.items(), order)
    least = min(
        sum(_elementary(_changed(groups, changes), order))
        for changes in product(*(range(count + 1) for count in groups.values()))
    )
    return sum(every) - least


def _changed(groups: Counter[int], changes: Sequence[int]) -> list[tuple[int, int]]:
    """The sums of signs, with how often each occurs, where so many attributes of each group change."""
    stay = [(value, count - changed) for (value, count), changed in zip(groups.items(), changes, strict=True)]
    return [*stay, (-1, sum(changes))]


def _elementary(values: Iterable[tuple[int, int]], order: int) -> list[int]:
    """The sums over sets of 1, ..., `order` values of their products; values are given with how often they occur."""
    sums = [1] + [0] * order
    for value, count in values:
        powers = [comb(count, taken) * value**taken for taken in range(order + 1)]
        sums = [sum(sums[own - taken] * powers[taken] for taken in range(own + 1)) for own in range(order + 1)]
    return sums[1:]


def draw_noise(sizes: Sequence[int], order: int, scale: float, *, rng: np.random.Generator) -> dict[Attributes, Floats]:
    """The noise of each block of coefficients."""
    return {
        own: rng.laplace(0.0, scale, [_characters(sizes[attribute]) for attribute in own])
        for own in _subsets(range(len(sizes)), order)
    }


def spread_noise(own: Attributes, sizes: Sequence[int], noise: dict[Attributes, Floats]) -> Floats:
    """The noise of the cells of one marginal: the inverse transform of the blocks of its attributes."""
    coefficients = np.zeros([_characters(sizes[attribute]) + 1 for attribute in own])
    for part in _subsets(own, len(own)):
        coefficients[tuple(slice(1, None) if attribute in part else 0 for attribute in own)] = noise[part]
    for axis, attribute in enumerate(own):
        signs = signs_of(_characters(sizes[attribute]) + 1)
        share = signs[: sizes[attribute]] / len(signs)
        coefficients = np.moveaxis(np.tensordot(share, coefficients, axes=(1, axis)), 0, axis)
    return coefficients.reshape(-1)


@lru_cache(maxsize=32)
def signs_of(codes: int) -> Floats:
    """For each code (rows) and each set of bits (columns), both as integers, -1 where the code has an odd number of
    these bits, else +1.
    """
    both = np.arange(codes)[:, None] & np.arange(codes)
    return np.array([[1.0 - 2.0 * (cell.bit_count() % 2) for cell in row] for row in both.tolist()])


def _characters(size: int) -> int:
    """How many sets of bits an attribute has, without the empty one."""
    return (1 << (size - 1).bit_length()) - 1


def _subsets(attributes: Iterable[int], order: int) -> Iterator[Attributes]:
    """All sets of 1 to `order` of the attributes."""
    kept = tuple(attributes)
    return chain.from_iterable(combinations(kept, size) for size in range(1, order + 1))
