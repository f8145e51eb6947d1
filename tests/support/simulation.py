"""A whole study in one process: a curator and its parties as they are, but for the wire, which does what it is told.

The daemons and the curator's handler, session, store and ledgers are the real ones. A `Line` stands for a party's
connection: it can lose a request or a reply, repeat a call, or keep it for later. Databases can be killed right before
or right after a commit. Everything else is deterministic, so that two runs can be compared byte for byte.
"""

import itertools
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from unittest import mock

from synod.common.crypto.identity import Identity
from synod.common.privacy.cost import FREE
from synod.common.protocol.plan import plan_study
from synod.common.protocol.submission import Submission
from synod.common.runtime.errors import SynodError
from synod.common.runtime.settings import PartySettings
from synod.common.study.study import Study
from synod.curator import party_store
from synod.curator.inference import gaussian as hpdp_fit
from synod.curator.records import State
from synod.curator.store import Store
from synod.party import daemon as daemon_module
from synod.party import ledger as ledger_module
from synod.party.approval import identity_path, initialize
from synod.party.daemon import RETRIED, Daemon
from synod.party.ledger import Ledger
from tests.support.parties import file_of, make_settings
from tests.support.salts import without_salt
from tests.support.simulated_lines import Line, Message, Quiet, lost
from tests.support.simulated_processes import Curator, Killed, Trigger, killable, open_unsynced
from tests.support.studies import LINEAR, NAMES, categorical, integer, make_study
from tests.support.undated import read_undated

MOST_PARTIES = 8
PARTY_NAMES = (*NAMES, "hill", "river", "forest", "island", "meadow")
PARTY_ROWS = tuple(8 << index for index in range(MOST_PARTIES))
ROWS = PARTY_ROWS[: len(NAMES)]
START = 1_700_000_000
DATASET = "ward"
MOST_ROUNDS = 40
REFERENCE_ROWS = 256
STUDY_SECRET = bytes(range(32))
LEGAL_MOVES = {
    (State.ENROLLING, State.KEYED),
    (State.KEYED, State.RUNNING),
    (State.RUNNING, State.PUBLISHED),
    *((state, State.ABORTED) for state in (State.ENROLLING, State.KEYED, State.RUNNING)),
}
SCHEMA = (categorical("sex", ("F", "M")), integer("age", 17, 90))


@dataclass(frozen=True)
class SimulatedSite:
    """What every run of a study starts from: folders with identities, ledgers and tables, and the study; and the
    curator's folder, if the study is under way.
    """

    folder: Path
    study: Study


def make_site(folder: Path, parties: int = len(NAMES), **changes: Any) -> SimulatedSite:
    """Initializes so many parties; the same site gives the same release whenever it is run."""
    keys = []
    for index, rows in enumerate(PARTY_ROWS[:parties]):
        settings = settings_of(folder, index)
        keys.append(initialize(settings, spent=None, now=START).fingerprint)
        lines = [f"{'FM'[(row + index) % 2]},{17 + (row * 7 + index) % 74}" for row in range(rows)]
        file_of(settings).write_text("\n".join(["sex,age", *lines]) + "\n")
    entries = zip(PARTY_NAMES[:parties], keys, PARTY_ROWS[:parties], strict=True)
    roster = [{"name": name, "key": key, "rows": rows} for name, key, rows in entries]
    usual = {"name": "survey", "method": LINEAR, "roster": roster, "schema": SCHEMA}
    return SimulatedSite(folder, make_study(**{**usual, **changes}))


def settings_of(folder: Path, index: int, copy: int = 0, **changes: Any) -> PartySettings:
    """The configuration of a party, or of a copy of it on another machine, below `folder`."""
    name = PARTY_NAMES[index]
    home = folder / (f"{name}-copy-{copy}" if copy else name)
    home.mkdir(parents=True, exist_ok=True)
    usual = {"name": name, "dataset": DATASET, "max_epsilon_total": 1, "approve": "auto"}
    return make_settings(home, **{**usual, **changes})


@dataclass
class World:
    """A curator, its parties, and the lines between them; use it in a `with`."""

    site: SimulatedSite
    folder: Path
    approvals: str = "auto"
    hides_heads: bool = False
    holds_session: bool = False
    draws_secrets: bool = False
    salted: bool = False
    policy: dict[str, Any] = field(default_factory=dict)
    now: float = START
    skews: dict[str, float] = field(default_factory=dict)
    sent: list[Message] = field(default_factory=list)
    delayed: list[Message] = field(default_factory=list)
    left: dict[tuple[str, str], set[tuple[Submission, bytes]]] = field(default_factory=dict)
    declined: list[tuple[str, str]] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    kill_curator: Trigger = field(default_factory=Trigger)
    kill_party: Trigger = field(default_factory=Trigger)

    def __enter__(self) -> Self:
        shutil.copytree(self.site.folder, self.folder, dirs_exist_ok=True)
        (self.folder / "curator").mkdir(exist_ok=True)
        self._stack = ExitStack()
        watch = killable(Store._transaction, self.kill_curator, self._note_state)
        self._stack.enter_context(mock.patch.object(Store, "_transaction", watch))
        spend = killable(Ledger._transaction, self.kill_party, lambda: None)
        self._stack.enter_context(mock.patch.object(Ledger, "_transaction", spend))
        self._stack.enter_context(mock.patch.object(daemon_module, "CuratorClient", self._dial))
        if not self.salted:
            self._stack.enter_context(mock.patch.object(ledger_module, "_append", without_salt()))
        for module in (ledger_module, party_store):
            self._stack.enter_context(mock.patch.object(module, "open_database", open_unsynced))
        if (
            not self.draws_secrets and not self.salted
        ):  # two ledgers still differ in what they derive: each has a secret of its own
            fixed = mock.patch.object(ledger_module, "draw_study_secret", return_value=STUDY_SECRET)
            self._stack.enter_context(fixed)
        self._stack.enter_context(mock.patch.object(hpdp_fit, "REFERENCE_ROWS", REFERENCE_ROWS))
        self._lines: dict[Path, Line] = {}
        self._daemons: dict[tuple[int, int], Daemon] = {}
        self._ledgers: dict[tuple[int, int], Ledger] = {}
        self.curator = Curator(self.folder / "curator", self.site.study, clock=lambda: self._clock("curator"))
        self.states.append(self.curator.state())
        return self

    def __exit__(self, *_: object) -> None:
        for index, copy in list(self._daemons):
            self.stop_party(index, copy)
        self.kill_curator.when = ""
        self.curator.close()
        self._stack.close()

    @property
    def names(self) -> tuple[str, ...]:
        """Who is on the roster."""
        return self.site.study.party_names

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

    def daemon(self, index: int, copy: int = 0) -> Daemon:
        """A party's daemon; started if it is not running."""
        if (index, copy) not in self._daemons:
            settings = self.settings(index, copy)
            self._ledgers[index, copy] = Ledger.open(settings.state)
            identity = Identity.load(identity_path(settings))
            self._daemons[index, copy] = Daemon(
                settings,
                self._ledgers[index, copy],
                identity,
                clock=lambda: self._clock(PARTY_NAMES[index]),
                tell_contact=lambda _: None,
            )
        return self._daemons[index, copy]

    def stop_party(self, index: int, copy: int = 0) -> None:
        """Ends a party's process; what is on disk stays."""
        if self._daemons.pop((index, copy), None) is not None:
            self._ledgers.pop((index, copy)).close()

    def settings(self, index: int, copy: int = 0) -> PartySettings:
        """A party's configuration."""
        return settings_of(self.folder, index, copy, **{"approve": self.approvals, **self.policy})

    @contextmanager
    def ledger(self, index: int, copy: int = 0) -> Iterator[Ledger]:
        """A party's ledger, for a look at it."""
        ledger = Ledger.open(self.settings(index, copy).state)
        try:
            yield ledger
        finally:
            ledger.close()

    # What happens

    def converse(self, index: int, fault: str = "", countdown: int = 0, copy: int = 0) -> None:
        """A party connects, and makes the moves that there are; what it cannot get over ends its process and raises."""
        daemon, line = self.daemon(index, copy), self._lines[self.settings(index, copy).state]
        line.fault, line.countdown, line.pulls = fault, countdown, 0
        self.settle()
        try:
            daemon._converse()
        except Quiet:
            pass
        except Killed:
            self.stop_party(index, copy)
        except SynodError as error:
            if error.code not in RETRIED:
                self.stop_party(index, copy)
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
            for index in range(len(self.names)):
                self.converse(index)
            study = self.site.study.digest()
            if all(self.curator.store.acknowledged(study, name) for name in self.names):
                return
        raise AssertionError(f"the study does not end; it is {self.curator.state()}")

    def moves(self) -> set[tuple[State, State]]:
        """Every change of the study's state that a commit brought about."""
        return {(old, new) for old, new in itertools.pairwise(self.states) if old is not new}

    def release(self) -> dict[str, bytes]:
        """The files that were published, but for the day: that is of the curator's clock, which may be wrong."""
        folder = self.curator.context.release_folder(self.site.study.digest())
        return read_undated(folder) if folder.exists() else {}

    def _dial(self, settings: PartySettings, identity: Identity) -> Line:
        self._lines[settings.state] = Line(self, settings.name, identity)
        return self._lines[settings.state]

    def _clock(self, who: str) -> float:
        self.now += 0.01  # a look at the clock takes less time than a party may be silent
        return self.now + self.skews.get(who, 0)

    def _note_state(self) -> None:
        if hasattr(self, "curator"):
            self.states.append(self.curator.state())


@contextmanager
def run_world(site: SimulatedSite, **changes: Any) -> Iterator[World]:
    """A world in a folder of its own, which goes with it."""
    with tempfile.TemporaryDirectory() as folder, World(site, Path(folder), **changes) as world:
        yield world


def assert_sound(world: World, undisturbed: dict[str, bytes]) -> None:
    """The release is that of an undisturbed run, each charge is in each ledger once, and nobody answered twice."""
    assert world.release() == undisturbed
    assert world.declined == []
    assert world.moves() <= LEGAL_MOVES
    plan = plan_study(world.site.study)
    for index, name in enumerate(NAMES):
        labels = [step.label for step in plan.steps_of(name)]
        assert {label for party, label in world.left if party == name} == set(labels)
        assert all(len(world.left[name, label]) == 1 for label in labels)
        with world.ledger(index) as ledger:
            facts = [(entry["kind"], entry.get("label", entry.get("outcome", ""))) for entry in ledger.entries()]
            charged = [("charged", label) for label in labels]
            assert facts == [("opened", ""), ("approved", ""), *charged, ("closed", "published")]
            account = ledger.account()
            assert account.spent(DATASET) == plan.cost_of(name)
            assert account.held(DATASET) == FREE
