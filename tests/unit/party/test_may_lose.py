"""What a party does about a study that may lose some: its policy, its ledger, and what its operator is told."""

from decimal import Decimal
from pathlib import Path

import pytest

from synod.common.methods.hpdp_dp import HpdpDp
from synod.common.privacy.cost import FREE, Cost
from synod.common.protocol.queries.moments import SumMoments
from synod.common.runtime.errors import Code, SynodError
from synod.party.account import ApprovalState
from synod.party.inbox.views import promises_of
from synod.party.policy import check_policy
from tests.support.keys import identity_of
from tests.support.parties import DATASET, make_settings, make_transcript, open_parties, seal
from tests.support.studies import make_study

OWN_KEY = identity_of("north").fingerprint


def test_parties_that_may_be_lost_do_not_count_for_the_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HpdpDp, "allows_losses", True)
    settings = make_settings(tmp_path, min_parties=3)
    check_policy(settings, make_study(), own_key=OWN_KEY)
    with pytest.raises(SynodError) as caught:
        check_policy(settings, make_study(may_lose=1), own_key=OWN_KEY)
    assert caught.value.code is Code.REFUSED
    assert "the number of parties that may be left is 2; this party's `min_parties` is 3" in str(caught.value)
    check_policy(make_settings(tmp_path, min_parties=2), make_study(may_lose=1), own_key=OWN_KEY)


def test_a_lost_party_keeps_what_it_spent_and_gets_the_rest_back(tmp_path: Path) -> None:
    study = make_study(may_lose=1)
    parties = open_parties(tmp_path, study)
    parties[0].answer(seal(make_transcript(study, parties)), SumMoments((0, 2)).to_proto())
    ledger = parties[0].ledger
    ledger.end_study(study.digest(), ApprovalState.LOST, now=7)
    account = ledger.account()
    approval = account.approvals[study.digest().hex()]
    assert (approval.state, approval.still_present) == (ApprovalState.LOST, (0, 2))
    assert (account.spent(DATASET), account.held(DATASET)) == (Cost.pure(Decimal(1)), FREE)
    other = parties[1].ledger
    other.end_study(study.digest(), ApprovalState.LOST, now=7)
    assert (other.account().spent(DATASET), other.account().held(DATASET)) == (FREE, FREE)
    assert dict(other.entries()[-1])["outcome"] == "lost"


def test_whoever_approves_is_told_that_parties_may_be_lost() -> None:
    assert "go on without" not in " ".join(promises_of(make_study()))
    told = "The study may go on without up to 1 of these parties; the curator says which."
    assert told in promises_of(make_study(may_lose=1))
