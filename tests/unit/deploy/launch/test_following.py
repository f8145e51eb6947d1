"""Who follows a study asks a curator that does not answer again, for a while and no longer."""

from collections.abc import Iterator
from typing import cast

import pytest

from synod.common.runtime.errors import Code, SynodError
from synod.deploy.launch import launcher
from synod.deploy.launch.operator import OperatorClient
from synod.v1 import study_pb2 as pb

PUBLISHED = pb.StudyStatus(name="care", state=pb.STUDY_STATE_PUBLISHED)
BUSY = SynodError(Code.UNREACHABLE, "the curator did not answer in time.")


class Told:
    """An operator's connection over which this comes, one after the other."""

    def __init__(self, *replies: pb.StudyStatus | SynodError) -> None:
        self._replies: Iterator[pb.StudyStatus | SynodError] = iter(replies)

    def status(self, name: str) -> list[pb.StudyStatus]:
        reply = next(self._replies)
        if isinstance(reply, SynodError):
            raise reply
        return [reply]


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "POLL_SECONDS", 0.0)


def follow(*replies: pb.StudyStatus | SynodError, checks: list[str]) -> list[pb.StudyStatus]:
    client = cast("OperatorClient", Told(*replies))
    return list(launcher.follow(client, "care", meanwhile=lambda: checks.append("looked")))


def test_a_busy_curator_is_asked_again_and_meanwhile_the_daemons_are_looked_at() -> None:
    checks: list[str] = []
    assert follow(BUSY, BUSY, PUBLISHED, checks=checks) == [PUBLISHED]
    assert checks == ["looked", "looked"]


def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "PATIENCE_SECONDS", -1.0)
    with pytest.raises(SynodError, match="did not answer in time"):
        follow(BUSY, PUBLISHED, checks=[])


def test_any_other_refusal_is_told_at_once() -> None:
    with pytest.raises(SynodError, match="not an operator"):
        follow(SynodError(Code.NOT_ON_ROSTER, "this is not an operator."), PUBLISHED, checks=[])
