"""Powers of one fixed element of Z*_{n^2} from a table of windows: what makes Paillier's obfuscator cheap.

Elements are kept as u (1 + b n) with u < n. In a product the slopes b only add up, so that a step is a
product with u alone, half as wide as n^2, and a factor 1 + m n is an addition. Pure arithmetic: no coins, no
keys, no wire. Where the table is read depends on the exponent: no defence against who shares the cache.
"""

from collections.abc import Iterator, Sequence

import gmpy2
import numpy as np
from gmpy2 import mpz

TABLE_BYTES = 64 << 20
MAX_WINDOW_BITS = 12
BLOCK = 256
ENTRY_STEPS = 1.6  # making an entry takes three products mod n; measured against one step of a power


def plan_window(bits: int, count: int) -> int:
    """The window with the least work for `count` powers with a modulus of `bits` bits, table included.

    Only windows whose table stays below `TABLE_BYTES` are looked at: 9 at most for 2048 bits, 8 for 3072.
    """
    exponent_bits = (bits + 1) // 2
    entry_bytes = bits // 4 + 400  # two numbers below n; as measured, for gmpy2 rounds their room up

    def work(window: int) -> float:
        return -(-exponent_bits // window) * (ENTRY_STEPS * (1 << window) + count)

    def size(window: int) -> int:
        return (exponent_bits // window << window) * entry_bytes

    windows = range(1, MAX_WINDOW_BITS + 1)
    return min((window for window in windows if size(window) < TABLE_BYTES), key=work)


class PowerTable:
    """The entries base^(d 2^(window i)) for each window i of the exponent and each digit d.

    A power takes ceil(exponent_bits / window) steps, the table 2^window entries for each of them.
    """

    def __init__(self, base: int, n: int, exponent_bits: int, window: int) -> None:
        self._n, self._nsquare = mpz(n), mpz(n) * n
        self._exponent_bits, self._window = exponent_bits, window
        self._units: list[mpz] = []
        self._slopes: list[mpz] = []
        self._fill(*_split_element(mpz(base), self._n))

    def _fill(self, unit: mpz, slope: mpz) -> None:
        for low in range(0, self._exponent_bits, self._window):
            digits = 1 << min(self._window, self._exponent_bits - low)
            units, slopes = _list_powers(unit, slope, self._n, digits)
            unit, slope = units.pop(), slopes.pop()
            self._units += units
            self._slopes += slopes

    def raise_all(self, exponents: bytes, slopes: Sequence[int]) -> Iterator[mpz]:
        """(1 + m n) base^r mod n^2 for each r of `exponents` and m of `slopes`.

        Exponents are little-endian in whole bytes; bits above `exponent_bits` are not looked at.
        """
        size = (self._exponent_bits + 7) // 8
        assert len(exponents) == size * len(slopes)
        for start in range(0, len(slopes), BLOCK):
            rows = self._look_up(exponents[start * size : (start + BLOCK) * size])
            yield from map(self._multiply, rows, slopes[start : start + BLOCK])

    def _look_up(self, exponents: bytes) -> list[list[int]]:
        """For each exponent, the places of its digits' entries."""
        windows = -(-self._exponent_bits // self._window)
        raw = np.frombuffer(exponents, dtype=np.uint8).reshape(-1, (self._exponent_bits + 7) // 8)
        bits = np.zeros((len(raw), windows * self._window), dtype=np.uint8)
        bits[:, : self._exponent_bits] = np.unpackbits(raw, axis=1, count=self._exponent_bits, bitorder="little")
        digits = bits.reshape(len(raw), windows, self._window) @ (1 << np.arange(self._window))
        places: list[list[int]] = (digits + (np.arange(windows) << self._window)).tolist()
        return places

    def _multiply(self, places: list[int], slope: int) -> mpz:
        product, nsquare = mpz(1), self._nsquare
        for unit in map(self._units.__getitem__, places):
            product = product * unit % nsquare
        slope = sum(map(self._slopes.__getitem__, places), mpz(slope)) % self._n
        return (product + product * slope % self._n * self._n) % nsquare


def _split_element(element: mpz, n: mpz) -> tuple[mpz, mpz]:
    """The u and b of element = u (1 + b n) mod n^2."""
    carry, unit = gmpy2.f_divmod(element, n)
    return unit, carry * gmpy2.invert(unit, n) % n


def _list_powers(unit: mpz, slope: mpz, n: mpz, last: int) -> tuple[list[mpz], list[mpz]]:
    """Units and slopes of the powers 0 to `last` of unit (1 + slope n).

    From u v = w + k n follows u (1 + b n) v (1 + c n) = w (1 + (b + c + k / w) n) mod n^2.
    """
    inverse, power_inverse = gmpy2.invert(unit, n), mpz(1)
    units, slopes = [mpz(1)], [mpz(0)]
    for _ in range(last):
        carry, power = gmpy2.f_divmod(units[-1] * unit, n)
        power_inverse = power_inverse * inverse % n
        units.append(power)
        slopes.append((slopes[-1] + slope + carry * power_inverse) % n)
    return units, slopes
