"""Posterior means of small counts against scipy and against the integral."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_ndtr

from synod.curator.inference.tails import FRACTION_FROM, posterior_means, truncated_means


def test_truncated_means_are_those_of_scipy() -> None:
    shifts = np.linspace(-12, 12, 4001)
    twin = shifts + np.exp(-0.5 * shifts**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(shifts))
    assert np.allclose(truncated_means(shifts), twin, rtol=1e-11)


def test_far_below_zero_little_is_expected_but_something() -> None:
    shifts = np.array([-50.0, -1e4, -1e9])
    assert np.allclose(truncated_means(shifts) * -shifts, [1 - 2 / 2500, 1, 1], rtol=1e-5)


def test_nothing_jumps_where_the_formula_changes() -> None:
    near = truncated_means(-FRACTION_FROM + np.array([-1e-12, 1e-12]))
    assert near[0] == pytest.approx(near[1], rel=1e-11)


@pytest.mark.parametrize(("value", "total"), [(-30.0, 40.0), (0.0, 40.0), (55.0, 40.0), (5.0, -3.0)])
def test_a_posterior_mean_is_its_integral(value: float, total: float) -> None:
    values, deviation = np.array([value, 1.0, 2.0, -4.0]), 12.0
    mean = max(total / 4, 0.1 * deviation / 4)

    def density(x: float) -> float:
        return float(np.exp(-x / mean - 0.5 * ((value - x) / deviation) ** 2 + 0.5 * (value / deviation) ** 2))

    top = 40 * mean + 10 * abs(value)
    whole, first = (quad(lambda x, p=p: x**p * density(x), 0, top, epsabs=0, limit=500)[0] for p in (0, 1))
    assert posterior_means(values, deviation, total)[0] == pytest.approx(first / whole, rel=1e-7)


def test_means_rise_with_readings_and_are_positive() -> None:
    means = posterior_means(np.linspace(-200, 200, 70_000), 20.0, 90_000.0)
    assert (means > 0).all()
    assert (np.diff(means) > 0).all()
