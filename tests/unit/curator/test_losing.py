"""The operator's verb `lose`, and what `status` says of lost and absent parties."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from synod.common.protocol.queries.moments import SumMoments
from synod.common.runtime.errors import SynodError
from synod.curator import session as session_module
from synod.curator.party_handler import MoveKind, PartyHandler
from synod.curator.rpc import StudyServicer
from synod.curator.study_handler import StudyHandler
from synod.v1 import study_pb2 as spb
from tests.support.curators import CallOf, Clock, enrol_all, make_context, make_session
from tests.support.keys import identity_of
from tests.support.parties import open_parties
from tests.support.studies import LINEAR, make_study

MOST_SECONDS = 60


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "RECHECK_SECONDS", 0.01)


def kinds(handler: PartyHandler, name: str) -> list[MoveKind]:
    return [move.kind for move in handler.moves(name, identity_of(name).fingerprint, set())]


async def until(is_so: Callable[[], bool]) -> None:
    """Lets the session go on until something is so."""
    async with asyncio.timeout(MOST_SECONDS):
        while not is_so():
            await asyncio.sleep(0.005)


def test_a_sum_opens_without_a_party_that_is_declared_lost(tmp_path: Path) -> None:
    study = make_study(method=LINEAR, may_lose=1)
    parties = open_parties(tmp_path / "parties", study)

    async def scene() -> None:
        clock = Clock()
        context = make_context(tmp_path, clock)
        context.store.add_study(study, now=5)
        handler, operator = PartyHandler(context), StudyHandler(context)
        enrol_all(handler, study, parties)
        for name in ("north", "harbour"):
            context.see(name)
        session = asyncio.create_task(make_session(context, study).run())
        await until(lambda: bool(operator.status(study.name).gathering))
        status = operator.status(study.name)
        assert (list(status.gathering), status.label) == (["valley"], "")
        assert [party.awaited for party in status.parties] == [False, False, True]
        servicer = StudyServicer(operator, ("north",))
        request = spb.LosePartyRequest(study_hash=study.digest(), party="valley", reason="gone")
        reply = await servicer.LoseParty(request, CallOf("north"))
        assert reply.effect == "valley is lost: the next sum is asked without it."
        await until(lambda: operator.status(study.name).label == "moments")
        status = operator.status(study.name)
        assert list(status.gathering) == []
        (loss,) = status.losses
        assert (loss.party, loss.since, loss.reason, loss.unix_seconds) == ("valley", "moments", "gone", 1_000)
        assert [party.awaited for party in status.parties] == [True, True, False]
        assert handler.query("north", study.digest(), "moments").query == SumMoments((0, 1))
        moves = {name: kinds(handler, name) for name in study.party_names}
        assert moves == {"north": [MoveKind.ANSWER], "harbour": [MoveKind.ANSWER], "valley": [MoveKind.CLOSE_LOST]}
        session.cancel()
        await asyncio.gather(session, return_exceptions=True)
        context.store.close()

    asyncio.run(scene())


def test_a_party_in_an_open_sum_can_still_answer_and_is_then_left_out(tmp_path: Path) -> None:
    study = make_study(method=LINEAR, may_lose=1)
    parties = open_parties(tmp_path / "parties", study)

    async def scene() -> None:
        context = make_context(tmp_path)
        context.store.add_study(study, now=5)
        handler, operator = PartyHandler(context), StudyHandler(context)
        enrol_all(handler, study, parties)
        for name in study.party_names:
            context.see(name)
        session = asyncio.create_task(make_session(context, study).run())
        await until(lambda: operator.status(study.name).label == "moments")
        effect = operator.lose(study.digest(), "valley", "gone")
        assert "the round moments was opened with it and cannot be closed without it" in effect
        assert kinds(handler, "valley") == [MoveKind.ANSWER]
        with pytest.raises(SynodError, match="may lose 1 of its parties"):
            operator.lose(study.digest(), "north", "gone")
        session.cancel()
        await asyncio.gather(session, return_exceptions=True)
        context.store.close()

    asyncio.run(scene())


def test_a_sum_that_was_put_together_before_a_loss_is_not_opened_after_it(tmp_path: Path) -> None:
    """Who takes part and the log are one transaction: the store knows better than whoever asks."""
    study = make_study(method=LINEAR, may_lose=1)
    context = make_context(tmp_path)
    context.store.add_study(study, now=5)
    context.store.add_loss(study.digest(), "valley", "gone", "", now=6)
    with pytest.raises(AssertionError, match="nobody is lost between"):
        context.store.open_query(study.digest(), "moments", b"{}", signature=b"s", now=7, lost=0)
    assert not context.store.is_logged(study.digest(), "moments")
    context.store.open_query(study.digest(), "moments", b"{}", signature=b"s", now=7, lost=1)
    assert context.store.is_logged(study.digest(), "moments")
    context.store.close()
