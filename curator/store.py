"""The curator's store: studies, enrolments, transcripts, the log of queries, and signed submissions, in SQLite.

Each method that writes is one durable transaction; a study's state is derived from what is there. Paillier private
keys are not in here: a stolen store shows ciphertexts only.
"""

import json
from collections.abc import Iterable, Sequence, Set
from functools import lru_cache
from typing import Any

from synod.common.crypto.canonical import Json, canonical_bytes
from synod.common.protocol.submission import Submission
from synod.common.protocol.transcript import Enrolment
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.study import Study, parse_study
from synod.curator.party_store import PartyStore
from synod.curator.records import OpenQuery, PendingStudy, State, StudyRecord


class Store(PartyStore):
    """The open store."""

    # Studies

    def add_study(self, study: Study, *, now: int) -> bool:
        """Adds a study, and says whether it is new; the same study again changes nothing."""
        study_hash = study.digest()
        if self._rows("SELECT 1 FROM studies WHERE study = ?", study_hash):
            return False
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
        return True

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
        """All studies, newest first; every document is parsed, so not for a daemon that serves."""
        rows = self._rows("SELECT study, document, created, outcome, reason FROM studies ORDER BY created DESC, name")
        return [_record(row) for row in rows]

    def open_studies(self) -> list[StudyRecord]:
        """The studies that have not ended, newest first."""
        rows = self._rows(
            "SELECT study, document, created, outcome, reason FROM studies WHERE outcome IS NULL"
            " ORDER BY created DESC, name"
        )
        return [_record(row) for row in rows]

    def list_studies(self, after: bytes, *, most: int) -> tuple[list[bytes], int]:
        """The hashes of the newest studies, or of the newest that are older than `after`, and how many more there are.
        No document is read for it.
        """
        older = (
            "FROM studies AS one LEFT JOIN studies AS last ON last.study = ?1 WHERE ?1 = x''"
            " OR one.created < last.created OR (one.created = last.created AND one.name > last.name)"
        )
        hashes = self._rows(f"SELECT one.study {older} ORDER BY one.created DESC, one.name LIMIT ?2", after, most)
        ((count,),) = self._rows(f"SELECT count(*) {older}", after)
        return [bytes(study_hash) for (study_hash,) in hashes], int(count) - len(hashes)

    def count_ended(self) -> dict[State, int]:
        """How many studies have ended, by outcome."""
        rows = self._rows("SELECT outcome, count(*) FROM studies WHERE outcome IS NOT NULL GROUP BY outcome")
        return {State(outcome): number for outcome, number in rows}

    def pending_studies(
        self, party: str, keys: Sequence[str], skip: Set[bytes], *, most_ended: int
    ) -> list[PendingStudy]:
        """The studies of a party that have not ended, newest first, and some of those that pin one of the keys for it
        and whose end it has not acknowledged; none of `skip`. What is read grows with the open studies, `keys`, `skip`
        and `most_ended` alone.
        """
        rows = self._rows(
            "SELECT study, name, outcome FROM studies INDEXED BY open_studies CROSS JOIN rosters USING (study)"
            " WHERE outcome IS NULL AND party = ? AND acknowledged = 0 ORDER BY created DESC, name",
            party,
        )
        statement = (
            "SELECT study, name, outcome FROM rosters INDEXED BY unacknowledged CROSS JOIN studies USING (study)"
            " WHERE party = ? AND key = ? AND acknowledged = 0 AND outcome IS NOT NULL LIMIT ?"
        )
        ended = [row for key in keys for row in self._rows(statement, party, key, len(skip) + most_ended)]
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
        """Whether a roster has the party with the identity key of this fingerprint, or with one that it followed."""
        return bool(
            self._rows("SELECT 1 FROM rosters INDEXED BY roster_keys WHERE party = ? AND key = ? LIMIT 1", party, key)
            or self._rows("SELECT 1 FROM rotations INDEXED BY rotated_keys WHERE name = ? AND new = ?", party, key)
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

    def end_study(self, study_hash: bytes, outcome: State, reason: str = "") -> bool:
        """Ends a study once, and says whether it did; a second end changes nothing. Answers are dropped, their hashes
        stay.
        """
        with self._transaction():
            changed = self._connection.execute(
                "UPDATE studies SET outcome = ?, reason = ? WHERE study = ? AND outcome IS NULL",
                (outcome.value, reason, study_hash),
            ).rowcount
            if changed:
                self._connection.execute("UPDATE submissions SET payload = x'' WHERE study = ?", (study_hash,))
        return bool(changed)

    # Enrolment

    def add_enrolment(self, study_hash: bytes, enrolment: Enrolment) -> None:
        """Stores an enrolment; the same again changes nothing, another one is refused."""
        body = canonical_bytes(enrolment.to_json())
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
        return Enrolment.from_json(json.loads(rows[0][0])) if rows else None

    def enrolled(self, study_hash: bytes) -> set[str]:
        """Who has enrolled."""
        return {party for (party,) in self._rows("SELECT party FROM enrolments WHERE study = ?", study_hash)}

    def enrolments(self, study_hash: bytes) -> dict[str, Enrolment]:
        """The enrolments so far, by party."""
        rows = self._rows("SELECT party, body FROM enrolments WHERE study = ?", study_hash)
        return {party: Enrolment.from_json(json.loads(body)) for party, body in rows}

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

    def answer(self, study_hash: bytes, label: str) -> bytes:
        """The roster's answer to a logged query that has one."""
        rows = self._rows("SELECT answer FROM queries WHERE study = ? AND label = ?", study_hash, label)
        assert rows, "only what was asked has an answer"
        assert rows[0][0] is not None, "a study is published when every step is answered"
        return bytes(rows[0][0])

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


def _record(row: tuple[Any, ...]) -> StudyRecord:
    study_hash, document, created, outcome, reason = row
    return StudyRecord(bytes(study_hash), _parse(bytes(document)), created, outcome and State(outcome), reason)


@lru_cache(maxsize=256)
def _parse(document: bytes) -> Study:
    return parse_study(json.loads(document), "the stored study")
