"""All rows of the audit: each kind of query, and each registered method."""

from bench.audit.bounds import MOST_INTERVALS
from bench.audit.methods import audited_methods
from bench.audit.queries import Audited, audited_queries
from bench.audit.seen import MOST_WAYS


def audited_rows() -> list[Audited]:
    """Everything that is audited; each row has two intervals for each way to tell."""
    rows = [*audited_queries(), *audited_methods()]
    assert 2 * MOST_WAYS * len(rows) <= MOST_INTERVALS
    return rows
