"""Studies that the pinned curator has announced, kept in a file beside the ledger for the operator to look at.

Nothing here was agreed to, and nothing is decided by it: it may be deleted at any time, and the daemon fills it again.
The daemon writes while commands read; SQLite keeps them apart, as it does for the ledger.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synod.common.crypto.canonical import canonical_bytes
from synod.common.crypto.identity import fingerprint
from synod.common.protocol.notices import require_announcement
from synod.common.runtime.errors import SynodError, check_failed, refused
from synod.common.runtime.jsontext import DocumentError, read_json
from synod.common.runtime.sqlite import open_database, storage_errors, transaction
from synod.common.study.study import LARGEST_ROSTER, SLUG, Study, parse_study

ANNOUNCED_FILE = "announced.sqlite"
MOST_STUDIES = 64
LARGEST_STUDY_BYTES = 900 << 10  # as much as a curator takes
FRESH_SECONDS = 60
MIGRATIONS = (
    """
CREATE TABLE announced (
    study BLOB PRIMARY KEY, document BLOB NOT NULL, curator BLOB NOT NULL, signature BLOB NOT NULL,
    first_heard INTEGER NOT NULL, last_heard INTEGER NOT NULL, enrolled BLOB NOT NULL
);
""",
)


@dataclass(frozen=True, slots=True)
class Announced:
    """An announced study; `enrolled` are those who have approved it, which is the curator's word and nobody else's."""

    study: Study
    first_heard: int
    last_heard: int
    enrolled: tuple[str, ...]


def read_announced_study(document: bytes, study_hash: bytes) -> Study:
    """The resolved study of a document of the curator's, if it is the one that was announced.

    Guarantee: whoever shows it shows what has the announced hash, and nothing else can be approved under that hash.
    """
    if len(document) > LARGEST_STUDY_BYTES:
        raise refused(f"the curator's study is larger than {LARGEST_STUDY_BYTES >> 10} KiB.")
    try:
        data = read_json(document)
    except DocumentError as error:
        raise check_failed(f"a document of the curator's {error.reason}.") from None
    study = parse_study(data, "the curator's study").resolve()
    if study.digest() != study_hash:
        raise refused("the curator's study does not have the hash that it is announced with.")
    return study


def keep_announced(folder: Path, study: Study, *, curator: bytes, signature: bytes, now: int) -> None:
    """Keeps an announced study; of too many, those that were not heard of for longest make room.

    Guarantee: refused unless the curator of this key has signed the announcement.
    """
    study_hash = study.digest()
    require_announcement(curator, study_hash, signature)
    row = (study_hash, canonical_bytes(study.to_json()), curator, signature, now, now, b"[]")
    with _opened(folder) as connection, transaction(connection):
        connection.execute("INSERT OR REPLACE INTO announced VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        connection.execute(
            "DELETE FROM announced WHERE study NOT IN (SELECT study FROM announced ORDER BY last_heard DESC, rowid DESC"
            " LIMIT ?)",
            (MOST_STUDIES,),
        )


def hear_again(folder: Path, study_hash: bytes, enrolled: Sequence[str], *, now: int) -> bool:
    """Notes that a study is still announced, and who has approved it as the curator says; False if it is not kept."""
    names = sorted({name for name in enrolled[:LARGEST_ROSTER] if SLUG.fullmatch(name)})
    told = canonical_bytes([*names])
    with _opened(folder) as connection:
        with storage_errors(connection):
            rows = connection.execute(
                "SELECT last_heard, enrolled FROM announced WHERE study = ?", (study_hash,)
            ).fetchall()
        if not rows:
            return False
        ((last_heard, before),) = rows
        if bytes(before) != told or not 0 <= now - last_heard < FRESH_SECONDS:
            with transaction(connection):
                connection.execute(
                    "UPDATE announced SET last_heard = ?, enrolled = ? WHERE study = ?", (now, told, study_hash)
                )
    return True


def forget_announced(folder: Path, study_hash: bytes) -> None:
    """Removes a study that has ended."""
    if (folder / ANNOUNCED_FILE).exists():
        with _opened(folder) as connection, transaction(connection):
            connection.execute("DELETE FROM announced WHERE study = ?", (study_hash,))


def list_announced(folder: Path, curator: str) -> list[Announced]:
    """The studies that the curator of this fingerprint has announced, the latest first.

    Guarantee: each has the hash and the signature that it was announced with; what is changed in the file, or was
    announced by a curator who is not pinned any more, is not listed.
    """
    if not (folder / ANNOUNCED_FILE).exists():
        return []
    with _opened(folder) as connection, storage_errors(connection):
        rows = connection.execute("SELECT * FROM announced ORDER BY first_heard DESC, rowid DESC").fetchall()
    return [found for row in rows if (found := _read(row, curator)) is not None]


def _read(row: tuple[Any, ...], curator: str) -> Announced | None:
    study_hash, document, key, signature, first_heard, last_heard, told = row
    if fingerprint(bytes(key)) != curator:
        return None
    try:
        study = read_announced_study(bytes(document), bytes(study_hash))
        require_announcement(bytes(key), study.digest(), bytes(signature))
        enrolled = set(json.loads(told))
    except (SynodError, ValueError, TypeError):
        return None
    return Announced(study, first_heard, last_heard, tuple(name for name in study.party_names if name in enrolled))


@contextmanager
def _opened(folder: Path) -> Iterator[Any]:
    connection = open_database(folder / ANNOUNCED_FILE, create=True, migrations=MIGRATIONS)
    try:
        yield connection
    finally:
        connection.close()
