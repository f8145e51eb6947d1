"""Marks of a source: what tells that a table is one that was approved before, under whatever name of its dataset.

Marks are private: a digest of rows lets somebody who guesses them check the guess. They leave only sealed, under the
ledger's secret.
"""

import hashlib
from pathlib import Path

from synod.common.runtime.errors import invalid
from synod.party.table.folder import is_folder, list_files
from synod.party.table.snapshot import Snapshot


def mark_source(source: Path, snapshot: Snapshot) -> tuple[bytes, ...]:
    """Where the table is, what is in the file, and what was read of it: one digest each.

    A file that was moved has the second mark of before, and one that was written anew in another format the third, for
    studies of the same schema. A file that was moved and changed has none of them.
    """
    content = digest_content(source)
    place = hashlib.sha256(str(source.resolve()).encode("utf-8", "surrogateescape")).digest()
    return b"path" + place, b"file" + content, b"rows" + snapshot.digest()


def digest_content(source: Path) -> bytes:
    """A digest of the file; of a folder, of what is in its files, one after another."""
    if is_folder(source):
        return hashlib.sha256(b"".join(map(_digest_file, list_files(source)))).digest()
    return _digest_file(source)


def _digest_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError as error:
        raise invalid(f"{path.name} cannot be read ({type(error).__name__}).", "Check `source`.") from None
