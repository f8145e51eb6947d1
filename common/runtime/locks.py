"""One process at a time over a state folder or a file; the lock is gone with the process, however it ends."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from synod.common.runtime.errors import Code, SynodError


@contextmanager
def exclusive_lock(folder: Path) -> Iterator[None]:
    """Holds the folder, or says that another process does."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / "process.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SynodError(Code.CONFLICT, f"another process is serving {folder}.", "Stop that one first.") from None
        yield


@contextmanager
def one_at_a_time(path: Path) -> Iterator[None]:
    """Waits for its turn to change what belongs to a file; for short work on commands' own folders."""
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
