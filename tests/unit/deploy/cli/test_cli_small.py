"""Small things that people notice: whom a study waits for, what Ctrl-C does, full texts, files that errors name."""

import errno
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import get_completion_class

from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.files import write_new_file, write_private_file, write_public_file
from synod.common.runtime.sqlite import open_database, storage_errors, transaction
from synod.common.study.study import known_methods
from synod.deploy.cli import study as study_command
from synod.deploy.cli.main import main
from synod.deploy.cli.progress import head_line, watch_status
from synod.deploy.launch.operator import OperatorClient
from synod.v1 import study_pb2 as pb
from tests.support.commands import complaint, synod, write_study

PARTIES = [
    pb.PartyStatus(name="north", enrolled=True, awaited=True, awaited_since=5),
    pb.PartyStatus(name="harbour", enrolled=True),
    pb.PartyStatus(name="valley", not_approved=True, awaited=True, awaited_since=5),
    pb.PartyStatus(name="hill", awaited=True, awaited_since=5),
]
ENROLLING = pb.StudyStatus(name="survey", state=pb.STUDY_STATE_ENROLLING, parties=PARTIES[1:])
RUNNING = pb.StudyStatus(name="survey", state=pb.STUDY_STATE_RUNNING, parties=PARTIES[:2])
PUBLISHED = pb.StudyStatus(name="survey", state=pb.STUDY_STATE_PUBLISHED)


def write_operator(folder: Path) -> Path:
    path = folder / "operator.yaml"
    path.write_text("address: 127.0.0.1:1\ntls: {ca: a.pem, certificate: b.pem, key: c.pem}\n")
    return path


@pytest.fixture(autouse=True)
def _no_wire(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OperatorClient, "__init__", lambda *_: None)
    monkeypatch.setattr(OperatorClient, "close", lambda *_: None)


def test_the_first_line_names_whom_a_study_waits_for() -> None:
    assert head_line(ENROLLING) == "survey: enrolling, waits for the approval of valley and the enrolment of hill"
    assert head_line(RUNNING) == "survey: running, waits for the answer of north"
    assert head_line(PUBLISHED) == "survey: published"
    many = [pb.PartyStatus(name=f"p{number}", enrolled=True, awaited=True) for number in range(10)]
    told = head_line(pb.StudyStatus(name="survey", state=pb.STUDY_STATE_RUNNING, parties=many))
    assert told.endswith("of p0, p1, p2, p3, p4, p5, p6, p7 and 2 others")


def test_watch_has_a_line_for_each_change_and_ends_with_the_study(capsys: pytest.CaptureFixture[str]) -> None:
    seen = iter([[ENROLLING], [ENROLLING], [RUNNING], [RUNNING], [PUBLISHED]])
    pauses: list[None] = []
    watch_status(lambda: next(seen), pause=lambda: pauses.append(None))
    lines = [line.split("UTC  ")[1] for line in capsys.readouterr().out.splitlines()]
    assert lines == [head_line(ENROLLING), head_line(RUNNING), head_line(PUBLISHED)]
    assert len(pauses) == 4


def test_watch_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OperatorClient, "status", lambda *_: [PUBLISHED])
    config = write_operator(tmp_path)
    ending = synod("study", "status", "survey", "--watch", "--config", config)
    assert (ending.code, ending.out.split("UTC  ")[1]) == (0, "survey: published\n")
    complaint(synod("study", "status", "--watch", "--json", "--config", config), 2)

    def interrupted(*_: object) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(OperatorClient, "newest", interrupted)
    assert synod("study", "status", "--watch", "--config", config).code == 0


@pytest.mark.parametrize("step", ["submit", "status", "fetch"])
def test_ctrl_c_on_run_says_that_the_study_goes_on(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(OperatorClient, "submit", lambda *_: b"")
    monkeypatch.setattr(OperatorClient, "status", lambda *_: [PUBLISHED])
    monkeypatch.setattr(OperatorClient, step, interrupted)
    study = write_study(tmp_path / "study.yaml")
    ending = synod("study", "run", study, "--out", tmp_path / "out", "--config", write_operator(tmp_path))
    told = complaint(ending, 1)
    assert "care-survey goes on at the curator" in told
    assert "`synod study status care-survey`" in told
    assert "`synod study abort care-survey`" in told
    assert study_command.going_on.__doc__


def test_no_help_text_is_cut() -> None:
    for group in ([], ["party"], ["study"], ["certs"], ["curator"], ["trust"]):
        text = synod(*group, "--help").out
        assert "..." not in text.split("Commands:")[1], group


def test_every_method_is_listed_with_its_title() -> None:
    lines = synod("methods").out.splitlines()[:-1]
    assert [line.split()[0] for line in lines] == sorted(known_methods())
    assert all(len(line.split(maxsplit=1)[1]) > 10 for line in lines)


@pytest.mark.parametrize("write", [write_private_file, write_public_file, write_new_file])
def test_a_full_disk_names_the_file(write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __init__(self, file: Any) -> None:
            self._file = file

        def __enter__(self) -> "Full":
            return self

        def __exit__(self, *_: object) -> None:
            self._file.close()

        def write(self, _: bytes) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    fdopen, opened = os.fdopen, Path.open
    monkeypatch.setattr(os, "fdopen", lambda *args: Full(fdopen(*args)))
    monkeypatch.setattr(Path, "open", lambda self, mode: Full(opened(self, mode)))
    with pytest.raises(OSError, match="No space left") as caught:
        write(tmp_path / "kit", b"x")
    assert caught.value.filename == str(tmp_path / "kit")


def test_a_database_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    connection = open_database(path, create=True, migrations=["CREATE TABLE t (x BLOB);"])
    connection.execute("PRAGMA max_page_count = 3")
    with pytest.raises(SynodError) as caught, transaction(connection):
        connection.execute("INSERT INTO t VALUES (zeroblob(1000000))")
    assert caught.value.code is Code.STORAGE
    assert f"the database at {path} cannot be used (SQLITE_FULL: the disk is full)." in str(caught.value)
    connection.close()
    with pytest.raises(SynodError) as caught, storage_errors(connection):
        connection.execute("SELECT 1")
    assert "the database cannot be used" in str(caught.value)
    with pytest.raises(SynodError) as caught, storage_errors(sqlite3.connect(":memory:")):
        raise OSError
    assert "the database cannot be used (OSError)" in str(caught.value)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes(shell: str) -> None:
    kind = get_completion_class(shell)
    assert kind is not None
    completion = kind(main, {}, "synod", "_SYNOD_COMPLETE")
    assert "_SYNOD_COMPLETE" in completion.source()
    assert [item.value for item in completion.get_completions(["party"], "sh")] == ["show"]
