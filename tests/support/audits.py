"""What is asked of every row of the audit."""

from bench.audit.bounds import most_loss
from bench.audit.queries import Audited
from bench.audit.run import HALF, audit

SECONDS = 1200


def check(row: Audited) -> None:
    """The claim holds at the claimed noise, and does not at half of it."""
    found = audit(row)
    assert found.holds, f"{row.title}: {found} refutes the claim"
    if row.has_noise:
        assert found.bound > 0, f"{row.title}: {found} sees nothing at all"
        half = audit(row, HALF)
        assert half.bound > most_loss(row.claim), f"{row.title}: {half} does not find out that noise is halved"
