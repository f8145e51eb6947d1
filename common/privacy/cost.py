"""The cost of an answer, as a value of its own type.

Today a cost is pure epsilon, an exact fraction. Nothing outside `common/` may assume that it is one number:
callers add costs, compare them with `fits_within`, and read and write them as text.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction


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
        return str(self.epsilon)

    def fits_within(self, cap: "Cost") -> bool:
        """Whether this cost may be spent under `cap`."""
        return self.epsilon <= cap.epsilon

    @staticmethod
    def parse(text: str) -> "Cost":
        """Reads what `str` wrote."""
        return Cost(Fraction(text))

    @staticmethod
    def of_decimal(epsilon: Decimal) -> "Cost":
        """The cost that a study or a policy writes as a decimal epsilon."""
        return Cost(Fraction(epsilon))

    @staticmethod
    def total(costs: Iterable["Cost"]) -> "Cost":
        """All of them together."""
        return sum(costs, FREE)

    def describe(self) -> str:
        """For people: a short decimal where it is exact, the fraction where it is not."""
        decimal = f"{float(self.epsilon):.6g}"
        return decimal if Fraction(decimal) == self.epsilon else f"{self.epsilon} (about {decimal})"


FREE = Cost(Fraction(0))
