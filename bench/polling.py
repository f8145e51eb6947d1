"""The long polls of 200 parties over one study: waking those whom a change concerns, against waking everybody.

The curator's store, handler and gRPC methods are the real ones, called in process; the parties enrol, answer each
round with an empty answer that nobody checks, and take note of the end. The twin differs in one thing: every change
wakes everybody who waits. They take turns in one run and medians of CPU seconds are compared, so that a busy machine
hurts both alike. The last line is one JSON object.
"""

import argparse
import asyncio
import json
import secrets
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from synod.common.crypto.canonical import canonical_bytes
from synod.common.crypto.identity import Identity
from synod.common.protocol.heads import Head, StatedHeads
from synod.common.protocol.notices import sign_acknowledgement
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.marginals import SumMarginals
from synod.common.protocol.submission import Submission, digest_of
from synod.common.protocol.transcript import Enrolment
from synod.common.study.study import Study, parse_study
from synod.curator.context import Changes, Context, Subject
from synod.curator.party_handler import Notice, PartyHandler
from synod.curator.records import State
from synod.curator.rpc import PartyServicer
from synod.curator.store import Store
from synod.v1 import party_pb2 as pb

PARTIES = 200
ATTRIBUTES = 4
WAIT_SECONDS = 60
SETTLE_TURNS = 10  # of the event loop, until whoever was woken has looked and waits again
HASH = bytes(32)


class CountedChanges(Changes):
    """Counts how often somebody is woken; the twin wakes everybody."""

    def __init__(self, *, everybody: bool) -> None:
        super().__init__()
        self._everybody = everybody
        self.wakes = 0

    def announce(self, *subjects: Subject) -> None:
        """Wakes the subjects, or everybody."""
        super().announce(*(self._events if self._everybody else subjects))

    async def wait(self, subject: Subject, seconds: float | None = None) -> None:
        """Counts what ends the waiting."""
        await super().wait(subject, seconds)
        self.wakes += 1


class CountedStore(Store):
    """Counts how often something is read."""

    reads = 0

    def _rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        self.reads += 1
        return super()._rows(statement, *values)


@dataclass(frozen=True, slots=True)
class CallOf:
    """All that the curator asks of a call: whose certificate it came with."""

    name: str

    def auth_context(self) -> Mapping[str, list[bytes]]:
        """The caller's name as gRPC tells it."""
        return {"peer_uri": [f"synod:party:{self.name}".encode()]}


def make_study(identities: Mapping[str, Identity]) -> Study:
    """A study with as many rounds as attributes, each of which everybody answers."""
    schema = [{"name": f"a{i}", "type": "categorical", "categories": ["no", "yes"]} for i in range(ATTRIBUTES)]
    roster = [{"name": name, "key": identity.fingerprint, "rows": 100} for name, identity in identities.items()]
    content = {"name": "polled", "method": {"name": "dp-ccbn"}, "epsilon": "1", "roster": roster, "schema": schema}
    return parse_study(content, "the benchmark's study").resolve()


async def take_part(context: Context, study_hash: bytes, name: str, identity: Identity, line: asyncio.Lock) -> None:
    """One party: long polls, and the moves that they bring, until it is told of the end.

    Whoever has the line makes a move and lets everybody act on it: over a network, too, answers come one by one.
    """
    servicer, handler = PartyServicer(context), PartyHandler(context)
    heads = StatedHeads(Head(1, HASH, HASH))
    enrolment = Enrolment(name, identity.public_key, secrets.token_bytes(32), HASH, heads)
    enrolment = enrolment.signed_by(identity, study_hash)
    signature = identity.sign("head", Head(1, HASH, HASH).statement())
    head = pb.LedgerHead(sequence=1, hash=HASH, ledger=HASH, identity=identity.public_key, signature=signature)
    request = pb.PullWorkRequest(head=head, wait_seconds=WAIT_SECONDS)
    while True:
        for move in (await servicer.PullWork(request, CallOf(name))).moves:
            async with line:
                match move.kind:
                    case pb.MOVE_KIND_ENROL:
                        handler.enrol(study_hash, enrolment)
                    case pb.MOVE_KIND_ANSWER:
                        answer = Submission(study_hash, HASH, move.label, HASH, HASH, 0, digest_of(b""), b"", b"")
                        handler.accept(name, answer, b"")
                    case _:
                        signed = sign_acknowledgement(identity, name, study_hash, State.PUBLISHED.value)
                        handler.acknowledge(Notice(name, study_hash, identity.public_key, signed))
                        return
                for _ in range(SETTLE_TURNS):
                    await asyncio.sleep(0)


async def run_rounds(context: Context, study: Study) -> None:
    """What a session stores and announces, without computing anything."""
    store, changes, study_hash = context.store, context.changes, study.digest()
    everybody = [entry.name for entry in study.roster]
    while store.enrolled(study_hash) != set(everybody):
        await changes.wait(study_hash)
    body = canonical_bytes(SumMarginals(((0, 1),)).to_json())
    for step in plan_study(study).steps:
        store.open_query(study_hash, step.label, body, signature=b"signed", now=0)
        changes.announce(*step.answerers)
        while store.submitters(study_hash, step.label) != set(step.answerers):
            await changes.wait(study_hash)
        store.close_query(study_hash, step.label, b"")
    store.end_study(study_hash, State.PUBLISHED)
    changes.announce(*everybody)


async def run_study(folder: Path, study: Study, identities: Mapping[str, Identity], *, everybody: bool) -> list[float]:
    """CPU seconds, reads and wake-ups of one study from its first poll to the last party's knowledge of its end."""
    store, changes = CountedStore(folder), CountedChanges(everybody=everybody)
    store.add_study(study, now=0)
    study_hash = study.digest()
    context = Context(store, Identity.generate(), folder, changes, 1, time.time)
    line = asyncio.Lock()
    start = time.process_time()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(run_rounds(context, study))
        for name, identity in identities.items():
            tasks.create_task(take_part(context, study_hash, name, identity, line))
    seconds = time.process_time() - start
    store.close()
    return [seconds, store.reads, changes.wakes]


def measure(parties: int, turns: int) -> dict[str, float]:
    """All figures; the ratio is that of the CPU seconds."""
    identities = {f"party-{number}": Identity.generate() for number in range(parties)}
    study = make_study(identities)
    runs: dict[bool, list[list[float]]] = {True: [], False: []}
    for _ in range(turns):
        for everybody, found in runs.items():
            with tempfile.TemporaryDirectory() as folder:
                found.append(asyncio.run(run_study(Path(folder), study, identities, everybody=everybody)))
    theirs, ours = ([median(figures) for figures in zip(*runs[key], strict=True)] for key in (True, False))
    named = {
        f"{kind}_{what}": figure
        for kind, figures in (("synod", ours), ("everybody", theirs))
        for what, figure in zip(("cpu_seconds", "store_reads", "wake_ups"), figures, strict=True)
    }
    rounds = len(plan_study(study).steps)
    return {"ratio": theirs[0] / ours[0], **named, "parties": parties, "rounds": rounds, "turns": turns}


def main() -> None:
    """Prints the figures, then the same as JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.polling", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--parties", type=int, default=PARTIES, help="parties on the roster")
    parser.add_argument("--turns", type=int, default=3, help="turns that the twin and Synod take")
    options = parser.parse_args()
    figures = measure(options.parties, options.turns)
    for name, figure in figures.items():
        print(f"{name.replace('_', ' '):<30} {figure:>14,.6g}")
    print(json.dumps({name: float(f"{figure:.6g}") for name, figure in figures.items()}))


if __name__ == "__main__":
    main()
