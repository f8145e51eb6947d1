"""Somebody who knows every row but one tries to tell two neighbouring tables apart, by each kind of query: what they
show stays below the claim, and does not once the noise is halved.

Coins are a function of the run, so that a result is the same every time; with other coins a sound program would fail
all of this together in one of 10,000 runs at most (bench/audit/bounds.py).
"""

from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest

from bench.audit.bounds import MOST_INTERVALS
from bench.audit.queries import Audited, Runs, audited_queries
from bench.audit.run import audit
from bench.audit.seen import MOST_WAYS
from synod.common.protocol.steps import QueryKind
from synod.common.study.study import known_methods
from tests.support.audits import SECONDS, check

FEW = Runs(100, 300)
NONE = Fraction(1, 1000)
"""Next to no noise: there is no law without any."""


@cache
def rows_of_queries() -> list[Audited]:
    return audited_queries()


@pytest.mark.slow
@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("kind", QueryKind, ids=lambda kind: str(kind.value))
def test_a_query_shows_no_more_than_it_costs(kind: QueryKind) -> None:
    rows = [row for row in rows_of_queries() if row.kind == kind.value]
    assert rows, f"{kind.value} is not audited"
    for row in rows:
        check(row)


@pytest.mark.parametrize("kind", QueryKind, ids=lambda kind: str(kind.value))
def test_a_few_runs_of_a_query_do_not_give_a_row_away(kind: QueryKind) -> None:
    """Too few to find out half the noise; that there is none, or that coins are not drawn anew, they do."""
    for row in rows_of_queries():
        if row.kind == kind.value:
            assert audit(replace(row, runs=FEW)).holds, row.title
            if row.has_noise:
                assert not audit(replace(row, runs=FEW), NONE).holds, row.title


def test_every_kind_is_audited_in_every_way_that_it_is_seen() -> None:
    rows = rows_of_queries()
    assert {row.kind for row in rows} == {kind.value for kind in QueryKind}
    assert 2 * MOST_WAYS * (len(rows) + len(known_methods())) <= MOST_INTERVALS
    for kind in QueryKind:
        own = [row for row in rows if row.kind == kind.value]
        if kind.is_sum:
            for view in ("released", "to t colluders"):
                claims = [row.claim for row in own if row.name.endswith(view)]
                assert any(claim.rho for claim in claims)
                assert any(claim.epsilon for claim in claims)
