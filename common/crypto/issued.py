"""What a transport authority notes of every certificate that it issues: one line each, in `issued.txt`.

A certificate is noted before it is written. So a line that a crash has cut off at the end of the file is of a
certificate that nobody has, and is passed over; a line that cannot be read elsewhere may be of one that somebody has.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from synod.common.runtime.errors import invalid
from synod.common.runtime.files import write_public_file

ISSUED = "issued.txt"
_LINE = re.compile(r"([0-9a-f]{1,64}) (synod:[a-z]+:[a-z0-9-]+) ([0-9TZ:-]{20}) (sha256:[0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Issued:
    """One certificate: serial number, its holder's URI, until when it is valid, and its key's fingerprint."""

    serial: int
    uri: str
    until: str
    key: str

    @property
    def line(self) -> str:
        """How it is noted."""
        return f"{self.serial:x} {self.uri} {self.until} {self.key}"


@dataclass(frozen=True, slots=True)
class Notes:
    """All that was noted, and the numbers of the lines that cannot be read."""

    issued: tuple[Issued, ...]
    unreadable: tuple[int, ...]


def read_issued(folder: Path) -> Notes:
    """What the authority in `folder` has noted; nothing if it has issued nothing."""
    try:
        text = (folder / ISSUED).read_bytes().decode("ascii", "replace")
    except FileNotFoundError:
        return Notes((), ())
    except OSError as error:
        raise invalid(f"{folder / ISSUED} cannot be read: {error.strerror}.", "Check its permissions.") from None
    matches = [_LINE.fullmatch(line) for line in text.split("\n")]
    found = [Issued(int(match[1], 16), match[2], match[3], match[4]) for match in matches if match]
    return Notes(tuple(found), tuple(number for number, match in enumerate(matches[:-1], 1) if not match))


def note_issued(folder: Path, issued: Issued) -> None:
    """Adds a line, durably: the file has it whole or not at all, and a line that was cut off is gone.

    The caller sees to it that nobody else adds one meanwhile.
    """
    path = folder / ISSUED
    before = path.read_bytes() if path.exists() else b""
    whole, _, last = before.rpartition(b"\n")
    if _LINE.fullmatch(last.decode("ascii", "replace")):
        whole = before
    write_public_file(path, (whole + b"\n" if whole else b"") + issued.line.encode("ascii") + b"\n")
