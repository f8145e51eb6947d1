"""What an answer costs, as a value that says of which kind it is. Nothing outside of common/privacy looks inside one.

Today the only kind is pure epsilon, an exact fraction, written `epsilon:1/5`. Callers add costs, take shares of them,
compare them with `fits_within`, and read and write them as text.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

_WRITTEN = re.compile(r"epsilon:([0-9]{1,1000})(?:/([0-9]{1,1000}))?")


@dataclass(frozen=True, slots=True)
class Cost:
    """A privacy loss, for neighbouring tables that differ in one replaced row."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        assert self.epsilon >= 0

    def __add__(self, other: "Cost") -> "Cost":
        """Sequential composition."""
        return Cost(self.epsilon + other.epsilon)

    def __sub__(self, other: "Cost") -> "Cost":
        """What is left of this cost after `other` was spent."""
        return Cost(self.epsilon - other.epsilon)

    def __str__(self) -> str:
        return f"epsilon:{self.epsilon}"

    def fits_within(self, cap: "Cost") -> bool:
        """Whether this cost may be spent under `cap`."""
        return self.epsilon <= cap.epsilon

    def share(self, part: Fraction | Decimal) -> "Cost":
        """A part of this cost; parts that add up to 1 add up to the whole."""
        return Cost(self.epsilon * Fraction(part))

    def part_of(self, whole: "Cost") -> Fraction:
        """Which part of `whole` this cost is."""
        return self.epsilon / whole.epsilon

    def describe(self) -> str:
        """For people: a short decimal where it is exact, the fraction where it is not."""
        decimal = f"{float(self.epsilon):.6g}"
        exact = decimal if Fraction(decimal) == self.epsilon else f"{self.epsilon} (about {decimal})"
        return f"epsilon {exact}"

    @staticmethod
    def pure(epsilon: Decimal | Fraction) -> "Cost":
        """The cost of an answer that is epsilon-differentially private."""
        return Cost(Fraction(epsilon))

    @staticmethod
    def parse(text: str) -> "Cost":
        """Reads what `str` wrote, and nothing else."""
        written = _WRITTEN.fullmatch(text)
        if written is None or (written[2] is not None and int(written[2]) == 0):
            raise ValueError("not a cost")
        cost = Cost(Fraction(int(written[1]), int(written[2] or 1)))
        if str(cost) != text:
            raise ValueError("not a cost in its one written form")
        return cost

    @staticmethod
    def total(costs: Iterable["Cost"]) -> "Cost":
        """All of them together."""
        return sum(costs, FREE)


FREE = Cost(Fraction(0))
