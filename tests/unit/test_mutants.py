"""The list of `make mutants` cannot rot: every edit still applies, once, and its tests are there."""

from pathlib import Path

import pytest

from tests.mutants import __main__ as runner
from tests.mutants.__main__ import Copy, Verdict
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


# The runner

PROGRAM = "LIMIT = 4\nUNSEEN = 1\n"
TEST = """
import time
import limits

def test_the_limit():
    time.sleep(60 if limits.LIMIT == 9 else 0)
    assert limits.LIMIT == 4
"""


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Copy:
    """A copy of a program of two lines with one test, beside its clone."""
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / "limits.py").write_text(PROGRAM)
    (clone / "test_limits.py").write_text(TEST)
    monkeypatch.setattr(runner, "ROOT", clone)
    return Copy(tmp_path / "copy")


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        ("LIMIT = 4", "LIMIT = 5", Verdict.KILLED),
        ("UNSEEN = 1", "UNSEEN = 2", Verdict.SURVIVED),
        ("LIMIT = 4", "raise OSError", Verdict.BROKEN),
        ("LIMIT = 4", "LIMIT = 9", Verdict.LATE),
    ],
)
def test_an_edit_is_tried_out_and_taken_back(
    copy: Copy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, verdict: Verdict
) -> None:
    """Where no test ran, or none ended, none has found anything."""
    if verdict is Verdict.LATE:
        monkeypatch.setattr(runner, "MOST_SECONDS", 8)
    tried = Edit("limits.py", "something", old, new, ("test_limits.py",))
    assert copy.try_out(tried).verdict is verdict
    assert {(tmp_path / name / "limits.py").read_text() for name in ("copy", "clone")} == {PROGRAM}


def test_compiled_code_never_hides_an_edit_or_its_end(
    copy: Copy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python compares size and whole seconds: however quick the tests, the three texts are of different seconds."""
    file = tmp_path / "copy" / "limits.py"
    seconds = [int(file.stat().st_mtime)]

    def run(*_: object) -> int:
        seconds.append(int(file.stat().st_mtime))
        return runner.FAILED

    monkeypatch.setattr(Copy, "run", run)
    copy.try_out(Edit("limits.py", "something", "LIMIT = 4", "LIMIT = 5", ()))
    seconds.append(int(file.stat().st_mtime))
    assert len(set(seconds)) == 3
