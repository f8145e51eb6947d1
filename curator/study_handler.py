"""What the curator does for its operator: take studies, run a session for each, say how they stand, end them."""

import asyncio
import json
import logging
import secrets
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from synod.common.crypto.canonical import canonical_bytes
from synod.common.crypto.paillier import SecretKey, generate_key
from synod.common.privacy.coins import KEY_BYTES, Coins
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.parsing import check_feasible
from synod.common.runtime.errors import Code, SynodError, invalid
from synod.common.runtime.files import erase_file, write_private_file
from synod.common.runtime.jsontext import DocumentError, read_json
from synod.common.study.study import Study, parse_study
from synod.curator.context import Context, Gathering
from synod.curator.events.event import EventKind, event_of
from synod.curator.records import OpenQuery, State, StudyRecord
from synod.curator.roster.losses import awaited_answers, list_losses, lose_party
from synod.curator.session import Session
from synod.v1 import study_pb2 as pb

log = logging.getLogger("synod.curator")

LARGEST_STUDY_BYTES = 900 << 10
MOST_LISTED = 50
LISTED_BYTES = 512 << 10
STATES = {state: pb.StudyState.Value(f"STUDY_STATE_{state.name}") for state in State}


class StudyHandler:
    """The operator's verbs, and the sessions of all studies."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._sessions: dict[bytes, asyncio.Task[None]] = {}
        self._halted: dict[bytes, str] = {}

    def resume(self) -> None:
        """Starts a session for every study that has not ended; one that cannot go on does not hold up the others."""
        for path in self._context.folder.glob("keys/*.json"):
            with suppress(ValueError):  # a file of another name is somebody's own
                if self._store.has_ended(bytes.fromhex(path.stem)):
                    erase_file(path)
        for record in self._store.open_studies():
            try:
                self._start(record.study)
            except SynodError as error:
                self._halted[record.study_hash] = str(error)
                log.warning("a study cannot go on", extra={"study": record.study.name, "why": str(error)})

    async def submit(self, document: bytes) -> bytes:
        """Takes a resolved study: makes its key, stores it, starts its session. The same study again is fine."""
        study = _read_study(document)
        if study.pins(self._context.identity.fingerprint):
            raise invalid(
                f"the roster of {study.name} has this curator's own key for a party.",
                "Put down what `synod party fingerprint` prints there; no party would answer its own curator.",
            )
        self._store.check_name(study)
        if self._store.has_ended(study.digest()):
            return study.digest()
        await self._make_key(study)
        if self._store.add_study(study, now=int(self._context.clock())):
            log.info("study taken", extra={"study": study.name, "hash": study.digest().hex()})
            self._context.tell(event_of(EventKind.WAITING, study, now=self._context.clock(), enrolled=set()))
        self._start(study)
        self._context.changes.announce(*(entry.name for entry in study.roster))
        return study.digest()

    def status(self, name: str) -> pb.StudyStatus:
        """How a study stands."""
        return self._describe(self._store.study_named(name))

    async def list_studies(self, after: bytes) -> tuple[list[pb.StudyStatus], int]:
        """How the newest studies stand, or the newest that are older than `after`, as many as one message holds; and
        how many older ones there are. Others are served between any two of them.
        """
        hashes, older = self._store.list_studies(after, most=MOST_LISTED)
        listed: list[pb.StudyStatus] = []
        size = 0
        for study_hash in hashes:
            status = self._describe(self._store.study(study_hash))
            size += status.ByteSize()
            if listed and size > LISTED_BYTES:
                break
            listed.append(status)
            await asyncio.sleep(0)
        return listed, older + len(hashes) - len(listed)

    @property
    def halted(self) -> int:
        """How many open studies cannot go on."""
        return len(self._halted)

    def release_files(self, name: str) -> list[Path]:
        """The files of a published study."""
        record = self._store.study_named(name)
        if self._store.state(record) is not State.PUBLISHED:
            raise SynodError(
                Code.NOT_READY, f"{name} is not published.", "See `synod study status` for what it waits for."
            )
        return sorted(self._context.release_folder(record.study_hash).iterdir())

    def abort(self, name: str, *, by: str) -> None:
        """Ends a study for good."""
        record = self._store.study_named(name)
        if record.outcome is not None:
            raise SynodError(Code.NOT_READY, f"{name} has ended already ({record.outcome.value}).")
        self._context.end_study(record.study, State.ABORTED, f"Aborted by {by}.")
        if session := self._sessions.pop(record.study_hash, None):
            session.cancel()
        self._context.waiting.pop(record.study_hash, None)
        self._drop_key(record.study)
        self._context.changes.announce(record.study_hash, *(entry.name for entry in record.study.roster))

    def lose(self, study_hash: bytes, party: str, reason: str) -> str:
        """Declares a party lost; says in one sentence what follows."""
        effect = lose_party(self._context, self._store.study(study_hash), party, reason)
        log.info("party lost", extra={"study": self._store.study(study_hash).study.name, "party": party})
        return effect

    def _start(self, study: Study) -> None:
        study_hash = study.digest()
        if study_hash in self._sessions or self._store.study(study_hash).outcome is not None:
            return
        session = Session(self._context, study, self._load_key(study))
        task = asyncio.create_task(session.run(), name=study.name)
        task.add_done_callback(partial(self._finish, study))
        self._sessions[study_hash] = task
        self._halted.pop(study_hash, None)

    def _key_path(self, study: Study) -> Path:
        return self._context.folder / "keys" / f"{study.digest().hex()}.json"

    async def _make_key(self, study: Study) -> None:
        """Makes the study's Paillier key, once; it is kept outside of the store."""
        path = self._key_path(study)
        if not path.exists():
            coins = Coins(secrets.token_bytes(KEY_BYTES))
            key = await asyncio.to_thread(generate_key, study.key_bits, coins=coins)
            if not path.exists():
                write_private_file(path, canonical_bytes(key.to_json()))

    def _drop_key(self, study: Study) -> None:
        """Erases the key of a study that has ended: nothing is left to decrypt."""
        erase_file(self._key_path(study))

    def _finish(self, study: Study, task: "asyncio.Task[None]") -> None:
        if task.cancelled():
            return
        study_hash, error = study.digest(), task.exception()
        self._sessions.pop(study_hash, None)
        if self._store.study(study_hash).outcome is not None:
            self._drop_key(study)
        elif error is not None:
            self._halted[study_hash] = f"its session ended by a defect ({type(error).__name__})."
            log.error("a session ended by a defect; restart the curator to resume it", exc_info=error)

    def _load_key(self, study: Study) -> SecretKey:
        try:
            return SecretKey.from_json(json.loads(self._key_path(study).read_bytes()))
        except (OSError, ValueError):
            raise SynodError(
                Code.STORAGE, f"the Paillier key of {study.name} is lost.", "Restore the curator's `keys` folder."
            ) from None

    def _describe(self, record: StudyRecord) -> pb.StudyStatus:
        state, query = self._store.state(record), self._store.unanswered(record.study_hash)
        query = query if record.outcome is None else None
        return pb.StudyStatus(
            name=record.study.name,
            study_hash=record.study_hash,
            state=STATES[state],
            label=query.label if query else "",
            round=query.sequence if query else 0,
            rounds=len(plan_study(record.study).steps),
            reason=record.reason,
            parties=list(self._describe_parties(record, query)),
            answer_bytes=self._store.answer_bytes(record.study_hash),
            halted=self._halted.get(record.study_hash, "") if record.outcome is None else "",
            waiting=self._context.waiting.get(record.study_hash, "") if record.outcome is None else "",
            losses=[
                pb.Loss(party=loss.party, since=since, reason=loss.reason, unix_seconds=loss.declared)
                for loss, since in list_losses(self._store, record.study)
            ],
            gathering=self._gathering(record).parties,
        )

    def _gathering(self, record: StudyRecord) -> Gathering:
        """Whom the study waits for before its next sum opens."""
        found = self._context.gathering.get(record.study_hash) if record.outcome is None else None
        return found or Gathering((), 0)

    def _describe_parties(self, record: StudyRecord, query: OpenQuery | None) -> Iterator[pb.PartyStatus]:
        enrolled, gathering = self._store.enrolled(record.study_hash), self._gathering(record)
        asked = awaited_answers(self._store, record, query) if query else ()
        for entry in record.study.roster:
            is_enrolled = entry.name in enrolled
            since = 0
            if record.outcome is None and not is_enrolled:
                since = record.created
            elif query and entry.name in asked:
                since = query.opened
            elif entry.name in gathering.parties:
                since = gathering.since
            yield pb.PartyStatus(
                name=entry.name,
                enrolled=is_enrolled,
                awaited=since > 0,
                awaited_since=since,
                last_seen=self._context.sightings.get(entry.name, 0),
                not_approved=not is_enrolled and self._store.said_not_approved(record.study_hash, entry.name),
            )


def _read_study(document: bytes) -> Study:
    if len(document) > LARGEST_STUDY_BYTES:
        raise invalid(f"the study is larger than {LARGEST_STUDY_BYTES >> 10} KiB.")
    try:
        data = read_json(document)
    except DocumentError as error:
        raise invalid(f"the study {error.reason}.") from None
    study = parse_study(data, "the study").resolve()
    if canonical_bytes(study.to_json()) != document:
        raise invalid("the study is not in resolved, canonical form.", "Submit it with `synod study submit`.")
    check_feasible(study)
    return study
