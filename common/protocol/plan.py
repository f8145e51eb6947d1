"""The plan: a pure function from a resolved study to the ordered steps of its method, with exact costs.

Both sides compute it for themselves. A party answers nothing that is not its next planned step; the costs of the
steps add up to at most the study's budget for each party.
"""

from functools import lru_cache

from synod.common.protocol.steps import Plan
from synod.common.runtime.errors import invalid
from synod.common.study.study import Study


@lru_cache(maxsize=64)
def plan_study(study: Study) -> Plan:
    """The steps of a resolved study.

    Guarantee: for each party, the costs of its steps add up to at most the study's budget (sequential composition);
    checked here for every plan, not only in tests.
    """
    plan = Plan(study.method.plan(study))
    if not all(plan.cost_of(name).fits_within(study.budget) for name in study.party_names):
        raise invalid(f"the steps of {study.name} cost more than its budget.", "Give smaller shares.")
    assert len({step.label for step in plan.steps}) == len(plan.steps)
    return plan
