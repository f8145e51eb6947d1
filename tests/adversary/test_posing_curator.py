"""Somebody who can pose as the curator on the wire, and lacks its identity key: the transport authority, or a thief of
the curator's TLS key.

It has every signed document that the curator ever handed out. A refusal comes before anything is charged.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from synod.common.protocol.queries.marginals import LocalMarginals
from synod.common.protocol.queries.parents import ChooseParents
from synod.common.protocol.signed_query import query_statement
from synod.common.runtime.errors import SynodError
from synod.party.count.tables import exact_counts
from tests.support.keys import CURATOR, identity_of
from tests.support.parties import PartyUnderTest, make_transcript, open_parties, seal, sign_asked
from tests.support.studies import make_study

STUDY = make_study(method={"name": "independent"}, epsilon="300")
CHOICE = ChooseParents((0,), ((1, (0,)), (2, (0,)), (3, (0,))), 3, 262, "R")
ASKED = LocalMarginals(((0,), (1,), (2,), (3,)))
OWN = LocalMarginals(((0, 3),))
"""What nobody in the study ever asked: two columns together, with the whole step's budget on them."""


@pytest.fixture
def parties(tmp_path: Path) -> Iterator[list[PartyUnderTest]]:
    """Everybody has approved; north has answered the curator's first question."""
    parties = open_parties(tmp_path, STUDY)
    parties[0].answer(envelope_of(parties), CHOICE.to_proto(), "choose-north")
    yield parties
    for party in parties:
        party.ledger.close()


def reads_own_table(parties: list[PartyUnderTest], signature: bytes) -> bool:
    """Replays the curator's transcript, asks north the thief's own question, and looks at the answer."""
    north = parties[0]
    stored = north.answer(envelope_of(parties), OWN.to_proto(), "tables-north", signature)
    (counts,) = OWN.read_answer(stored.payload, STUDY, "north")
    return bool(np.abs(counts - exact_counts(OWN, STUDY, north.table)).max() <= 2)


def envelope_of(parties: list[PartyUnderTest]) -> bytes:
    return seal(make_transcript(STUDY, parties))


SIGNATURES: dict[str, Callable[[list[PartyUnderTest]], bytes]] = {
    "none": lambda _: b"",
    "its own": lambda p: sign_asked(STUDY, envelope_of(p), OWN, "tables-north", signer="thief"),
    "a party's": lambda p: sign_asked(STUDY, envelope_of(p), OWN, "tables-north", signer="harbour"),
    "the curator's on its own question": lambda p: sign_asked(STUDY, envelope_of(p), ASKED, "tables-north"),
    "the curator's on another party's round": lambda p: sign_asked(STUDY, envelope_of(p), OWN, "tables-harbour"),
    "the curator's on an earlier round": lambda p: sign_asked(STUDY, envelope_of(p), CHOICE, "choose-north"),
    "the curator's on the transcript": lambda p: identity_of(CURATOR).sign(
        "transcript", make_transcript(STUDY, p).to_json()
    ),
}


@pytest.mark.parametrize("signature", SIGNATURES)
def test_who_holds_the_tls_key_alone_asks_nothing(parties: list[PartyUnderTest], signature: str) -> None:
    head = parties[0].ledger.head()
    with pytest.raises(SynodError, match="signature of the curator on query"):
        reads_own_table(parties, SIGNATURES[signature](parties))
    assert parties[0].ledger.head() == head, "a refusal spends nothing"
    assert parties[0].charges() == ["choose-north"]


def test_without_the_check_it_asks_what_it_likes(
    parties: list[PartyUnderTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("synod.party.rounds.require_query_signature", lambda *_: None)
    assert reads_own_table(parties, b"")
    assert parties[0].charges() == ["choose-north", "tables-north"]


def test_a_question_of_the_curators_can_only_be_repeated(parties: list[PartyUnderTest]) -> None:
    """With the curator's own bytes the thief gets the answer that the curator gets, and nothing is spent twice."""
    envelope = envelope_of(parties)
    signature = sign_asked(STUDY, envelope, ASKED, "tables-north")
    first = parties[0].answer(envelope, ASKED.to_proto(), "tables-north", signature)
    spent = parties[0].spent()
    assert parties[0].answer(envelope, OWN.to_proto(), "tables-north", signature) == first
    assert parties[0].spent() == spent


def test_a_signature_is_for_one_transcript(parties: list[PartyUnderTest]) -> None:
    """The thief runs the same study as a curator of its own: what it signs there holds there alone."""
    envelope = envelope_of(parties)
    other = seal(make_transcript(STUDY, parties, curator="thief"), "thief")
    signature = sign_asked(STUDY, other, OWN, "tables-north", signer="thief")
    with pytest.raises(SynodError, match="`curator` pins"):
        parties[0].answer(other, OWN.to_proto(), "tables-north", signature)
    with pytest.raises(SynodError, match="signature of the curator on query"):
        parties[0].answer(envelope, OWN.to_proto(), "tables-north", signature)
    assert parties[0].charges() == ["choose-north"]


def test_t_label_and_q_are_signed() -> None:
    told = [
        query_statement(transcript, label, query)
        for transcript in (bytes(32), b"\1" * 32)
        for label in ("tables-north", "tables-harbour")
        for query in (bytes(32), b"\2" * 32)
    ]
    assert len({str(statement) for statement in told}) == 8
