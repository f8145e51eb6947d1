"""What the audit takes for an encrypted sum is what comes out of masks and encryption, integer by integer."""

from dataclasses import replace

import numpy as np
import pytest

from bench.audit.queries import (
    QUESTIONS,
    Asked,
    Questioned,
    make_transcript,
    part_of,
    put_question,
    secret_key,
)
from synod.common.protocol.queries.base import SumQuery
from synod.curator.combine import add_up
from synod.party.answer import answer

SUMS = [asked for asked in QUESTIONS if asked.query.kind.is_sum]
ROSTERS = [(2, 0), (3, 1)]


def answers(questioned: Questioned, side: int, run: int) -> list[bytes]:
    """What the parties send in one run, each as its daemon makes it."""
    transcript, ledgers = make_transcript(questioned, side, run), questioned.ledgers(side)
    return [
        answer(
            questioned.round_of(index, transcript),
            questioned.tables[side][index].columns,
            secrets=ledgers.secrets(index, run),
            workers=1,
        )
        for index in range(len(questioned.study.roster))
    ]


@pytest.mark.parametrize(("parties", "collusion"), ROSTERS)
@pytest.mark.parametrize("asked", SUMS, ids=lambda asked: f"{asked.query.kind.value} {asked.name}")
def test_the_released_sum_is_the_sum_of_the_parts(asked: Asked, parties: int, collusion: int) -> None:
    questioned = put_question(asked, parties, collusion)
    assert isinstance(asked.query, SumQuery)
    for side in (0, 1):
        transcript, ledgers = make_transcript(questioned, side, 1), questioned.ledgers(side)
        parts = [
            part_of(questioned, questioned.round_of(index, transcript), side, ledgers, 1) for index in range(parties)
        ]
        sent = answers(questioned, side, 1)
        opened = add_up(asked.query, questioned.step, questioned.study, sent, key=secret_key(), workers=1)
        assert (opened == np.sum(parts, axis=0)).all()
        known = sum((parts[i] for i in range(parties) if i not in questioned.honest), np.zeros(len(opened), np.int64))
        assert (opened - known == np.sum([parts[i] for i in questioned.honest], axis=0)).all()
        assert len(questioned.honest) == parties - collusion


@pytest.mark.parametrize("asked", SUMS, ids=lambda asked: f"{asked.query.kind.value} {asked.name}")
def test_only_the_ciphertexts_differ_between_neighbours(asked: Asked) -> None:
    """Of a sum, neighbours have answers of the same length, under the same question, layout and keys."""
    questioned = put_question(asked, 2, 0)
    without, canary = (answers(questioned, side, 1) for side in (0, 1))
    assert [len(payload) for payload in without] == [len(payload) for payload in canary]
    assert without != canary
    transcripts = [make_transcript(questioned, side, 1) for side in (0, 1)]
    digests = [questioned.round_of(0, transcript).query_hash for transcript in transcripts]
    assert digests[0] == digests[1]
    # The exchange key and the nonce are drawn for a snapshot: pseudorandom, so they tell nothing of it.
    blank = [
        replace(one.enrolments[0], exchange=bytes(32), nonce=bytes(32), signature=bytes(64)) for one in transcripts
    ]
    assert blank[0] == blank[1]
    assert transcripts[0].enrolments[1] == transcripts[1].enrolments[1]
