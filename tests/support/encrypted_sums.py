"""The encrypted sum from question to result, between parties in memory and a curator that is only its Paillier key."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synod.common.crypto.packing import SlotLayout, unpack
from synod.common.crypto.paillier import SecretKey, add_all, decrypt_all
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.moments import SumMoments
from synod.common.protocol.queries.parsing import query_digest
from synod.common.protocol.steps import Step
from synod.common.protocol.transcript import Transcript
from synod.common.study.study import Study
from synod.party.answer import Round, answer_sum
from tests.support.parties import PartyInMemory
from tests.support.studies import LINEAR, Attribute, make_study


def make_sum_study(rows: Sequence[int], schema: Sequence[Attribute], **changes: Any) -> Study:
    """A study of one party for each row count: party-0, party-1, ..."""
    names = [f"party-{index}" for index in range(len(rows))]
    usual = {"name": "survey", "method": LINEAR, "collusion": min(1, len(rows) - 1)}
    return make_study(names=names, rows=rows, schema=list(schema), **{**usual, **changes})


def sum_step(study: Study) -> Step:
    """The step that asks for the encrypted sum."""
    return plan_study(study).step("moments")


def ask(study: Study, transcript: Transcript, index: int, present: tuple[int, ...] = (), /, **changes: Any) -> Round:
    """The planned question as the party at `index` sees it; `changes` are what it was told otherwise."""
    step, query = sum_step(study), SumMoments(present)
    digest = query_digest(query, step, study)
    planned = Round(study, step, query, digest, transcript, transcript.digest(study), index)
    return replace(planned, **changes)


def answer(party: PartyInMemory, asked: Round) -> bytes:
    """The party's answer to a question."""
    assert isinstance(asked.query, SumMoments)
    return answer_sum(asked.query, asked, party.table, secrets=party.secrets, workers=1)


def answer_all(study: Study, parties: Sequence[PartyInMemory], transcript: Transcript) -> list[bytes]:
    """Everybody's answers to the planned question."""
    return [answer(party, ask(study, transcript, index)) for index, party in enumerate(parties)]


def layout_of(study: Study, present: tuple[int, ...] = ()) -> SlotLayout:
    """How the study's sums are packed."""
    return SumMoments(present).terms(sum_step(study), study).layout(study.key_bits)


def open_sum(
    study: Study, key: SecretKey, answers: Sequence[bytes], present: tuple[int, ...] = ()
) -> NDArray[np.int64]:
    """What the curator gets of these answers: multiplied, decrypted, unpacked."""
    total = decrypt_all(key, add_all(key.public, answers), workers=1)
    return unpack(layout_of(study, present), total, key.public.n)
