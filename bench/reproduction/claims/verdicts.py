"""How a claim is judged: what counts as a difference, and what as holding. All thresholds of the page are here."""

from dataclasses import dataclass
from enum import Enum
from math import hypot

from bench.reproduction.summary import Estimate

CONFIDENCE = 0.95
STUDENT = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 10: 2.23}
"""Two-sided quantiles of Student's t at this confidence, by degrees of freedom; beyond these, 2."""
MARGIN_SHARE = 0.02
SHARE_TO_HOLD = 0.75
SHARE_IN_PART = 0.25
SHARE_TO_BE_EQUAL = 0.1

Series = dict[float, Estimate]


class Verdict(Enum):
    """What became of a claim."""

    HOLDS = "holds"
    IN_PART = "holds in part"
    FAILS = "does not hold"
    OPEN = "undecided"
    UNKNOWN = "not measured"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with the measurement that it rests on."""

    verdict: Verdict
    measurement: str


@dataclass(frozen=True, slots=True)
class Tally:
    """At how many points a claim is clearly true, undecided, or clearly false."""

    won: int = 0
    tied: int = 0
    lost: int = 0

    @property
    def points(self) -> int:
        """All points."""
        return self.won + self.tied + self.lost

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.won + other.won, self.tied + other.tied, self.lost + other.lost)

    def __str__(self) -> str:
        return f"yes at {self.won} of {self.points} points, undecided at {self.tied}, the opposite at {self.lost}"

    @property
    def verdict(self) -> Verdict:
        """Holds if never contradicted and clear at most points; in part if more often true than contradicted; open if
        no point says anything.
        """
        if self.points == 0:
            return Verdict.UNKNOWN
        if self.lost == 0 and self.won >= SHARE_TO_HOLD * self.points:
            return Verdict.HOLDS
        if self.won > self.lost and (self.lost == 0 or self.won >= SHARE_IN_PART * self.points):
            return Verdict.IN_PART
        return Verdict.FAILS if self.lost else Verdict.OPEN


def compare(left: Estimate, right: Estimate) -> int:
    """-1 if left is clearly smaller, 1 if clearly larger, 0 if they differ by less than errors and margin allow.

    What was computed once has no error: covers and forecasts are exact, and a quick run is not there to be believed.
    """
    freedom = left.runs + right.runs - 2
    errors = STUDENT.get(freedom, 2.0) * hypot(left.error, right.error)
    margin = max(errors, MARGIN_SHARE * max(abs(left.mean), abs(right.mean)))
    gap = left.mean - right.mean
    return 0 if abs(gap) <= margin else (1 if gap > 0 else -1)


def tally_smaller(left: Series, right: Series) -> Tally:
    """Whether the left line lies below the right one, at the places that both have."""
    outcomes = [compare(left[x], right[x]) for x in left if x in right]
    return Tally(outcomes.count(-1), outcomes.count(0), outcomes.count(1))


def tally_falling(line: Series) -> Tally:
    """Whether a line ends clearly below its beginning; one point."""
    if len(line) < 2:
        return Tally()
    outcome = compare(line[max(line)], line[min(line)])
    return Tally(int(outcome < 0), int(outcome == 0), int(outcome > 0))


def tally_rising(line: Series) -> Tally:
    """The opposite."""
    falling = tally_falling(line)
    return Tally(falling.lost, falling.tied, falling.won)


def tally_stable(line: Series) -> Tally:
    """Whether a line ends where it began; one point, which is undecided where errors would hide a change."""
    if len(line) < 2:
        return Tally()
    first, last = line[min(line)], line[max(line)]
    is_equal = compare(first, last) == 0
    return Tally(int(is_equal and is_near(first, last)), int(is_equal and not is_near(first, last)), int(not is_equal))


def tally_not_larger(left: Series, right: Series) -> Tally:
    """Whether the left line nowhere lies above the right one; a point is undecided where errors would hide that."""
    tally = Tally()
    for x in left.keys() & right.keys():
        outcome = compare(left[x], right[x])
        is_fine = outcome < 0 or (outcome == 0 and (left[x].mean < right[x].mean or is_near(left[x], right[x])))
        tally += Tally(int(is_fine), int(outcome == 0 and not is_fine), int(outcome > 0))
    return tally


def is_near(left: Estimate, right: Estimate) -> bool:
    """Whether two numbers are about the same, whatever their errors."""
    return abs(left.mean - right.mean) <= SHARE_TO_BE_EQUAL * max(abs(left.mean), abs(right.mean))


def show(estimate: Estimate) -> str:
    """A number with its standard error; a large one without digits."""
    if abs(estimate.mean) >= 1_000:
        return f"{estimate.mean:,.0f} ± {estimate.error:,.0f}" if estimate.runs > 1 else f"{estimate.mean:,.0f}"
    return f"{estimate.mean:.3f} ± {estimate.error:.3f}" if estimate.runs > 1 else f"{estimate.mean:.3f}"
