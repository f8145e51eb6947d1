"""Finite fields GF(p^m) as tables, for the designs that need a division ring of every prime-power order.

The element number a stands for the polynomial over GF(p) whose coefficients are the base-p digits of a, the lowest
first; 0 and 1 are the field's zero and one, and where m = 1 this is arithmetic modulo p.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Field:
    """`plus[a, b]` and `times[a, b]` for all elements a and b."""

    order: int
    plus: Table
    times: Table


@lru_cache(maxsize=1024)
def factor_prime_power(number: int) -> tuple[int, int] | None:
    """(p, m) if the number is p^m for a prime p and m >= 1."""
    if number < 2:
        return None
    prime = next((p for p in range(2, number) if p * p <= number and number % p == 0), number)
    degree, rest = 0, number
    while rest % prime == 0:
        degree, rest = degree + 1, rest // prime
    return (prime, degree) if rest == 1 else None


def is_prime(number: int) -> bool:
    """Whether the number is a prime."""
    return factor_prime_power(number) == (number, 1)


@lru_cache(maxsize=64)
def build_field(order: int) -> Field:
    """The field of a prime-power order. Multiplication adds exponents of a generator."""
    power = factor_prime_power(order)
    assert power is not None
    prime, degree = power
    digits = np.arange(order)[:, None] // prime ** np.arange(degree) % prime
    plus = (digits[:, None] + digits) % prime @ prime ** np.arange(degree)
    if degree == 1:
        return Field(order, plus, np.outer(np.arange(order), np.arange(order)) % prime)
    powers = _powers_of_generator(prime, degree)
    exponent = np.argsort(powers)
    times = np.zeros((order, order), dtype=np.intp)
    times[1:, 1:] = powers[(exponent[:, None] + exponent) % (order - 1)]
    return Field(order, plus, times)


def _powers_of_generator(prime: int, degree: int) -> Table:
    """x^0, x^1, ... modulo the first monic polynomial for which they are all the nonzero elements: if every
    nonzero residue is a power of x, which has an inverse as tail_0 is not zero, the residues are a field.
    """
    for tail in product(range(1, prime), *[range(prime)] * (degree - 1)):
        powers = _powers_of_x(prime, tail)
        if len(powers) == prime**degree - 1:
            return np.array(powers, dtype=np.intp)
    raise AssertionError("every finite field has a primitive polynomial")


def _powers_of_x(prime: int, tail: tuple[int, ...]) -> list[int]:
    """The powers of x modulo x^m - (tail_0 + tail_1 x + ...), from 1 until the first that was there before."""
    residue = (1,) + (0,) * (len(tail) - 1)
    seen: dict[tuple[int, ...], None] = {}
    while residue not in seen:
        seen[residue] = None
        top = residue[-1]
        shifted = (0, *residue[:-1])
        residue = tuple((low + top * high) % prime for low, high in zip(shifted, tail, strict=True))
    return [sum(digit * prime**place for place, digit in enumerate(element)) for element in seen]
