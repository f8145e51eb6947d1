"""Marks of a source: what tells that a table is one that was approved before, under whatever name of its dataset.

Marks are private: a digest of rows lets somebody who guesses them check the guess. They leave only sealed, under the
ledger's secret.
"""

import hashlib
from pathlib import Path

from synod.common.runtime.errors import invalid
from synod.party.table.snapshot import Snapshot


def mark_source(source: Path, snapshot: Snapshot) -> tuple[bytes, ...]:
    """Where the table is, what is in the file, and what was read of it: one digest each.

    A file that was moved has the second mark of before, and one that was written anew in another format the third, for
    studies of the same schema. A file that was moved and changed has none of them.
    """
    try:
        with source.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").digest()
    except OSError as error:
        raise invalid(f"{source.name} cannot be read ({type(error).__name__}).", "Check `source`.") from None
    place = hashlib.sha256(str(source.resolve()).encode("utf-8", "surrogateescape")).digest()
    return b"path" + place, b"file" + content, b"rows" + snapshot.digest()
