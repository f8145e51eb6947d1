"""The ledger: what this party approved, spent and answered, as a hash chain in one SQLite file.

Charge and answer are stored in one durable transaction before the first byte leaves. State is never kept beside
the chain; it is folded from it. `synod party init` makes a ledger, `serve` never does.
"""

import hmac
import json
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synod.common.crypto.canonical import Json, canonical_bytes, canonical_hash
from synod.common.privacy.coins import KEY_BYTES
from synod.common.privacy.cost import Cost
from synod.common.protocol.submission import head_statement
from synod.common.runtime.errors import Code, SynodError, check_failed, invalid, refused
from synod.common.runtime.files import sync_folder
from synod.common.runtime.sqlite import open_database, storage_errors, transaction
from synod.common.study.study import Study, parse_study
from synod.party.account import Account, ApprovalState, Entry, fold

LEDGER_FILE = "ledger.sqlite"
GENESIS = bytes(32)
MIGRATIONS = (
    """
CREATE TABLE secret (one INTEGER PRIMARY KEY CHECK (one = 1), value BLOB NOT NULL);
CREATE TABLE entries (sequence INTEGER PRIMARY KEY, body BLOB NOT NULL, hash BLOB NOT NULL);
CREATE TABLE studies (study BLOB PRIMARY KEY, document BLOB NOT NULL);
CREATE TABLE answers (
    study BLOB NOT NULL, label TEXT NOT NULL, header BLOB NOT NULL, payload BLOB NOT NULL,
    PRIMARY KEY (study, label)
);
""",
)


@dataclass(frozen=True, slots=True)
class Head:
    """Where the chain ends: how many entries, the hash of the last, and that of the first, which says whose chain."""

    sequence: int
    hash: bytes
    ledger: bytes

    def statement(self) -> Json:
        """What the party signs of it."""
        return head_statement(self.sequence, self.hash, self.ledger)


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """An answer as it leaves the house: a retry sends these very bytes again."""

    header: dict[str, Any]
    payload: bytes


class Ledger:
    """An open ledger. Every method that writes is one durable transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._check_chain()

    @staticmethod
    def create(folder: Path, *, history_lost: bool, now: int) -> "Ledger":
        """Makes a new ledger; refuses to replace one."""
        path, draft = folder / LEDGER_FILE, folder / f"{LEDGER_FILE}.draft"
        if path.exists():
            raise invalid(f"there is a ledger at {path} already.", "It is never replaced; move it away yourself.")
        draft.unlink(missing_ok=True)
        connection = open_database(draft, create=True, migrations=MIGRATIONS)
        with transaction(connection), storage_errors(path):
            connection.execute("INSERT INTO secret VALUES (1, ?)", (secrets.token_bytes(KEY_BYTES),))
            _append(connection, {"kind": "opened", "history_lost": history_lost}, now)
        connection.close()
        draft.rename(path)
        sync_folder(folder)
        return Ledger.open(folder)

    @staticmethod
    def open(folder: Path) -> "Ledger":
        """Opens the ledger that `create` made."""
        path = folder / LEDGER_FILE
        if not path.exists():
            raise invalid(f"there is no ledger at {path}.", "Run `synod party init` first; `serve` never makes one.")
        return Ledger(open_database(path, create=False, migrations=MIGRATIONS))

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()

    # Reading

    def entries(self) -> list[Entry]:
        """All entries in order."""
        return [_decode(body) for (body,) in self._rows("SELECT body FROM entries ORDER BY sequence")]

    def account(self) -> Account:
        """What the entries add up to."""
        try:
            return fold(self.entries())
        except (KeyError, TypeError, ValueError):
            raise check_failed(
                "the ledger has an entry that this version cannot read.", "Update Synod; never alter the ledger."
            ) from None

    def head(self) -> Head:
        """Where the chain ends."""
        ((sequence, digest),) = self._rows("SELECT sequence, hash FROM entries ORDER BY sequence DESC LIMIT 1")
        ((first,),) = self._rows("SELECT hash FROM entries WHERE sequence = 1")
        return Head(sequence, digest, first)

    def hash_at(self, sequence: int) -> bytes | None:
        """The hash of an entry; None where the chain does not reach it."""
        rows = self._rows("SELECT hash FROM entries WHERE sequence = ?", sequence)
        return bytes(rows[0][0]) if rows else None

    def secret(self) -> bytes:
        """The key from which all coins are derived; never leaves, and a copy of the ledger has the same."""
        ((value,),) = self._rows("SELECT value FROM secret")
        return bytes(value)

    def seal(self, digest: bytes) -> bytes:
        """A digest of private data under the ledger's secret: the same for the same data, and of no use for guessing
        rows to anyone who sees an exported entry.
        """
        return hmac.digest(self.secret(), b"synod/v1/seal\0" + digest, "sha256")

    def study(self, study_hash: bytes) -> Study:
        """An approved study, as it was approved."""
        ((document,),) = self._rows("SELECT document FROM studies WHERE study = ?", study_hash)
        return parse_study(_decode(document), "the approved study")

    def answer(self, study_hash: bytes, label: str) -> StoredAnswer | None:
        """The stored answer to a round, if there is one."""
        rows = self._rows("SELECT header, payload FROM answers WHERE study = ? AND label = ?", study_hash, label)
        return StoredAnswer(dict(_decode(rows[0][0])), bytes(rows[0][1])) if rows else None

    # Writing

    def declare_spent(self, dataset: str, spent: Cost, *, now: int) -> None:
        """Records what a dataset had spent before this ledger; a later declaration may only be higher."""
        with self._transaction():
            account = self.account()
            before = account.declared.get(account.current_name(dataset))
            if before is not None and not before.fits_within(spent):
                raise refused(
                    f"{before.describe()} was declared as spent by {dataset}, and what is spent never comes back.",
                    "Declare at least as much again of each kind, with `--spent` and `--spent-rho`.",
                )
            _append(self._connection, {"kind": "declared", "dataset": dataset, "spent": str(spent)}, now)

    def rename_dataset(self, old: str, new: str, *, now: int) -> None:
        """Records that two names are of one dataset.

        Guarantee: from here on both have one account, in which everything is that was spent or held under either.
        """
        with self._transaction():
            account = self.account()
            if old not in account.datasets:
                raise SynodError(Code.NOT_FOUND, f"this ledger has no dataset {old}.", "See `synod party ledger`.")
            if account.current_name(old) == account.current_name(new):
                raise refused(f"{old} and {new} are one dataset already.", "Use either name.")
            _append(self._connection, {"kind": "renamed", "dataset": old, "to": new}, now)

    def approve(
        self,
        study: Study,
        *,
        dataset: str,
        cost: Cost,
        cap: Cost,
        snapshot: bytes,
        source: tuple[bytes, ...],
        now: int,
    ) -> None:
        """Reserves a study's whole cost; `source` are the marks of the table, under `seal`.

        Guarantee: the room under the cap is checked in the transaction that reserves it, and so is that no dataset of
        another name has this table.
        """
        study_hash = study.digest()
        with self._transaction():
            account = self.account()
            if study_hash.hex() in account.approvals:
                state = account.approvals[study_hash.hex()].state
                raise refused(
                    f"the study {study.name} is in the ledger already ({state.value}).", "A new run is a new study."
                )
            account.check_room(dataset, cost, cap)
            account.check_source(dataset, source)
            entry: dict[str, Json] = {
                "kind": "approved",
                "study": study_hash.hex(),
                "name": study.name,
                "dataset": dataset,
                "reserved": str(cost),
                "snapshot": snapshot.hex(),
                "source": [mark.hex() for mark in source],
            }
            _append(self._connection, entry, now)
            self._connection.execute(
                "INSERT INTO studies VALUES (?, ?)", (study_hash, canonical_bytes(study.to_json()))
            )

    def charge(self, study_hash: bytes, charge: dict[str, Json], answer: StoredAnswer, *, now: int) -> None:
        """Stores a charge and its answer together.

        Guarantee: after this returns both are on disk; if it raises, neither is, and the answer must not leave.
        The approval must be open and its reservation must cover the cost.
        """
        label = str(charge["label"])
        with self._transaction():
            approval = self.account().approvals.get(study_hash.hex())
            if approval is None or approval.state is not ApprovalState.OPEN:
                raise refused("the study is not approved here any more.")
            if not Cost.parse(str(charge["cost"])).fits_within(approval.held):
                raise refused("the step costs more than what is left of the study's reservation.")
            _append(self._connection, {"kind": "charged", "study": study_hash.hex(), **charge}, now)
            self._connection.execute(
                "INSERT INTO answers VALUES (?, ?, ?, ?)",
                (study_hash, label, canonical_bytes(answer.header), answer.payload),
            )

    def end_study(self, study_hash: bytes, outcome: ApprovalState, *, now: int) -> None:
        """Records how a study ended; what it did not charge is free again."""
        assert outcome is not ApprovalState.OPEN, "an end"
        with self._transaction():
            approval = self.account().approvals.get(study_hash.hex())
            if approval is None or approval.state is not ApprovalState.OPEN:
                return
            if outcome is ApprovalState.REVOKED:
                entry: dict[str, Json] = {"kind": "revoked", "study": study_hash.hex()}
            else:
                entry = {"kind": "closed", "study": study_hash.hex(), "outcome": outcome.value}
            _append(self._connection, entry, now)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing; what could not be read again is never stored."""
        with transaction(self._connection), storage_errors(None):
            yield
            self.account()

    def _rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with storage_errors(None):
            return self._connection.execute(statement, values).fetchall()

    def _check_chain(self) -> None:
        previous = GENESIS
        for sequence, body, digest in self._rows("SELECT sequence, body, hash FROM entries ORDER BY sequence"):
            entry = _decode(body)
            if entry["sequence"] != sequence or entry["previous"] != previous.hex() or canonical_hash(entry) != digest:
                raise check_failed(f"the ledger's chain is broken at entry {sequence}.", "Restore it from a backup.")
            previous = digest
        if previous == GENESIS:
            raise check_failed("the ledger's chain is gone: it has no entry.", "Restore it from a backup.")


def _append(connection: sqlite3.Connection, fact: dict[str, Json], now: int) -> None:
    """Adds an entry to the chain.

    Guarantee: the hash of an entry leaves as the head. The salt is random, so a head tells nothing to anyone who
    would guess what the entry says; the digest of the table is in it only under `seal`, so an export tells no more.
    """
    last = connection.execute("SELECT sequence, hash FROM entries ORDER BY sequence DESC LIMIT 1").fetchone()
    sequence, previous = (last[0] + 1, last[1]) if last else (1, GENESIS)
    salt = secrets.token_hex(KEY_BYTES)
    entry: dict[str, Json] = {"sequence": sequence, "time": now, "previous": previous.hex(), "salt": salt, **fact}
    body = canonical_bytes(entry)
    connection.execute("INSERT INTO entries VALUES (?, ?, ?)", (sequence, body, canonical_hash(entry)))


def _decode(body: bytes) -> Any:
    return json.loads(body)
