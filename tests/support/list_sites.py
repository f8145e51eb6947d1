"""Where lists of operations start from: a study, its parties, and how far it has come; made once and copied."""

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from synod.common.crypto import fixedbase, paillier
from synod.common.privacy import bounds, laws
from synod.common.protocol import transcript
from synod.common.study.study import Study
from synod.curator import party_handler, session
from synod.party import ledger as ledger_module
from synod.party import rounds
from synod.party.account import Account
from synod.party.ledger import Ledger
from tests.support.keys import seed_bytes
from tests.support.simulation import SimulatedSite, make_site, run_world
from tests.support.studies import LINEAR, binary

MOST_KEPT = 1000
METHODS: dict[str, dict[str, Any]] = {
    "histogram": {"name": "histogram"},
    "hpdp-dp": LINEAR,
    "adaptive": {"name": "adaptive", "rounds": 3},
    "dp-subn": {"name": "dp-subn"},
}
SCHEMA = (binary("a"), binary("b"))
POLICY = {"allow_local_queries": True}


class Moment(Enum):
    """When a list sets in."""

    START = "nothing has happened"
    ENROLLED = "all but the last have enrolled"
    ASKED = "the first round is open"
    ANSWERED = "all but two have answered the first round"


@dataclass(frozen=True)
class Setting:
    """A study: how many parties, how many it may lose, its method; and when a list sets in."""

    parties: int
    may_lose: int
    method: str
    moment: Moment = Moment.ENROLLED

    @property
    def last(self) -> int:
        """The party that is the last to enrol."""
        return self.parties - 1

    @property
    def talks(self) -> list[int]:
        """Who talks, in this order, until the moment."""
        everybody = list(range(self.parties))
        match self.moment:
            case Moment.START:
                return []
            case Moment.ENROLLED:
                return everybody[:-1]
            case Moment.ASKED:
                return everybody
            case Moment.ANSWERED:
                return everybody + everybody[:-2]


class Sites:
    """The sites that lists start from, each made once; use it in a `with`."""

    def __enter__(self) -> "Sites":
        self._stack = ExitStack()
        self._stack.enter_context(computed_once())
        self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        self._made: dict[Setting, SimulatedSite] = {}
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def get(self, setting: Setting) -> SimulatedSite:
        """The site of a setting."""
        if setting not in self._made:
            folder = self._folder / str(len(self._made))
            with drawn_from(repr(setting)):
                self._made[setting] = _make_site(setting, folder)
        return self._made[setting]


def _make_site(setting: Setting, folder: Path) -> SimulatedSite:
    site = make_site(
        folder / "empty",
        setting.parties,
        method=METHODS[setting.method],
        schema=SCHEMA,
        may_lose=setting.may_lose,
        epsilon="1",
    )
    for index in range(setting.parties):
        write_table(folder / "empty", site, index)
    with run_world(site, salted=True, policy=POLICY) as world:
        for index in setting.talks:
            world.converse(index)
        for index in range(setting.parties):
            world.stop_party(index)
        world.restart_curator()
        shutil.copytree(world.folder, folder / "begun")
    return SimulatedSite(folder / "begun", site.study)


def write_table(folder: Path, site: SimulatedSite, index: int) -> None:
    """The rows of a party."""
    entry = site.study.roster[index]
    rows = [f"{('no', 'yes')[row % 2]},{('no', 'yes')[(row // 2 + index) % 2]}" for row in range(entry.rows)]
    (folder / entry.name / "table.csv").write_text("\n".join(["a,b", *rows]) + "\n")


@contextmanager
def drawn_from(seed: str) -> Iterator[None]:
    """Ledgers draw their secrets and salts from a seed, each time others, so that a list runs the same way again."""
    drawn = iter(range(1 << 30))

    def draw(size: int) -> bytes:
        return seed_bytes("drawn", seed, next(drawn))[:size]

    source = SimpleNamespace(token_bytes=draw, token_hex=lambda size: draw(size).hex())
    with mock.patch.object(ledger_module, "secrets", source):
        yield


@contextmanager
def computed_once() -> Iterator[None]:
    """What is a function of its arguments alone, and the same in thousands of lists, is computed once; work that a
    session puts on a thread is done where it is asked for.
    """

    async def at_once(work: Callable[..., Any], *arguments: Any) -> Any:
        return work(*arguments)

    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(paillier, "PowerTable", lru_cache(maxsize=8)(fixedbase.PowerTable)))
        stack.enter_context(mock.patch.object(laws, "noise_bound", lru_cache(maxsize=256)(bounds.noise_bound)))
        check_key = lru_cache(maxsize=8)(paillier.check_public_key)
        stack.enter_context(mock.patch.object(rounds, "check_public_key", check_key))
        read_transcript = lru_cache(maxsize=64)(transcript.read_transcript)
        for module in (rounds, session, party_handler):
            stack.enter_context(mock.patch.object(module, "read_transcript", read_transcript))
        stack.enter_context(mock.patch.object(Study, "digest", _digest_once()))
        stack.enter_context(mock.patch.object(Ledger, "account", _account_once()))
        stack.enter_context(mock.patch.object(asyncio, "to_thread", at_once))
        yield


def _digest_once() -> Callable[[Study], bytes]:
    """A study in memory never changes, and neither does its hash."""
    honest, kept = Study.digest, dict[int, tuple[Study, bytes]]()

    def digest(study: Study) -> bytes:
        if id(study) not in kept:
            if len(kept) > MOST_KEPT:
                kept.clear()
            kept[id(study)] = study, honest(study)
        return kept[id(study)][1]

    return digest


def _account_once() -> Callable[[Ledger], Account]:
    """The hash at the end of the chain is of all entries, and they are what an account follows from."""
    honest, kept = Ledger.account, dict[bytes, Account]()

    def account(ledger: Ledger) -> Account:
        head = ledger.head().hash
        if head not in kept:
            if len(kept) > MOST_KEPT:
                kept.clear()
            kept[head] = honest(ledger)
        return kept[head]

    return account
