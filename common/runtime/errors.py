"""The one family of errors, and the one table from their codes to gRPC statuses and exit codes.

An error is a sentence for a person: what is wrong, and a hint that says whose move it is. It never holds a
private value, a count or a key; `tests/unit/common/runtime/test_errors.py` looks for them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

LONGEST_SENTENCE = 2_000


class Code(Enum):
    """What kind of trouble it is; the same names travel in the `synod-code` trailer."""

    INVALID = "invalid"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    UNAUTHENTICATED = "unauthenticated"
    NOT_ON_ROSTER = "not-on-roster"
    NOT_FOUND = "not-found"
    CONFLICT = "conflict"
    NOT_READY = "not-ready"
    CHECK_FAILED = "check-failed"
    ABORTED = "aborted"
    STORAGE = "storage"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a code leaves the program: as the name of a gRPC status and as an exit code."""

    status: str
    exit_code: int


OUTCOMES: dict[Code, Outcome] = {
    Code.INVALID: Outcome("INVALID_ARGUMENT", 2),
    Code.REFUSED: Outcome("FAILED_PRECONDITION", 3),
    Code.UNREACHABLE: Outcome("UNAVAILABLE", 4),
    Code.UNAUTHENTICATED: Outcome("UNAUTHENTICATED", 4),
    Code.NOT_ON_ROSTER: Outcome("PERMISSION_DENIED", 4),
    Code.NOT_FOUND: Outcome("NOT_FOUND", 1),
    Code.CONFLICT: Outcome("ALREADY_EXISTS", 1),
    Code.NOT_READY: Outcome("FAILED_PRECONDITION", 1),
    Code.CHECK_FAILED: Outcome("DATA_LOSS", 5),
    Code.ABORTED: Outcome("ABORTED", 1),
    Code.STORAGE: Outcome("RESOURCE_EXHAUSTED", 1),
    Code.INTERNAL: Outcome("INTERNAL", 1),
}


def _one_line(text: str) -> str:
    """What a terminal or a log can show on one line: a sentence may quote a name that somebody else chose."""
    shown = text if len(text) <= LONGEST_SENTENCE else f"{text[:LONGEST_SENTENCE]}..."
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in shown)


class SynodError(Exception):
    """A readable failure. `sentence` says what is wrong, `hint` what to do next; both are one line each, and safe to
    show anyone whom the raising code talks to. `further` are other things that are wrong, one line each, for whoever
    wants to put all of them right at once.
    """

    def __init__(self, code: Code, sentence: str, hint: str = "", further: Sequence[str] = ()) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = _one_line(sentence)
        self.hint = _one_line(hint)
        self.further = tuple(_one_line(line) for line in further)

    def __str__(self) -> str:
        return f"{self.sentence} {self.hint}".rstrip()


def invalid(sentence: str, hint: str = "", further: Sequence[str] = ()) -> SynodError:
    """Bad input: a study, a configuration, a table or a message that breaks a rule."""
    return SynodError(Code.INVALID, sentence, hint, further)


def refused(sentence: str, hint: str = "") -> SynodError:
    """Sound input that a policy or a budget does not allow."""
    return SynodError(Code.REFUSED, sentence, hint)


def check_failed(sentence: str, hint: str = "") -> SynodError:
    """A signature, hash or bound that does not hold."""
    return SynodError(Code.CHECK_FAILED, sentence, hint)
