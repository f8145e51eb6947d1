"""Random lists of operations on a study that may lose parties: drawn from a fixed seed, run, judged and made smaller.

A list is a function of its setting and number. Some kinds of lists begin with a script that fixes how they end, so that
every ending is reached as often as was planned, whatever is drawn after it.
"""

import random
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

from synod.curator.release import files
from tests.support.list_rules import (
    OTHERWISE_WRONG,
    PUBLISHED,
    PUBLISHED_WITHOUT,
    STUCK_ENROLLING,
    STUCK_SUM,
    STUCK_TOO_MANY,
    Broken,
    require,
)
from tests.support.list_sites import POLICY, Moment, Setting, Sites, drawn_from
from tests.support.losing_operations import (
    AnyOperation,
    BackUp,
    CopyParty,
    Lose,
    Operations,
    RestoreOld,
    TalkAsCopy,
    Vanish,
    Wait,
)
from tests.support.operations import (
    DeliverLate,
    KillCurator,
    KillParty,
    Replay,
    RestartCurator,
    RestartParty,
    Talk,
)
from tests.support.simulated_lines import FAULTS
from tests.support.simulated_processes import KILLS
from tests.support.troubled_world import TroubledWorld

LONGEST = 14
CALLS = 6
MOST_TRIES = 400
VERIFIED = 25
"""Of so many lists that are published, one release is verified in full."""


@dataclass(frozen=True)
class Listed:
    """A list of operations, and how it must end, if that is known before."""

    setting: Setting
    operations: tuple[AnyOperation, ...]
    ending: str = ""


KINDS = ("start", "lost", "sum", "many", "all", "copied", "back", "any", "any", "any")
"""Of ten lists one starts with nothing; three begin with a script in which parties are gone, and two with one in which
an answer is lost and a copy, or an old state, of its party is asked again; in one nobody is gone.
"""
SUBMITTING = (4, 5, 6)
"""The calls of a conversation around the one that hands an answer in."""


def draw_list(setting: Setting, number: int) -> Listed:
    """The list of a setting that has this number; always the same."""
    rng = random.Random(f"{setting} {number}")
    kind = KINDS[number % len(KINDS)]
    if kind == "many" and number % 20 > 10:
        kind = "early"
    match kind:
        case "start":
            begun = replace(setting, moment=Moment.START)
            return Listed(begun, tuple(draw_operations(rng, setting, harmless=False)))
        case "all" | "any":
            begun = replace(setting, moment=rng.choice((Moment.ENROLLED, Moment.ASKED, Moment.ANSWERED)))
            operations = tuple(draw_operations(rng, setting, harmless=kind == "all"))
            return Listed(begun, operations, PUBLISHED if kind == "all" else "")
    if kind in ("copied", "back"):
        setting = replace(setting, moment=Moment.ASKED)
    script, ending = SCRIPTS[kind](rng, setting)
    return Listed(setting, (*script, *draw_operations(rng, setting, harmless=True)), ending)


def _lose_one(rng: random.Random, setting: Setting) -> tuple[list[AnyOperation], str]:
    """A party is gone before the first sum or, where there is one after that which it would be in, between the two, and
    declared lost.
    """
    party = rng.randrange(setting.last)
    if setting.method in ("histogram", "dp-subn") or rng.random() < 0.5:
        return [Vanish(party), Wait(), Talk(setting.last), Lose(party)], PUBLISHED_WITHOUT
    others = _others(setting, party)
    opens: list[AnyOperation] = [Talk(setting.last), Talk(party), *map(Talk, others)]
    return [*opens, Talk(party), Vanish(party), Wait(), *map(Talk, others), Lose(party)], PUBLISHED_WITHOUT


def _others(setting: Setting, party: int) -> list[int]:
    return [index for index in range(setting.parties) if index != party]


def _stop_a_sum(rng: random.Random, setting: Setting) -> tuple[list[AnyOperation], str]:
    """A party is gone when a sum is open with it, and has not answered."""
    party = rng.randrange(setting.last)
    return [Talk(setting.last), Talk(party), *map(Talk, _others(setting, party)), Vanish(party)], STUCK_SUM


def _lose_many(rng: random.Random, setting: Setting) -> tuple[list[AnyOperation], str]:
    """More parties are gone than the study may lose."""
    return [*map(Vanish, rng.sample(range(setting.last), setting.may_lose + 1)), Wait()], STUCK_TOO_MANY


def _lose_early(rng: random.Random, setting: Setting) -> tuple[list[AnyOperation], str]:
    """A party is gone before it has enrolled."""
    return [Vanish(setting.last)], STUCK_ENROLLING


def _ask_a_copy(rng: random.Random, setting: Setting) -> tuple[list[AnyOperation], str]:
    """A party's answer, or what comes before or after it, is lost, and a copy of the party from before is asked."""
    party = rng.randrange(setting.parties)
    lost = Talk(party, rng.choice(FAULTS), rng.choice(SUBMITTING))
    return [CopyParty(party), lost, TalkAsCopy(party), Talk(party)], PUBLISHED


def _ask_from_a_backup(rng: random.Random, setting: Setting) -> tuple[list[AnyOperation], str]:
    """The same with the party's own state from before, which may be refused afterwards."""
    party = rng.randrange(setting.parties)
    lost = Talk(party, rng.choice(FAULTS), rng.choice(SUBMITTING))
    return [BackUp(party), lost, RestoreOld(party, 0), Talk(party)], ""


SCRIPTS = {
    "lost": _lose_one,
    "sum": _stop_a_sum,
    "many": _lose_many,
    "early": _lose_early,
    "copied": _ask_a_copy,
    "back": _ask_from_a_backup,
}


def draw_operations(rng: random.Random, setting: Setting, *, harmless: bool) -> Iterator[AnyOperation]:
    """Operations at random; harmless ones cannot keep a study from being published."""
    for _ in range(rng.randrange(LONGEST)):
        yield _draw_operation(rng, rng.randrange(setting.parties), harmless=harmless)


def _draw_operation(rng: random.Random, party: int, *, harmless: bool) -> AnyOperation:
    fault, call = rng.choice(FAULTS), rng.randrange(CALLS)
    usual: list[tuple[int, AnyOperation]] = [
        (6, Talk(party)),
        (5, Talk(party, fault, call)),
        (2, KillParty(party, rng.choice(KILLS), rng.randrange(2))),
        (1, RestartParty(party)),
        (2, KillCurator(rng.choice(KILLS), rng.randrange(6))),
        (1, RestartCurator()),
        (2, DeliverLate(rng.randrange(9))),
        (2, Replay(rng.randrange(99))),
        (1, CopyParty(party)),
        (3, TalkAsCopy(party, *((fault, call) if rng.random() < 0.3 else ()))),
        (1, BackUp(party)),
    ]
    harmful: list[tuple[int, AnyOperation]] = [
        (1, RestoreOld(party, rng.randrange(3))),
        (1, Vanish(party)),
        (1, Lose(party)),
        (1, Wait()),
    ]
    drawn = usual if harmless else usual + harmful
    return rng.choices([operation for _, operation in drawn], [weight for weight, _ in drawn])[0]


def run_list(sites: Sites, listed: Listed, *, verifies: bool = True) -> str:
    """Runs a list and says how it ended; raises `Broken` if a rule does not hold."""
    site = sites.get(listed.setting)
    with tempfile.TemporaryDirectory() as folder, drawn_from(repr(listed)), ExitStack() as stack:
        if not verifies:  # the report is a function of the release, and most of the work that a release is
            stack.enter_context(mock.patch.object(files, "write_report", return_value=""))
        try:
            with TroubledWorld(site, Path(folder), salted=True, policy=POLICY) as world:
                for operation in listed.operations:
                    operation.happen(world)
                try:
                    ending = world.end()
                except Broken:
                    world.check_answers()  # what was spent twice is told before what did not end well
                    raise
                world.check(verifies=verifies)
        except Broken:
            raise
        except Exception as error:
            raise Broken(OTHERWISE_WRONG, repr(error)) from error
    require(listed.ending in ("", ending), OTHERWISE_WRONG, f"it was {ending}, and not {listed.ending}")
    return ending


def shrink(sites: Sites, listed: Listed, rule: str) -> Listed:
    """The same list with as many operations taken out as still break the rule; tries a bounded number of lists."""

    def still_breaks(operations: Operations) -> bool:
        try:
            run_list(sites, Listed(listed.setting, tuple(operations)))
        except Broken as broken:
            return broken.rule == rule
        return False

    operations, tries = list(listed.operations), 0
    size = max(1, len(operations) // 2)
    while size and tries < MOST_TRIES:
        start = 0
        while start < len(operations) and tries < MOST_TRIES:
            fewer = operations[:start] + operations[start + size :]
            tries += 1
            if still_breaks(fewer):
                operations = fewer
            else:
                start += size
        size //= 2
    return Listed(listed.setting, tuple(operations))


def write_case(listed: Listed, rule: str) -> str:
    """A list as a named case, to be put into `CASES`."""
    lines = [f"    {rule!r}: Listed(", f"        {listed.setting!r},", "        ("]
    lines += [f"            {operation!r}," for operation in listed.operations]
    return "\n".join([*lines, "        ),", "    ),"])
