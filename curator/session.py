"""A session drives one study: enrolment, transcript, recipe, release. It survives restarts.

Each step is stored before it is acted on. To resume, the recipe runs again from the top: answered queries return
from the log, the first unanswered one goes out.
"""

import asyncio
import json
import logging
import secrets
from collections.abc import Callable
from typing import TypeVar

from synod.common.crypto.canonical import Json, canonical_bytes
from synod.common.crypto.paillier import SecretKey
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.base import Query, SharedQuery, SumQuery, check_within
from synod.common.protocol.queries.parsing import answerers_of, query_digest
from synod.common.protocol.signed_query import sign_query
from synod.common.protocol.steps import Plan, Step
from synod.common.protocol.transcript import Transcript, read_transcript, seal_transcript
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.study import Study
from synod.curator.combine import combine
from synod.curator.context import Context, Gathering
from synod.curator.methods.base import publish
from synod.curator.records import State
from synod.curator.release.files import VERSIONS_NOTE, write_release
from synod.curator.release.versions import current_versions, use_one_thread
from synod.curator.roster.losses import absent_parties, present_places

log = logging.getLogger("synod.curator")

RETRY_SECONDS = 10.0
RECHECK_SECONDS = 1.0  # while a party is not here; it may come, or be declared lost
T = TypeVar("T")
AnswerT = TypeVar("AnswerT")


class Session:
    """One study's run. Implements `Parties` for its recipe."""

    def __init__(self, context: Context, study: Study, key: SecretKey) -> None:
        self._context = context
        self._store = context.store
        self.study = study
        self.study_hash = study.digest()
        self._plan: Plan = plan_study(study)
        self._key = key

    async def run(self) -> None:
        """Runs the study to its end; trouble with the disk is waited out, a failed check ends the study."""
        while True:
            self._context.waiting.pop(self.study_hash, None)
            try:
                await self._run_once()
            except SynodError as error:
                log.warning("study stopped", extra={"study": self.study.name, "why": str(error)})
                if error.code is Code.STORAGE:
                    self._context.waiting[self.study_hash] = str(error)
                    await asyncio.sleep(RETRY_SECONDS)
                    continue
                self._end(State.ABORTED, str(error))
            return

    async def _run_once(self) -> None:
        use_one_thread()
        await self.remember(VERSIONS_NOTE, current_versions)
        await self._fix_transcript()
        seed = await self._seed()
        publication = await publish(self.study, self, seed=seed)
        self._require_open()
        await asyncio.to_thread(write_release, self._context, self.study, publication, seed)
        self._end(State.PUBLISHED)
        self._require(State.PUBLISHED)
        log.info("published", extra={"study": self.study.name})

    async def _wait(self) -> None:
        """Waits for a change; a study that a party or the operator ended meanwhile goes no further."""
        await self._context.changes.wait(self.study_hash)
        self._require_open()

    def _require_open(self) -> None:
        self._require(None)

    def _require(self, expected: State | None) -> None:
        outcome = self._store.study(self.study_hash).outcome
        if outcome is not expected:
            assert outcome is not None, "an end is stored before it is required"
            raise SynodError(Code.ABORTED, f"{self.study.name} has ended ({outcome.value}).")

    def _end(self, outcome: State, reason: str = "") -> None:
        self._context.end_study(self.study, outcome, reason)
        self._context.changes.announce(*(entry.name for entry in self.study.roster))

    async def _seed(self) -> int:
        def draw() -> Json:
            return self.study.seed if self.study.seed is not None else secrets.randbelow(2**53)

        seed = await self.remember("seed", draw)
        assert isinstance(seed, int)
        return seed

    async def _fix_transcript(self) -> None:
        """Waits until all have enrolled, then fixes and signs the transcript, once."""
        names = [entry.name for entry in self.study.roster]
        while self._store.enrolled(self.study_hash) != set(names):
            await self._wait()
        if self._store.transcript(self.study_hash) is None:
            enrolments, identity = self._store.enrolments(self.study_hash), self._context.identity
            parties = tuple(enrolments[name] for name in names)
            transcript = Transcript(self.study_hash, self._key.public, identity.public_key, parties)
            self._store.fix_transcript(self.study_hash, seal_transcript(transcript, identity))
            log.info("keyed", extra={"study": self.study.name, "parties": len(names)})
        self._transcript()

    def _transcript(self) -> Transcript:
        """The transcript, if it names this curator: with another identity it can neither ask nor seal the release."""
        envelope = self._store.transcript(self.study_hash)
        assert envelope is not None, "a recipe runs when the transcript is fixed"
        transcript = read_transcript(envelope)
        if transcript.curator != self._context.identity.public_key:
            raise SynodError(
                Code.STORAGE,
                f"the parties of {self.study.name} have agreed on another identity of this curator.",
                "Restore the `identity.pem` that the study was started with, and restart the curator.",
            )
        return transcript

    async def ask(self, label: str, query: Query[AnswerT]) -> AnswerT:
        """Implements `Parties.ask`: logs the query with those who are present, waits for every answer, combines them,
        and logs the result.
        """
        step = self._plan.step(label)
        assert not step.kind.is_local, "what is asked of one party may be skipped"
        asked = await self._of_those_present(step, query)
        answer = await self._ask(step, asked)
        assert answer is not None, "only one party's own step is skipped"
        return asked.estimate(answer, self.study) if isinstance(asked, SumQuery) else answer

    async def ask_one(self, label: str, query: Query[AnswerT]) -> AnswerT | None:
        """Implements `Parties.ask_one`: None if the party is lost; that it was so is in the log."""
        step = self._plan.step(label)
        assert step.kind.is_local, "a step of one party"
        return await self._ask(step, query)

    def present(self, label: str) -> tuple[int, ...]:
        """Implements `Parties.present`, from the log."""
        return tuple(json.loads(self._store.query(self.study_hash, label)).get("present", ()))

    async def _of_those_present(self, step: Step, query: Query[AnswerT]) -> Query[AnswerT]:
        """The query with those who take part: as in the log, or all who are not lost, once all of them are here."""
        assert isinstance(query, SharedQuery)
        if self._store.is_logged(self.study_hash, step.label):
            return query.asked_of(self.present(step.label), self.study)
        await self._wait_until_here()
        return query.asked_of(present_places(self.study, self._store.losses(self.study_hash)), self.study)

    async def _wait_until_here(self) -> None:
        """Waits for all who are not lost: nobody is charged for a round that a dead party would block."""
        since = int(self._context.clock())
        try:
            while absent := absent_parties(self._context, self._store.study(self.study_hash)):
                self._context.gathering[self.study_hash] = Gathering(tuple(absent), since)
                await self._context.changes.wait(self.study_hash, RECHECK_SECONDS)
                self._require_open()
        finally:
            self._context.gathering.pop(self.study_hash, None)

    async def _ask(self, step: Step, query: Query[AnswerT]) -> AnswerT | None:
        """The answer to a query, from the log or from the parties; None if its step is skipped.

        Between the look at who is lost and the query in the log nothing is awaited, and the store checks it again.
        """
        query.check(self.study)
        check_within(query, step, self.study)
        if self._is_skipped(step):
            return None
        body, signature = canonical_bytes(query.to_json()), self._sign(step, query)
        lost = len(self.study.roster) - len(query.places(self.study)) if isinstance(query, SharedQuery) else None
        logged = self._store.open_query(
            self.study_hash, step.label, body, signature=signature, now=int(self._context.clock()), lost=lost
        )
        if logged is None:
            logged = await self._gather(step, query)
        return None if logged is None else query.read_answer(logged, self.study)

    def _is_skipped(self, step: Step) -> bool:
        """Whether a step is of a party that is lost and has not answered it; that it is so is stored for good."""
        if not step.kind.is_local or self._store.is_logged(self.study_hash, step.label):
            return False
        if step.label in self._store.skipped(self.study_hash):
            return True
        lost = {loss.party for loss in self._store.losses(self.study_hash)}
        if lost.isdisjoint(step.answerers):
            return False
        self._store.skip_step(self.study_hash, step.label)
        return True

    def _sign(self, step: Step, query: Query[AnswerT]) -> bytes:
        """This curator's signature on (T, label, Q)."""
        transcript = self._transcript().digest(self.study)
        return sign_query(self._context.identity, transcript, step.label, query_digest(query, step, self.study))

    async def _gather(self, step: Step, query: Query[AnswerT]) -> bytes | None:
        """The answer of all who take part; None if the one who was asked is lost before it has answered."""
        answerers = answerers_of(query, step, self.study)
        self._context.changes.announce(*answerers)
        log.info("round open", extra={"study": self.study.name, "round": step.label})
        while self._store.submitters(self.study_hash, step.label) != set(answerers):
            if self._is_skipped(step):
                log.info("round skipped", extra={"study": self.study.name, "round": step.label})
                return None
            await self._wait()
        self._require_open()
        answer = await asyncio.to_thread(self._combine, step, query)
        self._store.close_query(self.study_hash, step.label, answer)
        log.info("round closed", extra={"study": self.study.name, "round": step.label})
        return answer

    def _combine(self, step: Step, query: Query[AnswerT]) -> bytes:
        """The answer of the roster out of its parties' answers, as the log keeps it."""
        answerers = answerers_of(query, step, self.study)
        payloads = self._store.payloads(self.study_hash, step.label, answerers)
        workers = self._context.workers
        return query.write_answer(combine(query, step, self.study, payloads, key=self._key, workers=workers))

    async def compute(self, work: Callable[[], T]) -> T:
        """Implements `Parties.compute`, outside of the event loop, which other studies need."""
        return await asyncio.to_thread(work)

    async def remember(self, label: str, compute: Callable[[], Json]) -> Json:
        """Implements `Parties.remember`."""
        value = self._store.note(self.study_hash, label)
        if value is None:
            value = await self.compute(compute)
            self._store.add_note(self.study_hash, label, value)
        return value
