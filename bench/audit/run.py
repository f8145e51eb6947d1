"""Runs of an audit: with the claimed noise, and with half of it, which must be found out."""

from fractions import Fraction

from bench.audit.counting import counted_once
from bench.audit.noise import scaled_noise
from bench.audit.queries import Audited
from bench.audit.seen import Finding, tell_apart

HALF = Fraction(1, 2)


def audit(audited: Audited, factor: Fraction = Fraction(1)) -> Finding:
    """What is found of a row with noise of this factor; the same whenever it is run."""
    with scaled_noise(factor), counted_once():
        total = audited.runs.training + audited.runs.counted
        sides = [[audited.observe(side, run) for run in range(total)] for side in (0, 1)]
    return tell_apart(audited.claim, sides[0], sides[1], audited.runs.training)
