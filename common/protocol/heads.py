"""Heads of ledgers: where a party's hash chain stood, as the party signs it and as others hold it to that.

A party's enrolment states the head of its ledger at the approval of the study, so that heads are in T and in the
manifest. Whoever gets T remembers them: a ledger that is shown with less than it had before is an old copy or a clone.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from synod.common.crypto.canonical import LARGEST_INTEGER, Json
from synod.common.runtime.errors import Code, SynodError, refused

HASH_BYTES = 32
MOST_OPEN_HEADS = 64


class LedgerBehindError(SynodError):
    """A ledger of one's own that is an old copy, or a clone: nothing may go on with it."""

    def __init__(self, shown_by: str, code: Code = Code.REFUSED) -> None:
        super().__init__(
            code,
            f"this ledger is behind, or beside, what {shown_by} of it: an old copy or a clone.",
            "Stop the other copy and restore the newest ledger; never run two.",
        )


@dataclass(frozen=True, slots=True)
class Head:
    """Where a chain ends: how many entries, the hash of the last, and that of the first, which says whose chain."""

    sequence: int
    hash: bytes
    ledger: bytes

    def statement(self) -> dict[str, Json]:
        """What the party signs of it."""
        return {"sequence": self.sequence, "hash": self.hash.hex(), "ledger": self.ledger.hex()}

    def is_sound(self) -> bool:
        """Whether it can be the head of a ledger at all, and is no larger than one."""
        sizes = len(self.hash), len(self.ledger)
        return sizes == (HASH_BYTES, HASH_BYTES) and 1 <= self.sequence <= LARGEST_INTEGER


@dataclass(frozen=True, slots=True)
class StatedHeads:
    """What an enrolment states of its party's ledger: the head at the study's approval, and those at the approvals of
    the studies that were open then, which other transcripts may show later. All are of one ledger.
    """

    approved: Head
    open: tuple[Head, ...] = ()

    @staticmethod
    def of(heads: Sequence[Head]) -> "StatedHeads":
        """Of the heads at the approvals of the studies that are open, in order; the last is the study's own."""
        return StatedHeads(heads[-1], tuple(heads[:-1][-MOST_OPEN_HEADS:]))

    @property
    def all(self) -> tuple[Head, ...]:
        """Every stated head."""
        return self.approved, *self.open

    def is_sound(self) -> bool:
        """Whether all are heads of one ledger, the open ones earlier, in order, and not too many."""
        sequences = [head.sequence for head in (*self.open, self.approved)]
        return (
            all(head.is_sound() and head.ledger == self.approved.ledger for head in self.all)
            and all(before < after for before, after in pairwise(sequences))
            and len(self.open) <= MOST_OPEN_HEADS
        )

    def to_json(self) -> dict[str, Json]:
        """As enrolments and transcripts hold it."""
        return {**self.approved.statement(), "open": [[head.sequence, head.hash.hex()] for head in self.open]}

    @staticmethod
    def from_json(data: Any) -> "StatedHeads":
        """Reads what `to_json` wrote; raises KeyError, TypeError or ValueError at anything else."""
        ledger = bytes.fromhex(data["ledger"])
        pairs = [(data["sequence"], data["hash"]), *data["open"]]
        if any(type(sequence) is not int for sequence, _ in pairs):
            raise ValueError("a sequence that is no integer")
        approved, *earlier = (Head(sequence, bytes.fromhex(digest), ledger) for sequence, digest in pairs)
        return StatedHeads(approved, tuple(earlier))


def check_own_heads(stated: StatedHeads, own: Sequence[bytes], *, shown_by: str, code: Code = Code.REFUSED) -> None:
    """Refuses one's own ledger if it lacks an entry that a document with one's own signature shows; `own` are the
    hashes of its entries in order. A ledger that was made after a loss is another one, of which nothing is shown.
    """
    if stated.approved.ledger != own[0]:
        return
    if any(own[head.sequence - 1 : head.sequence] != [head.hash] for head in stated.all):
        raise LedgerBehindError(shown_by, code)


def check_not_rolled_back(party: str, stated: StatedHeads, witnessed: Collection[Head]) -> None:
    """Refuses a ledger of another party that is not, or not as far as, what was witnessed of it.

    1. no stated head is another one than was witnessed of the same length; 2. the head at the approval is not before
    the furthest one that was witnessed, unless that very head was stated before: studies may be keyed in another order
    than they were approved in.

    Guarantee: a ledger that was set back past a witnessed head does not pass: its chain has other, random salts from
    there on, and it cannot state the heads that it forgot. What it did after the last witnessed head is not covered.
    """
    known = {head.sequence: head.hash for head in witnessed if head.ledger == stated.approved.ledger}
    # 1
    is_beside = any(known.get(head.sequence, head.hash) != head.hash for head in stated.all)
    # 2
    is_behind = stated.approved.sequence < max(known, default=0) and stated.approved.sequence not in known
    if is_beside or is_behind:
        raise refused(
            f"the ledger of {party} is behind, or beside, what this party has witnessed of it: an old copy or a clone.",
            f"Tell the operator of {party} to restore its newest ledger; nothing was spent here.",
        )
