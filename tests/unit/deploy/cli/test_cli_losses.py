"""What `synod study status` says of parties that are lost, or that keep a study waiting."""

import time

from synod.deploy.cli.study import describe, loss_hints, loss_line, party_line
from synod.v1 import study_pb2 as pb

LOSS = pb.Loss(party="north", since="rows", reason="burned down", unix_seconds=1_700_000_000)


def waiting(name: str, seconds: int, *, enrolled: bool = True) -> pb.PartyStatus:
    since = int(time.time()) - seconds
    return pb.PartyStatus(name=name, enrolled=enrolled, awaited=True, awaited_since=since, last_seen=since)


def test_after_an_hour_the_status_names_what_can_be_done() -> None:
    parties = [waiting("north", 3_000), waiting("harbour", 4_000), waiting("valley", 4_000, enrolled=False)]
    (hint,) = loss_hints(pb.StudyStatus(parties=parties))
    assert hint == (
        "Waiting for harbour for more than an hour: if it is gone for good, see `synod study lose`, which goes on "
        "without it where the study may."
    )


def test_a_round_that_was_opened_with_a_lost_party_is_closed_by_its_answer_or_not_at_all() -> None:
    (hint,) = loss_hints(pb.StudyStatus(label="moments", parties=[waiting("north", 4_000)], losses=[LOSS]))
    assert "the round moments was opened with it and closes with its answer alone" in hint
    assert "`synod study abort`" in hint


def test_the_lines_say_what_is_waited_for() -> None:
    party = waiting("north", 10)
    assert party_line(party).startswith("waiting for its answer since 20")
    assert party_line(party, ["north"]).startswith("waiting for its call, before the next sum is asked, since 20")
    assert party_line(party, ["harbour"]).startswith("waiting for its answer since 20")


def test_a_lost_party_is_told_with_its_first_round_and_the_reason() -> None:
    assert loss_line(LOSS) == "lost since 2023-11-14 22:13:20 UTC, first left out of rows: burned down"
    never = pb.Loss(party="north", reason="burned down", unix_seconds=1_700_000_000)
    assert loss_line(never) == "lost since 2023-11-14 22:13:20 UTC: burned down"
    described = describe(pb.StudyStatus(losses=[LOSS], gathering=["harbour"]))
    assert described["losses"] == [
        {"party": "north", "since": "rows", "reason": "burned down", "unix_seconds": 1_700_000_000}
    ]
    assert described["gathering"] == ["harbour"]
