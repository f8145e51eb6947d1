"""What the curator signs about a query: that it asks this question, in this round, of the parties of this transcript.

TLS says who may speak; only the curator's identity, which T names, may ask. Both sides build this statement.
"""

from dataclasses import dataclass

from synod.common.crypto.canonical import Json
from synod.common.crypto.identity import Identity, require_signature
from synod.common.protocol.queries.parsing import AnyQuery


@dataclass(frozen=True, slots=True)
class SignedQuery:
    """A query with the curator's signature, which is checked where T and Q are known."""

    query: AnyQuery
    signature: bytes


def query_statement(transcript: bytes, label: str, query: bytes) -> Json:
    """What the signature covers: T, the round's label, Q."""
    return {"transcript": transcript.hex(), "label": label, "query": query.hex()}


def sign_query(identity: Identity, transcript: bytes, label: str, query: bytes) -> bytes:
    """The curator's signature on (T, label, Q)."""
    return identity.sign("query", query_statement(transcript, label, query))


def require_query_signature(curator: bytes, transcript: bytes, label: str, query: bytes, signature: bytes) -> None:
    """Raises unless the curator of this key has signed (T, label, Q).

    Guarantee: a signature is good for one question of one round under one transcript, and for nothing else.
    """
    statement = query_statement(transcript, label, query)
    require_signature(curator, "query", statement, signature, signer="the curator")
