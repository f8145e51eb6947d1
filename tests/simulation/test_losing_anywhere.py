"""`lose` against every state of a study: what it does is what the table of docs/protocol.md says, and nothing else.

The store, the curator's handler and the verb are the real ones. The session is played here, step by step, with answers
that nobody decrypts; what must follow is kept beside it, in the plainest words.
"""

import asyncio
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from synod.common.crypto.canonical import canonical_bytes
from synod.common.protocol.notices import DeclineReason
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.base import Query, SharedQuery
from synod.common.protocol.transcript import Enrolment
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.study import Study
from synod.curator import party_store
from synod.curator.context import Context
from synod.curator.methods.base import publish
from synod.curator.party_handler import MoveKind, PartyHandler
from synod.curator.records import State
from synod.curator.roster.losses import awaited_answers, list_losses, lose_party, present_places
from synod.deploy.simulate import InProcessParties
from tests.support.curators import declined, make_context, make_submission
from tests.support.keys import identity_of, seeded
from tests.support.parties import make_transcript, parties_in_memory, seal
from tests.support.simulated_processes import open_unsynced
from tests.support.studies import binary, categorical, draw_columns, make_study

NAMES = ("north", "harbour", "valley", "hill")
SCHEMA = [binary("a"), binary("b"), categorical("c", 3), binary("d")]
SKIPPED, STUCK, NEXT, AGAIN = "its own step is skipped", "cannot be closed without it", "the next sum", "nothing has"


@cache
def study_of(may_lose: int) -> Study:
    return make_study(
        names=NAMES, rows=(30, 40, 50, 60), schema=SCHEMA, may_lose=may_lose, method={"name": "dp-subn"}, epsilon="50"
    )


class Asked(InProcessParties):
    """Notes what is asked."""

    queries: dict[str, Query[Any]]

    async def ask(self, label: str, query: Query[Any]) -> Any:
        """The answer."""
        self.queries[label] = query
        return await super().ask(label, query)


@cache
def queries_of(may_lose: int) -> dict[str, Query[Any]]:
    """The question of each step, of a run in which nobody is lost."""
    study = study_of(may_lose)
    tables = [draw_columns(study, name) for name in NAMES]
    parties = Asked(study, tables, seeded(1), np.random.default_rng(1))
    object.__setattr__(parties, "queries", {})
    asyncio.run(publish(study, parties, seed=1))
    return parties.queries


@cache
def enrolments_of(may_lose: int) -> tuple[list[Enrolment], bytes]:
    """Everybody's keys, and the transcript of them."""
    study = study_of(may_lose)
    members = parties_in_memory(study, [draw_columns(study, name) for name in NAMES])
    return [member.enrolment() for member in members], seal(make_transcript(study, members))


class Life:
    """A study's life at the curator, and what is to be true of it."""

    def __init__(self, context: Context, may_lose: int) -> None:
        self.context, self.store, self.handler = context, context.store, PartyHandler(context)
        self.study, self.queries = study_of(may_lose), queries_of(may_lose)
        self.plan = plan_study(self.study)
        self.steps = [step.label for step in self.plan.steps]
        self.keyed = False
        self.ended: State | None = None
        self.lost: list[str] = []
        self.asked: dict[str, tuple[str, ...]] = {}
        self.answered: dict[str, set[str]] = {}
        self.closed: set[str] = set()
        self.skipped: set[str] = set()
        self.bodies: dict[str, bytes] = {}
        self.effects: set[str] = set()
        self.store.add_study(self.study, now=5)

    # What the session and the parties do

    def go_on(self) -> None:
        """The session's next step, if it waits for nobody."""
        study_hash = self.study.digest()
        if self.ended:
            return
        if not self.keyed:
            enrolments, envelope = enrolments_of(self.study.may_lose)
            for enrolment in enrolments:
                self.store.add_enrolment(study_hash, enrolment)
            self.store.fix_transcript(study_hash, envelope)
            self.keyed = True
        elif label := self.open_label():
            if self.answered[label] == set(self.asked[label]):
                self.store.close_query(study_hash, label, b"")
                self.closed.add(label)
        elif coming := [one for one in self.steps if one not in self.closed | self.skipped]:
            self.open(coming[0])
        else:
            self.end(State.PUBLISHED)

    def open(self, label: str) -> None:
        step, query = self.plan.step(label), self.queries[label]
        if step.kind.is_local and step.answerers[0] in self.lost:
            self.store.skip_step(self.study.digest(), label)
            self.skipped.add(label)
            return
        self.asked[label] = step.answerers if step.kind.is_local else tuple(n for n in NAMES if n not in self.lost)
        lost = None
        if isinstance(query, SharedQuery):
            query = query.asked_of(present_places(self.study, self.store.losses(self.study.digest())), self.study)
            lost = len(self.lost)
        self.bodies[label], self.answered[label] = canonical_bytes(query.to_json()), set()
        self.store.open_query(self.study.digest(), label, self.bodies[label], signature=b"s", now=6, lost=lost)

    def open_label(self) -> str:
        return next((label for label in self.asked if label not in self.closed | self.skipped), "")

    def awaited(self) -> list[str]:
        label = self.open_label()
        return [name for name in self.asked[label] if name not in self.answered[label]] if label else []

    def answer(self, name: str) -> None:
        if not self.ended and name in self.awaited():
            label = self.open_label()
            self.store.add_submission(name, make_submission(self.study, label=label), b"answer")
            self.answered[label].add(name)

    def end(self, outcome: State) -> None:
        if not self.ended:
            self.store.end_study(self.study.digest(), outcome)
            self.ended = outcome

    # Losses

    def expected(self, name: str) -> tuple[Code | None, str]:
        """What the table says of a loss now."""
        label = self.open_label()
        if self.ended:
            return Code.NOT_READY, "has ended"
        if name in self.lost:
            return None, AGAIN
        if not self.keyed:
            return Code.NOT_READY, "still enrolling"
        if len(self.lost) == self.study.may_lose:
            return Code.REFUSED, "and no more"
        if name not in self.awaited():
            return None, NEXT
        return None, SKIPPED if self.plan.step(label).kind.is_local else STUCK

    def lose(self, name: str) -> None:
        code, words = self.expected(name)
        record = self.store.study(self.study.digest())
        if code is None:
            assert words in lose_party(self.context, record, name, "gone")
            self.note(name, words)
        else:
            with pytest.raises(SynodError, match=words) as caught:
                lose_party(self.context, record, name, "gone")
            assert caught.value.code is code
        self.effects.add(words)

    def note(self, name: str, words: str) -> None:
        if words == SKIPPED:
            label = self.open_label()
            self.skipped.add(label)
            del self.asked[label], self.answered[label], self.bodies[label]
        if words != AGAIN:
            self.lost.append(name)

    def decline(self, name: str, reason: DeclineReason) -> None:
        """A party that revokes is lost where it may be, unless an open sum waits for it; else a no ends the study."""
        code, words = self.expected(name)
        self.handler.decline(declined(name, self.study, reason), reason)
        if self.ended or name in self.lost:
            return
        if reason is DeclineReason.REVOKED and self.study.may_lose and code is None and words != STUCK:
            self.note(name, words)
        else:
            self.ended = State.ABORTED

    # What is to be true

    def check(self) -> None:
        study_hash = self.study.digest()
        record = self.store.study(study_hash)
        assert record.outcome is self.ended
        assert {loss.party for loss in self.store.losses(study_hash)} == set(self.lost)
        assert len(self.lost) <= self.study.may_lose
        assert self.store.skipped(study_hash) == self.skipped
        for label in self.steps:
            assert self.store.is_logged(study_hash, label) == (label in self.bodies)
            if label in self.bodies:
                assert self.store.query(study_hash, label) == self.bodies[label]
                present = json.loads(self.bodies[label]).get("present", range(len(NAMES)))
                if not self.plan.step(label).kind.is_local:
                    assert tuple(NAMES[place] for place in present) == self.asked[label]
        query = self.store.unanswered(study_hash)
        assert (query.label if query else "") == self.open_label()
        assert list(awaited_answers(self.store, record, query) if query else ()) == self.awaited()
        for loss, since in list_losses(self.store, self.study):
            without = (step.label for step in self.plan.steps_of(loss.party) if self.is_without(loss.party, step.label))
            assert since == next(without, "")
        if self.keyed:
            assert {name: self.told(name) for name in NAMES} == {name: self.due(name) for name in NAMES}

    def is_without(self, name: str, label: str) -> bool:
        return label in self.skipped or (label in self.asked and name not in self.asked[label])

    def told(self, name: str) -> list[MoveKind]:
        return [move.kind for move in self.handler.moves(name, identity_of(name).fingerprint, set())]

    def due(self, name: str) -> list[MoveKind]:
        if self.ended is State.ABORTED:
            return [MoveKind.CLOSE_ABORTED]
        if not self.ended and name in self.awaited():
            return [MoveKind.ANSWER]
        if name in self.lost:
            return [MoveKind.CLOSE_LOST]
        return [MoveKind.CLOSE_PUBLISHED] if self.ended else []


Operation = tuple[str, str]
PLAYED: dict[str, Callable[[Life, str], None]] = {
    "go on": lambda life, _: life.go_on(),
    "answer": Life.answer,
    "lose": Life.lose,
    "revoke": lambda life, name: life.decline(name, DeclineReason.REVOKED),
    "fail": lambda life, name: life.decline(name, DeclineReason.CHECK_FAILED),
    "abort": lambda life, _: life.end(State.ABORTED),
}


@contextmanager
def new_life(may_lose: int) -> Iterator[Life]:
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(party_store, "open_database", open_unsynced):
        context = make_context(Path(folder))
        try:
            yield Life(context, may_lose)
        finally:
            context.store.close()


def play(life: Life, *operations: Operation) -> None:
    for what, name in operations:
        PLAYED[what](life, name)
        life.check()


def whole_life(may_lose: int) -> list[Operation]:
    """A run in which nobody is lost, one operation for each change that there is."""
    operations: list[Operation] = [("go on", "")]
    for step in plan_study(study_of(may_lose)).steps:
        operations += [("go on", ""), *(("answer", name) for name in step.answerers), ("go on", "")]
    return [*operations, ("go on", "")]


def lose_at(may_lose: int, places: Iterable[int]) -> set[str]:
    """Each party in some states, and then the next one; late answers, a late decline and the rest of the life follow.
    Returns what came of the losses.
    """
    life_long, effects = whole_life(may_lose), set[str]()
    for place, index in product(places, range(len(NAMES))):
        name, *others = (NAMES[(index + more) % len(NAMES)] for more in (0, 1, 2))
        with new_life(may_lose) as life:
            for what, who in life_long[:place]:
                PLAYED[what](life, who)
            play(life, *(("lose", one) for one in (name, name, *others)))
            if name in life.lost:
                play(life, ("fail", name))
            for what, who in (*life_long[place:], *[("go on", "")] * 3):
                PLAYED[what](life, who)
            life.check()
            effects |= life.effects
    return effects


REFUSED = {"has ended", "still enrolling", "and no more"}
NOTED = {SKIPPED, STUCK, NEXT, AGAIN}


def test_a_loss_does_what_the_table_says() -> None:
    """While parties enrol; before the first sum, in it, after it; in the own step of a party; at the end."""
    assert lose_at(1, (0, 1, 2, 4, 7, 8, len(whole_life(1)))) == REFUSED | NOTED


@pytest.mark.slow
@pytest.mark.parametrize("may_lose", [0, 1, 2])
def test_a_loss_at_every_moment_of_a_life_does_what_the_table_says(may_lose: int) -> None:
    effects = lose_at(may_lose, range(len(whole_life(may_lose)) + 1))
    assert effects == REFUSED | (NOTED if may_lose else set())


operations = st.one_of(
    st.tuples(st.just("go on"), st.just("")),
    st.tuples(st.just("answer"), st.sampled_from(NAMES)),
    st.tuples(st.sampled_from(["lose", "lose", "lose", "revoke", "fail"]), st.sampled_from(NAMES)),
)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(may_lose=st.integers(0, 2), start=st.integers(0, 40), happenings=st.lists(operations, max_size=30))
def test_any_order_of_answers_losses_and_declines(may_lose: int, start: int, happenings: list[Operation]) -> None:
    with new_life(may_lose) as life:
        for what, who in whole_life(may_lose)[:start]:
            PLAYED[what](life, who)
        play(life, *happenings)
