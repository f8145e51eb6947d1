"""Logs: one JSON object a line, named fields only, and never the text of an exception."""

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

from synod.common.runtime.logs import JsonLines

ROOT = Path(__file__).resolve().parents[4]


def formatted(message: str, *args: object, error: BaseException | None = None, **fields: Any) -> dict[str, Any]:
    info = (type(error), error, error.__traceback__) if error else None
    record = logging.getLogger("synod.party").makeRecord(
        "synod.party", logging.WARNING, "daemon.py", 7, message, args, info, extra=fields
    )
    line = JsonLines().format(record)
    assert "\n" not in line
    found: dict[str, Any] = json.loads(line)
    return found


def test_a_line_has_time_level_room_event_and_the_named_fields() -> None:
    line = formatted("answered", study="care", bytes=5)
    assert set(line) == {"time", "level", "logger", "event", "study", "bytes"}
    assert (line["level"], line["logger"], line["event"]) == ("warning", "synod.party", "answered")
    assert (line["study"], line["bytes"]) == ("care", 5)
    assert line["time"].endswith("+00:00")


def test_an_event_stays_on_its_line() -> None:
    assert formatted("two\nlines %s", "\u2028x", why="a\nb")["event"] == "two\nlines \u2028x"


def trouble(value: str) -> BaseException:
    try:
        try:
            int(value)
        except ValueError as error:
            raise RuntimeError(f"row of {value}") from error
    except RuntimeError as error:
        error.add_note(f"note on {value}")
        return error
    raise AssertionError


def test_an_exception_leaves_its_name_and_frames_and_no_text() -> None:
    line = formatted("a defect", error=trouble("patient 4711"))
    assert line["error"] == "RuntimeError"
    assert any(frame.startswith("trouble (test_logs.py:") for frame in line["frames"])
    assert "4711" not in json.dumps(line)
    assert "patient" not in json.dumps(line)


PROGRAM = """
import logging
from synod.common.runtime.logs import start_logging
start_logging()
logging.getLogger("synod.curator").info("taken", extra={"study": "care"})
logging.getLogger("synod.curator").debug("unheard")
try:
    raise ValueError("patient 4711")
except ValueError:
    logging.getLogger("grpc").exception("a defect")
"""


def test_the_programs_logs_go_to_stderr_as_json() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    taken, defect = (json.loads(line) for line in done.stderr.splitlines())
    assert done.stdout == ""
    assert (taken["event"], taken["study"], taken["level"]) == ("taken", "care", "info")
    assert (defect["error"], defect["logger"]) == ("ValueError", "grpc")
    assert "4711" not in done.stderr


UNCAUGHT = """
import threading
from synod.common.runtime.logs import start_logging
class Held:
    def __del__(self):
        raise ValueError("patient 4711")
def fail():
    raise ValueError("patient 4711")
start_logging()
thread = threading.Thread(target=fail)
thread.start()
thread.join()
held = Held()
del held
fail()
"""


def test_an_exception_that_nobody_catches_is_a_line_without_its_text() -> None:
    """Whether it ends a thread, an object's life (so do those that gRPC drops while it stops), or the program."""
    done = subprocess.run(
        [sys.executable, "-c", UNCAUGHT], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert done.returncode == 1
    assert [(line["event"], line["error"]) for line in lines] == [("an exception that nobody caught", "ValueError")] * 3
    assert "4711" not in done.stderr
