"""Runs of an audit: with the claimed noise, and with half of it, which must be found out."""

from dataclasses import dataclass
from fractions import Fraction

from bench.audit.counting import counted_once
from bench.audit.noise import scaled_noise
from bench.audit.queries import Audited
from bench.audit.seen import Finding, tell_apart

HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class Runs:
    """How many runs are for training, and how many are counted, under each table."""

    training: int
    counted: int


def audit(audited: Audited, runs: Runs, factor: Fraction = Fraction(1)) -> Finding:
    """What is found of a row with noise of this factor; the same whenever it is run."""
    with scaled_noise(factor), counted_once():
        total = runs.training + runs.counted * audited.effort
        sides = [[audited.observe(side, run) for run in range(total)] for side in (0, 1)]
    return tell_apart(audited.claim, sides[0], sides[1], runs.training)
