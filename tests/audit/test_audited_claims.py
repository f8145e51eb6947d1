"""Somebody who knows every row but one tries to tell two neighbouring tables apart, by each kind of query and by each
method: what they show stays below the claim, and does not once the noise is halved.

Coins are a function of the run, so that a result is the same every time; with other coins a sound program would fail
all of this together in one of 10,000 runs at most (bench/audit/bounds.py).
"""

from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest

from bench.audit.bounds import MOST_INTERVALS, most_loss
from bench.audit.methods import audit_method
from bench.audit.queries import Audited, Runs, audited_queries
from bench.audit.run import HALF, audit
from bench.audit.seen import MOST_WAYS
from synod.common.protocol.steps import QueryKind
from synod.common.study.study import known_methods

SECONDS = 1200
FEW = Runs(100, 300)
NONE = Fraction(1, 1000)
"""Next to no noise: there is no law without any."""


@cache
def rows_of_queries() -> list[Audited]:
    return audited_queries()


def check(row: Audited) -> None:
    found = audit(row)
    assert found.holds, f"{row.title}: {found} refutes the claim"
    if row.has_noise:
        assert found.bound > 0, f"{row.title}: {found} sees nothing at all"
        half = audit(row, HALF)
        assert half.bound > most_loss(row.claim), f"{row.title}: {half} does not find out that noise is halved"


@pytest.mark.slow
@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("kind", QueryKind, ids=lambda kind: str(kind.value))
def test_a_query_shows_no_more_than_it_costs(kind: QueryKind) -> None:
    rows = [row for row in rows_of_queries() if row.kind == kind.value]
    assert rows, f"{kind.value} is not audited"
    for row in rows:
        check(row)


@pytest.mark.slow
@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("method", sorted(known_methods()))
def test_a_method_shows_no_more_than_it_costs(method: str) -> None:
    check(audit_method(method))


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


@pytest.mark.parametrize("method", sorted(known_methods()))
def test_a_run_of_a_method_is_seen_and_is_the_same_again(method: str) -> None:
    row = audit_method(method)
    assert most_loss(row.claim) > 0
    first, again, other = row.observe(0, 1), row.observe(0, 1), row.observe(0, 2)
    assert (first.ratio, first.choices, first.scores) == (again.ratio, again.choices, again.scores)
    assert first.ratio not in (0, other.ratio)
    assert 3 + len(first.scores) <= MOST_WAYS
