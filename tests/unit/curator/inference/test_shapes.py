"""Skewness and spikes of a column against slow twins and at their limits."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synod.curator.inference.shapes import Spike, find_spike, skewness

columns = st.lists(st.integers(-3, 12).map(float), max_size=60)


def skewness_slowly(values: list[float]) -> float:
    mean = sum(values) / len(values)
    second, third = (sum((v - mean) ** power for v in values) / len(values) for power in (2, 3))
    return float(third / second**1.5)


def spikes_slowly(values: list[float]) -> dict[float, float]:
    """Every value that is a spike, with its share."""
    shares = {value: count / len(values) for value, count in Counter(values).items()}
    return {v: s for v, s in shares.items() if s > (0.02 if v in (min(values), max(values)) else 0.10)}


@given(columns)
def test_skewness_is_the_third_standardized_moment(values: list[float]) -> None:
    expected = skewness_slowly(values) if len(set(values)) > 1 else 0.0
    assert skewness(np.array(values)) == pytest.approx(expected, abs=1e-9)


@given(columns)
def test_the_spike_is_the_greatest_of_all(values: list[float]) -> None:
    found, all_spikes = find_spike(np.array(values)), spikes_slowly(values)
    if found is None:
        assert not all_spikes
        return
    assert all_spikes[found.value] == pytest.approx(found.share) == max(all_spikes.values())
    assert (found.end == "minimum") == (found.value == min(values))


def with_share(value: float, count: int) -> np.ndarray:
    """A hundred values from 1 to 100 that appear once, `count` of them replaced."""
    values = np.arange(1.0, 101.0)
    values[40 : 40 + count] = value
    return values


@pytest.mark.parametrize(
    ("value", "count", "spike"),
    [
        (50.0, 9, None),
        (500.0, 2, None),
        (500.0, 3, Spike(500.0, 0.03, "maximum")),
        (0.0, 3, Spike(0.0, 0.03, "minimum")),
        (20.0, 9, None),
        (20.0, 10, Spike(20.0, 0.11, "")),
    ],
)
def test_limits_of_a_spike(value: float, count: int, spike: Spike | None) -> None:
    assert find_spike(with_share(value, count)) == spike


@pytest.mark.parametrize("values", [[], [3.0], [3.0] * 5])
def test_no_spread_is_no_skewness(values: list[float]) -> None:
    assert skewness(np.array(values)) == 0.0
