"""How a party makes up its mind about a round: check everything it was told, charge, then hand out the answer.

It trusts no number that the curator sends. Study and snapshot are those that its operator approved; the plan is
computed here; the query must be the one that the plan and the study call for.
"""

from dataclasses import dataclass

from synod.common.crypto.canonical import Json
from synod.common.crypto.identity import Identity, fingerprint
from synod.common.crypto.paillier import check_public_key
from synod.common.protocol.heads import check_not_rolled_back, check_own_heads
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.base import SharedQuery, check_within
from synod.common.protocol.queries.parsing import AnyQuery, query_digest
from synod.common.protocol.signed_query import SignedQuery, require_query_signature
from synod.common.protocol.steps import Step
from synod.common.protocol.submission import AnsweredStep, Submission, digest_of
from synod.common.protocol.transcript import Enrolment, Transcript, check_transcript, read_transcript
from synod.common.runtime.errors import Code, SynodError, check_failed, refused
from synod.common.study.study import Study
from synod.party.account import Approval, ApprovalState
from synod.party.answer import Round, Secrets, answer
from synod.party.ledger import Ledger, StoredAnswer
from synod.party.table.snapshot import KeptSnapshot, Snapshot


@dataclass(frozen=True, slots=True)
class Responder:
    """What answering needs: who this party is, its ledger, and whom it expects as the curator."""

    name: str
    identity: Identity
    ledger: Ledger
    curator: str
    workers: int
    max_cells: int


def check_round(
    responder: Responder, approval: Approval, study: Study, label: str, transcript_envelope: bytes, signed: SignedQuery
) -> Round:
    """Checks what the curator sent for a round; the query is sound for the study already.

    1. the transcript is signed by the curator that it names, which is the one that this party's configuration pins;
    2. it is of the approved study and roster, and its curator is nobody on it; 3. this party's own entry is in it,
    unaltered, and this ledger has the heads that it states; 4. the Paillier key is sound; 5. no other transcript was
    answered for this study; 6. the label is the next planned step; 7. the query is of the planned kind, and no larger
    than plan and policy allow; 8. this party is among those who are present, and so is nobody whom an earlier sum went
    without; 9. that curator has signed T, the label and Q; 10. no other party's ledger is behind what this party has
    witnessed of it.

    How many must be present is a check of the query itself. By 6 a party answers a label once, so under one list: the
    sums of a label that can be opened have no honest party in common (docs/privacy.md, 6).

    Guarantee: who lacks the curator's identity key, such as the transport authority or a thief of the curator's TLS
    key, can repeat a question that the curator asked, which gets the same answer, and can ask no other.
    """
    query = signed.query
    # 1 to 3
    transcript = read_agreed(responder, study, transcript_envelope)
    index = study.index_of(responder.name)
    if transcript.enrolments[index] != enrol(responder, approval):
        raise check_failed("the transcript holds other keys than this party enrolled with.")
    # 4
    check_public_key(transcript.key.n, transcript.key.h_s, study.key_bits)
    # 5
    transcript_hash = transcript.digest(study)
    if any(charge.transcript != transcript_hash.hex() for charge in approval.charges):
        raise check_failed("this study was answered before under another transcript.")
    # 6
    step = next_step(responder, approval, study, label)
    # 7
    check_within(query, step, study)
    check_cells(query.size(study).numbers, responder.max_cells)
    # 8
    check_present(query, index, approval, study)
    # 9
    query_hash = query_digest(query, step, study)
    require_query_signature(transcript.curator, transcript_hash, label, query_hash, signed.signature)
    # 10
    for other in _others(responder, transcript):
        known = responder.ledger.witnessed(other.identity, other.heads.approved.ledger)
        check_not_rolled_back(other.name, other.heads, known)
    return Round(study, step, query, query_hash, transcript, transcript_hash, index)


def check_cells(numbers: int, max_cells: int) -> None:
    """Refuses a question with more numbers than this party's policy allows."""
    if numbers > max_cells:
        raise refused(f"the query asks for {numbers} numbers; `max_cells` is {max_cells}.")


def check_present(query: AnyQuery, index: int, approval: Approval, study: Study) -> None:
    """Refuses a sum that this party is not in, or that somebody is back in whom an earlier one went without."""
    if not isinstance(query, SharedQuery):
        return
    places, before = query.places(study), approval.still_present
    if index not in places:
        raise refused("the query is of others, without this party.")
    if before and not set(places) <= set(before):
        raise refused("the query is of a party that an earlier sum went without.")


def read_agreed(responder: Responder, study: Study, envelope: bytes) -> Transcript:
    """The transcript of an approved study (checks 1 and 2), if this ledger is not behind what its party has stated of
    it there (of 3).
    """
    # 1
    transcript = read_transcript(envelope)
    if fingerprint(transcript.curator) != responder.curator:
        raise check_failed("the transcript is not from the curator that `curator` pins.")
    # 2
    check_transcript(transcript, study, study.digest())
    # 3
    own = transcript.enrolments[study.index_of(responder.name)]
    check_own_heads(own.heads, responder.ledger.hashes(), shown_by="the transcript of a study shows")
    return transcript


def next_step(responder: Responder, approval: Approval, study: Study, label: str) -> Step:
    """The next planned step of this party, if `label` names it; anything else is refused."""
    steps = plan_study(study).steps_of(responder.name)
    answered = len(approval.charges)
    if answered >= len(steps) or steps[answered].label != label:
        raise refused("the round is not the next step of the approved plan.")
    return steps[answered]


def answer_round(
    responder: Responder, approval: Approval, asked: Round, snapshot: Snapshot | KeptSnapshot, *, now: int
) -> None:
    """Computes the answer, and stores charge and answer in one transaction.

    Guarantee: nothing has left the house when this returns; what leaves afterwards is what was stored. What the other
    parties have stated of their ledgers is remembered before.
    """
    if not approval.charges:  # all answers to a study are under one transcript
        responder.ledger.witness({other.identity: other.heads for other in _others(responder, asked.transcript)})
    secrets = secrets_of(responder, approval)
    payload = answer(asked, snapshot.columns, secrets=secrets, workers=responder.workers)
    charge = AnsweredStep(asked.step.label, asked.query_hash.hex(), asked.step.cost)
    earlier = [AnsweredStep(c.label, c.query, c.cost) for c in approval.charges]
    submission = Submission(
        study_hash=asked.transcript.study_hash,
        transcript=asked.transcript_hash,
        label=asked.step.label,
        query=asked.query_hash,
        key_id=bytes.fromhex(asked.transcript.key.key_id),
        length=len(payload),
        digest=digest_of(payload),
    ).signed_by(responder.identity, responder.name, asked.transcript.curator, [*earlier, charge])
    entry: dict[str, Json] = {
        "label": charge.label,
        "query": charge.query,
        "transcript": asked.transcript_hash.hex(),
        "cost": str(charge.cost),
        "answer": submission.digest.hex(),
    }
    if isinstance(asked.query, SharedQuery) and asked.query.present:
        entry["present"] = list(asked.query.present)
    responder.ledger.charge(asked.transcript.study_hash, entry, StoredAnswer(submission.to_json(), payload), now=now)


def enrol(responder: Responder, approval: Approval) -> Enrolment:
    """This party's enrolment in an approved study: always the same bytes."""
    heads = responder.ledger.stated_heads(bytes.fromhex(approval.study))
    return secrets_of(responder, approval).enrolment(responder.name, responder.identity, heads)


def _others(responder: Responder, transcript: Transcript) -> list[Enrolment]:
    return [enrolment for enrolment in transcript.enrolments if enrolment.name != responder.name]


def secrets_of(responder: Responder, approval: Approval) -> Secrets:
    """The derived keys of an approved study that has not ended."""
    study_hash = bytes.fromhex(approval.study)
    return Secrets(responder.ledger.study_root(study_hash), study_hash, bytes.fromhex(approval.snapshot))


def open_approval(ledger: Ledger, study_hash: bytes) -> Approval:
    """The open approval of a study; the curator learns only that there is none."""
    approval = ledger.account().approvals.get(study_hash.hex())
    if approval is None:
        raise SynodError(Code.NOT_READY, "the study is not approved here.")
    if approval.state is not ApprovalState.OPEN:
        raise refused(f"the approval of {approval.name} has ended ({approval.state.value}).")
    return approval
