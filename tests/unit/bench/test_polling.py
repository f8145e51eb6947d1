"""The comparison of long polls: both sides finish the study, and the twin wakes more."""

from bench.polling import ATTRIBUTES, measure


def test_everybody_is_woken_more_often() -> None:
    parties = 12
    figures = measure(parties, turns=1)
    assert (figures["parties"], figures["rounds"]) == (parties, ATTRIBUTES)
    # A party is woken once a round and once at the end; the session once by each enrolment and answer.
    assert figures["synod_wake_ups"] <= 2 * parties * (ATTRIBUTES + 1)
    assert figures["everybody_wake_ups"] > 2 * figures["synod_wake_ups"]
    assert figures["everybody_store_reads"] > 1.5 * figures["synod_store_reads"]
