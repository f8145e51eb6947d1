"""10,000 random lists of operations on studies of 3 to 8 parties that may lose some of them: calls are lost, repeated,
delayed and replayed, processes killed and restarted, parties copied, set back, gone for good and declared lost.

No charge is made twice, no question is answered twice or under two transcripts, and no study ends that could go on. The
lists are functions of their numbers: each run has the same ones, and they end the same way.
"""

import inspect
import itertools
import logging
import os
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from typing import Any, cast
from unittest import mock

import pytest

from synod.common.crypto.paillier import SecretKey
from synod.common.privacy.coins import Coins
from synod.common.protocol.plan import plan_study
from synod.common.protocol.steps import Step
from synod.common.study.study import Study
from synod.curator import session as session_module
from synod.curator.context import Context
from synod.curator.records import StudyRecord
from synod.curator.roster.losses import HERE_SECONDS
from synod.curator.session import Session
from synod.curator.store import Store
from synod.party import daemon as daemon_module
from synod.party import rounds
from synod.party.account import Approval
from synod.party.answer import Round, Secrets
from synod.party.ledger import Ledger
from synod.party.rounds import Responder
from tests.support import simulated_processes
from tests.support.keys import paillier_key, seeded
from tests.support.list_rules import (
    ANSWERED_TWICE,
    CHARGED_TWICE,
    COULD_GO_ON,
    ENDINGS,
    PUBLISHED,
    PUBLISHED_WITHOUT,
    STUCK_ENROLLING,
    STUCK_SUM,
    STUCK_TOO_MANY,
    Broken,
)
from tests.support.list_sites import Setting, Sites
from tests.support.lists import KINDS, VERIFIED, Listed, draw_list, run_list, shrink, write_case
from tests.support.losing_operations import BackUp, CopyParty, Lose, RestoreOld, TalkAsCopy, Vanish, Wait
from tests.support.operations import DeliverLate, KillParty, RestartCurator, Talk

LISTS = 10_000
FIRST = 40
"""So many lists of each setting are run where `SYNOD_LISTS` is not `all`, which takes some fifteen minutes."""
BATCH = 250
SECONDS = 3600
SETTINGS: dict[Setting, int] = {
    Setting(3, 1, "histogram"): 5000,
    Setting(3, 1, "hpdp-dp"): 500,
    Setting(3, 1, "adaptive"): 200,
    Setting(3, 1, "dp-subn"): 200,
    Setting(4, 1, "histogram"): 1000,
    Setting(4, 2, "histogram"): 800,
    Setting(4, 2, "dp-subn"): 100,
    Setting(5, 2, "histogram"): 900,
    Setting(5, 1, "adaptive"): 100,
    Setting(6, 2, "histogram"): 500,
    Setting(7, 3, "histogram"): 300,
    Setting(8, 2, "histogram"): 400,
}
FEW = (Setting(3, 1, "histogram"), Setting(4, 2, "dp-subn"))


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """A disturbed daemon warns of what disturbs it, and here there are thousands."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="module")
def sites() -> Iterator[Sites]:
    with Sites() as made:
        yield made


def run_batch(setting: Setting, numbers: range) -> tuple[Counter[str], list[str]]:
    """How the lists of these numbers ended, and those that broke a rule, as small as they could be made."""
    logging.disable(logging.CRITICAL)
    endings: Counter[str] = Counter()
    cases = []
    with Sites() as made:
        for number in numbers:
            listed = draw_list(setting, number)
            try:
                endings[run_list(made, listed, verifies=number % VERIFIED == 0)] += 1
            except Broken as broken:
                endings[broken.rule] += 1
                cases.append(f"{broken}\n{write_case(shrink(made, listed, broken.rule), broken.rule)}")
    return endings, cases


def test_ten_thousand_lists_are_planned() -> None:
    assert sum(SETTINGS.values()) == LISTS
    assert {setting.parties for setting in SETTINGS} == set(range(3, 9))
    assert len(KINDS) == 10


def test_every_kind_of_operation_is_drawn() -> None:
    setting = Setting(3, 1, "histogram")
    drawn = {type(operation) for number in range(200) for operation in draw_list(setting, number).operations}
    assert drawn >= {
        Talk,
        KillParty,
        RestartCurator,
        DeliverLate,
        CopyParty,
        TalkAsCopy,
        BackUp,
        RestoreOld,
        Vanish,
        Lose,
    }


def test_a_script_fixes_how_a_list_ends() -> None:
    """So that endings are reached as often as was planned, and not by chance."""
    for setting in SETTINGS:
        planned = Counter(draw_list(setting, number).ending for number in range(40))
        assert planned == {
            "": 20,
            PUBLISHED: 8,
            PUBLISHED_WITHOUT: 4,
            STUCK_SUM: 4,
            STUCK_TOO_MANY: 2,
            STUCK_ENROLLING: 2,
        }


@pytest.mark.parametrize("setting", FEW, ids=lambda setting: f"{setting.parties} {setting.method}")
def test_a_few_lists(setting: Setting, sites: Sites) -> None:
    endings = Counter(run_list(sites, draw_list(setting, number)) for number in (1, 2, 3, 13, 4, 5, 6))
    assert set(endings) == set(ENDINGS)


def test_a_list_runs_the_same_way_again() -> None:
    listed = draw_list(Setting(3, 1, "histogram"), 8)
    assert listed == draw_list(Setting(3, 1, "histogram"), 8)
    assert listed != draw_list(Setting(3, 1, "histogram"), 18)


@pytest.mark.slow
@pytest.mark.timeout(SECONDS)
def test_ten_thousand_lists(capsys: pytest.CaptureFixture[str], record_property: Callable[[str, object], None]) -> None:
    endings: Counter[str] = Counter()
    cases: list[str] = []
    workers = min(2, os.cpu_count() or 1)
    planned = {
        setting: count if os.environ.get("SYNOD_LISTS") == "all" else min(count, FIRST)
        for setting, count in SETTINGS.items()
    }
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        jobs = [
            pool.submit(run_batch, setting, range(first, min(first + BATCH, count)))
            for setting, count in planned.items()
            for first in range(0, count, BATCH)
        ]
        for job in jobs:
            ended, broken = job.result()
            endings += ended
            cases += broken
    report = "\n".join(
        [f"{endings.total()} lists of operations", *(f"  {n:6} {how}" for how, n in endings.most_common())]
    )
    record_property("report", report)
    with capsys.disabled():
        sys.stdout.write(f"\n{report}\n")
    assert cases == [], "\n".join(cases)
    assert endings.total() == sum(planned.values())
    assert set(endings) == set(ENDINGS)


# Lists that once broke a rule, as `write_case` prints them

CASES: dict[str, Listed] = {}


@pytest.mark.parametrize("case", CASES)
def test_a_case(case: str, sites: Sites) -> None:
    run_list(sites, CASES[case])


# That each of the three is found out: the program is broken, and lists are run until one shows it

ENOUGH = 100
SMALL = 8


def drawn(method: str) -> Iterator[Listed]:
    return (draw_list(Setting(3, 1, method), number) for number in range(ENOUGH))


def edited(function: Callable[..., Any], *edits: tuple[str, str]) -> Callable[..., Any]:
    """The same function with other words in its source."""
    source = textwrap.dedent(inspect.getsource(function))
    for old, new in edits:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    made: dict[str, Any] = {}
    exec(source, function.__globals__, made)
    (changed,) = made.values()
    assert callable(changed)
    return cast("Callable[..., Any]", changed)


def charges_again() -> list[Any]:
    """A party does not look whether it has answered a question, and its ledger takes the charge a second time."""

    def any_step(responder: Responder, approval: Approval, study: Study, label: str) -> Step:
        return plan_study(study).step(label)

    charge = edited(
        Ledger.charge,
        ("INSERT INTO answers", "INSERT OR REPLACE INTO answers"),
        ('if not Cost.parse(str(charge["cost"])).fits_within(approval.held):', "if False:"),
    )
    return [
        mock.patch.object(
            daemon_module.Daemon, "_answer", edited(daemon_module.Daemon._answer, ("if stored is None:", "if True:"))
        ),
        mock.patch.object(rounds, "next_step", any_step),
        mock.patch.object(daemon_module, "next_step", any_step),
        mock.patch.object(Ledger, "charge", charge),
    ]


def agrees_again() -> list[Any]:
    """A curator that is restarted fixes the transcript anew, with another key, and parties do not compare."""
    starts = itertools.count()
    once = "if self._store.transcript(self.study_hash) is None:"
    check = edited(rounds.check_round, ("if any(charge.transcript", "if False and any(charge.transcript"))

    def another_key() -> SecretKey:
        return paillier_key(1 + next(starts) % 2)

    return [
        mock.patch.object(simulated_processes, "paillier_key", another_key),
        mock.patch.object(Session, "_fix_transcript", edited(Session._fix_transcript, (once, "if True:"))),
        mock.patch.object(Store, "fix_transcript", edited(Store.fix_transcript, ("OR IGNORE", "OR REPLACE"))),
        mock.patch.object(daemon_module, "check_round", check),
    ]


def draws_again() -> list[Any]:
    """The same question gets other noise whenever it is answered."""
    drawn = itertools.count()

    def fresh(asked: Round, purpose: str, secrets: Secrets) -> Coins:
        return seeded(next(drawn))

    return [mock.patch.object(Round, "coins", fresh)]


def waits_for_the_lost() -> list[Any]:
    """A sum opens when everybody is here, also those who are lost."""

    def absent(context: Context, record: StudyRecord) -> list[str]:
        names, study = record.study.party_names, record.study_hash
        return [name for name in names if not context.is_here(name, study, HERE_SECONDS)]

    return [mock.patch.object(session_module, "absent_parties", absent)]


BETWEEN_ROUNDS = Listed(
    Setting(3, 1, "hpdp-dp"),
    (
        *(Talk(2), Talk(0), Talk(1), Talk(2), Talk(0)),
        *(Vanish(0), Wait(), Talk(1), Talk(2)),
        *(RestartCurator(), Lose(0)),
    ),
)
"""The curator is restarted when the first round is closed and the second is not open: it waits for a party."""
BREAKS: dict[str, tuple[Callable[[], list[Any]], str, Iterator[Listed]]] = {
    "charges again": (charges_again, CHARGED_TWICE, drawn("histogram")),
    "draws again": (draws_again, ANSWERED_TWICE, drawn("histogram")),
    "agrees again": (agrees_again, ANSWERED_TWICE, iter([BETWEEN_ROUNDS])),
    "waits for the lost": (waits_for_the_lost, COULD_GO_ON, drawn("histogram")),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_program_is_found_out_and_the_list_made_small(name: str) -> None:
    breaks, rule, lists = BREAKS[name]
    with ExitStack() as stack:
        for change in breaks():
            stack.enter_context(change)
        made = stack.enter_context(Sites())
        shown = next(listed for listed in lists if breaks_rule(made, listed, rule))
        small = shrink(made, shown, rule)
    assert breaks_nothing(small), "the program as it is keeps the rule"
    assert 1 <= len(small.operations) <= len(shown.operations)
    assert len(small.operations) <= SMALL
    assert rule in write_case(small, rule)


def breaks_rule(made: Sites, listed: Listed, rule: str) -> bool:
    try:
        run_list(made, listed)
    except Broken as broken:
        return broken.rule == rule
    return False


def breaks_nothing(listed: Listed) -> bool:
    with Sites() as made:
        return run_list(made, listed) in ENDINGS
