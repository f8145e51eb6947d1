"""Logs: one JSON object a line, on stderr. Values come only from named fields, and never from data."""

import json
import logging
import sys
import threading
import traceback
from datetime import UTC, datetime
from types import TracebackType

_STANDARD = set(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """Time, level, logger, what happened, and the fields that were given. A traceback is cut to its frames, because
    an exception's text may hold a value.
    """

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **{key: value for key, value in record.__dict__.items() if key not in _STANDARD},
        }
        if record.exc_info and record.exc_info[0] is not None:
            frames = traceback.extract_tb(record.exc_info[2])
            line["error"] = record.exc_info[0].__name__
            line["frames"] = [f"{frame.name} ({frame.filename.rsplit('/', 1)[-1]}:{frame.lineno})" for frame in frames]
        return json.dumps(line, ensure_ascii=False)


def start_logging() -> None:
    """Sends the program's logs to stderr; an exception that nobody catches is a line too, without its text."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    sys.excepthook = _log_uncaught
    threading.excepthook = lambda raised: _log_uncaught(raised.exc_type, raised.exc_value, raised.exc_traceback)
    sys.unraisablehook = lambda raised: _log_uncaught(raised.exc_type, raised.exc_value, raised.exc_traceback)


def write_defect(logger: str, error: BaseException) -> None:
    """The same line of an exception that was caught and never should have been, for a program that keeps no log."""
    raised = (type(error), error, error.__traceback__)
    record = logging.LogRecord(logger, logging.ERROR, "", 0, "a defect", None, raised)
    sys.stderr.write(f"{JsonLines().format(record)}\n")
    sys.stderr.flush()


def _log_uncaught(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
    if not issubclass(kind, SystemExit):  # by which a thread may end itself
        told = kind, error or BaseException(), trace
        logging.getLogger("synod").error("an exception that nobody caught", exc_info=told)
