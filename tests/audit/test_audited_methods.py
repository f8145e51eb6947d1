"""Somebody who knows every row but one tries to tell two neighbouring tables apart by each method, end to end: what it
shows stays below the claim, and does not once the noise is halved (test_audited_claims.py beside it says how).
"""

import pytest

from bench.audit.bounds import most_loss
from bench.audit.methods import audit_method
from bench.audit.seen import MOST_WAYS
from synod.common.study.study import known_methods
from tests.support.audits import SECONDS, check


@pytest.mark.slow
@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("method", sorted(known_methods()))
def test_a_method_shows_no_more_than_it_costs(method: str) -> None:
    check(audit_method(method))


@pytest.mark.parametrize("method", sorted(known_methods()))
def test_a_run_of_a_method_is_seen_and_is_the_same_again(method: str) -> None:
    row = audit_method(method)
    assert most_loss(row.claim) > 0
    first, again, other = row.observe(0, 1), row.observe(0, 1), row.observe(0, 2)
    assert (first.ratio, first.choices, first.scores) == (again.ratio, again.choices, again.scores)
    assert first.ratio not in (0, other.ratio)
    assert 3 + len(first.scores) <= MOST_WAYS
