"""Powers from the table against `pow`, and the choice of the window."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synod.common.crypto.fixedbase import MAX_WINDOW_BITS, TABLE_BYTES, PowerTable, plan_window

N = 1000003 * 2147483647  # any odd number will do: the base must only be a unit


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(1, 40), st.integers(1, 7), st.integers(2, N * N - 1))
def test_powers_equal_pow(data: st.DataObject, exponent_bits: int, window: int, base: int) -> None:
    base += base % 1000003 == 0 or base % 2147483647 == 0
    size = (exponent_bits + 7) // 8
    exponents = data.draw(st.lists(st.integers(0, 2 ** (8 * size) - 1), min_size=1, max_size=5))
    slopes = data.draw(st.lists(st.integers(0, N - 1), min_size=len(exponents), max_size=len(exponents)))
    blob = b"".join(exponent.to_bytes(size, "little") for exponent in exponents)
    table = PowerTable(base, N, exponent_bits, window)
    assert list(table.raise_all(blob, slopes)) == [
        (1 + m * N) * pow(base, r % 2**exponent_bits, N * N) % (N * N) for m, r in zip(slopes, exponents, strict=True)
    ]


@pytest.mark.parametrize("bits", [2048, 3072, 4096])
def test_window_grows_with_the_work_and_stays_in_memory(bits: int) -> None:
    windows = [plan_window(bits, 10**power) for power in range(8)]
    assert windows == sorted(windows)
    assert windows[0] <= 3
    assert windows[-1] >= 7
    assert (bits // 2 // windows[-1] << windows[-1]) * bits // 4 < TABLE_BYTES


def test_widest_windows() -> None:
    assert (plan_window(2048, 10**6), plan_window(3072, 10**6)) == (9, 8)
    assert 10 < plan_window(64, 10**9) <= MAX_WINDOW_BITS
