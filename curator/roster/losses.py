"""Parties that are lost: who may be declared so, and what a study does then.

It is for good, and only an operator or the party itself says it. Who takes part in a sum is fixed when its query is
logged, in the transaction that reads who is lost, and never changes afterwards.
"""

import json

from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.base import SharedQuery
from synod.common.protocol.queries.parsing import answerers_of, read_query
from synod.common.runtime.errors import Code, SynodError, invalid
from synod.common.study.study import Study
from synod.curator.context import Context
from synod.curator.records import Loss, OpenQuery, State, StudyRecord
from synod.curator.store import Store

LONGEST_REASON = 200
HERE_SECONDS = 60


def present_places(study: Study, losses: list[Loss]) -> tuple[int, ...]:
    """S of the next sum: the places of all who are not lost, and nothing where nobody is."""
    lost = {loss.party for loss in losses}
    return tuple(place for place, name in enumerate(study.party_names) if name not in lost) if lost else ()


def absent_parties(context: Context, record: StudyRecord) -> list[str]:
    """Who is not lost and not here: has not polled for a minute, was cut off in a poll, or has not polled since it
    answered. Nobody is to pay for a round that such a party would block.
    """
    lost = {loss.party for loss in context.store.losses(record.study_hash)}
    return [
        name
        for name in record.study.party_names
        if name not in lost and not context.is_here(name, record.study_hash, HERE_SECONDS)
    ]


def awaited_answers(store: Store, record: StudyRecord, open_query: OpenQuery) -> tuple[str, ...]:
    """Whose answers an open round waits for."""
    query = read_query(json.loads(store.query(record.study_hash, open_query.label)), record.study)
    step = plan_study(record.study).step(open_query.label)
    answered = store.submitters(record.study_hash, open_query.label)
    return tuple(name for name in answerers_of(query, step, record.study) if name not in answered)


def list_losses(store: Store, study: Study) -> list[tuple[Loss, str]]:
    """Each lost party with the label of its first round that was opened, or skipped, without it."""
    study_hash = study.digest()
    skipped = store.skipped(study_hash)
    return [(loss, _first_without(store, study, skipped, loss.party)) for loss in store.losses(study_hash)]


def _first_without(store: Store, study: Study, skipped: set[str], party: str) -> str:
    for step in plan_study(study).steps_of(party):
        if step.label in skipped:
            return step.label
        if not step.kind.is_local and store.is_logged(study.digest(), step.label):
            query = read_query(json.loads(store.query(study.digest(), step.label)), study)
            if party not in answerers_of(query, step, study):
                return step.label
    return ""


def lose_party(context: Context, record: StudyRecord, party: str, reason: str) -> str:
    """Declares a party lost, for good, and says in one sentence what follows; again, it changes nothing."""
    study, store = record.study, context.store
    if party not in study.party_names:
        raise SynodError(Code.NOT_FOUND, f"{party} is not on the roster of {study.name}.")
    if record.outcome is not None:
        raise SynodError(Code.NOT_READY, f"{study.name} has ended ({record.outcome.value}).")
    if not reason.isprintable() or not 1 <= len(reason.strip()) <= LONGEST_REASON:
        raise invalid(f"a reason is one line of up to {LONGEST_REASON} characters.", "It goes into the manifest.")
    if party in {loss.party for loss in store.losses(record.study_hash)}:
        return f"{party} is lost already; nothing has changed."
    if store.state(record) is State.ENROLLING:
        raise SynodError(
            Code.NOT_READY,
            f"the parties of {study.name} are still enrolling, and nothing is spent.",
            f"Abort it, and submit a new study without {party}.",
        )
    if len(store.losses(record.study_hash)) >= study.may_lose:
        raise SynodError(
            Code.REFUSED,
            f"{study.name} may lose {study.may_lose} of its parties, and no more.",
            "Wait for the party, or end the study with `synod study abort`.",
        )
    effect = _effect(store, record, party)
    store.add_loss(record.study_hash, party, reason.strip(), _open_step(store, record, party), now=int(context.clock()))
    context.changes.announce(record.study_hash, *study.party_names)
    return effect


def _open_step(store: Store, record: StudyRecord, party: str) -> str:
    """The label of the party's own step, if that is open and has no answer: it is skipped."""
    query = store.unanswered(record.study_hash)
    if query is None or store.submission(record.study_hash, query.label, party) is not None:
        return ""
    step = plan_study(record.study).step(query.label)
    return query.label if step.kind.is_local and party in step.answerers else ""


def _effect(store: Store, record: StudyRecord, party: str) -> str:
    if _open_step(store, record, party):
        return f"{party} is lost: its own step is skipped, and the study goes on."
    query = store.unanswered(record.study_hash)
    if query is None or not _is_awaited(store, record, query.label, party):
        return f"{party} is lost: the next sum is asked without it."
    return (
        f"{party} is lost, but the round {query.label} was opened with it and cannot be closed without it: wait for "
        "its answer, or abort the study. Later sums are asked without it."
    )


def lose_revoked(context: Context, record: StudyRecord, party: str, reason: str) -> bool:
    """Whether a study goes on without a party that has revoked its approval: it is lost, if the study may lose it and
    no open sum waits for its answer, which will not come.
    """
    query = context.store.unanswered(record.study_hash)
    if not record.study.may_lose or (query and _is_awaited(context.store, record, query.label, party)):
        return False
    try:
        lose_party(context, record, party, reason)
    except SynodError as error:
        if error.code not in (Code.REFUSED, Code.NOT_READY):
            raise
        return False
    return True


def _is_awaited(store: Store, record: StudyRecord, label: str, party: str) -> bool:
    """Whether an open sum waits for the party's answer."""
    query = read_query(json.loads(store.query(record.study_hash, label)), record.study)
    if not isinstance(query, SharedQuery) or party not in query.answerers(record.study):
        return False
    return store.submission(record.study_hash, label, party) is None
