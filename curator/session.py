"""A session drives one study: enrolment, transcript, recipe, release. It survives restarts.

Each step is stored before it is acted on. To resume, the recipe runs again from the top: answered queries return
from the log, the first unanswered one goes out.
"""

import asyncio
import json
import logging
import secrets
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from synod.common.crypto.canonical import Json, canonical_bytes
from synod.common.crypto.identity import Identity
from synod.common.crypto.packing import unpack
from synod.common.crypto.paillier import SecretKey, add_all, decrypt_all
from synod.common.models.gaussian import GaussianModel, concatenate_columns
from synod.common.protocol.answers import Choice, read_choices, read_counts, read_rows, write_counts
from synod.common.protocol.plan import Plan, Step, plan_study
from synod.common.protocol.queries import (
    ChooseParents,
    EncryptedSum,
    LocalMarginals,
    Query,
    SumMarginals,
    SumMoments,
    Synthesize,
    cells_of,
    moment_design,
    share_rows,
    sum_terms,
)
from synod.common.protocol.transcript import Transcript, parse_transcript
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.encoding import Codes, codings_of
from synod.common.study.study import Study
from synod.curator.checks import check_marginals, check_moments
from synod.curator.context import Context
from synod.curator.methods import RECIPES
from synod.curator.methods.base import Sets
from synod.curator.release.files import write_release
from synod.curator.store import State

log = logging.getLogger("synod.curator")

RETRY_SECONDS = 10.0
T = TypeVar("T")


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
            try:
                await self._run_once()
            except SynodError as error:
                log.warning("study stopped", extra={"study": self.study.name, "why": str(error)})
                if error.code is Code.STORAGE:
                    await asyncio.sleep(RETRY_SECONDS)
                    continue
                self._end(State.ABORTED, str(error))
            return

    async def _run_once(self) -> None:
        transcript = await self._transcript()
        seed = await self._seed()
        publication = await RECIPES[self.study.method.name](self.study, self, rng=np.random.default_rng(seed))
        self._require_open()
        await asyncio.to_thread(write_release, self._context, self.study, transcript, publication, seed)
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
        self._store.end_study(self.study_hash, outcome, reason)
        self._context.changes.announce(*(entry.name for entry in self.study.roster))

    async def _seed(self) -> int:
        def draw() -> Json:
            return self.study.seed if self.study.seed is not None else secrets.randbelow(2**53)

        seed = await self.remember("seed", draw)
        assert isinstance(seed, int)
        return seed

    async def _transcript(self) -> Transcript:
        """Waits until all have enrolled, then fixes and signs the transcript."""
        names = [entry.name for entry in self.study.roster]
        while self._store.enrolled(self.study_hash) != set(names):
            await self._wait()
        envelope = self._store.transcript(self.study_hash)
        if envelope is None:
            enrolments = self._store.enrolments(self.study_hash)
            public = self._key.public
            transcript = Transcript(self.study_hash, public.n, public.h_s, tuple(enrolments[name] for name in names))
            envelope = seal_transcript(transcript, self._context.identity)
            self._store.fix_transcript(self.study_hash, envelope)
            log.info("keyed", extra={"study": self.study.name, "parties": len(names)})
        return open_transcript(envelope)

    # The private queries

    async def sum_moments(self, label: str) -> NDArray[np.int64]:
        """Implements `Parties.sum_moments`."""
        return np.frombuffer(await self._ask(label, SumMoments()), dtype="<i8").astype(np.int64)

    async def sum_marginals(self, label: str, sets: Sets) -> list[NDArray[np.int64]]:
        """Implements `Parties.sum_marginals`."""
        return read_counts(await self._ask(label, SumMarginals(sets)), cells_of(sets, self.study))

    async def local_marginals(self, label: str, sets: Sets) -> list[NDArray[np.int64]]:
        """Implements `Parties.local_marginals`."""
        return read_counts(await self._ask(label, LocalMarginals(sets)), cells_of(sets, self.study))

    async def choose_parents(self, label: str, query: ChooseParents) -> list[Choice]:
        """Implements `Parties.choose_parents`."""
        return read_choices(await self._ask(label, query), query, self.study)

    async def synthesize(self, label: str, model: GaussianModel) -> list[Codes]:
        """Implements `Parties.synthesize`."""
        rows = share_rows(self.study)
        payload = await self._ask(label, Synthesize(model, rows))
        parts, start = [], 0
        row_bytes = sum(coding.dtype.itemsize for coding in codings_of(self.study))
        for count in rows:
            parts.append(read_rows(payload[start : start + count * row_bytes], codings_of(self.study), count))
            start += count * row_bytes
        return concatenate_columns(moment_design(self.study), parts)

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

    async def _ask(self, label: str, query: Query) -> bytes:
        """Logs the query, waits for every answer, combines them, and logs the result."""
        step = self._plan.step(label)
        body = canonical_bytes(query.to_json())
        answer = self._store.open_query(self.study_hash, step.label, body, now=int(self._context.clock()))
        if answer is not None:
            return answer
        self._context.changes.announce(*step.answerers)
        log.info("round open", extra={"study": self.study.name, "round": step.label})
        while self._store.submitters(self.study_hash, step.label) != set(step.answerers):
            await self._wait()
        self._require_open()
        answer = await asyncio.to_thread(self._combine, step, query)
        self._store.close_query(self.study_hash, step.label, answer)
        log.info("round closed", extra={"study": self.study.name, "round": step.label})
        return answer

    def _combine(self, step: Step, query: Query) -> bytes:
        """The answer of the roster out of its parties' answers."""
        payloads = self._store.payloads(self.study_hash, step.label, step.answerers)
        if isinstance(query, SumMoments | SumMarginals):
            return write_counts(self._add_up(step, query, payloads))
        return b"".join(payloads)

    def _add_up(self, step: Step, query: EncryptedSum, payloads: Iterable[bytes]) -> NDArray[np.int64]:
        """Multiplies the parties' ciphertexts, decrypts, unpacks, and checks the sums (6)."""
        total = add_all(self._key.public, payloads)
        plain = decrypt_all(self._key, total, self._context.workers)
        terms = sum_terms(query, step, self.study)
        sums = unpack(terms.layout(self.study.key_bits), plain, self._key.public.n)
        if isinstance(query, SumMoments):
            check_moments(self.study, terms, sums)
        else:
            tables = np.split(sums, np.cumsum(cells_of(query.sets, self.study))[:-1])
            check_marginals(self.study, terms, query.sets, tables)
        return sums


def seal_transcript(transcript: Transcript, identity: Identity) -> bytes:
    """The transcript with the curator's signature, as parties fetch it."""
    content = transcript.to_json()
    return canonical_bytes(
        {
            "transcript": content,
            "curator": identity.public_key.hex(),
            "signature": identity.sign("transcript", content).hex(),
        }
    )


def open_transcript(envelope: bytes) -> Transcript:
    """The transcript in an envelope of our own."""
    content: dict[str, Any] = json.loads(envelope)
    return parse_transcript(content["transcript"])
