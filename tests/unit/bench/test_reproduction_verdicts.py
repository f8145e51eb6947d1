"""Each verdict can come out, and a difference needs more than noise."""

import pytest
from scipy import stats

from bench.reproduction.claims.verdicts import (
    CONFIDENCE,
    STUDENT,
    Series,
    Tally,
    Verdict,
    compare,
    tally_falling,
    tally_not_larger,
    tally_rising,
    tally_smaller,
    tally_stable,
)
from bench.reproduction.summary import Estimate, estimate


def line(*means: float, error: float = 0.0) -> Series:
    return {float(x): Estimate(mean, error, 5) for x, mean in enumerate(means)}


@pytest.mark.parametrize(
    ("tally", "verdict"),
    [
        (Tally(0, 0, 0), Verdict.UNKNOWN),
        (Tally(4, 0, 0), Verdict.HOLDS),
        (Tally(3, 1, 0), Verdict.HOLDS),
        (Tally(3, 2, 0), Verdict.IN_PART),
        (Tally(9, 0, 1), Verdict.IN_PART),
        (Tally(1, 3, 0), Verdict.IN_PART),
        (Tally(1, 9, 0), Verdict.IN_PART),
        (Tally(2, 9, 1), Verdict.FAILS),
        (Tally(2, 0, 2), Verdict.FAILS),
        (Tally(0, 5, 0), Verdict.OPEN),
        (Tally(0, 0, 1), Verdict.FAILS),
    ],
)
def test_every_verdict_comes_out(tally: Tally, verdict: Verdict) -> None:
    assert tally.verdict is verdict


@pytest.mark.parametrize("freedom", sorted(STUDENT))
def test_quantiles_are_those_of_student(freedom: int) -> None:
    assert STUDENT[freedom] == pytest.approx(stats.t.ppf((1 + CONFIDENCE) / 2, freedom), abs=0.005)


def test_a_difference_must_exceed_the_errors_of_few_runs() -> None:
    few, many = Estimate(1.0, 0.05, 2), Estimate(1.0, 0.05, 50)
    assert compare(few, Estimate(1.2, 0.05, 2)) == 0
    assert compare(many, Estimate(1.2, 0.05, 50)) == -1
    assert compare(Estimate(1.2, 0.05, 50), many) == 1


def test_a_tiny_difference_is_none_even_without_errors() -> None:
    assert compare(Estimate(1.0, 0.0, 1), Estimate(1.015, 0.0, 1)) == 0
    assert compare(Estimate(1.0, 0.0, 1), Estimate(1.03, 0.0, 1)) == -1


def test_lines_are_compared_where_both_have_points() -> None:
    right = {**line(2.0, 1.0, 0.5), 9.0: Estimate(1.0, 0.0, 5)}
    assert tally_smaller(line(1.0, 1.0, 1.0), right) == Tally(1, 1, 1)
    assert tally_smaller({}, right) == Tally()


def test_trends_compare_the_end_with_the_beginning() -> None:
    down, up, level = line(3.0, 5.0, 1.0), line(1.0, 0.5, 3.0), line(1.0, 9.0, 1.001)
    assert [tally_falling(each) for each in (down, up, level)] == [Tally(1, 0, 0), Tally(0, 0, 1), Tally(0, 1, 0)]
    assert [tally_rising(each) for each in (down, up, level)] == [Tally(0, 0, 1), Tally(1, 0, 0), Tally(0, 1, 0)]
    assert [tally_stable(each) for each in (down, up, level)] == [Tally(0, 0, 1), Tally(0, 0, 1), Tally(1, 0, 0)]
    assert tally_falling(line(1.0)) == Tally()


def test_large_errors_do_not_make_numbers_equal() -> None:
    near, far = line(1.0, 1.05, error=0.5), line(1.0, 1.5, error=0.5)
    assert (tally_stable(near), tally_stable(far)) == (Tally(1, 0, 0), Tally(0, 1, 0))
    one, larger, much_larger = line(1.0, error=0.5), line(1.5, error=0.5), line(9.0, error=0.5)
    assert tally_not_larger(one, larger) == tally_not_larger(one, much_larger) == Tally(1, 0, 0)
    assert tally_not_larger(larger, one) == Tally(0, 1, 0)
    assert tally_not_larger(much_larger, one) == Tally(0, 0, 1)
    assert tally_not_larger(line(1.05, error=0.5), one) == Tally(1, 0, 0)


def test_an_estimate_has_the_standard_error_of_the_mean() -> None:
    found = estimate([1.0, 2.0, 3.0])
    assert (found.mean, found.error) == pytest.approx((2.0, 1 / 3**0.5))
    assert found.runs == 3
    assert estimate([4.0]) == Estimate(4.0, 0.0, 1)
