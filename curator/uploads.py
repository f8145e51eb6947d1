"""Answers on their way in: one for each party and round, on disk until they are whole.

Of an answer that is still arriving, no more than one chunk is in memory. Its file has no name, so that a curator that
is killed leaves nothing behind.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from synod.common.protocol.submission import Submission
from synod.common.runtime.errors import Code, SynodError, invalid


class Upload:
    """One answer on its way; never longer than its header says."""

    def __init__(self, file: IO[bytes], length: int) -> None:
        self._file = file
        self._length = length
        self._written = 0

    def add(self, chunk: bytes) -> None:
        """Writes what has come in."""
        self._written += len(chunk)
        if self._written > self._length:
            raise invalid("the upload is longer than its header says.")
        left = memoryview(chunk)
        with _disk_errors():
            while left:
                left = left[self._file.write(left) :]

    def read(self) -> bytes:
        """All that has come in."""
        with _disk_errors():
            self._file.seek(0)
            return self._file.read()


class Uploads:
    """All answers on their way. For the event loop's thread only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: set[tuple[str, bytes, str]] = set()

    @contextmanager
    def open(self, party: str, submission: Submission) -> Iterator[Upload]:
        """Room for one answer, until the caller is done with it; a second one for the same round is refused."""
        key = (party, submission.study_hash, submission.label)
        if key in self._open:
            raise SynodError(
                Code.UNREACHABLE,
                f"another upload of {party} for round {submission.label} is under way.",
                "Try again when it has ended; one whose connection is lost ends within a minute.",
            )
        self._open.add(key)
        try:
            with self._make_file() as file:
                yield Upload(file, submission.length)
        finally:
            self._open.remove(key)

    def _make_file(self) -> IO[bytes]:
        with _disk_errors():
            return tempfile.TemporaryFile(dir=self._folder, buffering=0)


@contextmanager
def _disk_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SynodError(
            Code.STORAGE,
            f"the curator cannot keep the answer ({type(error).__name__}).",
            "Check its free disk space, the volume and its permissions.",
        ) from error
