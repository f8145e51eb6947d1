"""A curator under load: with 5,000 ended studies against 5, and while one caller opens 3,000 polls and 80 uploads that
it never ends.

The first is the real store and gRPC methods, called in process. The second is a real curator over mutual TLS, and what
is compared is how long another party's greeting takes and how much memory the curator has, in turns without and with
the crowd; its twin, which is only looked at, has no quota of calls for a name. Everything is a ratio within one run, so
that a busy machine hurts both sides alike. A verdict says whether all of them are within `MOST`; the last line is one
JSON object.
"""

import argparse
import asyncio
import json
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median
from typing import Any

from bench.polling import HASH, CallOf, make_study
from synod.common.crypto.canonical import canonical_bytes
from synod.common.crypto.certificates import read_tls
from synod.common.crypto.identity import Identity
from synod.common.protocol.heads import Head
from synod.common.protocol.submission import Submission
from synod.common.protocol.transcript import PROTOCOL
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.settings import OperatorSettings, PartySettings, load_settings
from synod.common.runtime.wire import open_channel
from synod.common.study.study import Study, parse_study
from synod.curator.context import Changes, Context
from synod.curator.rpc import PartyServicer
from synod.curator.store import Store
from synod.deploy.launch.operator import OperatorClient
from synod.deploy.launch.processes import PROGRAM, await_curator, start_curator, stopping
from synod.deploy.launch.site import SitePaths, plan_paths, prepare
from synod.party.approval import identity_path
from synod.party.client import CuratorClient
from synod.party.daemon import Daemon
from synod.party.ledger import Ledger
from synod.v1 import party_pb2 as pb
from synod.v1 import party_pb2_grpc as rpc

FEW, MANY = 5, 5_000
POLLS, UPLOADS = 3_000, 80
CHANNELS = 30
GREETINGS = 40
TURNS = 3
NAMES = ("north", "harbour", "valley")
VALUES = 700
ANSWER_SECONDS = 240.0
MOST = {
    "ended_ratio": 2.0,
    "latency_ratio": 1.5,
    "memory_ratio": 1.3,
}
SETTLE_SECONDS = 3.0
WITHOUT_QUOTA = """
from synod.curator.callers import quotas
quotas.MOST_CALLS_OF_A_NAME = 10**6
from synod.deploy.cli.main import main
main()
"""
UNLIMITED = ("-P", "-c", WITHOUT_QUOTA)


# Ended studies


def add_ended(store: Store, study: Study, count: int) -> None:
    """Adds studies that have ended, and whose end every party has acknowledged."""
    content = study.to_json()
    with store._transaction():
        for number in range(count):
            study_hash, name = number.to_bytes(32, "big"), f"ended-{number}"
            document = canonical_bytes({**content, "name": name})
            store._connection.execute(
                "INSERT INTO studies VALUES (?, ?, ?, ?, 'published', '')", (study_hash, name, document, number)
            )
            store._connection.executemany(
                "INSERT INTO rosters VALUES (?, ?, ?, 1)",
                [(entry.name, study_hash, entry.key) for entry in study.roster],
            )


async def time_polls(servicer: PartyServicer, identity: Identity, calls: int) -> float:
    """CPU seconds of greetings and polls of a party that has nothing to do."""
    signature = identity.sign("head", Head(1, HASH, HASH).statement())
    head = pb.LedgerHead(sequence=1, hash=HASH, ledger=HASH, identity=identity.public_key, signature=signature)
    start = time.process_time()
    for _ in range(calls):
        await servicer.Greet(pb.GreetRequest(protocol=PROTOCOL, head=head), CallOf("party-0"))
        await servicer.PullWork(pb.PullWorkRequest(head=head), CallOf("party-0"))
    return time.process_time() - start


def measure_ended(turns: int) -> dict[str, float]:
    """What ended studies cost a greeting and a poll."""
    identities = {f"party-{number}": Identity.generate() for number in range(3)}
    study = make_study(identities)
    seconds: dict[int, list[float]] = {FEW: [], MANY: []}
    with ExitStack() as stack:
        servicers = {}
        for count in seconds:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            store = stack.enter_context(closing(Store(folder)))
            add_ended(store, study, count)
            servicers[count] = PartyServicer(Context(store, Identity.generate(), folder, Changes(), 1, time.time))
        for _ in range(turns + 1):
            for count, servicer in servicers.items():
                seconds[count].append(asyncio.run(time_polls(servicer, identities["party-0"], 50)))
    few, many = (median(seconds[count][1:]) for count in (FEW, MANY))  # the first turn fills caches
    return {"ended_ratio": many / few, "poll_cpu_milliseconds_many_ended": 1000 * many / 50}


# A caller without end


def make_site(folder: Path) -> tuple[SitePaths, Study]:
    """Three parties and a study whose one answer is large."""
    schema = [
        {"name": name, "type": "categorical", "categories": [str(value) for value in range(VALUES)]} for name in "ab"
    ]
    tables = []
    for name in NAMES:
        tables.append(folder / f"{name}.csv")
        tables[-1].write_text("a,b\n" + "".join(f"{row % VALUES},{row % 7}\n" for row in range(VALUES)))
    document = {
        "name": "crowded", "method": {"name": "histogram"}, "epsilon": "1", "key_bits": 2048, "schema": schema
    }  # fmt: skip
    site = folder / "site"
    site.mkdir()
    paths = plan_paths(site, tables)
    return paths, prepare(paths, parse_study(document, "the benchmark's study"))


def answer_of(settings: PartySettings, answered: threading.Barrier) -> tuple[Submission, bytes]:
    """A party's sound answer to the first round, which it does not hand in."""
    ledger, kept = Ledger.open(settings.state), []
    daemon = Daemon(
        settings, ledger, Identity.load(identity_path(settings)), clock=time.time, tell_contact=lambda _: None
    )

    def keep(submission: Submission, payload: bytes, _: object) -> None:
        kept.append((submission, payload))
        daemon.stop()
        raise SynodError(Code.UNREACHABLE, "kept back.")

    daemon._client.submit = keep  # type: ignore[method-assign,assignment]
    daemon.run()
    ledger.close()
    answered.wait(ANSWER_SECONDS)
    return kept[0]


def keep_answers(paths: SitePaths) -> tuple[Submission, bytes]:
    """Lets everybody enrol and compute an answer; returns the last party's."""
    kept: dict[str, tuple[Submission, bytes]] = {}
    answered = threading.Barrier(len(NAMES) + 1)

    def take_part(config: Path, name: str) -> None:
        kept[name] = answer_of(load_settings(PartySettings, config), answered)

    threads = [
        threading.Thread(target=take_part, args=(member.config, member.name), daemon=True) for member in paths.members
    ]
    for thread in threads:
        thread.start()
    answered.wait(ANSWER_SECONDS)
    for thread in threads:
        thread.join(ANSWER_SECONDS)
    return kept[NAMES[-1]]


def megabytes_of(process: int) -> float:
    """What a process holds in memory."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def time_greetings(settings: PartySettings) -> float:
    """The median of a party's greetings, in milliseconds."""
    ledger = Ledger.open(settings.state)
    head = ledger.head()
    ledger.close()
    found = []
    with closing(CuratorClient(settings, Identity.load(identity_path(settings)))) as client:
        for _ in range(GREETINGS):
            start = time.perf_counter()
            client.greet(head)
            found.append(1000 * (time.perf_counter() - start))
    return median(found)


def unfinished(
    client: CuratorClient, submission: Submission, payload: bytes, head: Any, ends: threading.Event
) -> Iterator[Any]:
    """An upload but for its last chunk."""
    *parts, _ = client._parts(submission, payload, head)
    yield from parts
    ends.wait(ANSWER_SECONDS)


def await_settled(calls: Sequence[Any]) -> int:
    """Waits until no more calls end, which keeps this process busy too; returns how many are open."""
    until, still_open = time.monotonic() + ANSWER_SECONDS, -1
    while time.monotonic() < until and still_open != (still_open := sum(not call.done() for call in calls)):
        time.sleep(SETTLE_SECONDS)
    return still_open


def measure_crowd(folder: Path, polls: int, uploads: int, *, program: tuple[str, ...]) -> dict[str, float]:
    """Another party's greetings and the curator's memory, before the crowd and meanwhile."""
    paths, study = make_site(folder)
    curator = start_curator(paths, program=program)
    with stopping([curator]), ExitStack() as stack:
        await_curator(paths, curator)
        with closing(OperatorClient(load_settings(OperatorSettings, paths.operator_config))) as operator:
            operator.submit(study)
        submission, payload = keep_answers(paths)
        north, _, valley = (load_settings(PartySettings, member.config) for member in paths.members)
        ledger = Ledger.open(valley.state)
        head = ledger.head()
        ledger.close()
        client = stack.enter_context(closing(CuratorClient(valley, Identity.load(identity_path(valley)))))
        ends = threading.Event()
        stack.callback(ends.set)
        channels = [
            stack.enter_context(closing(open_channel(valley.address, read_tls(valley.tls), proxy=None)))
            for _ in range(CHANNELS)
        ]
        stubs = [rpc.PartyServiceStub(channel) for channel in channels]
        for stub in stubs:
            stub.PullWork(pb.PullWorkRequest(), timeout=300)  # connections are not what is measured
        time_greetings(north)
        megabytes = [megabytes_of(curator.process.pid)]
        quiet, crowded, still_open = [time_greetings(north)], [], []
        request = pb.PullWorkRequest(wait_seconds=60, skip=[study.digest()])

        def call_without_end() -> list[Any]:
            opened: list[Any] = [
                stubs[number % CHANNELS].Submit.future(unfinished(client, submission, payload, head, ends), timeout=300)
                for number in range(uploads)
            ]
            time.sleep(SETTLE_SECONDS)
            opened += [stubs[number % CHANNELS].PullWork.future(request, timeout=300) for number in range(polls)]
            return opened

        for _ in range(TURNS):
            calls = call_without_end()
            await_settled(calls)
            crowded.append(time_greetings(north))
            megabytes.append(megabytes_of(curator.process.pid))
            still_open.append(sum(not call.done() for call in calls))
            for call in calls:
                call.cancel()
            await_settled(calls)
            quiet.append(time_greetings(north))
    return {
        "latency_ratio": median(crowded) / median(quiet),
        "memory_ratio": max(megabytes) / megabytes[0],
        "memory_growth_megabytes": megabytes[1] - megabytes[0],
        "memory_growth_megabytes_later": megabytes[-1] - megabytes[1],
        "answer_megabytes": len(payload) / 1e6,
        "calls_still_open": min(still_open),
    }


def main() -> None:
    """Prints the figures, then the same as JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.crowd", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--turns", type=int, default=5, help="turns that few and many ended studies take")
    parser.add_argument("--polls", type=int, default=POLLS, help="polls that one caller opens")
    parser.add_argument("--uploads", type=int, default=UPLOADS, help="uploads that it begins")
    options = parser.parse_args()
    figures = measure_ended(options.turns)
    for kind, program in (("", PROGRAM), ("unlimited_", UNLIMITED)):
        with tempfile.TemporaryDirectory(prefix="synod-") as folder:
            found = measure_crowd(Path(folder), options.polls, options.uploads, program=tuple(program))
        figures |= {f"{kind}{name}": figure for name, figure in found.items()}
    for name, figure in figures.items():
        print(f"{name.replace('_', ' '):<40} {figure:>14,.6g}")
    exceeded = find_exceeded(figures)
    for name in exceeded:
        print(f"{name.replace('_', ' ')} is over {MOST[name]}.")
    print("The crowd is felt by others." if exceeded else "Others are served as before.")
    print(json.dumps({**{name: float(f"{figure:.6g}") for name, figure in figures.items()}, "holds": not exceeded}))


def find_exceeded(figures: Mapping[str, float]) -> list[str]:
    """The figures that say that others feel the crowd."""
    return [name for name, most in MOST.items() if not figures[name] <= most]


if __name__ == "__main__":
    main()
