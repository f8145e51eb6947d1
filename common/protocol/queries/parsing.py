"""From outside to a query: which class a message or a canonical form is of. What is no query is refused."""

from typing import Any

from synod.common.crypto.canonical import Json, canonical_bytes, canonical_hash
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.agreements import SumAgreements
from synod.common.protocol.queries.base import Query, SharedQuery
from synod.common.protocol.queries.marginals import LocalMarginals, SumMarginals
from synod.common.protocol.queries.moments import SumMoments
from synod.common.protocol.queries.parents import ChooseParents
from synod.common.protocol.queries.rows import Synthesize
from synod.common.protocol.steps import QueryKind, Step
from synod.common.runtime.errors import SynodError, invalid
from synod.common.study.study import Study
from synod.v1 import query_pb2 as pb

AnyQuery = Query[Any]
QUERIES: dict[QueryKind, type[AnyQuery]] = {
    query.kind: query for query in (SumMarginals, SumAgreements, SumMoments, LocalMarginals, ChooseParents, Synthesize)
}


def _unknown() -> SynodError:
    return invalid("the query is not one that this version answers.", "Update the older side.")


def parse_query(message: pb.Query, study: Study) -> AnyQuery:
    """Reads a query from its message; one that is not sound for the study, or holds more than it says, is refused."""
    name = message.WhichOneof("kind")
    if name is None:
        raise _unknown()
    try:
        query = QUERIES[QueryKind(name.replace("_", "-"))].from_proto(message)
    except (ValueError, OverflowError):
        raise _unknown() from None
    query.check(study)
    if query.to_proto().SerializeToString(deterministic=True) != message.SerializeToString(deterministic=True):
        raise _unknown()
    return query


def read_query(data: Any, study: Study) -> AnyQuery:
    """Reads a query from its canonical form, as the curator's log and a manifest hold it; one that is not sound for the
    study, or holds more than it says, is refused.
    """
    try:
        query = QUERIES[QueryKind(data["kind"])].from_json(data)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
        raise _unknown() from None
    query.check(study)
    if not _is_form_of(data, query):
        raise _unknown()
    return query


def _is_form_of(data: Any, query: AnyQuery) -> bool:
    """Whether this is the query's canonical form, and not another spelling of it or more than it."""
    try:
        return canonical_bytes(data) == canonical_bytes(query.to_json())
    except (TypeError, ValueError, RecursionError):
        return False


def answerers_of(query: AnyQuery, step: Step, study: Study) -> tuple[str, ...]:
    """Who answers a query, in the roster's order: of one that all answer, those who are present."""
    return query.answerers(study) if isinstance(query, SharedQuery) else step.answerers


def query_digest(query: AnyQuery, step: Step, study: Study) -> bytes:
    """Q: the hash of everything that an answer depends on, but for the data.

    Both sides build it from what they know. A party that is told another question, or would pack it otherwise,
    derives another Q, and its masks do not cancel.
    """
    binding: dict[str, Json] = {
        "query": query.to_json(),
        "cost": str(step.cost),
        "collusion": study.collusion,
        "roster": [entry.model_dump(mode="json") for entry in study.roster],
        **query.binding(step, study),
    }
    return canonical_hash(binding)


def check_feasible(study: Study) -> None:
    """Refuses a resolved study that its method cannot serve, or whose noise or packing has no room, before anybody
    approves it.
    """
    if study.may_lose and not study.method.allows_losses:
        raise invalid(
            f"the method {study.method.name} cannot go on without a lost party in this version.",
            "Remove `may_lose`, or choose another method.",
        )
    study.method.check(study)
    for step in plan_study(study).steps:
        QUERIES[step.kind].check_room(step, study)
