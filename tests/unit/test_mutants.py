"""The list of `make mutants` cannot rot: every edit still applies, once, and its tests are there."""

from pathlib import Path

import pytest

from tests.mutants.edit import Edit, apply
from tests.mutants.edits import EDITS

ROOT = Path(__file__).resolve().parents[2]
LEAST_EDITS = 80


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: f"{edit.file}: {edit.breaks}")
def test_an_edit_applies_once_and_its_tests_are_there(edit: Edit) -> None:
    text = (ROOT / edit.file).read_text()
    altered = apply(edit, text)
    compile(altered, edit.file, "exec")
    assert all((ROOT / test.partition("::")[0]).exists() for test in edit.tests)


def test_there_are_enough_and_none_is_listed_twice() -> None:
    assert len(EDITS) >= LEAST_EDITS
    assert len({(edit.file, edit.old, edit.new) for edit in EDITS}) == len(EDITS)
    assert len({(edit.file, edit.breaks) for edit in EDITS}) == len(EDITS)


def edit_of(old: str, new: str) -> Edit:
    return Edit("a.py", "something", old, new, ())


def test_an_edit_whose_text_is_gone_or_there_twice_is_an_error() -> None:
    for old, times in (("y", 0), ("x", 2)):
        with pytest.raises(ValueError, match=f"{times} times"):
            apply(edit_of(old, "z"), "x = 1\nx = 2\n")


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("x = 1  # one\n", "one", "two"),
        ('"""One."""\n', "One", "Two"),
        ('def f():\n    """One."""\n    return 1\n', "One", "Two"),
        ("x = 1\n", "x = 1", "x  =  1"),
    ],
)
def test_an_edit_that_changes_nothing_that_runs_is_an_error(text: str, old: str, new: str) -> None:
    with pytest.raises(ValueError, match="runs as before"):
        apply(edit_of(old, new), text)
    assert apply(edit_of("x", "y"), "x = 1\n") == "y = 1\n"
