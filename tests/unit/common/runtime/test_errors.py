"""The table of errors is complete, its exit codes are the documented ones, and no sentence is made of secrets."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from synod.common.runtime.errors import OUTCOMES, Code, SynodError, check_failed, invalid, refused
from synod.deploy.cli.terminal import EXIT_CODES

ROOT = Path(__file__).resolve().parents[4]
ROOMS = ("common", "party", "curator", "deploy")


def test_every_code_has_an_outcome() -> None:
    assert set(OUTCOMES) == set(Code)
    assert len({code.value for code in Code}) == len(Code)


@pytest.mark.parametrize("code", Code)
def test_statuses_are_grpcs_and_never_ok(code: Code) -> None:
    assert OUTCOMES[code].status in grpc.StatusCode.__members__
    assert OUTCOMES[code].status not in ("OK", "UNKNOWN")


@pytest.mark.parametrize("code", Code)
def test_codes_travel_in_a_trailer(code: Code) -> None:
    assert re.fullmatch(r"[a-z-]+", code.value)


def test_exit_codes_are_the_documented_ones() -> None:
    assert {code: outcome.exit_code for code, outcome in OUTCOMES.items()} == {
        Code.INVALID: 2,
        Code.REFUSED: 3,
        Code.UNREACHABLE: 4,
        Code.UNAUTHENTICATED: 4,
        Code.NOT_ON_ROSTER: 4,
        Code.NOT_FOUND: 1,
        Code.CONFLICT: 1,
        Code.NOT_READY: 1,
        Code.CHECK_FAILED: 5,
        Code.ABORTED: 1,
        Code.STORAGE: 1,
        Code.INTERNAL: 1,
    }
    for number, meaning in enumerate(
        [
            "done",
            "failed",
            "usage or invalid input",
            "refused by policy or budget",
            "cannot reach or authenticate",
            "check failed",
        ]
    ):
        assert f"{number} {meaning}" in EXIT_CODES


def test_an_error_is_a_sentence_and_a_hint() -> None:
    error = SynodError(Code.REFUSED, "It is refused.", "Ask again.")
    assert str(error) == "It is refused. Ask again."
    assert str(SynodError(Code.REFUSED, "It is refused.")) == "It is refused."
    assert error.args == ("It is refused.",)
    assert (invalid("x").code, refused("x").code, check_failed("x").code) == (
        Code.INVALID,
        Code.REFUSED,
        Code.CHECK_FAILED,
    )


def modules() -> list[Path]:
    return sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def sentences(tree: ast.AST) -> Iterator[ast.Call]:
    """Every call that makes an error."""
    makers = {"SynodError", "invalid", "refused", "check_failed", "_rejected"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in makers:
            yield node


def interpolated(call: ast.Call) -> Iterator[ast.expr]:
    """Every expression that goes into the text of a call."""
    for argument in call.args:
        for node in ast.walk(argument):
            if isinstance(node, ast.FormattedValue):
                yield node.value


PRIVATE = re.compile(
    r"secret|private|nonce|payload|plaintext|mask|coins|noise|shares|codes|\bvalues\b|\brow\b|signature\b|root|snapshot\b"
)


def test_no_sentence_is_made_of_something_private() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{call.lineno}: {ast.unparse(expression)}"
        for path in modules()
        for call in sentences(ast.parse(path.read_text()))
        for expression in interpolated(call)
        if PRIVATE.search(ast.unparse(expression))
    ]
    assert found == []


def test_no_sentence_repeats_the_text_of_a_foreign_exception() -> None:
    """An exception of a library may quote what it choked on; its type's name may be shown, and errno's own words."""
    found = []
    for path in modules():
        for handler in (n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.ExceptHandler)):
            if handler.name is None or ast.unparse(handler.type or ast.Name("")) == "SynodError":
                continue
            found += [
                f"{path.relative_to(ROOT)}:{call.lineno}"
                for call in sentences(handler)
                for expression in interpolated(call)
                if ast.unparse(expression) in (handler.name, f"str({handler.name})", f"repr({handler.name})")
                or f"{handler.name}.args" in ast.unparse(expression)
            ]
    assert found == []


def test_the_scan_sees_what_it_looks_for() -> None:
    call = next(sentences(ast.parse('raise invalid(f"the key {self.secret!r} is bad", f"try {payload[0]}")')))
    assert [ast.unparse(expression) for expression in interpolated(call)] == ["self.secret", "payload[0]"]
    assert all(PRIVATE.search(ast.unparse(expression)) for expression in interpolated(call))
    assert sum(1 for path in modules() for _ in sentences(ast.parse(path.read_text()))) > 80
