"""A value that is read from files, and read again when they change, under a running daemon."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from synod.common.runtime.errors import SynodError

T = TypeVar("T")


class Watched(Generic[T]):
    """The files' value; `read` is given the value before, or None at first.

    The first reading must succeed. If what the files hold later is refused, `reject` is told once for each change, and
    the last good value stays: a file that is half copied stops nobody.
    """

    def __init__(
        self, paths: Sequence[Path], read: Callable[[T | None], T], *, reject: Callable[[SynodError], None]
    ) -> None:
        self._paths = paths
        self._read = read
        self._reject = reject
        self._lock = threading.Lock()
        self._seen = self._stamps()
        self._value = read(None)

    def current(self) -> T:
        """The value of the files as they are now, or as they last were any good."""
        with self._lock:
            stamps = self._stamps()  # before the reading: a change during it is seen the next time
            if stamps != self._seen:
                self._seen = stamps
                try:
                    self._value = self._read(self._value)
                except SynodError as error:
                    self._reject(error)
            return self._value

    def _stamps(self) -> list[tuple[int, int, int] | None]:
        return [_stamp(path) for path in self._paths]


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
