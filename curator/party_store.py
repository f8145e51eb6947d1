"""What the curator's store has of parties: losses, acknowledgements, heads of ledgers, rotated keys; and the open file.

Each method that writes is one durable transaction.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

from synod.common.crypto.identity import fingerprint
from synod.common.protocol.rotation import Rotation, recall_rotation
from synod.common.runtime.errors import check_failed
from synod.common.runtime.sqlite import open_database, storage_errors, transaction
from synod.curator.records import Loss, SeenHead
from synod.curator.schema import MIGRATIONS

STORE_FILE = "store.sqlite"
NOT_APPROVED = "not-approved"
MOST_LEDGERS = 16  # of one identity; a party makes a new one only when it has lost the one before


class Database:
    """The open file."""

    def __init__(self, folder: Path) -> None:
        self._connection = open_database(folder / STORE_FILE, create=True, migrations=MIGRATIONS)
        self._lock = RLock()  # checks read on worker threads: none may see a transaction of the event loop half done

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock, transaction(self._connection):
            yield

    def _write(self, statement: str, *values: object) -> None:
        with self._transaction(), storage_errors(self._connection):
            self._connection.execute(statement, values)

    def _rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock, storage_errors(self._connection):
            return self._connection.execute(statement, values).fetchall()


class PartyStore(Database):
    """The part of the store that is about parties."""

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
        """Keeps the highest head of a ledger; of an identity's ledgers the last few that were news."""
        highest = self.highest_head(identity, head.ledger)
        if highest is None or highest.sequence < head.sequence:
            with self._transaction():
                self._connection.execute(
                    "INSERT OR REPLACE INTO heads VALUES (?, ?, ?, ?, ?)",
                    (identity, head.ledger, head.sequence, head.hash, head.signature),
                )
                self._connection.execute(
                    "DELETE FROM heads WHERE identity = ?1 AND rowid NOT IN"
                    " (SELECT rowid FROM heads WHERE identity = ?1 ORDER BY rowid DESC LIMIT ?2)",
                    (identity, MOST_LEDGERS),
                )

    def highest_head(self, identity: bytes, ledger: bytes) -> SeenHead | None:
        """The highest head seen of a ledger."""
        statement = "SELECT sequence, hash, signature FROM heads WHERE identity = ? AND ledger = ?"
        rows = self._rows(statement, identity, ledger)
        return SeenHead(ledger, *rows[0]) if rows else None

    def add_rotation(self, rotation: Rotation) -> None:
        """Keeps a checked rotation; the same again changes nothing, another one of the same key is refused."""
        old, new = fingerprint(rotation.old), fingerprint(rotation.new)
        with self._transaction():
            rows = self._rows("SELECT new FROM rotations WHERE name = ? AND old = ?", rotation.name, old)
            if rows and rows[0][0] != new:
                raise check_failed(
                    f"the identity of {rotation.name} was rotated to another key before.",
                    "Two copies of one state are in use, or a key was stolen: stop, and ask by phone.",
                )
            self._connection.execute(
                "INSERT OR IGNORE INTO rotations VALUES (?, ?, ?, ?)", (rotation.name, old, new, rotation.to_bytes())
            )

    def rotations(self, name: str) -> dict[bytes, Rotation]:
        """The rotations of a name by their old keys."""
        rows = self._rows("SELECT document FROM rotations WHERE name = ?", name)
        known = [recall_rotation(json.loads(document)) for (document,) in rows]
        return {rotation.old: rotation for rotation in known}
