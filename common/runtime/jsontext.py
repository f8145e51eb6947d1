"""Reads JSON that others wrote: what could take long to read, or to work with, is refused before it is parsed."""

import json
import re
from pathlib import Path
from typing import Any

LARGEST_DOCUMENT_BYTES = 64 << 20
DEEPEST_DOCUMENT = 64
LONGEST_NUMBER = 40
# Each of these stands for a value of its own once it is parsed, which takes many times the room of its characters.
MOST = {
    "commas": (b",", 20_000_000),  # twice the largest table
    "colons": (b":", 1_000_000),
    "lists": (b"[", 1_000_000),
    "objects": (b"{", 500_000),
    "quotation marks": (b'"', 5_000_000),
}

# Ends at the end of the text if nothing else ends it, so that no second attempt starts inside of it.
_TEXT = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_BRACKETS = re.compile(r"[^\[\]{}]++")
_LONG_NUMBER = re.compile(rf"[0-9.eE+-]{{{LONGEST_NUMBER + 1}}}")


class DocumentError(ValueError):
    """A document that is not read; `reason` ends a sentence that starts with what it is, and quotes nothing of it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def read_json(document: bytes, most_bytes: int = LARGEST_DOCUMENT_BYTES) -> Any:
    """The value of a JSON document in UTF-8 that passes `check_json`, each key of an object once.

    Raises:
        DocumentError: it is not such a document.
    """
    text = check_json(document, most_bytes)
    try:
        return json.loads(text, object_pairs_hook=_refuse_repeats, parse_constant=_refuse_constant)
    except DocumentError:
        raise
    except ValueError:
        raise DocumentError("is not JSON") from None


def check_json(document: bytes, most_bytes: int = LARGEST_DOCUMENT_BYTES) -> str:
    """The text of a document that may be parsed, which takes time and room in proportion to its length.

    1. It is no larger than `most_bytes`; 2. it has no more commas, colons, brackets and quotation marks than `MOST`
    allows, those in texts counted; 3. it is UTF-8; 4. no number in it is longer than 40 characters; 5. it is nested at
    most 64 deep.

    Raises:
        DocumentError: it is not such a document.
    """
    # 1
    if len(document) > most_bytes:
        raise DocumentError(f"is larger than {most_bytes >> 20} MiB")
    # 2
    for what, (mark, most) in MOST.items():
        if document.count(mark) > most:
            raise DocumentError(f"has more than {most:,} {what}")
    # 3
    try:
        text = document.decode("utf-8")
    except UnicodeDecodeError:
        raise DocumentError("is not UTF-8 text") from None
    # 4
    bare = _TEXT.sub("", text)
    if _LONG_NUMBER.search(bare):
        raise DocumentError(f"has a number of more than {LONGEST_NUMBER} digits")
    # 5
    if _is_deep(_BRACKETS.sub("", bare)):
        raise DocumentError(f"is nested more than {DEEPEST_DOCUMENT} deep")
    return text


def read_json_file(path: Path, most_bytes: int = LARGEST_DOCUMENT_BYTES) -> Any:
    """The same for a file, of which no more is read than may be; raises OSError where there is none."""
    return read_json(read_bytes(path, most_bytes), most_bytes)


def read_bytes(path: Path, most_bytes: int = LARGEST_DOCUMENT_BYTES) -> bytes:
    """A file's bytes, one more than may be if it is larger; raises OSError where there is none."""
    with path.open("rb") as file:
        return file.read(most_bytes + 1)


def _is_deep(brackets: str) -> bool:
    depth = 0
    for bracket in brackets:
        depth += 1 if bracket in "[{" else -1
        if depth > DEEPEST_DOCUMENT:
            return True
    return False


def _refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise DocumentError("has the same key twice in one object")
    return found


def _refuse_constant(name: str) -> None:
    raise DocumentError(f"holds {name}, which is not JSON")
