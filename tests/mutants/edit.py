"""One way to break the program: a text that occurs once in a file, and what stands there instead."""

import ast
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """`breaks` says what is wrong afterwards; one of `tests`, files or single tests of one, must fail then."""

    file: str
    breaks: str
    old: str
    new: str
    tests: tuple[str, ...]


def apply(edit: Edit, text: str) -> str:
    """The file's text with the edit made; raises ValueError unless that changes what runs, in exactly one place."""
    if text.count(edit.old) != 1:
        raise ValueError(f"{edit.file} has {edit.old!r} {text.count(edit.old)} times, and not once.")
    altered = text.replace(edit.old, edit.new)
    if _what_runs(altered) == _what_runs(text):
        raise ValueError(f"{edit.file} runs as before without {edit.old!r}.")
    return altered


def _what_runs(text: str) -> str:
    """A program without its comments and docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = node.body[ast.get_docstring(node) is not None :]
    return ast.dump(tree)


def edits_of(file: str, tests: str | tuple[str, ...], *changes: tuple[str, str, str]) -> tuple[Edit, ...]:
    """Edits of one file that the same tests must find: what breaks, the text, and what stands there instead."""
    named = (tests,) if isinstance(tests, str) else tests
    return tuple(Edit(file, breaks, old, new, named) for breaks, old, new in changes)
