"""A whole study in one process: a curator and its parties as they are, but for the wire, which does what it is told.

The daemons and the curator's handler, session, store and ledgers are the real ones. A `Line` stands for a party's
connection: it can lose a request or a reply, repeat a call, or keep it for later. Databases can be killed right before
or right after a commit. Everything else is deterministic, so that two runs can be compared byte for byte.
"""

import asyncio
import itertools
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

from synod.common.crypto.identity import Identity
from synod.common.protocol.submission import Submission
from synod.common.protocol.transcript import PROTOCOL, Enrolment
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.settings import PartySettings
from synod.common.runtime.sqlite import open_database
from synod.common.study.study import Study, parse_study
from synod.curator import store as store_module
from synod.curator.context import Changes, Context, Subject
from synod.curator.inference import gaussian as hpdp_fit
from synod.curator.party_handler import PartyHandler
from synod.curator.rpc import DECLINE_REASONS, DOCUMENT_KINDS, MOVE_KINDS
from synod.curator.session import Session
from synod.curator.store import ReplyKind, SeenHead, State, Store
from synod.party import daemon as daemon_module
from synod.party import ledger as ledger_module
from synod.party.approval import identity_path, initialize
from synod.party.client import Greeting
from synod.party.daemon import RETRIED, Daemon
from synod.party.ledger import Head, Ledger
from synod.v1 import party_pb2 as pb
from tests.support.rosters import make_identity, make_key

T = TypeVar("T")

NAMES = ("north", "harbour", "valley")
ROWS = (8, 16, 32)
START = 1_700_000_000
SETTLE_SECONDS = 60.0
MOST_ROUNDS = 40
REFERENCE_ROWS = 256
FAULTS = ("lose request", "lose reply", "repeat", "delay")
KILLS = ("before", "after")
LEGAL_MOVES = {
    (State.ENROLLING, State.KEYED),
    (State.KEYED, State.RUNNING),
    (State.RUNNING, State.PUBLISHED),
    *((state, State.ABORTED) for state in (State.ENROLLING, State.KEYED, State.RUNNING)),
}
SCHEMA: list[dict[str, Any]] = [
    {"name": "sex", "type": "categorical", "categories": ["F", "M"]},
    {"name": "age", "type": "integer", "min": 17, "max": 90},
]


class Killed(Exception):  # noqa: N818  (a process that is gone is no error)
    """The process died here."""


class Quiet(Exception):  # noqa: N818
    """The daemon has made its moves and would wait for more."""


@dataclass(frozen=True)
class Site:
    """What every run of a study starts from: folders with identities, empty ledgers and tables, and the study."""

    folder: Path
    study: Study


def make_site(folder: Path, **changes: Any) -> Site:
    """Initializes one party for each name; the same site gives the same release whenever it is run."""
    roster = []
    for index, (name, rows) in enumerate(zip(NAMES, ROWS, strict=True)):
        settings = settings_of(folder, index)
        identity = initialize(settings, spent=None, now=START)
        lines = [f"{'FM'[(row + index) % 2]},{17 + (row * 7 + index) % 74}" for row in range(rows)]
        settings.source.write_text("\n".join(["sex,age", *lines]) + "\n")
        roster.append({"name": name, "key": identity.fingerprint, "rows": rows})
    content = {
        "name": "survey",
        "method": {"name": "hpdp-dp", "link": "linear"},
        "epsilon": 1,
        "key_bits": 2048,
        "seed": 7,
        "roster": roster,
        "schema": SCHEMA,
    }
    return Site(folder, parse_study({**content, **changes}, "the test").resolve())


def settings_of(folder: Path, index: int, **changes: Any) -> PartySettings:
    """A party's configuration below `folder`."""
    home = folder / NAMES[index]
    home.mkdir(parents=True, exist_ok=True)
    content = {
        "name": NAMES[index],
        "address": "localhost:1",
        "state": str(home / "state"),
        "curator": make_identity("curator").fingerprint,
        "dataset": "ward",
        "source": str(home / "table.csv"),
        "max_epsilon_total": 1,
        "min_key_bits": 2048,
        "approve": "auto",
        "tls": {"ca": "ca.pem", "certificate": "party.pem", "key": "party.key"},
    }
    return PartySettings.model_validate({**content, **changes})


class WatchedChanges(Changes):
    """Knows whether the session waits for news."""

    def __init__(self) -> None:
        super().__init__()
        self.idle = False

    def announce(self, *subjects: Subject) -> None:
        """The store has changed."""
        self.idle = False
        super().announce(*subjects)

    async def wait(self, subject: Subject, seconds: float | None = None) -> None:
        """Waits for a change."""
        self.idle = True
        await super().wait(subject, seconds)


@dataclass
class Trigger:
    """Kills at the n-th commit from now, on its near or its far side; unset otherwise."""

    when: str = ""
    commits: int = 0

    def due(self) -> str:
        """Counts one commit, and says on which side of it to die, if on any."""
        if not self.when:
            return ""
        self.commits -= 1
        if self.commits >= 0:
            return ""
        when, self.when = self.when, ""
        return when


def open_unsynced(path: Path, **options: Any) -> sqlite3.Connection:
    """A database as it is, but for waiting for the disk: here processes die, not machines."""
    connection = open_database(path, **options)
    connection.execute("PRAGMA synchronous = OFF")
    return connection


def killable(commit: Callable[..., Any], trigger: Trigger, committed: Callable[[], None]) -> Callable[..., Any]:
    """A `_transaction` that may die right before or right after it commits."""

    @contextmanager
    def transact(self: Any) -> Iterator[None]:
        when = trigger.due()
        with commit(self):
            yield
            if when == "before":
                raise Killed
        committed()
        if when == "after":
            raise Killed

    return transact


class Curator:
    """The curator's process: its store on disk, its handler, and the session of one study."""

    def __init__(self, folder: Path, study: Study, *, clock: Callable[[], float]) -> None:
        self.folder, self.study = folder, study
        self._clock = clock
        self._loop = asyncio.new_event_loop()
        self.start()

    def start(self) -> None:
        """Opens the store, and resumes the study if it has not ended."""
        self.store, self.changes = Store(self.folder), WatchedChanges()
        self.context = Context(self.store, make_identity("curator"), self.folder, self.changes, 1, self._clock)
        self.handler = PartyHandler(self.context)
        self.store.add_study(self.study, now=int(self._clock()))
        self.task: asyncio.Task[None] | None = None
        if self.store.study(self.study.digest()).outcome is None:
            self.task = self._loop.create_task(Session(self.context, self.study, make_key()).run())

    def stop(self) -> None:
        """Ends the process; what is on disk stays."""
        if self.task is not None and not self.task.done():
            self.task.cancel()
            self._loop.run_until_complete(asyncio.gather(self.task, return_exceptions=True))
        self.store.close()

    def close(self) -> None:
        """Ends everything."""
        self.stop()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def settle(self) -> None:
        """Lets the session go as far as it can; raises what ended it."""
        if self.task is not None:
            self._loop.run_until_complete(asyncio.wait_for(self._until_idle(self.task), SETTLE_SECONDS))
            if self.task.done():
                self.task.result()

    async def _until_idle(self, task: "asyncio.Task[None]") -> None:
        while not (self.changes.idle or task.done()):
            await asyncio.sleep(0.0005)

    def state(self) -> State:
        return self.store.state(self.store.study(self.study.digest()))


@dataclass
class Message:
    """A call as it goes over the wire: it can be made at any later time, and again."""

    party: str
    name: str
    body: Callable[[Curator], Any]


class Line:
    """A party's connection; the methods are those of `CuratorClient`."""

    def __init__(self, world: "World", party: str, identity: Identity) -> None:
        self._world, self._party, self._identity = world, party, identity
        self.fault, self.countdown, self.pulls = "", 0, 0

    def close(self) -> None:
        """Nothing to close."""

    def greet(self, head: Head) -> Greeting:
        def body(curator: Curator) -> Greeting:
            highest = curator.store.highest_head(self._identity.public_key, head.ledger)
            self._see(curator, head)
            seen = None
            if highest is not None and not self._world.hides_heads:
                seen = pb.LedgerHead(
                    sequence=highest.sequence, hash=highest.hash, signature=highest.signature, ledger=highest.ledger
                )
            return Greeting(PROTOCOL, int(curator.context.clock()), seen, curator.context.identity.public_key)

        return self._call("greet", body)

    def pull(self, head: Head, skip: Sequence[bytes], wait_seconds: int) -> list[pb.Move]:
        self.pulls += 1
        if self.pulls > 1:
            raise Quiet

        def body(curator: Curator) -> list[pb.Move]:
            self._see(curator, head)
            moves = curator.handler.moves(self._party, set(skip))
            return [
                pb.Move(study_hash=m.study_hash, study_name=m.name, kind=MOVE_KINDS[m.kind], label=m.label)
                for m in moves
            ]

        return self._call("pull", body)

    def document(self, study_hash: bytes, kind: pb.DocumentKind.ValueType, label: str = "") -> bytes:
        return self._call(
            "document", lambda c: c.handler.document(self._party, study_hash, DOCUMENT_KINDS[kind], label)
        )

    def enrol(self, study_hash: bytes, enrolment: Enrolment, head: Head) -> None:
        def body(curator: Curator) -> None:
            self._see(curator, head)
            curator.handler.enrol(study_hash, enrolment)

        self._call("enrol", body)

    def submit(self, submission: Submission, payload: bytes, head: Head) -> None:
        self._world.left.setdefault((self._party, submission.label), set()).add((submission, payload))

        def body(curator: Curator) -> None:
            self._see(curator, head)
            asked = curator.handler.open_round(self._party, submission)
            curator.handler.check(self._party, submission, asked, payload)
            curator.handler.accept(self._party, submission, payload)

        self._call("submit", body)

    def decline(self, study_hash: bytes, reason: pb.DeclineReason.ValueType, head: Head) -> None:
        def body(curator: Curator) -> None:
            signer = self._see(curator, head)
            curator.handler.decline(self._party, signer, study_hash, DECLINE_REASONS[reason])

        self._world.declined.append((self._party, DECLINE_REASONS[reason].value))
        self._call("decline", body)

    def acknowledge(self, study_hash: bytes, head: Head) -> None:
        def body(curator: Curator) -> None:
            self._see(curator, head)
            curator.handler.acknowledge(self._party, study_hash)

        self._call("acknowledge", body)

    def _see(self, curator: Curator, head: Head) -> str:
        signature = self._identity.sign("head", head.statement())
        seen = SeenHead(head.ledger, head.sequence, head.hash, signature)
        return curator.handler.see(self._party, self._identity.public_key, seen)

    def _call(self, name: str, body: Callable[[Curator], T]) -> T:
        message = Message(self._party, name, body)
        self._world.sent.append(message)
        fault = self.fault if self.countdown == 0 else ""
        self.countdown -= 1
        if fault in ("lose request", "delay"):
            if fault == "delay":
                self._world.delayed.append(message)
            raise lost()
        reply: T = self._world.deliver(message)
        if fault == "repeat":
            reply = self._world.deliver(message)
        if fault == "lose reply":
            raise lost()
        return reply


def lost() -> SynodError:
    return SynodError(Code.UNREACHABLE, "the line is dead.")


@dataclass
class World:
    """A curator, its parties, and the lines between them; use it in a `with`."""

    site: Site
    folder: Path
    approvals: str = "auto"
    hides_heads: bool = False
    holds_session: bool = False
    now: float = START
    skews: dict[str, float] = field(default_factory=dict)
    sent: list[Message] = field(default_factory=list)
    delayed: list[Message] = field(default_factory=list)
    left: dict[tuple[str, str], set[tuple[Submission, bytes]]] = field(default_factory=dict)
    declined: list[tuple[str, str]] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    kill_curator: Trigger = field(default_factory=Trigger)
    kill_party: Trigger = field(default_factory=Trigger)

    def __enter__(self) -> "World":
        for name in NAMES:
            shutil.copytree(self.site.folder / name, self.folder / name)
        (self.folder / "curator").mkdir()
        self._stack = ExitStack()
        watch = killable(Store._transaction, self.kill_curator, self._note_state)
        self._stack.enter_context(mock.patch.object(Store, "_transaction", watch))
        spend = killable(Ledger._transaction, self.kill_party, lambda: None)
        self._stack.enter_context(mock.patch.object(Ledger, "_transaction", spend))
        self._stack.enter_context(mock.patch.object(daemon_module, "CuratorClient", self._dial))
        for module in (ledger_module, store_module):
            self._stack.enter_context(mock.patch.object(module, "open_database", open_unsynced))
        self._stack.enter_context(mock.patch.object(hpdp_fit, "REFERENCE_ROWS", REFERENCE_ROWS))
        self._lines: dict[str, Line] = {}
        self._daemons: dict[int, Daemon] = {}
        self._ledgers: dict[int, Ledger] = {}
        self.curator = Curator(self.folder / "curator", self.site.study, clock=lambda: self._clock("curator"))
        self.states.append(self.curator.state())
        return self

    def __exit__(self, *_: object) -> None:
        for index in range(len(NAMES)):
            self.stop_party(index)
        self.kill_curator.when = ""
        self.curator.close()
        self._stack.close()

    # The processes

    def restart_curator(self) -> None:
        """Ends the curator's process and starts another over the same folder."""
        self.kill_curator.when = ""
        self.curator.stop()
        self.curator.start()

    def settle(self) -> None:
        """Lets the curator's session go on, unless it is held; if it is killed on the way, it is started again."""
        if self.holds_session:
            return
        try:
            self.curator.settle()
        except Killed:
            self.restart_curator()
            self.curator.settle()

    def daemon(self, index: int) -> Daemon:
        """A party's daemon; started if it is not running."""
        if index not in self._daemons:
            settings = self.settings(index)
            self._ledgers[index] = Ledger.open(settings.state)
            identity = Identity.load(identity_path(settings))
            self._daemons[index] = Daemon(
                settings,
                self._ledgers[index],
                identity,
                clock=lambda: self._clock(NAMES[index]),
                tell_contact=lambda _: None,
            )
        return self._daemons[index]

    def stop_party(self, index: int) -> None:
        """Ends a party's process; what is on disk stays."""
        if self._daemons.pop(index, None) is not None:
            self._ledgers.pop(index).close()

    def settings(self, index: int) -> PartySettings:
        return settings_of(self.folder, index, approve=self.approvals)

    @contextmanager
    def ledger(self, index: int) -> Iterator[Ledger]:
        """A party's ledger, for a look at it."""
        ledger = Ledger.open(self.settings(index).state)
        try:
            yield ledger
        finally:
            ledger.close()

    # What happens

    def converse(self, index: int, fault: str = "", countdown: int = 0) -> None:
        """A party connects, and makes the moves that there are; what it cannot get over ends its process and raises."""
        daemon, line = self.daemon(index), self._lines[NAMES[index]]
        line.fault, line.countdown, line.pulls = fault, countdown, 0
        self.settle()
        try:
            daemon._converse()
        except Quiet:
            pass
        except Killed:
            self.stop_party(index)
        except SynodError as error:
            if error.code not in RETRIED:
                self.stop_party(index)
                raise
        finally:
            self.kill_party.when = ""
        self.settle()

    def deliver(self, message: Message) -> Any:
        """The curator gets a message, and replies."""
        try:
            return message.body(self.curator)
        except Killed:
            self.restart_curator()
            raise lost() from None
        finally:
            self.settle()

    def deliver_again(self, message: Message) -> None:
        """An old message comes in; nobody waits for its reply."""
        try:
            self.deliver(message)
        except SynodError:
            return

    def finish(self) -> None:
        """No more trouble: everybody goes on until all know of the study's end."""
        self.kill_curator.when = ""
        for _ in range(MOST_ROUNDS):
            for index in range(len(NAMES)):
                self.converse(index)
            if all(
                self.curator.store.replied(self.site.study.digest(), name, ReplyKind.ACKNOWLEDGED) for name in NAMES
            ):
                return
        raise AssertionError(f"the study does not end; it is {self.curator.state()}")

    def moves(self) -> set[tuple[State, State]]:
        """Every change of the study's state that a commit brought about."""
        return {(old, new) for old, new in itertools.pairwise(self.states) if old is not new}

    def release(self) -> dict[str, bytes]:
        """The files that were published."""
        folder = self.curator.context.release_folder(self.site.study.digest())
        return {path.name: path.read_bytes() for path in sorted(folder.iterdir())} if folder.exists() else {}

    def _dial(self, settings: PartySettings, identity: Identity) -> Line:
        self._lines[settings.name] = Line(self, settings.name, identity)
        return self._lines[settings.name]

    def _clock(self, who: str) -> float:
        self.now += 1
        return self.now + self.skews.get(who, 0)

    def _note_state(self) -> None:
        if hasattr(self, "curator"):
            self.states.append(self.curator.state())


@contextmanager
def run_world(site: Site, **changes: Any) -> Iterator[World]:
    """A world in a folder of its own, which goes with it."""
    with tempfile.TemporaryDirectory() as folder, World(site, Path(folder), **changes) as world:
        yield world
