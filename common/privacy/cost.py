"""What an answer costs, as a value that says of which kind it is. Nothing outside of common/privacy looks inside one.

There are two kinds, both exact fractions: pure epsilon, written `epsilon:1/5`, and rho, that of concentrated
differential privacy, written `rho:1/100`. Each kind adds up by itself, so a sum of both is written
`epsilon:1/5+rho:1/100`. Callers add costs, take shares of them, compare them with `fits_within`, and read and write
them as text.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

MOST_DIGITS = 15
_NUMBER = r"([0-9]{1,1000})(?:/([0-9]{1,1000}))?"
_WRITTEN = re.compile(rf"(?:epsilon:{_NUMBER})?\+?(?:rho:{_NUMBER})?")


@dataclass(frozen=True, slots=True)
class Cost:
    """A privacy loss, for neighbouring tables that differ in the replaced rows of one unit: one row, or as many as the
    study's `max_rows_per_unit`.

    Guarantee: what costs (epsilon, rho) is a composition of an epsilon-differentially private part and a rho-zCDP part
    (Bun and Steinke 2016): its Renyi divergence of every order a > 1 is at most epsilon + a rho.
    """

    epsilon: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        assert self.epsilon >= 0
        assert self.rho >= 0

    def __add__(self, other: "Cost") -> "Cost":
        """Sequential composition, of each kind by itself."""
        return Cost(self.epsilon + other.epsilon, self.rho + other.rho)

    def __sub__(self, other: "Cost") -> "Cost":
        """What is left of this cost after `other` was spent."""
        return Cost(self.epsilon - other.epsilon, self.rho - other.rho)

    def left_after(self, spent: "Cost") -> "Cost":
        """What is left of this cap of each kind, and nothing where more is spent: a cap may be lowered later."""
        return Cost(max(self.epsilon - spent.epsilon, Fraction(0)), max(self.rho - spent.rho, Fraction(0)))

    def __str__(self) -> str:
        parts = [f"epsilon:{self.epsilon}"] if self.epsilon or not self.rho else []
        return "+".join([*parts, f"rho:{self.rho}"] if self.rho else parts)

    def fits_within(self, cap: "Cost") -> bool:
        """Whether this cost may be spent under `cap`: neither kind makes up for the other."""
        return self.epsilon <= cap.epsilon and self.rho <= cap.rho

    def share(self, part: Fraction | Decimal) -> "Cost":
        """A part of this cost; parts that add up to 1 add up to the whole."""
        return Cost(self.epsilon * Fraction(part), self.rho * Fraction(part))

    def part_of(self, whole: "Cost") -> Fraction:
        """Which part of `whole`, a cost of one kind, this cost of the same kind is."""
        assert (whole.epsilon == 0) != (whole.rho == 0)
        assert (self.rho if whole.epsilon else self.epsilon) == 0
        return self.epsilon / whole.epsilon if whole.epsilon else self.rho / whole.rho

    def describe(self) -> str:
        """For people: a short decimal where it is exact, the fraction where it is not."""
        kinds = [("epsilon", self.epsilon), ("rho", self.rho)]
        return " and ".join(f"{kind} {_describe(number)}" for kind, number in kinds if number) or "epsilon 0"

    @staticmethod
    def pure(epsilon: Decimal | Fraction) -> "Cost":
        """The cost of an answer that is epsilon-differentially private."""
        return Cost(epsilon=Fraction(epsilon))

    @staticmethod
    def concentrated(rho: Decimal | Fraction) -> "Cost":
        """The cost of an answer that is rho-zCDP."""
        return Cost(rho=Fraction(rho))

    @staticmethod
    def parse(text: str) -> "Cost":
        """Reads what `str` wrote, and nothing else."""
        written = _WRITTEN.fullmatch(text)
        if written is None:
            raise ValueError("not a cost")
        try:
            epsilon, rho = (Fraction(int(a or 0), int(b or 1)) for a, b in (written.group(1, 2), written.group(3, 4)))
        except ZeroDivisionError:
            raise ValueError("not a cost") from None
        cost = Cost(epsilon, rho)
        if str(cost) != text:
            raise ValueError("not a cost in its one written form")
        return cost

    @staticmethod
    def total(costs: Iterable["Cost"]) -> "Cost":
        """All of them together."""
        return sum(costs, FREE)


FREE = Cost()


def _describe(number: Fraction) -> str:
    short, exact = f"{float(number):.6g}", f"{float(number):.{MOST_DIGITS}g}"
    if Fraction(exact) == number:
        return exact
    return f"{number} (about {short})"
