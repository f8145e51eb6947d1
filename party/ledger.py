"""The ledger: what this party approved, spent and answered, as a hash chain in one SQLite file.

Charge and answer are stored in one durable transaction before the first byte leaves. State is never kept beside
the chain; it is folded from it. `synod party init` makes a ledger, `serve` never does.
"""

import hmac
import json
import secrets
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synod.common.crypto.canonical import Json, canonical_bytes, canonical_hash
from synod.common.privacy.coins import KEY_BYTES
from synod.common.privacy.cost import Cost
from synod.common.protocol.heads import Head, StatedHeads
from synod.common.protocol.rotation import Rotation
from synod.common.runtime.errors import Code, SynodError, check_failed, invalid, refused
from synod.common.runtime.files import sync_folder
from synod.common.runtime.sqlite import empty_log, open_database, storage_errors, transaction
from synod.common.study.study import CURATOR_NAME, Study, parse_study
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
    # Each study has a secret of its own, which its end erases. A study that was approved before has none: while it is
    # open its coins are those of the ledger's secret, as they were, and afterwards its answers are erased.
    """
CREATE TABLE study_secrets (study BLOB PRIMARY KEY, value BLOB NOT NULL);
INSERT INTO study_secrets SELECT study, x'' FROM studies WHERE lower(hex(study)) NOT IN (
    SELECT json_extract(CAST(body AS TEXT), '$.study') FROM entries
    WHERE json_extract(CAST(body AS TEXT), '$.kind') IN ('revoked', 'closed')
);
UPDATE answers SET payload = x'' WHERE study NOT IN (SELECT study FROM study_secrets);
""",
    # What other parties' ledgers were, as they stated it in transcripts that were answered here.
    """
CREATE TABLE witnessed (
    identity BLOB NOT NULL, ledger BLOB NOT NULL, sequence INTEGER NOT NULL, hash BLOB NOT NULL,
    PRIMARY KEY (identity, ledger, sequence)
);
""",
)
MOST_WITNESSED_HEADS = 256  # of one ledger, the furthest ones
MOST_WITNESSED_LEDGERS = 16  # of one identity, the last ones


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
        connection = open_database(draft, create=True, migrations=MIGRATIONS, overwrites=True)
        with transaction(connection), storage_errors(path):
            connection.execute("INSERT INTO secret VALUES (1, ?)", (secrets.token_bytes(KEY_BYTES),))
            _append(connection, {"kind": "opened", "history_lost": history_lost}, now)
        connection.close()
        draft.rename(path)
        sync_folder(folder)
        return Ledger.open(folder)

    @staticmethod
    def open(folder: Path, *, tidies: bool = True) -> "Ledger":
        """Opens the ledger that `create` made. Whoever only looks need not tidy up, and waits for no writer."""
        path = folder / LEDGER_FILE
        if not path.exists():
            raise invalid(f"there is no ledger at {path}.", "Run `synod party init` first; `serve` never makes one.")
        connection = open_database(path, create=False, migrations=MIGRATIONS, overwrites=True)
        if tidies:
            with suppress(SynodError):  # whoever ended a study may have been killed before this
                empty_log(connection)
        return Ledger(connection)

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

    def hashes(self) -> list[bytes]:
        """The hash of every entry, in order."""
        return [bytes(digest) for (digest,) in self._rows("SELECT hash FROM entries ORDER BY sequence")]

    def stated_heads(self, study_hash: bytes) -> StatedHeads:
        """What the enrolment in an approved study states of this ledger.

        Guarantee: a function of the entries up to the approval, so it is the same whenever the party enrols, also after
        a crash; a ledger that forgot the approval cannot state it again, because entries have random salts.
        """
        first, opened = self.head().ledger, dict[str, Head]()
        for sequence, body, digest in self._rows("SELECT sequence, body, hash FROM entries ORDER BY sequence"):
            entry = _decode(body)
            if entry["kind"] == "approved":
                opened[entry["study"]] = Head(sequence, bytes(digest), first)
                if entry["study"] == study_hash.hex():
                    return StatedHeads.of(list(opened.values()))
            elif entry["kind"] in ("revoked", "closed"):
                del opened[entry["study"]]
        raise AssertionError("an approved study has its entry")

    def witnessed(self, identity: bytes, ledger: bytes) -> list[Head]:
        """The heads that another party's ledger was witnessed with."""
        statement = "SELECT sequence, hash FROM witnessed WHERE identity = ? AND ledger = ?"
        return [Head(sequence, bytes(digest), ledger) for sequence, digest in self._rows(statement, identity, ledger)]

    def secret(self) -> bytes:
        """The key of what outlives studies; never leaves, and a copy of the ledger has the same."""
        ((value,),) = self._rows("SELECT value FROM secret")
        return bytes(value)

    def study_root(self, study_hash: bytes) -> bytes:
        """The key from which all coins of an open study are derived; a copy of the ledger has the same.

        Guarantee: a function of the ledger's secret and of the secret that was drawn when the study was approved. The
        latter is erased when the study ends, and who has the ledger then can derive neither noise nor masks of it.
        """
        rows = self._rows("SELECT value FROM study_secrets WHERE study = ?", study_hash)
        if not rows:
            raise refused("the secret of the study is erased: it has ended here, or was never approved.")
        drawn = bytes(rows[0][0])
        if not drawn:  # approved before studies had secrets: the same question still gets the same bytes
            return self.secret()
        return hmac.digest(self.secret(), b"synod/v1/study\0" + drawn, "sha256")

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

    def copy(self) -> bytes:
        """The whole database as it is at one moment, by SQLite's own online backup: whoever writes may go on."""
        with storage_errors(None), closing(sqlite3.connect(":memory:")) as memory:
            self._connection.backup(memory)
            return memory.serialize()

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
        """Reserves a study's whole cost, and draws its secret; `source` are the marks of the table, under `seal`.

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
            self._connection.execute("INSERT INTO study_secrets VALUES (?, ?)", (study_hash, draw_study_secret()))

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

    def witness(self, others: Mapping[bytes, StatedHeads]) -> None:
        """Remembers what other parties, by identity, have stated of their ledgers; the oldest make room."""
        news = [
            (identity, head.ledger, head.sequence, head.hash)
            for identity, stated in others.items()
            for head in set(stated.all) - set(self.witnessed(identity, stated.approved.ledger))
        ]
        if not news:
            return
        with self._transaction():
            self._connection.executemany("INSERT OR IGNORE INTO witnessed VALUES (?, ?, ?, ?)", news)
            for identity, stated in others.items():
                self._connection.execute(
                    "DELETE FROM witnessed WHERE identity = ?1 AND ledger = ?2 AND sequence NOT IN"
                    " (SELECT sequence FROM witnessed WHERE identity = ?1 AND ledger = ?2"
                    " ORDER BY sequence DESC LIMIT ?3)",
                    (identity, stated.approved.ledger, MOST_WITNESSED_HEADS),
                )
                self._connection.execute(
                    "DELETE FROM witnessed WHERE identity = ?1 AND ledger NOT IN (SELECT ledger FROM witnessed"
                    " WHERE identity = ?1 GROUP BY ledger ORDER BY max(rowid) DESC LIMIT ?2)",
                    (identity, MOST_WITNESSED_LEDGERS),
                )

    def end_study(self, study_hash: bytes, outcome: ApprovalState, *, now: int) -> None:
        """Records how a study ended; what it did not charge is free again.

        Guarantee: the study's secret and the bytes of its answers are erased in the transaction that records the end;
        headers and charges stay. Copies in the write-ahead log are gone when this returns or, where another process
        was reading for too long, when this is called again or the ledger is next opened.
        """
        assert outcome is not ApprovalState.OPEN, "an end"
        with self._transaction():
            approval = self.account().approvals.get(study_hash.hex())
            if approval is not None and approval.state is ApprovalState.OPEN:
                _append(self._connection, _closing_entry(study_hash, outcome), now)
                self._connection.execute("DELETE FROM study_secrets WHERE study = ?", (study_hash,))
                self._connection.execute("UPDATE answers SET payload = x'' WHERE study = ?", (study_hash,))
        empty_log(self._connection)

    def rotate(self, rotation: Rotation, *, now: int) -> None:
        """Records that this party's identity, or the curator's, was rotated; the chain goes on.

        Guarantee: refused while a study is open under the old key. A study that is approved and not yet answered is
        not bound to a curator's key.
        """
        with self._transaction():
            account = self.account()
            is_own = rotation.name != CURATOR_NAME
            for approval in account.open_approvals:
                if is_own or approval.charges:
                    raise refused(
                        f"the study {approval.name} is open under the old key.",
                        "Wait for its end, or end it with `synod party revoke`; nothing was changed.",
                    )
            own = account.own_rotations
            if is_own and own and (own[-1].name, own[-1].new) != (rotation.name, rotation.old):
                raise check_failed("the rotation is not from the key that this ledger was last rotated to.")
            _append(self._connection, {"kind": "rotated", "rotation": rotation.to_json()}, now)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing; what could not be read again is never stored."""
        with transaction(self._connection), storage_errors(self._connection):
            yield
            self.account()

    def _rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with storage_errors(self._connection):
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


def _closing_entry(study_hash: bytes, outcome: ApprovalState) -> dict[str, Json]:
    if outcome is ApprovalState.REVOKED:
        return {"kind": "revoked", "study": study_hash.hex()}
    return {"kind": "closed", "study": study_hash.hex(), "outcome": outcome.value}


def draw_study_secret() -> bytes:
    """A new study's secret, from the operating system's generator."""
    return secrets.token_bytes(KEY_BYTES)


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
