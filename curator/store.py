"""The curator's store: studies, enrolments, transcripts, the log of queries, and signed submissions, in SQLite.

Each method that writes is one durable transaction; a study's state is derived from what is there. Paillier private
keys are not in here: a stolen store shows ciphertexts only.
"""

import json
from collections.abc import Iterable, Iterator, Set
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from threading import RLock
from typing import Any

from synod.common.crypto.canonical import Json, canonical_bytes
from synod.common.protocol.submission import Submission
from synod.common.protocol.transcript import Enrolment
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.sqlite import open_database, storage_errors, transaction
from synod.common.study.study import Study, parse_study
from synod.curator.records import Loss, OpenQuery, PendingStudy, SeenHead, State, StudyRecord
from synod.curator.schema import MIGRATIONS

STORE_FILE = "store.sqlite"
NOT_APPROVED = "not-approved"


class Store:
    """The open store."""

    def __init__(self, folder: Path) -> None:
        self._connection = open_database(folder / STORE_FILE, create=True, migrations=MIGRATIONS)
        self._lock = RLock()  # checks read on worker threads: none may see a transaction of the event loop half done

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()

    # Studies

    def add_study(self, study: Study, *, now: int) -> None:
        """Adds a study; the same study again changes nothing."""
        study_hash = study.digest()
        if self._rows("SELECT 1 FROM studies WHERE study = ?", study_hash):
            return
        self.check_name(study)
        document = canonical_bytes(study.to_json())
        with self._transaction():
            self._connection.execute(
                "INSERT INTO studies (study, name, document, created) VALUES (?, ?, ?, ?)",
                (study_hash, study.name, document, now),
            )
            self._connection.executemany(
                "INSERT INTO rosters (party, study, key) VALUES (?, ?, ?)",
                [(entry.name, study_hash, entry.key) for entry in study.roster],
            )

    def check_name(self, study: Study) -> None:
        """Refuses a study whose name another study has."""
        if self._rows("SELECT 1 FROM studies WHERE name = ? AND study <> ?", study.name, study.digest()):
            raise SynodError(
                Code.CONFLICT, f"there is another study named {study.name}.", "Give the new one a name of its own."
            )

    def has_ended(self, study_hash: bytes) -> bool:
        """Whether the study is known and over."""
        return bool(self._rows("SELECT 1 FROM studies WHERE study = ? AND outcome IS NOT NULL", study_hash))

    def studies(self) -> list[StudyRecord]:
        """All studies, newest first."""
        rows = self._rows("SELECT study, document, created, outcome, reason FROM studies ORDER BY created DESC, name")
        return [_record(row) for row in rows]

    def pending_studies(self, party: str, skip: Set[bytes], *, most_ended: int) -> list[PendingStudy]:
        """The studies of a party that have not ended, newest first, and some of those whose end it has not
        acknowledged; none of `skip`. What is read grows with the open studies, `skip` and `most_ended` alone.
        """
        rows = self._rows(
            "SELECT study, name, outcome FROM studies INDEXED BY open_studies CROSS JOIN rosters USING (study)"
            " WHERE outcome IS NULL AND party = ? AND acknowledged = 0 ORDER BY created DESC, name",
            party,
        )
        ended = self._rows(
            "SELECT study, name, outcome FROM rosters INDEXED BY unacknowledged CROSS JOIN studies USING (study)"
            " WHERE party = ? AND acknowledged = 0 AND outcome IS NOT NULL LIMIT ?",
            party,
            len(skip) + most_ended,
        )
        rows += [row for row in ended if row[0] not in skip][:most_ended]
        return [
            PendingStudy(study_hash, name, outcome and State(outcome))
            for study_hash, name, outcome in rows
            if study_hash not in skip
        ]

    def is_on_a_roster(self, party: str) -> bool:
        """Whether any study has the party on its roster."""
        return bool(self._rows("SELECT 1 FROM rosters WHERE party = ? LIMIT 1", party))

    def is_pinned(self, party: str, key: str) -> bool:
        """Whether a roster has the party with the identity key of this fingerprint."""
        return bool(
            self._rows("SELECT 1 FROM rosters INDEXED BY roster_keys WHERE party = ? AND key = ? LIMIT 1", party, key)
        )

    def study(self, study_hash: bytes) -> StudyRecord:
        """One study by its hash."""
        rows = self._rows("SELECT study, document, created, outcome, reason FROM studies WHERE study = ?", study_hash)
        if not rows:
            raise SynodError(Code.NOT_FOUND, "there is no such study.", "Compare the study's hash on both sides.")
        return _record(rows[0])

    def study_named(self, name: str) -> StudyRecord:
        """One study by its name."""
        rows = self._rows("SELECT study, document, created, outcome, reason FROM studies WHERE name = ?", name)
        if not rows:
            raise SynodError(Code.NOT_FOUND, f"there is no study named {name}.", "See `synod study status`.")
        return _record(rows[0])

    def state(self, record: StudyRecord) -> State:
        """Where a study stands, from what is stored of it."""
        if record.outcome is not None:
            return record.outcome
        if self._rows("SELECT 1 FROM queries WHERE study = ? LIMIT 1", record.study_hash):
            return State.RUNNING
        return State.KEYED if self.transcript(record.study_hash) else State.ENROLLING

    def end_study(self, study_hash: bytes, outcome: State, reason: str = "") -> None:
        """Ends a study once; a second end changes nothing. Answers are dropped, their hashes stay."""
        with self._transaction():
            changed = self._connection.execute(
                "UPDATE studies SET outcome = ?, reason = ? WHERE study = ? AND outcome IS NULL",
                (outcome.value, reason, study_hash),
            ).rowcount
            if changed:
                self._connection.execute("UPDATE submissions SET payload = x'' WHERE study = ?", (study_hash,))

    # Enrolment

    def add_enrolment(self, study_hash: bytes, enrolment: Enrolment) -> None:
        """Stores an enrolment; the same again changes nothing, another one is refused."""
        body = canonical_bytes(
            [
                enrolment.identity.hex(),
                enrolment.exchange.hex(),
                enrolment.nonce.hex(),
                enrolment.signature.hex(),
            ]
        )
        stored = self.enrolment(study_hash, enrolment.name)
        if stored not in (None, enrolment):
            raise SynodError(
                Code.CONFLICT,
                f"{enrolment.name} is enrolled with other keys already.",
                "A changed ledger or table cannot go on with this study; start a new one.",
            )
        if stored is None:
            self._write("INSERT INTO enrolments VALUES (?, ?, ?)", study_hash, enrolment.name, body)

    def enrolment(self, study_hash: bytes, party: str) -> Enrolment | None:
        """A party's enrolment, if it is there."""
        rows = self._rows("SELECT body FROM enrolments WHERE study = ? AND party = ?", study_hash, party)
        return _enrolment(party, rows[0][0]) if rows else None

    def enrolled(self, study_hash: bytes) -> set[str]:
        """Who has enrolled."""
        return {party for (party,) in self._rows("SELECT party FROM enrolments WHERE study = ?", study_hash)}

    def enrolments(self, study_hash: bytes) -> dict[str, Enrolment]:
        """The enrolments so far, by party."""
        rows = self._rows("SELECT party, body FROM enrolments WHERE study = ?", study_hash)
        return {party: _enrolment(party, body) for party, body in rows}

    def fix_transcript(self, study_hash: bytes, envelope: bytes) -> None:
        """Stores the transcript for good."""
        self._write("INSERT OR IGNORE INTO transcripts VALUES (?, ?)", study_hash, envelope)

    def transcript(self, study_hash: bytes) -> bytes | None:
        """The signed transcript, once all have enrolled."""
        rows = self._rows("SELECT envelope FROM transcripts WHERE study = ?", study_hash)
        return bytes(rows[0][0]) if rows else None

    # The log

    def open_query(
        self, study_hash: bytes, label: str, body: bytes, *, signature: bytes, now: int, lost: int | None = None
    ) -> bytes | None:
        """Logs a query before it is sent. Returns the answer if it has one. `lost` is how many parties a sum leaves
        out: who takes part is fixed here, for good.

        A query that is in the log keeps the signature that it was first sent with. One that differs from the
        logged one stops the study: the recipe or a library has changed under it.
        """
        rows = self._rows("SELECT body, answer FROM queries WHERE study = ? AND label = ?", study_hash, label)
        if rows:
            if bytes(rows[0][0]) != body:
                raise SynodError(Code.CHECK_FAILED, f"on replay, the query of round {label} is not the logged one.")
            return None if rows[0][1] is None else bytes(rows[0][1])
        with self._transaction():
            assert lost in (None, len(self.losses(study_hash))), "nobody is lost between the question and its opening"
            self._connection.execute(
                "INSERT INTO queries (study, label, sequence, body, signature, opened)"
                " SELECT ?, ?, count(*) + 1, ?, ?, ? FROM queries WHERE study = ?",
                (study_hash, label, body, signature, now, study_hash),
            )
        return None

    def is_logged(self, study_hash: bytes, label: str) -> bool:
        """Whether the query of a round is in the log."""
        return bool(self._rows("SELECT 1 FROM queries WHERE study = ? AND label = ?", study_hash, label))

    def close_query(self, study_hash: bytes, label: str, answer: bytes) -> None:
        """Stores the answer to a logged query."""
        self._write("UPDATE queries SET answer = ? WHERE study = ? AND label = ?", answer, study_hash, label)

    def query(self, study_hash: bytes, label: str) -> bytes:
        """A logged query."""
        return self._logged(study_hash, label)[0]

    def query_signature(self, study_hash: bytes, label: str) -> bytes:
        """The curator's signature on a logged query."""
        return self._logged(study_hash, label)[1]

    def _logged(self, study_hash: bytes, label: str) -> tuple[bytes, bytes]:
        rows = self._rows("SELECT body, signature FROM queries WHERE study = ? AND label = ?", study_hash, label)
        if not rows:
            raise SynodError(Code.NOT_FOUND, f"the round {label} is not open.")
        body, signature = rows[0]
        return bytes(body), bytes(signature)

    def unanswered(self, study_hash: bytes) -> OpenQuery | None:
        """The query that is open, if one is."""
        rows = self._rows("SELECT label, sequence, opened FROM queries WHERE study = ? AND answer IS NULL", study_hash)
        return OpenQuery(*rows[0]) if rows else None

    def note(self, study_hash: bytes, label: str) -> Json:
        """A noted value, or None."""
        rows = self._rows("SELECT body FROM notes WHERE study = ? AND label = ?", study_hash, label)
        value: Json = json.loads(rows[0][0]) if rows else None
        return value

    def add_note(self, study_hash: bytes, label: str, value: Json) -> None:
        """Notes a value for good."""
        self._write("INSERT OR IGNORE INTO notes VALUES (?, ?, ?)", study_hash, label, canonical_bytes(value))

    # Submissions

    def add_submission(self, party: str, submission: Submission, payload: bytes) -> None:
        """Stores a checked submission; check 5 is the table's primary key and this comparison.

        The study may have ended since its round was looked up, and then its answers are dropped already: one that
        comes later is refused in the same transaction.
        """
        header = canonical_bytes(submission.to_json())
        with self._transaction():
            stored = self.submission(submission.study_hash, submission.label, party)
            if stored is None:
                if self.has_ended(submission.study_hash):
                    raise SynodError(Code.NOT_READY, "the study has ended, and no answer to it is stored any more.")
                self._connection.execute(
                    "INSERT INTO submissions VALUES (?, ?, ?, ?, ?)",
                    (submission.study_hash, submission.label, party, header, payload),
                )
            elif stored != submission:
                raise SynodError(Code.CONFLICT, f"{party} has another answer stored for round {submission.label}.")

    def submission(self, study_hash: bytes, label: str, party: str) -> Submission | None:
        """The header of a stored submission."""
        statement = "SELECT header FROM submissions WHERE study = ? AND label = ? AND party = ?"
        rows = self._rows(statement, study_hash, label, party)
        return Submission.from_json(json.loads(rows[0][0])) if rows else None

    def payloads(self, study_hash: bytes, label: str, parties: Iterable[str]) -> Iterable[bytes]:
        """The stored answers to a round, in the given order, one at a time."""
        statement = "SELECT payload FROM submissions WHERE study = ? AND label = ? AND party = ?"
        for party in parties:
            ((payload,),) = self._rows(statement, study_hash, label, party)
            yield bytes(payload)

    def submitters(self, study_hash: bytes, label: str) -> set[str]:
        """Who has answered a round."""
        rows = self._rows("SELECT party FROM submissions WHERE study = ? AND label = ?", study_hash, label)
        return {party for (party,) in rows}

    def answer_bytes(self, study_hash: bytes) -> int:
        """How many bytes of answers have come in."""
        rows = self._rows("SELECT header FROM submissions WHERE study = ?", study_hash)
        return sum(int(json.loads(header)["length"]) for (header,) in rows)

    # Losses

    def add_loss(self, study_hash: bytes, party: str, reason: str, skipped: str, *, now: int) -> None:
        """Notes for good that a study goes on without a party, and skips its own step if that is open."""
        with self._transaction():
            self._connection.execute(
                "INSERT INTO losses SELECT ?, ?, count(*), ?, ? FROM queries WHERE study = ?",
                (study_hash, party, reason, now, study_hash),
            )
            if skipped:
                self._skip(study_hash, skipped)

    def losses(self, study_hash: bytes) -> list[Loss]:
        """Whom a study goes on without, in the order of their loss."""
        statement = "SELECT party, reason, declared FROM losses WHERE study = ? ORDER BY sequence, party"
        return [Loss(*row) for row in self._rows(statement, study_hash)]

    def skip_step(self, study_hash: bytes, label: str) -> None:
        """Notes for good that the step of a lost party is skipped."""
        with self._transaction():
            self._skip(study_hash, label)

    def _skip(self, study_hash: bytes, label: str) -> None:
        self._connection.execute("INSERT OR IGNORE INTO skips VALUES (?, ?)", (study_hash, label))
        self._connection.execute("DELETE FROM queries WHERE study = ? AND label = ?", (study_hash, label))

    def skipped(self, study_hash: bytes) -> set[str]:
        """The labels of steps that were skipped, because the party that they ask is lost."""
        return {label for (label,) in self._rows("SELECT label FROM skips WHERE study = ?", study_hash)}

    # Parties

    def add_not_approved(self, study_hash: bytes, party: str) -> None:
        """Notes that a party said that the study is not approved there."""
        self._write("INSERT OR IGNORE INTO replies VALUES (?, ?, ?)", study_hash, party, NOT_APPROVED)

    def said_not_approved(self, study_hash: bytes, party: str) -> bool:
        """Whether the party said so."""
        statement = "SELECT 1 FROM replies WHERE study = ? AND party = ? AND kind = ?"
        return bool(self._rows(statement, study_hash, party, NOT_APPROVED))

    def acknowledge(self, study_hash: bytes, party: str) -> None:
        """Notes that a party knows of a study's end, or that it goes on without it; else nothing is noted."""
        statement = (
            "UPDATE rosters SET acknowledged = 1 WHERE party = ? AND study ="
            " (SELECT study FROM studies WHERE study = ? AND (outcome IS NOT NULL OR EXISTS"
            " (SELECT 1 FROM losses WHERE losses.study = studies.study AND losses.party = rosters.party)))"
        )
        self._write(statement, party, study_hash)

    def acknowledged(self, study_hash: bytes, party: str) -> bool:
        """Whether the party knows of the study's end."""
        statement = "SELECT 1 FROM rosters WHERE party = ? AND study = ? AND acknowledged = 1"
        return bool(self._rows(statement, party, study_hash))

    def see_head(self, identity: bytes, head: SeenHead) -> None:
        """Keeps the highest head of a ledger."""
        highest = self.highest_head(identity, head.ledger)
        if highest is None or highest.sequence < head.sequence:
            self._write(
                "INSERT OR REPLACE INTO heads VALUES (?, ?, ?, ?, ?)",
                identity, head.ledger, head.sequence, head.hash, head.signature,
            )  # fmt: skip

    def highest_head(self, identity: bytes, ledger: bytes) -> SeenHead | None:
        """The highest head seen of a ledger."""
        statement = "SELECT sequence, hash, signature FROM heads WHERE identity = ? AND ledger = ?"
        rows = self._rows(statement, identity, ledger)
        return SeenHead(ledger, *rows[0]) if rows else None

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock, transaction(self._connection):
            yield

    def _write(self, statement: str, *values: object) -> None:
        with self._transaction(), storage_errors(None):
            self._connection.execute(statement, values)

    def _rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock, storage_errors(None):
            return self._connection.execute(statement, values).fetchall()


def _enrolment(party: str, body: bytes) -> Enrolment:
    return Enrolment(party, *(bytes.fromhex(part) for part in json.loads(body)))


def _record(row: tuple[Any, ...]) -> StudyRecord:
    study_hash, document, created, outcome, reason = row
    return StudyRecord(bytes(study_hash), _parse(bytes(document)), created, outcome and State(outcome), reason)


@lru_cache(maxsize=256)
def _parse(document: bytes) -> Study:
    return parse_study(json.loads(document), "the stored study")
