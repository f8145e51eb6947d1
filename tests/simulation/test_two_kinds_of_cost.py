"""One ledger, studies of pure epsilon and of rho: each kind adds up by itself, and no mix passes either cap."""

from typing import Any

import pytest

from synod.common.privacy.cost import FREE, Cost
from synod.common.protocol.manifest import verify_release
from synod.common.protocol.plan import plan_study
from synod.common.runtime.errors import SynodError
from synod.common.study.study import Study, parse_study
from synod.curator.records import State
from synod.party.approval import check_study
from tests.support.simulation import DATASET, SimulatedSite, World, make_site, run_world
from tests.support.studies import NAMES

METHOD = {"name": "dp-subn", "theta": "0.01", "theta_frontier": "0.01"}
PAIR = {"epsilon": "0.8", "delta": "1e-6"}
POLICY: dict[str, Any] = {"allow_local_queries": True, "max_epsilon_total": "0.8", "max_rho_total": PAIR}


@pytest.fixture(scope="module")
def pure_site(tmp_path_factory: pytest.TempPathFactory) -> SimulatedSite:
    return make_site(tmp_path_factory.mktemp("site"), method=METHOD, epsilon="0.8", collusion=1)


def another(study: Study, **changes: Any) -> Study:
    document = {**study.to_json(), "name": "second", "method": METHOD, "rho": None, "order": None, **changes}
    return parse_study(document, "the test's study").resolve()


def sums(world: World) -> list[Cost]:
    found = []
    for index in range(len(NAMES)):
        with world.ledger(index) as ledger:
            account = ledger.account()
            assert account.held(DATASET) == FREE
            found.append(account.spent(DATASET))
    return found


def assert_refused(world: World, study: Study, key: str) -> None:
    for index in range(len(NAMES)):
        with pytest.raises(SynodError, match=f"raise `{key}`"):
            check_study(world.settings(index), study)


def test_a_pure_study_and_one_with_delta_share_a_ledger(pure_site: SimulatedSite) -> None:
    """Both are published; then both caps are reached, and neither kind has room that the other could use."""
    pure = pure_site.study
    with run_world(pure_site, policy=POLICY) as world:
        world.finish()
        assert world.curator.state() is State.PUBLISHED
        assert sums(world) == [plan_study(pure).cost_of(name) for name in NAMES]
        assert max(spent.epsilon for spent in sums(world)) == pure.budget.epsilon
        second = SimulatedSite(world.folder, another(pure, **PAIR))
        with run_world(second, policy=POLICY) as later:
            later.finish()
            assert later.curator.state() is State.PUBLISHED
            assert {step.kind.value for step in plan_study(second.study).steps} == {
                "sum-marginals", "choose-parents", "local-marginals",
            }  # fmt: skip
            both = [plan_study(pure).cost_of(name) + plan_study(second.study).cost_of(name) for name in NAMES]
            assert sums(later) == both
            assert max(spent.rho for spent in both) == second.study.budget.rho == later.settings(0).cap.rho
            assert_refused(later, another(pure, name="third", epsilon="0.05"), "max_epsilon_total")
            assert_refused(later, another(pure, name="fourth", epsilon="0.3", delta="1e-6"), "max_rho_total")
            verdict = verify_release(later.curator.context.release_folder(second.study.digest()), None)
            assert "signed for what they spent" in " ".join(verdict.lines)


def test_a_study_with_delta_is_not_approved_where_the_policy_is_pure(pure_site: SimulatedSite) -> None:
    site = SimulatedSite(pure_site.folder, another(pure_site.study, **PAIR))
    pure_policy = {key: value for key, value in POLICY.items() if key != "max_rho_total"}
    with run_world(site, policy=pure_policy) as world:
        for index in range(len(NAMES)):
            world.converse(index)
        assert world.curator.state() is State.ENROLLING
        assert sums(world) == [FREE] * len(NAMES)
