"""Permute-and-flip: floats decide nothing, and what its law promises, by enumeration of all orders in decimals."""

from collections.abc import Iterator, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, permutations, product
from math import factorial

import numpy as np
import pytest

from synod.common.models.candidates import Score
from synod.common.privacy.coins import Coins
from synod.common.runtime.errors import SynodError
from synod.party.count import choice
from synod.party.count.choice import permute_and_flip
from synod.party.count.marginals import count_marginals
from synod.party.count.scores import score_sensitivity, score_tables
from tests.support.keys import seeded

DIGITS = 60
ROUNDING = Decimal(10) ** -50


def to_decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / number.denominator


@cache
def permute_and_flip_law(gaps: tuple[int, ...], rate: Fraction) -> tuple[Decimal, ...]:
    """The chance of each candidate, as in the paper: over all orders, the first heads wins."""
    with localcontext(prec=DIGITS):
        heads = [(-to_decimal(rate * gap)).exp() for gap in gaps]
        law = [Decimal(0)] * len(gaps)
        for order in permutations(range(len(gaps))):
            reached = Decimal(1)
            for candidate in order:
                law[candidate] += reached * heads[candidate]
                reached *= 1 - heads[candidate]
        return tuple(chance / factorial(len(gaps)) for chance in law)


def exponential_law(gaps: Sequence[int], rate: Fraction) -> list[Decimal]:
    with localcontext(prec=DIGITS):
        weights = [(-to_decimal(rate * gap)).exp() for gap in gaps]
        return [weight / sum(weights) for weight in weights]


def law_of(scores: Sequence[int], epsilon: Fraction, sensitivity: int) -> tuple[Decimal, ...]:
    return permute_and_flip_law(tuple(max(scores) - score for score in scores), epsilon / (2 * sensitivity))


def assert_private(one: Sequence[int], other: Sequence[int], epsilon: Fraction, sensitivity: int) -> Decimal:
    """Checks the privacy loss of every outcome, and returns the largest ratio."""
    with localcontext(prec=DIGITS):
        laws = law_of(one, epsilon, sensitivity), law_of(other, epsilon, sensitivity)
        ratio = max(here / there for here, there in zip(*laws, strict=True))
        assert ratio <= to_decimal(epsilon).exp() + ROUNDING
        return ratio


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(2)])
def test_the_privacy_loss_of_all_neighbouring_scores(epsilon: Fraction) -> None:
    worst = Decimal(0)
    for scores in product(range(4), repeat=3):
        for moves in product((-1, 0, 1), repeat=3):
            moved = [score + move for score, move in zip(scores, moves, strict=True)]
            worst = max(worst, assert_private(scores, moved, epsilon, 1))
    with localcontext(prec=DIGITS):
        assert worst > (to_decimal(epsilon) * Decimal("0.7")).exp()


def small_datasets(rows: int) -> Iterator[tuple[int, ...]]:
    """All tables of three binary features, as ascending rows of three bits."""
    return combinations_with_replacement(range(8), rows)


@cache
def score_dataset(kind: Score, dataset: tuple[int, ...]) -> tuple[int, ...]:
    """The scores of the pairs (0 | 1), (0 | 2), (1 | 2)."""
    columns = [np.array([row >> bit & 1 for row in dataset], dtype=np.uint8) for bit in range(3)]
    tables = count_marginals(columns, [2, 2, 2], [(0, 1), (0, 2), (1, 2)])
    return tuple(score_tables(kind, np.array(tables).reshape(3, 2, 2)).tolist())


@pytest.mark.parametrize("kind", ["F", "R", "I"])
@pytest.mark.parametrize("rows", [1, 2, 4])
def test_the_privacy_loss_of_all_neighbouring_tables(kind: Score, rows: int) -> None:
    epsilon, sensitivity = Fraction(1), score_sensitivity(kind, rows, True)
    for dataset in small_datasets(rows):
        for place, row in product(range(rows), range(8)):
            near = tuple(sorted((*dataset[:place], row, *dataset[place + 1 :])))
            assert_private(score_dataset(kind, dataset), score_dataset(kind, near), epsilon, sensitivity)


@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1), Fraction(5, 2)])
@pytest.mark.parametrize("gaps", [(0, 1), (0, 0, 3), (0, 1, 2, 3), (0, 4, 4, 4, 4), (0, 1, 1, 2, 6, 9)])
def test_never_worse_than_the_exponential_mechanism(gaps: tuple[int, ...], rate: Fraction) -> None:
    with localcontext(prec=DIGITS):
        flip, exponential = permute_and_flip_law(gaps, rate), exponential_law(gaps, rate)
        assert sum(flip) == pytest.approx(1)
        losses = [sum(chance * gap for chance, gap in zip(law, gaps, strict=True)) for law in (flip, exponential)]
        assert losses[0] < losses[1]


@pytest.mark.parametrize("margin", [1e-12, 2.0])
def test_floats_decide_nothing(margin: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a margin of 2 every coin is decided by exact arithmetic, and none differently."""
    scores = np.random.default_rng(2).integers(0, 50, 400)
    draws = [draw(scores, seed) for seed in range(20)]
    monkeypatch.setattr(choice, "_MARGIN", margin)
    assert [draw(scores, seed) for seed in range(20)] == draws


def draw(scores: np.ndarray[tuple[int, ...], np.dtype[np.int64]], seed: int) -> int:
    return permute_and_flip(scores, epsilon=Fraction(1, 2), sensitivity=2, coins=seeded(seed))


def draw_slowly(scores: Sequence[int], epsilon: Fraction, sensitivity: int, coins: Coins) -> int:
    """The same coins, read one after the other, and decimals."""
    words = [int.from_bytes(coins.draw_bytes(8), "little") for _ in scores]
    with localcontext(prec=DIGITS):
        exponents = [to_decimal(epsilon * (score - max(scores)) / (2 * sensitivity)) for score in scores]
        heads = [i for i, word in enumerate(words) if word < exponents[i].exp() * 2**64]
    drawn = len(heads)
    while drawn >= len(heads):
        drawn = coins.draw_bits((len(heads) - 1).bit_length())
    return heads[drawn]


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(Fraction(1), 3), (Fraction(1, 7), 1), (Fraction(9), 500)])
def test_draws_are_those_of_the_slow_twin(epsilon: Fraction, sensitivity: int) -> None:
    scores = np.random.default_rng(sensitivity).integers(-60, 60, 30)
    for seed in range(100):
        drawn = permute_and_flip(scores, epsilon=epsilon, sensitivity=sensitivity, coins=seeded(seed))
        assert drawn == draw_slowly(scores.tolist(), epsilon, sensitivity, seeded(seed))


def test_a_single_candidate_and_equal_ones() -> None:
    assert draw(np.array([-5]), 0) == 0
    drawn = {draw(np.zeros(3, dtype=np.int64), seed) for seed in range(60)}
    assert drawn == {0, 1, 2}


def test_a_far_better_candidate_always_wins() -> None:
    scores = np.full(200_000, -(2**61))
    scores[123_456] = 2**61
    assert {draw(scores, seed) for seed in range(3)} == {123_456}


def test_candidates_of_the_last_batch_are_drawn() -> None:
    scores = np.zeros(2 * choice._BATCH + 1, dtype=np.int64)
    scores[:-1] = -(10**6)
    assert draw(scores, 0) == len(scores) - 1


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(Fraction(1, 2**61), 1), (Fraction(2**21), 1)])
def test_scales_out_of_range_are_refused(epsilon: Fraction, sensitivity: int) -> None:
    with pytest.raises(SynodError):
        permute_and_flip(np.array([1, 2]), epsilon=epsilon, sensitivity=sensitivity, coins=seeded(7))
