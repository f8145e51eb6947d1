"""Marks of a source: what tells that a table is one that was approved before, under whatever name of its dataset.

Marks are private: a digest of rows lets somebody who guesses them check the guess. They leave only sealed, under the
ledger's secret.
"""

import hashlib
from pathlib import Path

from synod.common.runtime.errors import invalid
from synod.common.runtime.settings import Database
from synod.party.table.engines.select import asked, digest_database
from synod.party.table.folder import is_folder, list_files
from synod.party.table.order import sum_rows
from synod.party.table.snapshot import Snapshot
from synod.party.table.source import Source


def mark_source(source: Source, snapshot: Snapshot) -> tuple[bytes, ...]:
    """Where the table is, what is in the file, and what was read of it, in any order: one digest each.

    A file that was moved has the second mark of before, and a table that was written anew, in another format or order
    or in a database, the third, for studies of the same schema. What was moved and changed has none of them. A server
    has no file.
    """
    place, content = digest_place(source), digest_content(source)
    file = [b"file" + content] if content else []
    return b"path" + place, *file, b"rows" + sum_rows(snapshot.columns)


def digest_place(source: Source) -> bytes:
    """Where the table is."""
    if isinstance(source, Database):
        return digest_database(source)
    return hashlib.sha256(str(source.resolve()).encode("utf-8", "surrogateescape")).digest()


def digest_content(source: Source) -> bytes:
    """A digest of the file; of a folder, of what is in its files, one after another. A file of DuckDB may have several
    tables, so which of them it is counts, too. Empty for a server.
    """
    if isinstance(source, Database):
        return hashlib.sha256(_digest_file(source.file) + asked(source).encode()).digest() if source.file else b""
    if is_folder(source):
        return hashlib.sha256(b"".join(map(_digest_file, list_files(source)))).digest()
    return _digest_file(source)


def _digest_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError as error:
        raise invalid(f"{path.name} cannot be read ({type(error).__name__}).", "Check `source`.") from None
