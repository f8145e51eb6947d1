"""The program as its user sees it: what it prints where, and how it ends."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner

from synod.deploy.cli.main import main
from tests.support.keys import pinned
from tests.support.studies import study_document

ROW = "F,30,500,a"
HEADER = "sex,age,income,ward"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a command ended."""

    code: int
    out: str
    err: str


def synod(*arguments: object, stdin: str = "") -> Ending:
    """Runs a command to its end."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return Ending(result.exit_code, result.stdout, result.stderr)


def complaint(ending: Ending, code: int) -> str:
    """The one line on stderr of a command that failed with `code`."""
    assert ending.code == code, (ending.code, ending.out, ending.err)
    assert ending.err.startswith("synod: "), ending.err
    assert ending.err.endswith("\n")
    line = ending.err[:-1]
    assert "\n" not in line, "an error is one line"
    assert "Traceback" not in line
    assert line.endswith((".", ")", "?")), line
    return line.removeprefix("synod: ")


def write_party(folder: Path, name: str = "north", **changes: Any) -> Path:
    """A party's configuration and a table of three rows; returns the configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "name": name,
        "address": "127.0.0.1:1",
        "state": "state",
        "curator": pinned(0),
        "dataset": "patients",
        "source": "patients.csv",
        "max_epsilon_total": 2,
        "min_key_bits": 2048,
        "tls": {"ca": "ca.pem", "certificate": f"{name}.pem", "key": f"{name}.key"},
        **changes,
    }
    config = folder / "party.yaml"
    config.write_text(yaml.safe_dump(settings))
    (folder / "patients.csv").write_text("\n".join([HEADER, ROW, "M,40,,b", "F,50,1000,c"]) + "\n")
    return config


def write_study(path: Path, **changes: Any) -> Path:
    """A study file; `roster` maps names to keys and rows."""
    roster = changes.pop("roster", {"north": (pinned(1), 3), "valley": (pinned(2), 7)})
    entries = [{"name": name, "key": key, "rows": rows} for name, (key, rows) in roster.items()]
    document = study_document(**{"epsilon": 1, "seed": None, "roster": entries, **changes})
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path
